// C++ functions as Python callables: their arguments come by `Cast`, their exceptions go as Python errors.
#pragma once
#include "functions.h"

namespace pullback {

// How a parameter of a C++ function is kept while the function runs, and handed to it.
template <class A, class = void>
struct Parameter {
  using T = std::remove_cv_t<std::remove_reference_t<A>>;
  using Kept = decltype(Cast<T>::from(nullptr));
  Kept kept;
  explicit Parameter(PyObject* p) : kept(Cast<T>::from(p)) {}
  decltype(auto) get() {
    if constexpr (std::is_lvalue_reference_v<A> || std::is_lvalue_reference_v<Kept>) return static_cast<std::add_lvalue_reference_t<Kept>>(kept);
    else return std::move(kept);
  }
};
template <class T>
struct Parameter<std::optional<c10::ArrayRef<T>>> {  // the array refers to what is kept here
  std::optional<std::vector<T>> kept;
  explicit Parameter(PyObject* p) : kept(Cast<std::optional<std::vector<T>>>::from(p)) {}
  std::optional<c10::ArrayRef<T>> get() {
    return kept ? std::optional<c10::ArrayRef<T>>(c10::ArrayRef<T>(*kept)) : std::nullopt;
  }
};
template <class T>
struct Parameter<c10::ArrayRef<T>> {
  std::vector<T> kept;
  explicit Parameter(PyObject* p) : kept(Cast<std::vector<T>>::from(p)) {}
  c10::ArrayRef<T> get() { return kept; }
};
template <class T>
struct Parameter<const c10::ArrayRef<T>&> : Parameter<c10::ArrayRef<T>> {
  using Parameter<c10::ArrayRef<T>>::Parameter;
};
template <>
struct Parameter<const char*> {
  std::string kept;
  explicit Parameter(PyObject* p) : kept(Cast<std::string>::from(p)) {}
  const char* get() { return kept.c_str(); }
};

// The signature of anything that can be called.
template <class F>
struct Signature : Signature<decltype(&std::decay_t<F>::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using type = R(A...);
};
template <class R, class... A>
struct Signature<R(A...)> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using type = R(A...);
};
template <class R, class... A>
struct Signature<R (*)(A...) noexcept> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (C::*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (C::*)(A...) const> {};

template <class T>
using Bare = std::remove_cv_t<std::remove_reference_t<T>>;

// What Python code needs to know of a C++ function; `run` takes exactly `count` arguments.
struct Body {
  size_t count = 0;
  std::vector<std::string> schema_types, python_types;
  std::string schema_return, python_return;
  virtual Object run(PyObject* const* args) = 0;
  virtual ~Body() = default;
};

template <class F, class Guard, class R, class... A>
struct BodyOf : Body {
  F function;
  explicit BodyOf(F f) : function(std::move(f)) {
    count = sizeof...(A);
    schema_types = {Cast<Bare<A>>::schema()...};
    python_types = {Cast<Bare<A>>::python()...};
    schema_return = Cast<Bare<R>>::schema();
    python_return = Cast<Bare<R>>::python();
  }
  Object run(PyObject* const* args) override { return with(args, std::index_sequence_for<A...>()); }

 private:
  template <size_t... I>
  Object with(PyObject* const* args, std::index_sequence<I...>) {
    (void)args;
    std::tuple<Parameter<A>...> kept{Parameter<A>(args[I])...};
    try {
      auto run = [&]() -> R {
        [[maybe_unused]] Guard guard;
        return function(static_cast<A>(std::get<I>(kept).get())...);
      };
      if constexpr (std::is_void_v<R>) return run(), none();
      else return move_to_python(run());
    } catch (const NoCast& e) {  // of the function's own making: its arguments were right
      throw c10::TypeError(e.msg());
    }
  }
};
struct NoGuard {};
template <class Guard, class F, class R, class... A>
Body* body_as(F&& f, R (*)(A...)) {
  return new BodyOf<std::decay_t<F>, Guard, R, A...>(std::forward<F>(f));
}
template <class Guard = NoGuard, class F>
Body* body_of(F&& f) {
  return body_as<Guard>(std::forward<F>(f), static_cast<typename Signature<std::decay_t<F>>::type*>(nullptr));
}

inline void delete_body(PyObject* capsule) {
  delete static_cast<Body*>(PyCapsule_GetPointer(capsule, "pullback.body"));
}
inline PyObject* call_body(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* body = static_cast<Body*>(PyCapsule_GetPointer(self, "pullback.body"));
  if (static_cast<size_t>(count) != body->count)
    return PyErr_Format(PyExc_TypeError, "expected %zu arguments, got %zd", body->count, count);
  try {
    return body->run(args).release();
  } catch (...) {
    raise_current();
    return nullptr;
  }
}
// A function of exactly its arguments, by position.
inline Object callable(Body* body) {
  static PyMethodDef definition = {"cpp_function", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_body)),
                                   METH_FASTCALL, nullptr};
  Lock lock;
  Object capsule = Object::steal(PyCapsule_New(body, "pullback.body", delete_body));
  return Object::steal(PyCFunction_NewEx(&definition, capsule.get(), nullptr));
}

}  // namespace pullback

namespace at {
template <class F>
unsigned Tensor::register_hook(F&& hook) const {
  using R = std::invoke_result_t<F, Tensor>;
  pullback::Object made = pullback::callable(pullback::body_of([hook](Tensor g) -> R { return hook(std::move(g)); }));
  return static_cast<unsigned>(pullback::as_int(object().call("register_hook", made).attr("id").get()));
}
}  // namespace at
