"""Settings of symbolic sizes (`torch.fx.experimental._config`)."""

from __future__ import annotations

from ...core.settings import Settings

config = Settings(
    "torch.fx.experimental._config",
    use_duck_shape=True,  # sizes that are equal at first share a symbol
    # True: `guard_or_false` and its kin do not look at the example; in export, dynamic sizes whose example is 0 or 1 are symbols,
    # traced as 2 or more
    backed_size_oblivious=False,
    inert=dict(
        translation_validation=False,
        translation_validation_no_bisect=False,
        no_data_dependent_graph_break=False,
        symbol_guard_limit_before_specialize=None,
        print_specializations=False,
        inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY=False,
        validate_shape_env_version_key=False,
    ),
)
