// c10::IValue: any value that operators and contexts keep, and the lists and dicts of such. An IValue holds the Python
// object itself, so what is saved for a backward is what Python sees there.
#pragma once
#include "tensor.h"

namespace c10 {

class IValue;
template <class T>
class List {  // copies share their items
 public:
  List() : items_(std::make_shared<std::vector<T>>()) {}
  List(std::initializer_list<T> items) : items_(std::make_shared<std::vector<T>>(items)) {}
  explicit List(std::vector<T> items) : items_(std::make_shared<std::vector<T>>(std::move(items))) {}
  explicit List(ArrayRef<T> items) : List(items.vec()) {}
  size_t size() const { return items_->size(); }
  bool empty() const { return items_->empty(); }
  T get(size_t i) const { return items_->at(i); }
  T operator[](size_t i) const { return items_->at(i); }
  void set(size_t i, T v) const { items_->at(i) = std::move(v); }
  void push_back(T v) const { items_->push_back(std::move(v)); }
  template <class... A>
  void emplace_back(A&&... args) const { items_->emplace_back(std::forward<A>(args)...); }
  void append(const List& o) const { items_->insert(items_->end(), o.items_->begin(), o.items_->end()); }
  void reserve(size_t n) const { items_->reserve(n); }
  void resize(size_t n) const { items_->resize(n); }
  void clear() const { items_->clear(); }
  auto begin() const { return items_->begin(); }
  auto end() const { return items_->end(); }
  std::vector<T> vec() const { return *items_; }

 private:
  std::shared_ptr<std::vector<T>> items_;
};

template <class K, class V>
class Dict {  // in the order of insertion; copies share their items
 public:
  struct Entry {
    K key_;
    V value_;
    const K& key() const { return key_; }
    const V& value() const { return value_; }
  };
  Dict() : items_(std::make_shared<std::vector<Entry>>()) {}
  size_t size() const { return items_->size(); }
  bool empty() const { return items_->empty(); }
  bool contains(const K& k) const { return at_or_null(k) != nullptr; }
  V at(const K& k) const {
    Entry* e = at_or_null(k);
    if (!e) throw std::out_of_range("Argument passed to at() was not in the map");
    return e->value_;
  }
  auto find(const K& k) const {
    Entry* e = at_or_null(k);
    return e ? items_->begin() + (e - items_->data()) : items_->end();
  }
  bool insert(K k, V v) const {  // as a map's: what is there stays
    if (contains(k)) return false;
    items_->push_back({std::move(k), std::move(v)});
    return true;
  }
  void insert_or_assign(K k, V v) const {
    Entry* e = at_or_null(k);
    if (e) e->value_ = std::move(v);
    else items_->push_back({std::move(k), std::move(v)});
  }
  size_t erase(const K& k) const {
    Entry* e = at_or_null(k);
    if (!e) return 0;
    items_->erase(items_->begin() + (e - items_->data()));
    return 1;
  }
  void clear() const { items_->clear(); }
  auto begin() const { return items_->begin(); }
  auto end() const { return items_->end(); }

 private:
  Entry* at_or_null(const K& k) const {
    for (Entry& e : *items_)
      if (e.key_ == k) return &e;
    return nullptr;
  }
  std::shared_ptr<std::vector<Entry>> items_;
};

class IValue {
 public:
  IValue() : object_(pullback::none()) {}
  template <class T, std::enable_if_t<!std::is_same_v<std::decay_t<T>, IValue> &&
                                          !std::is_same_v<std::decay_t<T>, pullback::Object>, int> = 0>
  IValue(const T& v) : object_(pullback::Cast<T>::to(v)) {}
  IValue(const char* v) : object_(pullback::text(v)) {}
  IValue(pullback::Object o) : object_(std::move(o)) {}
  template <class T>
  IValue(std::initializer_list<T> v) : object_(pullback::list_of(v.begin(), v.end())) {}

  const pullback::Object& object() const { return object_; }
  bool isNone() const { return object_.is_none(); }
  bool isTensor() const { return pullback::is_tensor(p()); }
  bool isBool() const { return PyBool_Check(p()); }
  bool isInt() const { return PyLong_CheckExact(p()); }
  bool isDouble() const { return PyFloat_CheckExact(p()); }
  bool isComplexDouble() const { return PyComplex_Check(p()); }
  bool isString() const { return PyUnicode_Check(p()); }
  bool isList() const { return PyList_Check(p()); }
  bool isTuple() const { return PyTuple_Check(p()); }
  bool isGenericDict() const { return PyDict_Check(p()); }
  bool isSymInt() const { return symbol("SymInt"); }
  bool isSymFloat() const { return symbol("SymFloat"); }
  bool isSymBool() const { return symbol("SymBool"); }
  bool isScalar() const { return isInt() || isDouble() || isBool() || isComplexDouble() || isSymInt() || isSymFloat(); }
  bool isTensorList() const { return all(isList(), pullback::is_tensor); }
  bool isIntList() const { return all(isList(), [](PyObject* o) { return PyLong_CheckExact(o) != 0; }); }
  bool isDoubleList() const { return all(isList(), [](PyObject* o) { return PyFloat_CheckExact(o) != 0; }); }
  bool isBoolList() const { return all(isList(), [](PyObject* o) { return PyBool_Check(o) != 0; }); }

