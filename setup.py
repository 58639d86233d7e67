"""The optional extension in C; everything else is in pyproject.toml. Without a compiler, NumPy does its work."""

from setuptools import Extension, setup

SOURCES = "pullback/core"

setup(
    ext_modules=[
        Extension(
            "pullback.core._native",
            [f"{SOURCES}/_native.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("pool", "rows", "channels", "jobs")],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math"],
            optional=True,
        )
    ]
)
