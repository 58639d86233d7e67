// Python objects by pybind11's names: handles, and the common types.
#pragma once
#include "callable.h"

namespace pybind11 {

using pullback::Object;

// ---- Python values
class object;
class handle {
 public:
  handle() = default;
  handle(PyObject* p) : held_(Object::borrow(p)) {}
  handle(Object o) : held_(std::move(o)) {}
  PyObject* ptr() const { return held_.get(); }
  const Object& held() const { return held_; }
  bool is_none() const { return held_.get() == Py_None; }
  bool is(const handle& o) const { return ptr() == o.ptr(); }
  explicit operator bool() const { return static_cast<bool>(held_); }
  template <class T>
  T cast() const { return pullback::Cast<T>::from(ptr()); }
  template <class... A>
  object operator()(const A&... args) const;
  struct place;
  place attr(const char* name) const;
  place operator[](const pullback::Arg& key) const;
  bool contains(const pullback::Arg& key) const {
    int found = PySequence_Contains(ptr(), key.object().get());
    if (found < 0) pullback::throw_pending();
    return found != 0;
  }

 protected:
  Object held_;
};
class object : public handle {
 public:
  using handle::handle;
};
struct handle::place {  // x.attr("name") and x[key]: read when used, written when assigned to
  Object owner, key;
  bool item;
  Object get() const {
    return Object::steal(item ? PyObject_GetItem(owner.get(), key.get()) : PyObject_GetAttr(owner.get(), key.get()));
  }
  void set(const Object& value) const {
    int failed = item ? PyObject_SetItem(owner.get(), key.get(), value.get())
                      : PyObject_SetAttr(owner.get(), key.get(), value.get());
    if (failed < 0) pullback::throw_pending();
  }
  template <class T>
  void operator=(const T& value) && { set(pullback::Arg(value).object()); }
  operator object() const { return object(get()); }
  PyObject* ptr() const { return get().get(); }
  template <class T>
  T cast() const { return pullback::Cast<T>::from(get().get()); }
  template <class... A>
  object operator()(const A&... args) const { return object(get())(args...); }
  place attr(const char* name) const { return object(get()).attr(name); }
};
inline handle::place handle::attr(const char* name) const { return {held_, pullback::text(name), false}; }
inline handle::place handle::operator[](const pullback::Arg& key) const { return {held_, key.object(), true}; }
template <class... A>
object handle::operator()(const A&... args) const { return object(held_(pullback::Arg(args).object()...)); }

template <class T>
T reinterpret_borrow(const handle& h) { return T(h.held()); }
template <class T>
T reinterpret_steal(PyObject* p) { return T(Object::steal(p)); }
class none : public object {
 public:
  none() : object(pullback::none()) {}
};
class str : public object {
 public:
  explicit str(Object o) : object(std::move(o)) {}
  str(const std::string& s = "") : object(pullback::text(s)) {}
  str(const char* s) : object(pullback::text(s)) {}
  operator std::string() const { return pullback::words(ptr()); }
};
class int_ : public object {
 public:
  explicit int_(Object o) : object(std::move(o)) {}
  int_(long long v = 0) : object(pullback::integer(v)) {}
  operator int64_t() const { return pullback::as_int(ptr()); }
};
class float_ : public object {
 public:
  explicit float_(Object o) : object(std::move(o)) {}
  float_(double v = 0) : object(pullback::real(v)) {}
  operator double() const { return pullback::as_double(ptr()); }
};
class bool_ : public object {
 public:
  explicit bool_(Object o) : object(std::move(o)) {}
  bool_(bool v = false) : object(pullback::boolean(v)) {}
  operator bool() const { return PyObject_IsTrue(ptr()) == 1; }
};
class function : public object {
 public:
  using object::object;
};
class tuple : public object {
 public:
  using object::object;
  size_t size() const { return static_cast<size_t>(PySequence_Size(ptr())); }
};
class list : public object {
 public:
  explicit list(Object o) : object(std::move(o)) {}
  list() : object(Object::steal(PyList_New(0))) {}
  size_t size() const { return static_cast<size_t>(PyList_Size(ptr())); }
  void append(const pullback::Arg& v) const {
    if (PyList_Append(ptr(), v.object().get()) < 0) pullback::throw_pending();
  }
  std::vector<handle> items() const {
    std::vector<handle> out;
    pullback::each(ptr(), "a list", [&](PyObject* p) { out.emplace_back(p); });
    return out;
  }
};
class dict : public object {
 public:
  explicit dict(Object o) : object(std::move(o)) {}
  dict() : object(Object::steal(PyDict_New())) {}
  size_t size() const { return static_cast<size_t>(PyDict_Size(ptr())); }
};
class args : public tuple {
 public:
  using tuple::tuple;
};
class kwargs : public dict {
 public:
  using dict::dict;
};
template <class... A>
tuple make_tuple(const A&... items) { return tuple(pullback::tuple_of({pullback::Arg(items).object()...})); }
template <class T>
object cast(const T& v) { return object(pullback::to_python(v)); }
template <class T>
T cast(const handle& h) { return h.cast<T>(); }
template <class T>
bool isinstance(const handle& h) {
  try {
    pullback::Cast<T>::from(h.ptr());
    return true;
  } catch (const pullback::NoCast&) {
    return false;
  }
}
template <class... A>
void print(const A&... items) {
  object(Object::borrow(PyDict_GetItemString(PyEval_GetBuiltins(), "print")))(items...);
}

struct gil_scoped_release {
  PyThreadState* state = PyEval_SaveThread();
  ~gil_scoped_release() { PyEval_RestoreThread(state); }
};
using gil_scoped_acquire = pullback::Lock;
using error_already_set = pullback::PythonError;
struct cast_error : std::runtime_error { using std::runtime_error::runtime_error; };
struct value_error : c10::ValueError { using c10::ValueError::ValueError; };
struct type_error : c10::TypeError { using c10::TypeError::TypeError; };
struct index_error : c10::IndexError { using c10::IndexError::IndexError; };
struct stop_iteration : std::runtime_error { using std::runtime_error::runtime_error; };

}  // namespace pybind11

namespace pullback {

template <class T>
struct Cast<T, std::enable_if_t<std::is_base_of_v<pybind11::handle, T>>> {
  static Object to(const T& v) { return v.held(); }
  static T from(PyObject* p) { return T(Object::borrow(p)); }
  static std::string schema() { return "Any"; }
  static std::string python() {
    return std::is_same_v<T, pybind11::args> ? "*args" : std::is_same_v<T, pybind11::kwargs> ? "**kwargs" : "object";
  }
};

}  // namespace pullback
