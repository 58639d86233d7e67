"""`torch.distributed.elastic`: the record of errors. Ranks are started by `pullback launch` or `torch.distributed.run`."""
