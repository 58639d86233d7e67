// Values between C++ and Python: `Cast<T>` says for each C++ type how it goes over (`to`), how it comes back (`from`, which
// throws `NoCast` where the Python value is another kind of thing) and what operator schemas and signatures call it.
#pragma once
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <unordered_map>

#include "numbers.h"

namespace at {
class Tensor;
}

namespace pullback {

struct NoCast : c10::TypeError {
  using c10::TypeError::TypeError;
};
[[noreturn]] inline void no_cast(PyObject* p, const char* wanted) {
  throw NoCast(message("expected ", wanted, ", got ", Py_TYPE(p)->tp_name));
}

template <class T, class = void>
struct Cast;  // the general case, a class that was bound, is in bind.h

template <class T>
Object to_python(const T& v) { return Cast<T>::to(v); }
template <class T>
T from_python(PyObject* p) { return Cast<T>::from(p); }

template <>
struct Cast<Object> {
  static Object to(const Object& o) { return o ? o : none(); }
  static Object from(PyObject* p) { return Object::borrow(p); }
  static std::string schema() { return "Any"; }
  static std::string python() { return "object"; }
};
template <>
struct Cast<bool> {
  static Object to(bool v) { return boolean(v); }
  static bool from(PyObject* p) {
    if (p == Py_True) return true;
    if (p == Py_False) return false;
    if (std::strcmp(Py_TYPE(p)->tp_name, "numpy.bool") == 0 || std::strcmp(Py_TYPE(p)->tp_name, "numpy.bool_") == 0)
      return PyObject_IsTrue(p) == 1;
    no_cast(p, "bool");
  }
  static std::string schema() { return "bool"; }
  static std::string python() { return "bool"; }
};
template <class T>
struct Cast<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static Object to(T v) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      Lock lock;
      return Object::steal(PyLong_FromUnsignedLongLong(v));
    } else {
      return integer(static_cast<long long>(v));
    }
  }
  static T from(PyObject* p) {
    if (PyFloat_Check(p) || !PyIndex_Check(p)) no_cast(p, "int");
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      Object whole = Object::steal(PyNumber_Index(p));
      unsigned long long v = PyLong_AsUnsignedLongLong(whole.get());
      if (PyErr_Occurred()) throw_pending();
      return v;
    } else {
      long long v = as_int(p);
      if (v < static_cast<long long>(std::numeric_limits<T>::min()) ||
          v > static_cast<long long>(std::numeric_limits<T>::max()))
        no_cast(p, "an int in range");
      return static_cast<T>(v);
    }
  }
  static std::string schema() { return "int"; }
  static std::string python() { return "int"; }
};
template <class T>
struct Cast<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static Object to(T v) { return real(static_cast<double>(v)); }
  static T from(PyObject* p) {
    if (!PyFloat_Check(p) && !PyIndex_Check(p) && !(Py_TYPE(p)->tp_as_number && Py_TYPE(p)->tp_as_number->nb_float))
      no_cast(p, "float");
    return static_cast<T>(as_double(p));
  }
  static std::string schema() { return "float"; }
  static std::string python() { return "float"; }
};
template <class T>
struct CastSmall {  // floats that Python has no type for
  static Object to(T v) { return real(static_cast<float>(v)); }
  static T from(PyObject* p) { return T(Cast<float>::from(p)); }
  static std::string schema() { return "float"; }
  static std::string python() { return "float"; }
};
template <>
struct Cast<c10::Half> : CastSmall<c10::Half> {};
template <>
struct Cast<c10::BFloat16> : CastSmall<c10::BFloat16> {};
template <class T>
struct Cast<std::complex<T>> {
  static Object to(std::complex<T> v) { return c10::Scalar(v).object(); }
  static std::complex<T> from(PyObject* p) {
    if (!PyComplex_Check(p) && !PyFloat_Check(p) && !PyLong_Check(p)) no_cast(p, "complex");
    Py_complex c = PyComplex_AsCComplex(p);
    if (PyErr_Occurred()) throw_pending();
    return std::complex<T>(static_cast<T>(c.real), static_cast<T>(c.imag));
  }
  static std::string schema() { return "complex"; }
  static std::string python() { return "complex"; }
};
template <>
struct Cast<std::string> {
  static Object to(const std::string& v) { return text(v); }
  static std::string from(PyObject* p) {
    if (PyBytes_Check(p)) return std::string(PyBytes_AS_STRING(p), static_cast<size_t>(PyBytes_GET_SIZE(p)));
    if (!PyUnicode_Check(p)) no_cast(p, "str");
    Py_ssize_t n = 0;
    const char* c = PyUnicode_AsUTF8AndSize(p, &n);
    if (!c) throw_pending();
    return std::string(c, static_cast<size_t>(n));
  }
  static std::string schema() { return "str"; }
  static std::string python() { return "str"; }
};
template <>
struct Cast<std::string_view> {
  static Object to(std::string_view v) { return text(std::string(v)); }
  static std::string from(PyObject* p) { return Cast<std::string>::from(p); }
  static std::string schema() { return "str"; }
  static std::string python() { return "str"; }
};
template <>
struct Cast<const char*> {
  static Object to(const char* v) { return v ? text(v) : none(); }
  static std::string schema() { return "str"; }
  static std::string python() { return "str"; }
};
template <size_t N>
struct Cast<char[N]> : Cast<const char*> {};
template <>
struct Cast<std::nullopt_t> {
  static Object to(std::nullopt_t) { return none(); }
};

