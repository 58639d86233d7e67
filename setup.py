"""The optional extensions in C; everything else is in pyproject.toml. Without a compiler, Python and NumPy do their work."""

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
        ),
        Extension(
            "pullback.core._elements",
            [f"{SOURCES}/_elements.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("elements", "special", "fits", "polynomials")],
            extra_compile_args=[
                "-O3",
                "-fno-math-errno",
                "-fno-trapping-math",
                "-fwrapv",
                "-fopenmp-simd",
                "-fno-unswitch-loops",  # a loop with a choice in it is vectorised, two loops under a choice are not always
                "-ffp-contract=off",  # products and sums are rounded one by one, as the array library rounds them
                "--param=vect-max-peeling-for-alignment=0",
            ],
            optional=True,
        ),
        Extension(
            "pullback.core._network",
            [f"{SOURCES}/_network.c"],
            depends=[
                f"{SOURCES}/native_{part}.h"
                for part in ("elements", "layers", "products", "attention", "windows", "recurrent")
            ],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fopenmp-simd"],
            optional=True,
        ),
        Extension(
            "pullback.core._spatial",
            [f"{SOURCES}/_spatial.c"],
            depends=[f"{SOURCES}/native_spatial.h"],
            extra_compile_args=[
                "-O3",
                "-fno-math-errno",
                "-fno-trapping-math",
                "-fwrapv",
                "-fopenmp-simd",
                "-ffp-contract=off",
            ],
            optional=True,
        ),
        Extension(
            "pullback.core._along",
            [f"{SOURCES}/_along.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("arrays", "lanes", "elements", "along")],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-ffp-contract=off"],
            optional=True,
        ),
        Extension(
            "pullback.core._places",
            [f"{SOURCES}/_places.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("arrays", "moves", "places")],
            extra_compile_args=["-O3", "-fwrapv"],
            optional=True,
        ),
        Extension(
            "pullback.core._shapes",
            [f"{SOURCES}/_shapes.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("arrays", "moves")],
            extra_compile_args=["-O2", "-fwrapv"],
            optional=True,
        ),
        Extension(
            "pullback.core._linalg",
            [f"{SOURCES}/_linalg.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("arrays", "moves")],
            extra_compile_args=["-O2", "-fwrapv", "-fno-math-errno", "-Wno-strict-prototypes"],
            optional=True,
        ),
        Extension(
            "pullback.core._fourier",
            [f"{SOURCES}/_fourier.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("arrays", "moves", "fourier")],
            extra_compile_args=["-O3", "-fwrapv", "-fno-math-errno", "-fno-trapping-math"],
            optional=True,
        ),
        Extension(
            "pullback.core._pools",
            [f"{SOURCES}/_pools.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("arrays", "moves", "pools")],
            extra_compile_args=["-O2", "-fwrapv"],
            optional=True,
        ),
        Extension(
            "pullback.core._sums",
            [f"{SOURCES}/_sums.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("arrays", "moves", "lanes", "elements", "sums")],
            extra_compile_args=["-O3", "-fwrapv", "-fno-math-errno", "-fno-trapping-math"],
            optional=True,
        ),
        Extension(
            "pullback.core._losses",
            [f"{SOURCES}/_losses.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("arrays", "moves", "lanes", "elements", "losses")],
            extra_compile_args=["-O3", "-fwrapv", "-fno-math-errno", "-fno-trapping-math"],
            optional=True,
        ),
        Extension(
            "pullback.core._pairs",
            [f"{SOURCES}/_pairs.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in ("arrays", "moves", "pairs")],
            extra_compile_args=["-O3", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"],
            optional=True,
        ),
        Extension("pullback.core._calls", [f"{SOURCES}/_calls.c"], extra_compile_args=["-O2"], optional=True),
        Extension("pullback.core._objects", [f"{SOURCES}/_objects.c"], extra_compile_args=["-O2"], optional=True),
        Extension("pullback.core._device", [f"{SOURCES}/_device.c"], extra_compile_args=["-O2"], optional=True),
    ]
)
