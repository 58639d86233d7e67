// Simple C++ classes and enumerations as Python classes.
//
// An instance holds a shared pointer, so values, references and pointers of a bound class refer to one object.
#pragma once
#include "bind_function.h"

namespace pybind11 {

// ---- classes
namespace detail {

struct Instance {
  PyObject_HEAD
  std::shared_ptr<void>* value;
};
template <class T>
struct Bound {  // the Python class of a C++ class, once it is bound
  static inline PyTypeObject* type = nullptr;
};
inline PyObject* new_instance(PyTypeObject* type, PyObject*, PyObject*) { return type->tp_alloc(type, 0); }
inline void delete_instance(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Instance*>(self)->value;
  type->tp_free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}
template <class T>
std::shared_ptr<T> pointer(PyObject* p) {
  PyTypeObject* type = Bound<T>::type;
  if (!type || !PyObject_TypeCheck(p, type)) pullback::no_cast(p, type ? type->tp_name : "a class that is bound");
  auto* value = reinterpret_cast<Instance*>(p)->value;
  if (!value) throw c10::TypeError("__init__() of the bound class was not called");
  return std::static_pointer_cast<T>(*value);
}
template <class T>
Object wrapped(std::shared_ptr<T> value) {
  if (!value) return pullback::none();
  PyTypeObject* type = Bound<T>::type;
  if (!type) throw c10::TypeError(pullback::message("Unable to convert function return value to a Python type! The C++ "
                                                    "class was not bound (py::class_)"));
  Object made = Object::steal(type->tp_alloc(type, 0));
  reinterpret_cast<Instance*>(made.get())->value = new std::shared_ptr<void>(std::move(value));
  return made;
}

}  // namespace detail

template <class T, class... Options>
class class_ : public object {
 public:
  template <class... E>
  class_(const handle& scope, const char* name, const E&... extra) {
    detail::Overload said;
    (detail::say(said, extra), ...);
    const std::string* full = new std::string(pullback::words(scope.held().attr("__name__").get()) + "." + name);
    const std::string* words = new std::string(said.words);
    PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(detail::new_instance)},
                           {Py_tp_dealloc, reinterpret_cast<void*>(detail::delete_instance)},
                           {Py_tp_doc, const_cast<char*>(words->c_str())},
                           {0, nullptr}};
    PyType_Spec spec = {full->c_str(), sizeof(detail::Instance), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    held_ = Object::steal(PyType_FromSpec(&spec));
    detail::Bound<T>::type = reinterpret_cast<PyTypeObject*>(Object(held_).release());
    scope.held().set_attr(name, held_);
  }
  template <class... A, class... E>
  class_& def(init<A...>, const E&... extra) {
    return method("__init__", [](object self, A... args) {
      auto* at = reinterpret_cast<detail::Instance*>(self.ptr());
      auto* made = new std::shared_ptr<void>(std::shared_ptr<T>(new T(std::forward<A>(args)...)));
      delete at->value;
      at->value = made;
    }, extra...);
  }
  template <class F, class... E>
  class_& def(const char* name, F&& f, const E&... extra) { return method(name, bound(std::forward<F>(f)), extra...); }
  template <class F, class... E>
  class_& def_static(const char* name, F&& f, const E&... extra) {
    Object made = detail::bind(held_, name, detail::overload(pullback::body_of(std::forward<F>(f)), false, extra...), Object());
    if (made) held_.set_attr(name, Object::steal(PyStaticMethod_New(made.get())));
    return *this;
  }
  template <class M, class... E>
  class_& def_readwrite(const char* name, M T::*member, const E&...) {
    return property(name, [member](T& self) -> M { return self.*member; },
                    [member](T& self, M value) { self.*member = std::move(value); });
  }
  template <class M, class... E>
  class_& def_readonly(const char* name, const M T::*member, const E&...) {
    return property(name, [member](T& self) -> M { return self.*member; }, nullptr);
  }
  template <class G, class... E>
  class_& def_property_readonly(const char* name, G&& get, const E&...) {
    return property(name, bound(std::forward<G>(get)), nullptr);
  }
  template <class G, class S, class... E>
  class_& def_property(const char* name, G&& get, S&& set, const E&...) {
    return property(name, bound(std::forward<G>(get)), bound(std::forward<S>(set)));
  }