inline bool is_number(PyObject* p) {  // what a Scalar can be: a Python number, or a symbol that stands for one
  return PyFloat_Check(p) || PyLong_Check(p) || PyComplex_Check(p) || PyObject_HasAttrString(p, "is_symbolic") ||
         (PyIndex_Check(p) && !PySequence_Check(p));
}
template <>
struct Cast<c10::Scalar> {
  static Object to(const c10::Scalar& v) { return v.object(); }
  static c10::Scalar from(PyObject* p) {
    if (!is_number(p)) no_cast(p, "a number");
    return c10::Scalar(Object::borrow(p));
  }
  static std::string schema() { return "Scalar"; }
  static std::string python() { return "Number"; }
};
template <>
struct Cast<c10::SymInt> {
  static Object to(const c10::SymInt& v) { return v.object(); }
  static c10::SymInt from(PyObject* p) {
    if (PyFloat_Check(p) || !(PyIndex_Check(p) || is_number(p))) no_cast(p, "int");
    return c10::SymInt(Object::borrow(p));
  }
  static std::string schema() { return "SymInt"; }
  static std::string python() { return "int"; }
};
template <>
struct Cast<c10::SymFloat> {
  static Object to(const c10::SymFloat& v) { return v.object(); }
  static c10::SymFloat from(PyObject* p) {
    if (!is_number(p)) no_cast(p, "float");
    return c10::SymFloat(Object::borrow(p));
  }
  static std::string schema() { return "SymFloat"; }
  static std::string python() { return "float"; }
};
template <>
struct Cast<c10::SymBool> {
  static Object to(const c10::SymBool& v) { return v.object(); }
  static c10::SymBool from(PyObject* p) { return c10::SymBool(Object::borrow(p)); }
  static std::string schema() { return "SymBool"; }
  static std::string python() { return "bool"; }
};

