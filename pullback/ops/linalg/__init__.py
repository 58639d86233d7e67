"""Linear algebra: factorizations, solving, spectra, determinants, norms and products of stacks of matrices.

The array kernels are in the modules named `*_kernels`, on LAPACK through `lapack`; the others declare the operators.
"""
