"""C++ extensions: headers in PyTorch's names (`include/`), and the Python they call.

In: C++ that includes `torch/extension.h`. Out: shared libraries whose tensors are this package's tensor objects, whose
operators are operators of `torch.library`, and whose autograd functions are nodes of the engine. `bridge` is what the
headers import; `compiler` turns sources into a library; `declarations` writes the headers that follow from the operators
there are. The public functions are in `utils.cpp_extension`.
"""
