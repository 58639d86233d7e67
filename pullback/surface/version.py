"""Which version this is, and of which libraries it was built: of no CUDA, ROCm or XPU."""

__version__ = "2.13.0+pullback"
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
debug = False
git_version = "unknown"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