  at::Tensor toTensor() const { return isNone() ? at::Tensor() : as<at::Tensor>("Tensor"); }
  bool toBool() const { return as<bool>("Bool"); }
  int64_t toInt() const { return as<int64_t>("Int"); }
  SymInt toSymInt() const { return as<SymInt>("SymInt"); }
  SymFloat toSymFloat() const { return as<SymFloat>("SymFloat"); }
  SymBool toSymBool() const { return as<SymBool>("SymBool"); }
  double toDouble() const { return as<double>("Double"); }
  std::complex<double> toComplexDouble() const { return as<std::complex<double>>("ComplexDouble"); }
  Scalar toScalar() const { return as<Scalar>("Scalar"); }
  std::string toStringRef() const { return as<std::string>("String"); }
  std::string toStringView() const { return toStringRef(); }
  Device toDevice() const { return as<Device>("Device"); }
  ScalarType toScalarType() const { return as<ScalarType>("Int"); }
  List<IValue> toList() const { return List<IValue>(toListRef()); }
  std::vector<IValue> toListRef() const { return as<std::vector<IValue>>("GenericList"); }
  std::vector<IValue> toTupleRef() const { return toListRef(); }
  std::vector<IValue> toVec() const { return toListRef(); }
  std::vector<at::Tensor> toTensorVector() const { return as<std::vector<at::Tensor>>("TensorList"); }
  std::vector<int64_t> toIntVector() const { return as<std::vector<int64_t>>("IntList"); }
  std::vector<SymInt> toSymIntVector() const { return as<std::vector<SymInt>>("SymIntList"); }
  std::vector<double> toDoubleVector() const { return as<std::vector<double>>("DoubleList"); }
  List<at::Tensor> toTensorList() const { return List<at::Tensor>(toTensorVector()); }
  List<int64_t> toIntList() const { return List<int64_t>(toIntVector()); }
  List<double> toDoubleList() const { return List<double>(toDoubleVector()); }
  List<bool> toBoolList() const { return as<List<bool>>("BoolList"); }
  Dict<IValue, IValue> toGenericDict() const;
  template <class T>
  std::optional<T> toOptional() const { return isNone() ? std::nullopt : std::optional<T>(to<T>()); }
  template <class T>
  T to() const { return pullback::Cast<T>::from(p()); }
  std::string tagKind() const {
    return isNone() ? "None" : isTensor() ? "Tensor" : isBool() ? "Bool" : isInt() ? "Int" : isDouble() ? "Double"
           : isString() ? "String" : isList() ? "GenericList" : isTuple() ? "Tuple"
           : isGenericDict() ? "GenericDict" : Py_TYPE(p())->tp_name;
  }
  friend bool operator==(const IValue& a, const IValue& b) {
    return a.object_.get() == b.object_.get() || pullback::compare(a.object_, b.object_, Py_EQ);
  }
  friend bool operator!=(const IValue& a, const IValue& b) { return !(a == b); }

 private:
  PyObject* p() const { return object_.get(); }
  bool symbol(const char* kind) const {
    pullback::Lock lock;
    return std::strcmp(Py_TYPE(p())->tp_name, kind) == 0 && PyObject_HasAttrString(p(), "node");
  }
  template <class F>
  bool all(bool list, F&& is) const {
    if (!list) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(p()); i++)
      if (!is(PyList_GET_ITEM(p(), i))) return false;
    return true;
  }
  template <class T>
  T as(const char* kind) const {
    try {
      return pullback::Cast<T>::from(p());
    } catch (const pullback::NoCast&) {
      throw Error(str("Expected ", kind, " but got ", tagKind()));
    }
  }
  pullback::Object object_;
};
inline std::ostream& operator<<(std::ostream& out, const IValue& v) {
  return out << pullback::words(v.object().get());
}
namespace impl {
using GenericList = List<IValue>;
using GenericDict = Dict<IValue, IValue>;
}  // namespace impl

}  // namespace c10

namespace pullback {
template <>
struct Cast<c10::IValue> {
  static Object to(const c10::IValue& v) { return v.object(); }
  static c10::IValue from(PyObject* p) { return c10::IValue(Object::borrow(p)); }
  static std::string schema() { return "Any"; }
  static std::string python() { return "object"; }
};
template <class T>
struct Cast<c10::List<T>> {
  static Object to(const c10::List<T>& v) { return list_of(v.begin(), v.end()); }
  static c10::List<T> from(PyObject* p) {
    c10::List<T> out;
    each(p, "a list", [&](PyObject* item) { out.push_back(Cast<T>::from(item)); });
    return out;
  }
  static std::string schema() { return Cast<T>::schema() + "[]"; }
  static std::string python() { return "list[" + Cast<T>::python() + "]"; }
};
template <class K, class V>
struct Cast<c10::Dict<K, V>> {
  static Object to(const c10::Dict<K, V>& m) {
    Lock lock;
    Object made = Object::steal(PyDict_New());
    for (const auto& e : m)
      if (PyDict_SetItem(made.get(), to_python<K>(e.key()).get(), to_python<V>(e.value()).get()) < 0) throw_pending();
    return made;
  }
  static c10::Dict<K, V> from(PyObject* p) {
    if (!PyDict_Check(p)) no_cast(p, "a dict");
    c10::Dict<K, V> out;
    PyObject *k, *v;
    Py_ssize_t at = 0;
    while (PyDict_Next(p, &at, &k, &v)) out.insert(Cast<K>::from(k), Cast<V>::from(v));
    return out;
  }
  static std::string schema() { return "Dict(" + Cast<K>::schema() + ", " + Cast<V>::schema() + ")"; }
  static std::string python() { return "dict[" + Cast<K>::python() + ", " + Cast<V>::python() + "]"; }
};
}  // namespace pullback

namespace c10 {
inline Dict<IValue, IValue> IValue::toGenericDict() const { return as<Dict<IValue, IValue>>("GenericDict"); }
}  // namespace c10
