"""Building and loading C++ extensions: what is kept, what is said, what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pullback as torch
import pullback.utils.cpp_extension as cpp

ROOT = Path(__file__).parents[2]
needs_compiler = pytest.mark.skipif(
    not cpp.check_compiler_ok_for_platform(cpp.get_cxx_compiler()), reason="no C++ compiler"
)
PLUS = "torch::Tensor plus(torch::Tensor x, int64_t n) { return x + n; }"
# Registers and reads without the large headers: quick to compile.
TINY = '#include <Python.h>\nextern "C" __attribute__((visibility("default"))) PyObject* PyInit_%s() { static PyModuleDef d = {PyModuleDef_HEAD_INIT, "%s", "%s"}; return PyModule_Create(&d); }'  # fmt: skip


def python(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


@needs_compiler
def test_inline_functions(tmp_path, capsys):
    more = ["torch::Tensor minus(torch::Tensor x, int64_t n) { return x - n; }"]
    m = cpp.load_inline(
        "inline_functions",
        [PLUS, *more],
        functions={"plus": 'adds "n"', "minus": ""},
        build_directory=str(tmp_path),
        verbose=True,
    )
    assert m.plus(torch.ones(2), 2).tolist() == [3, 3] and m.minus(torch.ones(2), 1).tolist() == [0, 0]
    assert 'adds "n"' in m.plus.__doc__
    said = capsys.readouterr().out
    assert "Building extension module inline_functions" in said and "-std=c++17" in said and "Loading extension" in said


@needs_compiler
def test_what_was_built_is_kept_by_content(tmp_path, capsys):
    def load(words: str):
        source = TINY % ("kept", "kept", words)
        return cpp.load_inline("kept", source, build_directory=str(tmp_path), no_implicit_headers=True, verbose=True)

    first = load("one")
    assert first.__doc__ == "one" and "Building" in capsys.readouterr().out
    assert load("one") is first and "No modifications detected" in capsys.readouterr().out
    second = load("two")
    assert second.__doc__ == "two" and first.__doc__ == "one"
    assert Path(first.__file__).name == "kept.so" and Path(second.__file__).name == "kept_v1.so"


@needs_compiler
def test_the_folder_is_chosen_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    assert cpp.get_default_build_root() == str(tmp_path)
    source = tmp_path / "tiny.cpp"
    source.write_text(TINY % ("tiny", "tiny", "here"))
    m = cpp.load("tiny", str(source), extra_cflags=["-DX=1"])
    assert m.__doc__ == "here" and Path(m.__file__) == tmp_path / "tiny" / "tiny.so"


@needs_compiler
def test_several_files_and_folders(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "words.h").write_text("const char* words();")
    (tmp_path / "a.cpp").write_text('#include "words.h"\nconst char* words() { return WORDS; }')
    (tmp_path / "b.cpp").write_text('#include "words.h"\n' + (TINY % ("two_files", "two_files", "%s")).replace('"%s"', "words()"))  # fmt: skip

    def load():
        return cpp.load(
            "two_files",
            [str(tmp_path / "a.cpp"), str(tmp_path / "b.cpp")],
            extra_cflags=['-DWORDS="said"'],
            extra_include_paths=[str(tmp_path / "include")],
            build_directory=str(tmp_path / "build"),
        )

    first = load()
    assert first.__doc__ == "said" and load() is first
    with open(tmp_path / "include" / "words.h", "a") as header:
        header.write('\n#undef WORDS\n#define WORDS "changed"\n')
    assert load().__doc__ == "changed"  # a file that is included counts


@needs_compiler
def test_the_compilers_words_are_in_the_error(tmp_path):
    with pytest.raises(RuntimeError, match=r"(?s)Error building extension 'broken'.*no_such_thing"):
        cpp.load_inline(
            "broken", "int f() { return no_such_thing; }", build_directory=str(tmp_path), no_implicit_headers=True
        )
    assert not list(tmp_path.glob("*.so"))


def test_no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(RuntimeError, match="need a C\\+\\+ compiler, and none was found .*no-such-compiler"):
        cpp.load_inline("none", PLUS, functions="plus", build_directory=str(tmp_path))


def test_other_devices_are_refused():
    with pytest.raises(OSError, match="for the CPU only"):
        cpp.CUDAExtension("x", ["x.cu"])
    with pytest.raises(OSError, match="cuda_sources"):
        cpp.load_inline("x", "", cuda_sources="__global__ void f() {}")
    with pytest.raises(OSError, match="for the CPU only"):
        cpp.load("x", ["x.cu"])
    with pytest.raises(OSError, match="CUDA_HOME"):
        cpp.include_paths("cuda")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        cpp.load("x", ["/nowhere/x.cpp"])
    with pytest.raises(ValueError, match="identifier"):
        cpp.load_inline("not-a-name", "")
    assert cpp.CUDA_HOME is None


def test_places():
    assert all(Path(p).is_dir() for p in cpp.include_paths())
    assert any((Path(p) / "torch" / "extension.h").exists() for p in cpp.include_paths())
    assert cpp.library_paths() == []
    if not cpp.is_ninja_available():
        with pytest.raises(RuntimeError, match="Ninja is required"):
            cpp.verify_ninja_availability()


def test_importing_costs_nothing():
    said = python("""
        import pullback, sys
        before = set(sys.modules)
        import pullback.utils.cpp_extension
        print(sorted(m for m in set(sys.modules) - before if not m.startswith("pullback.utils")))
    """)
    assert not {"setuptools", "distutils", "hipify", "ctypes"} & set(eval(said)), said


@needs_compiler
def test_errors_while_registering(tmp_path):
    """A block that fails says so to whoever loads it; the process lives on."""
    source = """
        #include <torch/library.h>
        at::Tensor f(const at::Tensor& x, double s) { return x * s; }
        TORCH_LIBRARY(cpp_bad_block, m) { m.def("f(Tensor x) -> Tensor", f); }
    """
    said = python(f"""
        from pullback.utils.cpp_extension import load_inline
        try:
            load_inline("bad", {source!r}, build_directory={str(tmp_path)!r}, is_python_module=False, no_implicit_headers=True)
        except RuntimeError as error:
            print(error)
    """)
    assert (
        "doesn't match the expected function schema" in said and "The number of arguments is different. 1 vs 2" in said
    )


@needs_compiler
def test_autograd_kernels(tmp_path):
    """A kernel at Autograd whose function calls the operator again, below autograd."""
    source = """
        at::Tensor twice_cpu(const at::Tensor& x, int64_t n) { return x * 2 * n; }
        at::Tensor twice(const at::Tensor& x, int64_t n) {
          static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("cpp_autograd_kernel::twice", "").typed<decltype(twice)>();
          return op.call(x, n);
        }
        struct Twice : torch::autograd::Function<Twice> {
          static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, int64_t n) {
            at::AutoDispatchBelowADInplaceOrView below;
            ctx->saved_data["n"] = n;
            return twice(x, n);
          }
          static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::variable_list g) {
            return {g[0] * 2 * ctx->saved_data["n"].toInt(), at::Tensor()};
          }
        };
        at::Tensor twice_autograd(const at::Tensor& x, int64_t n) { return Twice::apply(x, n); }
        TORCH_LIBRARY_FRAGMENT(cpp_autograd_kernel, m) { m.def("twice(Tensor x, int n=1) -> Tensor"); }
        TORCH_LIBRARY_IMPL(cpp_autograd_kernel, CPU, m) { m.impl("twice", twice_cpu); }
        TORCH_LIBRARY_IMPL(cpp_autograd_kernel, Autograd, m) { m.impl("twice", twice_autograd); }
    """
    path = cpp.load_inline("autograd_kernel", source, build_directory=str(tmp_path), is_python_module=False)
    assert path == str(tmp_path / "autograd_kernel.so")
    x = torch.ones(2, requires_grad=True)
    y = torch.ops.cpp_autograd_kernel.twice(x, 3)
    assert y.tolist() == [6, 6] and y.grad_fn.name() == "torch::autograd::CppNode<Twice>"
    y.sum().backward()
    assert x.grad.tolist() == [6, 6] and torch.ops.cpp_autograd_kernel.twice(x.detach()).tolist() == [2, 2]


@needs_compiler
def test_setup_script(tmp_path):
    pytest.importorskip("setuptools")
    (tmp_path / "ext.cpp").write_text(TINY.replace("PyInit_%s", "PyInit_by_setup").replace('"%s", "%s"', "NAME, NAME"))
    text = (tmp_path / "ext.cpp").read_text()
    (tmp_path / "ext.cpp").write_text(
        "#define TEXT_(x) #x\n#define TEXT(x) TEXT_(x)\n#define NAME TEXT(TORCH_EXTENSION_NAME)\n" + text
    )
    (tmp_path / "setup.py").write_text(
        textwrap.dedent("""
            from setuptools import setup
            from pullback.utils.cpp_extension import BuildExtension, CppExtension
            setup(
                name="by_setup",
                ext_modules=[CppExtension("by_setup", ["ext.cpp"], extra_compile_args={"cxx": ["-O0"]})],
                cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True, use_ninja=False)},
            )
        """)
    )
    result = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "by_setup.so").exists()
    said = python(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import by_setup; print(by_setup.__doc__)")
    assert said == "by_setup\n"
