// TORCH_LIBRARY, TORCH_LIBRARY_FRAGMENT, TORCH_LIBRARY_IMPL: operators and kernels of `torch.library`, from C++.
//
// The blocks run when the shared library is loaded. What goes wrong in one is kept, and raised by whoever loads it.
#pragma once
#include "callable.h"

namespace c10 {

enum class DispatchKey : int {
  Undefined, CPU, CUDA, Meta, Autograd, AutogradCPU, AutogradCUDA, AutogradOther, ADInplaceOrView, CompositeImplicitAutograd,
  CompositeExplicitAutograd, CompositeExplicitAutogradNonFunctional, SparseCPU, QuantizedCPU, AutocastCPU, AutocastCUDA,
  BackendSelect, Python, FuncTorchBatched, PrivateUse1, XLA, MPS, XPU, CatchAll
};
inline const char* toString(DispatchKey key) {
  static const char* const names[] = {
      "Undefined", "CPU", "CUDA", "Meta", "Autograd", "AutogradCPU", "AutogradCUDA", "AutogradOther", "ADInplaceOrView",
      "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "SparseCPU",
      "QuantizedCPU", "AutocastCPU", "AutocastCUDA", "BackendSelect", "Python", "FuncTorchBatched", "PrivateUse1", "XLA",
      "MPS", "XPU", "CompositeImplicitAutograd"};
  return names[static_cast<int>(key)];
}

// ---- calling operators by name: Dispatcher::singleton().findSchemaOrThrow("ns::f", "").typed<Tensor(Tensor)>()
template <class S>
class TypedOperatorHandle;
template <class R, class... A>
class TypedOperatorHandle<R(A...)> {
 public:
  explicit TypedOperatorHandle(pullback::Object op) : op_(std::move(op)) {}
  R call(A... args) const {
    return pullback::Cast<pullback::Bare<R>>::from(op_(pullback::move_to_python(args)...).get());
  }

 private:
  pullback::Object op_;
};
class OperatorHandle {
 public:
  explicit OperatorHandle(pullback::Object op) : op_(std::move(op)) {}
  template <class S>
  TypedOperatorHandle<S> typed() const { return TypedOperatorHandle<S>(op_); }

 private:
  pullback::Object op_;
};
class Dispatcher {
 public:
  static Dispatcher& singleton() {
    static Dispatcher one;
    return one;
  }
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload) const {
    return OperatorHandle(pullback::bridge().call("find_operator", pullback::text(name), pullback::text(overload)));
  }
};

}  // namespace c10

namespace at {
enum class Tag { pt2_compliant_tag, needs_fixed_stride_order, core, inplace_view, nondeterministic_seeded, pointwise };
}

namespace torch {

class CppFunction {  // a kernel: a C++ function, or one that passes its key by
 public:
  template <class F, std::enable_if_t<!std::is_same_v<std::decay_t<F>, CppFunction>, int> = 0>
  CppFunction(F&& f) {
    pullback::Body* body = pullback::body_of(std::forward<F>(f));
    types = pullback::to_python(body->schema_types);
    returns = pullback::text(body->schema_return);
    function = pullback::callable(body);
  }
  static CppFunction makeFallthrough() {
    CppFunction made;
    made.function = pullback::bridge().attr("fallthrough_kernel");
    made.types = made.returns = pullback::none();
    return made;
  }
  pullback::Object function, types, returns;
  std::string key;

 private:
  CppFunction() = default;
};
template <class F>
CppFunction dispatch(c10::DispatchKey key, F&& f) {
  CppFunction made(std::forward<F>(f));
  made.key = c10::toString(key);
  return made;
}
template <class F>
CppFunction dispatch(c10::DeviceType device, F&& f) {
  return dispatch(device == c10::kCUDA ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU, std::forward<F>(f));
}
inline const std::string& schema(const std::string& text) { return text; }

namespace autograd {
inline CppFunction autogradNotImplementedFallback() { return CppFunction::makeFallthrough(); }
}  // namespace autograd

class Library {
 public:
  Library(const char* kind, const char* ns, const char* key, const char* file, int line)
      : object_(pullback::bridge().call("library", pullback::text(ns), pullback::text(kind), pullback::text(key),
                                        pullback::text(pullback::message(file, ":", line)))) {}