// ---- element types, devices, layouts, memory formats: by name
inline Object named(const char* table, const std::string& name) { return bridge().call(table, text(name)); }
template <>
struct Cast<c10::ScalarType> {
  static Object to(c10::ScalarType t) {
    const char* name = python_name(t);
    return name ? named("dtype_named", name) : none();
  }
  static c10::ScalarType from(PyObject* p) {
    static const Object* kind = nullptr;
    if (PyObject_IsInstance(p, once(kind, [] { return bridge().attr("dtype"); }).get()) == 1) {
      std::string name = Cast<std::string>::from(Object::borrow(p).attr("name").get());
      for (int t = 0; t < static_cast<int>(c10::ScalarType::Undefined); t++) {
        const char* known = python_name(static_cast<c10::ScalarType>(t));
        if (known && name == known) return static_cast<c10::ScalarType>(t);
      }
      TORCH_CHECK(false, "the dtype ", name, " is not known to C++");
    }
    no_cast(p, "torch.dtype");
  }
  static std::string schema() { return "ScalarType"; }
  static std::string python() { return "torch.dtype"; }
};
template <>
struct Cast<c10::TypeMeta> {
  static Object to(c10::TypeMeta t) { return Cast<c10::ScalarType>::to(t.type); }
  static c10::TypeMeta from(PyObject* p) { return Cast<c10::ScalarType>::from(p); }
};
template <>
struct Cast<c10::Device> {
  static Object to(const c10::Device& d) { return named("device_named", d.str()); }
  static c10::Device from(PyObject* p) {
    static const Object* kind = nullptr;
    bool is_device = PyObject_IsInstance(p, once(kind, [] { return bridge().attr("device"); }).get()) == 1;
    if (!is_device && !PyUnicode_Check(p)) no_cast(p, "torch.device");
    return c10::Device(words(p));
  }
  static std::string schema() { return "Device"; }
  static std::string python() { return "torch.device"; }
};
template <>
struct Cast<c10::DeviceType> {
  static Object to(c10::DeviceType d) { return Cast<c10::Device>::to(d); }
};
template <>
struct Cast<c10::Layout> {
  static constexpr const char* names[] = {"strided",    "sparse_coo", "sparse_csr", "_mkldnn",
                                          "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
  static Object to(c10::Layout v) { return named("layout_named", names[static_cast<int>(v)]); }
  static c10::Layout from(PyObject* p) {
    std::string name = words(p);
    for (int i = 0; i < 8; i++)
      if (name == std::string("torch.") + names[i]) return static_cast<c10::Layout>(i);
    no_cast(p, "torch.layout");
  }
  static std::string schema() { return "Layout"; }
  static std::string python() { return "torch.layout"; }
};
template <>
struct Cast<c10::MemoryFormat> {
  static constexpr const char* names[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
  static Object to(c10::MemoryFormat v) { return named("format_named", names[static_cast<int>(v)]); }
  static c10::MemoryFormat from(PyObject* p) {
    std::string name = words(p);
    for (int i = 0; i < 4; i++)
      if (name == std::string("torch.") + names[i]) return static_cast<c10::MemoryFormat>(i);
    no_cast(p, "torch.memory_format");
  }
  static std::string schema() { return "MemoryFormat"; }
  static std::string python() { return "torch.memory_format"; }
};

// ---- containers
template <class It>
Object list_of(It begin, It end) {
  Lock lock;
  Object list = Object::steal(PyList_New(0));
  for (; begin != end; ++begin) {
    Object item = to_python<typename std::iterator_traits<It>::value_type>(*begin);
    if (PyList_Append(list.get(), item.get()) < 0) throw_pending();
  }
  return list;
}
template <class F>
void each(PyObject* p, const char* wanted, F&& take_item) {  // the items of a list or tuple (a str is neither)
  if (PyUnicode_Check(p) || PyBytes_Check(p) || !PySequence_Check(p)) no_cast(p, wanted);
  Object items = Object::steal(PySequence_Fast(p, "a sequence"));
  Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
  for (Py_ssize_t i = 0; i < n; i++) take_item(PySequence_Fast_GET_ITEM(items.get(), i));
}
template <class T>
struct Cast<std::vector<T>> {
  static Object to(const std::vector<T>& v) { return list_of(v.begin(), v.end()); }
  static std::vector<T> from(PyObject* p) {
    std::vector<T> out;
    each(p, "a list", [&](PyObject* item) { out.push_back(Cast<T>::from(item)); });
    return out;
  }
  static std::string schema() { return Cast<T>::schema() + "[]"; }
  static std::string python() { return "list[" + Cast<T>::python() + "]"; }
};
template <class T>
struct Cast<c10::ArrayRef<T>> {
  static Object to(c10::ArrayRef<T> v) { return list_of(v.begin(), v.end()); }
  static std::vector<T> from(PyObject* p) { return Cast<std::vector<T>>::from(p); }
  static std::string schema() { return Cast<T>::schema() + "[]"; }
  static std::string python() { return "list[" + Cast<T>::python() + "]"; }
};
template <class T>
struct Cast<std::initializer_list<T>> {
  static Object to(std::initializer_list<T> v) { return list_of(v.begin(), v.end()); }
};
template <class T, size_t N>
struct Cast<std::array<T, N>> {
  static Object to(const std::array<T, N>& v) { return list_of(v.begin(), v.end()); }
  static std::array<T, N> from(PyObject* p) {
    std::vector<T> items = Cast<std::vector<T>>::from(p);
    if (items.size() != N) no_cast(p, "a list of another length");
    std::array<T, N> out;
    for (size_t i = 0; i < N; i++) out[i] = items[i];
    return out;
  }
  static std::string schema() { return Cast<T>::schema() + "[" + std::to_string(N) + "]"; }
  static std::string python() { return "list[" + Cast<T>::python() + "]"; }
};
template <class T>
struct Cast<std::optional<T>> {
  static Object to(const std::optional<T>& v) { return v ? Cast<T>::to(*v) : none(); }
  static auto from(PyObject* p) {
    using Kept = decltype(Cast<T>::from(p));
    return p == Py_None ? std::optional<Kept>() : std::optional<Kept>(Cast<T>::from(p));
  }
  static std::string schema() { return Cast<T>::schema() + "?"; }
  static std::string python() { return Cast<T>::python() + " | None"; }
};
template <class... T>
struct Cast<std::tuple<T...>> {
  static Object to(const std::tuple<T...>& v) {
    Lock lock;
    Object made = Object::steal(PyTuple_New(sizeof...(T)));
    Py_ssize_t i = 0;
    std::apply([&](const auto&... items) {
      (PyTuple_SET_ITEM(made.get(), i++, to_python<std::decay_t<decltype(items)>>(items).release()), ...);
    }, v);
    return made;
  }
  static std::tuple<T...> from(PyObject* p) { return of(p, std::index_sequence_for<T...>()); }
  static std::string schema() { return "(" + joined(&Cast<std::decay_t<T>>::schema...) + ")"; }
  static std::string python() { return "tuple[" + joined(&Cast<std::decay_t<T>>::python...) + "]"; }

