"""The optional extensions in C; everything else is in pyproject.toml. Without a compiler, Python and NumPy do their work."""

import os

from setuptools import Extension, setup

SOURCES = "pullback/core"
LOOPS = "-O3 -fwrapv -fno-math-errno -fno-trapping-math"
ROUNDED = "-ffp-contract=off"  # products and sums are rounded one by one, as the array library rounds them
# A loop with a choice in it is vectorised, two loops under a choice are not always.
WIDE = "-fopenmp-simd -fno-unswitch-loops --param=vect-max-peeling-for-alignment=0"

# name: (what it is built with, the headers it reads, without their `native_`)
EXTENSIONS = {
    "native": ("-O3 -fno-math-errno -fno-trapping-math", "pool rows channels jobs tops"),
    "elements": (f"{LOOPS} {ROUNDED} {WIDE}", "machine types elements special fits polynomials halved"),
    "network": (
        f"{LOOPS} -fopenmp-simd",
        "types elements matrices levels machine layers vectors products attention forms convolution direct planes pixels outputs windows",
    ),
    "products": (LOOPS, "arrays types levels machine factors vectors packed wholes"),
    "recurrent": (f"{LOOPS} -fopenmp-simd", "arrays types elements levels machine gated vectors packed recurrent"),
    "spatial": (f"{LOOPS} {ROUNDED} -fopenmp-simd", "arrays moves spatial grid"),
    "along": (f"{LOOPS} {ROUNDED}", "arrays moves types lanes elements along"),
    "places": (f"{LOOPS} {ROUNDED}", "arrays moves places"),
    "picks": (f"{LOOPS} {ROUNDED}", "arrays moves fronts"),
    "shapes": ("-O3 -fwrapv", "arrays moves layouts fronts shuffles"),
    "chains": (LOOPS, "arrays moves fronts types lanes elements chains"),
    "linalg": ("-O2 -fwrapv -fno-math-errno -Wno-strict-prototypes", "arrays moves signs spectral"),
    "fourier": (LOOPS, "arrays moves fourier"),
    "pools": (f"{LOOPS} {ROUNDED}", "arrays moves fronts layouts pools"),
    "sums": (LOOPS, "arrays moves types lanes elements sums"),
    "losses": (LOOPS, "arrays moves fronts types lanes elements losses classes"),
    "pairs": (f"{LOOPS} {ROUNDED}", "arrays moves fronts pairs"),
    "counts": (f"{LOOPS} {ROUNDED}", "arrays moves counts"),
    "blocks": (f"{LOOPS} {ROUNDED}", "arrays moves blocks"),
    "draws": (f"{LOOPS} {ROUNDED} -fopenmp-simd", "arrays moves fronts sources normals"),
    "trials": (f"{LOOPS} {ROUNDED}", "arrays moves fronts sources"),
    "makers": (f"{LOOPS} {ROUNDED}", "arrays moves fronts"),
    "halves": (LOOPS, "arrays moves narrow paired"),
    "narrow": (LOOPS, "arrays moves narrow types lanes elements widths"),
    "layouts": ("-O2", "arrays moves layouts"),
    "integers": (f"{LOOPS} {ROUNDED}", "arrays moves layouts"),
    "casts": (f"{LOOPS} {ROUNDED}", "arrays moves fronts layouts widths"),
    "views": ("-O2", "arrays moves"),
    "straight": ("-O2", "arrays moves"),
    "calls": ("-O2", ""),
    "conditions": ("-O2 -Wno-unused-function", "arrays"),
    "objects": ("-O2", "walks"),
    "device": ("-O2", ""),
}

setup(
    ext_modules=[
        Extension(
            f"pullback.core._{name}",
            [f"{SOURCES}/_{name}.c"],
            depends=[f"{SOURCES}/native_{part}.h" for part in headers.split()],
            extra_compile_args=flags.split(),
            optional=True,
        )
        for name, (flags, headers) in EXTENSIONS.items()
    ],
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
