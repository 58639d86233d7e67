// Python objects as C++ values: an owning handle, the interpreter's lock, and errors in both directions.
//
// What always holds: an `Object` owns one reference or is empty; counting is done with the interpreter's lock held, which
// is taken where the thread does not have it; a Python error that is pending becomes a `PythonError` at once.
#pragma once
#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include <cmath>
#include <cstdint>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#if __cplusplus < 201703L
#error "pullback's headers need C++17: compile with -std=c++17 or later"
#endif

namespace pullback {

struct Lock {  // the interpreter's lock, for a block
  PyGILState_STATE state;
  Lock() : state(PyGILState_Ensure()) {}
  ~Lock() { PyGILState_Release(state); }
  Lock(const Lock&) = delete;
};

inline void take(PyObject* p) {
  if (!p) return;
  if (PyGILState_Check()) {
    Py_INCREF(p);
  } else {
    Lock lock;
    Py_INCREF(p);
  }
}

inline void drop(PyObject* p) {
  if (!p || !Py_IsInitialized()) return;  // statics outlive the interpreter
  if (PyGILState_Check()) {
    Py_DECREF(p);
  } else {
    Lock lock;
    Py_DECREF(p);
  }
}

[[noreturn]] void throw_pending();

class Object {
 public:
  Object() = default;
  static Object steal(PyObject* p) {  // a new reference; null means that an error is pending
    if (!p) throw_pending();
    Object made;
    made.p_ = p;
    return made;
  }
  static Object borrow(PyObject* p) {
    Object made;
    made.p_ = p;
    take(p);
    return made;
  }
  Object(const Object& o) : p_(o.p_) { take(p_); }
  Object(Object&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  Object& operator=(Object o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Object() { drop(p_); }

  PyObject* get() const { return p_; }
  PyObject* release() {
    PyObject* p = p_;
    p_ = nullptr;
    return p;
  }
  explicit operator bool() const { return p_ != nullptr; }
  bool is_none() const { return p_ == nullptr || p_ == Py_None; }

  Object attr(const char* name) const {
    Lock lock;
    return steal(PyObject_GetAttrString(p_, name));
  }
  void set_attr(const char* name, const Object& value) const {
    Lock lock;
    if (PyObject_SetAttrString(p_, name, value.p_) < 0) throw_pending();
  }
  template <class... A>
  Object operator()(const A&... args) const {  // a call on Objects
    Lock lock;
    PyObject* given[sizeof...(A) + 1] = {nullptr, args.get()...};
    return steal(PyObject_Vectorcall(p_, given + 1, sizeof...(A) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  }
  template <class... A>
  Object call(const char* method, const A&... args) const {
    return attr(method)(args...);
  }

 private:
  PyObject* p_ = nullptr;
};

inline Object none() { return Object::borrow(Py_None); }
inline Object text(const std::string& s) {
  Lock lock;
  return Object::steal(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}
inline Object integer(long long v) {
  Lock lock;
  return Object::steal(PyLong_FromLongLong(v));
}
inline Object real(double v) {
  Lock lock;
  return Object::steal(PyFloat_FromDouble(v));
}
inline Object boolean(bool v) { return Object::borrow(v ? Py_True : Py_False); }

inline std::string words(PyObject* p) {  // str(p), whatever it is
  Lock lock;
  PyObject* s = PyObject_Str(p);
  const char* c = s ? PyUnicode_AsUTF8(s) : nullptr;
  std::string out = c ? c : "";
  Py_XDECREF(s);
  if (!c) PyErr_Clear();
  return out;
}

template <class... A>
std::string message(const A&... parts) {
  std::ostringstream out;
  (void)(out << ... << parts);
  return out.str();
}

}  // namespace pullback

namespace c10 {

class Error : public std::exception {
 public:
  explicit Error(std::string words) : words_(std::move(words)) {}
  const char* what() const noexcept override { return words_.c_str(); }
  const std::string& msg() const { return words_; }
  const char* what_without_backtrace() const noexcept { return words_.c_str(); }

 private:
  std::string words_;
};
struct IndexError : Error { using Error::Error; };
struct ValueError : Error { using Error::Error; };
struct TypeError : Error { using Error::Error; };
struct NotImplementedError : Error { using Error::Error; };
struct LinAlgError : Error { using Error::Error; };
struct OutOfMemoryError : Error { using Error::Error; };

template <class... A>
std::string str(const A&... parts) { return pullback::message(parts...); }

}  // namespace c10

namespace pullback {

// An error that Python raised, on its way through C++: raised again, as it was, where Python called.
struct PythonError : c10::Error {
  Object type, value, trace;
  PythonError(std::string words, Object t, Object v, Object tb)
      : c10::Error(std::move(words)), type(std::move(t)), value(std::move(v)), trace(std::move(tb)) {}
  void restore() const {
    take(type.get()), take(value.get()), take(trace.get());
    PyErr_Restore(type.get(), value.get(), trace.get());
  }
};

inline void throw_pending() {
  Lock lock;
  PyObject *t = nullptr, *v = nullptr, *tb = nullptr;
  PyErr_Fetch(&t, &v, &tb);
  if (!t) throw c10::Error("a call into Python failed without saying why");
  PyErr_NormalizeException(&t, &v, &tb);
  std::string said = v ? words(v) : std::string();
  Object type = Object::steal(t), value = Object::borrow(v), trace = Object::borrow(tb);
  Py_XDECREF(v);
  Py_XDECREF(tb);
  throw PythonError(said, type, value, trace);
}

// Set the Python error that stands for the C++ exception being handled.
inline void raise_current() {
  try {
    throw;
  } catch (const PythonError& e) {
    e.restore();
  } catch (const c10::IndexError& e) {
    PyErr_SetString(PyExc_IndexError, e.what());
  } catch (const c10::ValueError& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const c10::TypeError& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const c10::NotImplementedError& e) {
    PyErr_SetString(PyExc_NotImplementedError, e.what());
  } catch (const std::bad_alloc& e) {
    PyErr_SetString(PyExc_MemoryError, e.what());
  } catch (const std::out_of_range& e) {
    PyErr_SetString(PyExc_IndexError, e.what());
  } catch (const std::invalid_argument& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const std::domain_error& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const std::length_error& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "Caught an unknown exception!");
  }
}

// What is looked up in Python once and never let go. No C++ lock is held meanwhile: a thread that waited for one while it
// has the interpreter's would never get it.
template <class F>
const Object& once(const Object*& kept, F&& find) {
  if (!kept) {
    Lock lock;
    const Object* found = new Object(find());
    if (!kept) kept = found;
  }
  return *kept;
}

inline const Object& bridge() {  // the Python half of these headers
  static const Object* module = nullptr;
  return once(module, [] { return Object::steal(PyImport_ImportModule("pullback.cpp.bridge")); });
}

}  // namespace pullback

// ---- checks
#define C10_EXPAND_MSVC_WORKAROUND(x) x
#define PULLBACK_FAIL(kind, lead, ...) throw kind(::pullback::check_words(lead, ::c10::str(__VA_ARGS__)))
namespace pullback {
inline std::string check_words(const char* otherwise, const std::string& said) { return said.empty() ? otherwise : said; }
}  // namespace pullback
#define PULLBACK_CHECK(kind, cond, ...)                                                                               \
  do {                                                                                                                \
    if (!(cond)) {                                                                                                    \
      PULLBACK_FAIL(kind,                                                                                             \
                    "Expected " #cond                                                                                 \
                    " to be true, but got false.  (Could this error message be improved?  If so, please report an "   \
                    "enhancement request to PyTorch.)",                                                               \
                    ##__VA_ARGS__);                                                                                   \
    }                                                                                                                 \
  } while (false)
#define TORCH_CHECK(cond, ...) PULLBACK_CHECK(::c10::Error, cond, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(cond, ...) PULLBACK_CHECK(::c10::IndexError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) PULLBACK_CHECK(::c10::ValueError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) PULLBACK_CHECK(::c10::TypeError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) PULLBACK_CHECK(::c10::NotImplementedError, cond, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(cond, ...)                                                                               \
  do {                                                                                                                \
    if (!(cond)) {                                                                                                    \
      throw ::c10::Error(::c10::str(#cond " INTERNAL ASSERT FAILED at \"", __FILE__, "\":", __LINE__, ". ",           \
                                    ::c10::str(__VA_ARGS__)));                                                        \
    }                                                                                                                 \
  } while (false)
#ifdef NDEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) ((void)0)
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#endif
#define AT_ERROR(...) throw ::c10::Error(::c10::str(__VA_ARGS__))
#define AT_ASSERT(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond, ##__VA_ARGS__)
#define AT_INDEX_ERROR(...) throw ::c10::IndexError(::c10::str(__VA_ARGS__))
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b), "Check failed: " #a " == " #b " (", (a), " vs. ", (b), "). ")
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b), "Check failed: " #a " != " #b " (", (a), " vs. ", (b), "). ")
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b), "Check failed: " #a " < " #b " (", (a), " vs. ", (b), "). ")
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b), "Check failed: " #a " <= " #b " (", (a), " vs. ", (b), "). ")
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b), "Check failed: " #a " > " #b " (", (a), " vs. ", (b), "). ")
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b), "Check failed: " #a " >= " #b " (", (a), " vs. ", (b), "). ")
#define TORCH_WARN(...) ::pullback::warn(::c10::str(__VA_ARGS__))
#define TORCH_WARN_ONCE(...)                                                                                           \
  do {                                                                                                                \
    static const bool told = (::pullback::warn(::c10::str(__VA_ARGS__)), true);                                       \
    (void)told;                                                                                                       \
  } while (false)
namespace pullback {
inline void warn(const std::string& words) {
  Lock lock;
  if (PyErr_WarnEx(PyExc_UserWarning, words.c_str(), 1) < 0) throw_pending();
}
}  // namespace pullback
#define C10_LIKELY(x) (__builtin_expect(static_cast<bool>(x), 1))
#define C10_UNLIKELY(x) (__builtin_expect(static_cast<bool>(x), 0))
#define C10_UNUSED __attribute__((__unused__))
#define C10_ALWAYS_INLINE inline __attribute__((__always_inline__))
#define C10_NOINLINE __attribute__((__noinline__))
#define C10_RESTRICT __restrict
#define C10_HOST_DEVICE
#define C10_HOST
#define C10_DEVICE
#define TORCH_API
#define C10_API
#define C10_EXPORT __attribute__((__visibility__("default")))