 private:
  template <size_t... I>
  static std::tuple<T...> of(PyObject* p, std::index_sequence<I...>) {
    if (PyUnicode_Check(p) || !PySequence_Check(p)) no_cast(p, "a tuple");
    Object items = Object::steal(PySequence_Fast(p, "a sequence"));
    if (PySequence_Fast_GET_SIZE(items.get()) != static_cast<Py_ssize_t>(sizeof...(T)))
      no_cast(p, "a tuple of another length");
    return std::tuple<T...>(Cast<std::decay_t<T>>::from(PySequence_Fast_GET_ITEM(items.get(), I))...);
  }
  template <class... F>
  static std::string joined(F... names) {
    std::string out;
    ((out += (out.empty() ? "" : ", ") + names()), ...);
    return out;
  }
};
template <class A, class B>
struct Cast<std::pair<A, B>> {
  static Object to(const std::pair<A, B>& v) { return Cast<std::tuple<A, B>>::to(std::tuple<A, B>(v.first, v.second)); }
  static std::pair<A, B> from(PyObject* p) {
    auto t = Cast<std::tuple<A, B>>::from(p);
    return {std::get<0>(t), std::get<1>(t)};
  }
  static std::string schema() { return Cast<std::tuple<A, B>>::schema(); }
  static std::string python() { return Cast<std::tuple<A, B>>::python(); }
};
template <class Map>
struct CastMap {
  using K = typename Map::key_type;
  using V = typename Map::mapped_type;
  static Object to(const Map& m) {
    Lock lock;
    Object made = Object::steal(PyDict_New());
    for (const auto& [k, v] : m)
      if (PyDict_SetItem(made.get(), to_python<K>(k).get(), to_python<V>(v).get()) < 0) throw_pending();
    return made;
  }
  static Map from(PyObject* p) {
    if (!PyDict_Check(p)) no_cast(p, "a dict");
    Map out;
    PyObject *k, *v;
    Py_ssize_t at = 0;
    while (PyDict_Next(p, &at, &k, &v)) out.insert({Cast<K>::from(k), Cast<V>::from(v)});
    return out;
  }
  static std::string schema() { return "Dict(" + Cast<K>::schema() + ", " + Cast<V>::schema() + ")"; }
  static std::string python() { return "dict[" + Cast<K>::python() + ", " + Cast<V>::python() + "]"; }
};
template <class K, class V>
struct Cast<std::map<K, V>> : CastMap<std::map<K, V>> {};
template <class K, class V>
struct Cast<std::unordered_map<K, V>> : CastMap<std::unordered_map<K, V>> {};

template <class T>
Object move_to_python(T&& v) { return Cast<std::decay_t<T>>::to(v); }

}  // namespace pullback
