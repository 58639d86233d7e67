"""The optional extension in C; everything else is in pyproject.toml. Without a compiler, NumPy does its work."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "pullback.core._native",
            ["pullback/core/_native.c"],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math"],
            optional=True,
        ),
        Extension("pullback.core._objects", ["pullback/core/_objects.c"], extra_compile_args=["-O2"], optional=True),
    ]
)
