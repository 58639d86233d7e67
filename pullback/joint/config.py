"""Settings of ahead-of-time autograd. `inert` ones are read by nothing here: their values say what is done."""

from __future__ import annotations

from ..core.settings import Settings

config = Settings(
    "torch._functorch.config",
    double_backward=True,  # False: differentiating a compiled backward raises, as it does in PyTorch
    ban_recompute_reductions=True,
    ban_recompute_used_far_apart=True,
    ban_recompute_long_fusible_chains=True,
    ban_recompute_materialized_backward=True,
    ban_recompute_not_in_allowlist=True,
    aggressive_recomputation=False,
    activation_memory_budget=1.0,
    treat_parameters_as_free_to_save=True,
    functionalize_rng_ops=False,  # True: exporting refuses; random operators are never made functional here
    debug_assert=False,  # True: a compiled function checks that its arguments are as it was compiled for
    fake_tensor_propagate_real_tensors=False,  # True: exporting runs the program on the example too, to know what data decides
    # Autocast in a backward: "off", as where backward() is called outside of it; "same_as_forward", as where the function
    # was compiled; or a list of the arguments of autocast contexts.
    backward_pass_autocast="off",
    inert=dict(
        fake_tensor_allow_unsafe_data_ptr_access=False,
        view_replay_for_aliased_outputs=True,
        donated_buffer=False,
        static_weight_shapes=True,
        enable_autograd_cache=False,
        check_custom_op_aliasing=False,  # results of custom operators are checked where they run, compiled or not
    ),
)
