"""Settings of `export`. `inert` ones are read by nothing here: their values say what is done."""

from __future__ import annotations

from ..core.settings import Settings

config = Settings(
    "torch._export.config",
    detect_non_strict_fake_tensor_leaks=False,  # True: export warns of fakes that outlive it
    inert=dict(
        use_new_tracer_experimental=False,  # programs are traced by calling them
        use_legacy_dynamo_graph_capture=False,
        error_on_lifted_constant_tensors=False,
        use_new_tracer=False,
    ),
)