 private:
  template <class R, class C, class... A>
  static auto bound(R (C::*f)(A...)) {
    return [f](T& self, A... args) -> R { return (self.*f)(std::forward<A>(args)...); };
  }
  template <class R, class C, class... A>
  static auto bound(R (C::*f)(A...) const) {
    return [f](const T& self, A... args) -> R { return (self.*f)(std::forward<A>(args)...); };
  }
  template <class F, std::enable_if_t<!std::is_member_function_pointer_v<std::decay_t<F>>, int> = 0>
  static std::decay_t<F> bound(F&& f) { return std::forward<F>(f); }
  template <class F, class... E>
  class_& method(const char* name, F&& f, const E&... extra) {
    using Guard = typename detail::GuardOf<E...>::type;
    Object made = detail::bind(held_, name, detail::overload(pullback::body_of<Guard>(std::forward<F>(f)), true, extra...), Object());
    if (made) held_.set_attr(name, Object::steal(PyInstanceMethod_New(made.get())));
    return *this;
  }
  template <class G, class S>
  class_& property(const char* name, G&& get, S&& set) {
    Object setter = pullback::none();
    if constexpr (!std::is_same_v<std::decay_t<S>, std::nullptr_t>) setter = pullback::callable(pullback::body_of(set));
    Object getter = pullback::callable(pullback::body_of(get));
    Object kind = Object::borrow(reinterpret_cast<PyObject*>(&PyProperty_Type));
    held_.set_attr(name, kind(getter, setter));
    return *this;
  }
};

template <class E>
class enum_ : public object {  // a Python enumeration, made again with each value
 public:
  enum_(const handle& scope, const char* name, const char* = "") : scope_(scope.held()), name_(name) {}
  enum_& value(const char* name, E v, const char* = nullptr) {
    values_.emplace_back(name, static_cast<int64_t>(v));
    held_ = pullback::bridge().call("enumeration", scope_, pullback::text(name_), pullback::to_python(values_));
    kind() = held_.get();
    return *this;
  }
  enum_& export_values() {
    for (const auto& [name, v] : values_) scope_.set_attr(name.c_str(), held_.attr(name.c_str()));
    return *this;
  }
  static PyObject*& kind() {
    static PyObject* made = nullptr;
    return made;
  }

 private:
  Object scope_;
  std::string name_;
  std::vector<std::pair<std::string, int64_t>> values_;
};

}  // namespace pybind11

namespace pullback {

template <class T>
struct Cast<T, std::enable_if_t<std::is_enum_v<T>>> {
  static Object to(T v) {
    PyObject* kind = pybind11::enum_<T>::kind();
    Object number = integer(static_cast<long long>(v));
    return kind ? Object::borrow(kind)(number) : number;
  }
  static T from(PyObject* p) {
    PyObject* kind = pybind11::enum_<T>::kind();
    if (kind && PyObject_IsInstance(p, kind) != 1) no_cast(p, "a value of the enumeration");
    return static_cast<T>(Cast<int64_t>::from(p));
  }
  static std::string schema() { return "int"; }
  static std::string python() {
    PyObject* kind = pybind11::enum_<T>::kind();
    return kind ? reinterpret_cast<PyTypeObject*>(kind)->tp_name : "int";
  }
};
template <class T>
struct Cast<std::shared_ptr<T>> {
  static Object to(const std::shared_ptr<T>& v) { return pybind11::detail::wrapped(v); }
  static std::shared_ptr<T> from(PyObject* p) { return pybind11::detail::pointer<T>(p); }
  static std::string schema() { return "Any"; }
  static std::string python() { return "object"; }
};
// Any other class is one that was bound: values are copied out, references are to the instance's own.
template <class T, class>
struct Cast {
  static_assert(std::is_class_v<T>, "this C++ type has no Python counterpart");
  static Object to(const T& v) { return pybind11::detail::wrapped(std::make_shared<T>(v)); }
  static T& from(PyObject* p) { return *pybind11::detail::pointer<T>(p); }
  static std::string schema() { return "Any"; }
  static std::string python() {
    PyTypeObject* type = pybind11::detail::Bound<T>::type;
    return type ? type->tp_name : "object";
  }
};
template <class T>
struct Cast<T*, std::enable_if_t<std::is_class_v<T>>> {
  static Object to(T* v) { return v ? pybind11::detail::wrapped(std::shared_ptr<T>(v)) : none(); }
  static T* from(PyObject* p) { return p == Py_None ? nullptr : pybind11::detail::pointer<T>(p).get(); }
  static std::string schema() { return "Any"; }
  static std::string python() { return Cast<T>::python(); }
};
template <class R, class... A>
struct Cast<std::function<R(A...)>> {  // a Python callable
  static Object to(const std::function<R(A...)>& f) { return f ? callable(body_of(f)) : none(); }
  static std::function<R(A...)> from(PyObject* p) {
    if (!PyCallable_Check(p)) no_cast(p, "a function");
    Object held = Object::borrow(p);
    return [held](A... args) -> R {
      Lock lock;
      return Cast<R>::from(held(move_to_python(args)...).get());
    };
  }
  static std::string schema() { return "Any"; }
  static std::string python() { return "Callable"; }
};

}  // namespace pullback