  Library& def(const std::string& schema, const std::vector<at::Tag>& = {}) & {
    object_.call("define", pullback::text(schema));
    return *this;
  }
  template <class F>
  Library& def(const std::string& name_or_schema, F&& f, const std::vector<at::Tag>& = {}) & {
    CppFunction kernel(std::forward<F>(f));
    object_.call("define_with", pullback::text(name_or_schema), kernel.function, kernel.types, kernel.returns,
                 pullback::text(kernel.key));
    return *this;
  }
  template <class F>
  Library& impl(const std::string& name, F&& f) & {
    CppFunction kernel(std::forward<F>(f));
    object_.call("impl", pullback::text(name), kernel.function, kernel.types, kernel.returns, pullback::text(kernel.key));
    return *this;
  }
  template <class F>
  Library& impl(const std::string& name, c10::DispatchKey key, F&& f) & {
    return impl(name, dispatch(key, std::forward<F>(f)));
  }
  template <class F>
  Library& fallback(F&& f) & {
    CppFunction kernel(std::forward<F>(f));
    object_.call("fallback", kernel.function);
    return *this;
  }
  void set_python_module(const char*, const char* = "") {}  // where fake rules live: they are found when imported
  void impl_abstract_pystub(const char*, const char* = "") {}
  template <class T>
  void class_(const std::string&) {
    static_assert(sizeof(T) == 0, "custom classes (torch::class_, m.class_<T>) are not supported by pullback: bind the "
                                  "class to Python with PYBIND11_MODULE and py::class_<T>");
  }

 private:
  pullback::Object object_;
};

namespace detail {
struct TorchLibraryInit {
  TorchLibraryInit(const char* kind, void (*fill)(Library&), const char* ns, const char* key, const char* file, int line) {
    pullback::Lock lock;
    try {
      Library library(kind, ns, key, file, line);
      fill(library);
    } catch (...) {  // nothing may leave an initializer: whoever loads the library raises it
      pullback::raise_current();
      PyObject *t, *v, *tb;
      PyErr_Fetch(&t, &v, &tb);
      PyErr_NormalizeException(&t, &v, &tb);
      pullback::bridge().call("note_failure", pullback::Object::borrow(v));
      Py_XDECREF(t), Py_XDECREF(v), Py_XDECREF(tb);
    }
  }
};
}  // namespace detail

}  // namespace torch

#define PULLBACK_JOIN_(a, b) a##b
#define PULLBACK_JOIN(a, b) PULLBACK_JOIN_(a, b)
#define PULLBACK_LIBRARY(kind, ns, key, m, id)                                                        \
  static void PULLBACK_JOIN(pullback_library_fill_, id)(::torch::Library&);                           \
  static const ::torch::detail::TorchLibraryInit PULLBACK_JOIN(pullback_library_init_, id)(           \
      kind, &PULLBACK_JOIN(pullback_library_fill_, id), ns, key, __FILE__, __LINE__);                 \
  void PULLBACK_JOIN(pullback_library_fill_, id)([[maybe_unused]] ::torch::Library & m)
#define TORCH_LIBRARY(ns, m) PULLBACK_LIBRARY("DEF", #ns, "", m, PULLBACK_JOIN(ns##_, __COUNTER__))
#define TORCH_LIBRARY_FRAGMENT(ns, m) PULLBACK_LIBRARY("FRAGMENT", #ns, "", m, PULLBACK_JOIN(ns##_, __COUNTER__))
#define TORCH_LIBRARY_IMPL(ns, k, m) PULLBACK_LIBRARY("IMPL", #ns, #k, m, PULLBACK_JOIN(ns##_##k##_, __COUNTER__))
#define TORCH_FN(f) (&(f))
#define TORCH_FN_TYPE(f) decltype(&(f))
#define TORCH_SELECTIVE_NAME(n) n
#define TORCH_SELECTIVE_SCHEMA(n) n
