"""The reductions that PyTorch lists for masked tensors; `rules.REDUCTIONS` has those that are implemented."""

REDUCE_NAMES = ["sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "norm", "var", "std"]
