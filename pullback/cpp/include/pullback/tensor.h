// at::Tensor: a counted handle of a Python tensor, with the methods of PyTorch's.
//
// What always holds: a defined Tensor holds exactly the object that Python sees, so identity, history and versions are
// Python's; `sizes()` and `strides()` refer to memory of the handle's shared part, and are right until the next such call.
#pragma once
#include "argument.h"

namespace at {
using namespace c10;
using pullback::Arg;

namespace indexing {
struct Slice {
  pullback::Object object;
  Slice() : Slice(Arg(std::nullopt), Arg(std::nullopt), Arg(std::nullopt)) {}
  Slice(const Arg& start, const Arg& stop = std::nullopt, const Arg& step = std::nullopt) {
    pullback::Lock lock;
    object = pullback::Object::steal(
        PySlice_New(start.object().get(), stop.object().get(), step.object().get()));
  }
};
struct EllipsisIndexType {};
constexpr EllipsisIndexType Ellipsis{};
constexpr std::nullopt_t None = std::nullopt;
}  // namespace indexing

class Tensor;
using TensorList = ArrayRef<Tensor>;
using ITensorListRef = ArrayRef<Tensor>;
template <class T, size_t N>
class TensorAccessor;
struct TensorIndex;

struct TensorImpl {  // what handles of one object share
  PyObject* object;
  long count = 1;
  std::vector<int64_t> sizes, strides;
  std::vector<SymInt> symbolic;
  explicit TensorImpl(PyObject* o) : object(o) {}
};

struct TypeProperties {  // what the deprecated `tensor.type()` gives
  ScalarType scalar;
  Device device;
  ScalarType scalarType() const { return scalar; }
  bool is_cuda() const { return device.is_cuda(); }
  bool is_sparse() const { return false; }
  std::string toString() const {
    return (device.is_cpu() ? "CPU" : "CUDA") + std::string(c10::toString(scalar)) + "Type";
  }
  operator ScalarType() const { return scalar; }
};

class Tensor {
 public:
  Tensor() : impl_(nullptr) {}
  explicit Tensor(pullback::Object o) : impl_(nullptr) {
    if (!o.is_none()) impl_ = new TensorImpl(o.release());
  }
  Tensor(const Tensor& o) : impl_(o.impl_) {
    if (impl_) __atomic_add_fetch(&impl_->count, 1, __ATOMIC_RELAXED);
  }
  Tensor(Tensor&& o) noexcept : impl_(o.impl_) { o.impl_ = nullptr; }
  Tensor& operator=(const Tensor& o) & { return *this = Tensor(o); }
  Tensor& operator=(Tensor&& o) & noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  // `x[0] = value` writes into the memory that x[0] is a view of.
  Tensor& operator=(const Tensor& value) && { return write(value); }
  Tensor& operator=(Tensor&& value) && { return write(value); }
  Tensor& operator=(const Scalar& value) && { return write(value); }
  ~Tensor() { reset(); }
  void reset() {
    if (impl_ && __atomic_sub_fetch(&impl_->count, 1, __ATOMIC_ACQ_REL) == 0) {
      pullback::drop(impl_->object);
      delete impl_;
    }
    impl_ = nullptr;
  }

  bool defined() const { return impl_ != nullptr; }
  pullback::Object object() const { return impl_ ? pullback::Object::borrow(impl_->object) : pullback::none(); }
  bool is_same(const Tensor& o) const { return object().get() == o.object().get(); }
  void* unsafeGetTensorImpl() const { return impl_ ? impl_->object : nullptr; }
  long use_count() const { return impl_ ? impl_->count : 0; }

  // ---- shape
  IntArrayRef sizes() const {
    need().sizes = whole("shape");
    return impl_->sizes;
  }
  IntArrayRef strides() const {
    need().strides = pullback::Cast<std::vector<int64_t>>::from(self().call("stride").get());
    return impl_->strides;
  }
  SymIntArrayRef sym_sizes() const {
    need().symbolic = pullback::Cast<std::vector<SymInt>>::from(self().attr("shape").get());
    return impl_->symbolic;
  }
  int64_t size(int64_t d) const { return pullback::as_int(self().call("size", pullback::integer(d)).get()); }
  SymInt sym_size(int64_t d) const { return SymInt(self().call("size", pullback::integer(d))); }
  SymInt sym_numel() const { return SymInt(self().call("numel")); }
  int64_t stride(int64_t d) const { return pullback::as_int(self().call("stride", pullback::integer(d)).get()); }
  int64_t dim() const { return pullback::as_int(self().call("dim").get()); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return pullback::as_int(self().call("numel").get()); }
  int64_t storage_offset() const { return pullback::as_int(self().call("storage_offset").get()); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    if (format == MemoryFormat::Contiguous) return truth("is_contiguous");
    pullback::Object given = pullback::Cast<MemoryFormat>::to(format);
    return pullback::Cast<bool>::from(pullback::bridge().call("is_contiguous", self(), given).get());
  }
  bool is_non_overlapping_and_dense() const {
    return pullback::Cast<bool>::from(pullback::bridge().call("is_dense", self()).get());
  }

  // ---- what it is
  TypeMeta dtype() const { return scalar_type(); }
  ScalarType scalar_type() const { return pullback::Cast<ScalarType>::from(self().attr("dtype").get()); }
  Device device() const { return pullback::Cast<Device>::from(self().attr("device").get()); }
  Layout layout() const { return pullback::Cast<Layout>::from(self().attr("layout").get()); }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()).layout(layout()); }
  TypeProperties type() const { return {scalar_type(), device()}; }
  std::string toString() const { return type().toString(); }
  size_t element_size() const { return elementSize(scalar_type()); }
  size_t itemsize() const { return element_size(); }
  size_t nbytes() const { return element_size() * static_cast<size_t>(numel()); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_sparse() const { return fact("is_sparse"); }
  bool is_quantized() const { return false; }
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool is_complex() const { return isComplexType(scalar_type()); }
  bool is_signed() const { return truth("is_signed"); }
  bool is_conj() const { return truth("is_conj"); }
  bool is_neg() const { return truth("is_neg"); }
  bool is_pinned() const { return truth("is_pinned"); }
  bool is_alias_of(const Tensor& o) const {
    return pullback::Cast<bool>::from(pullback::bridge().call("is_alias", object(), o.object()).get());
  }
  int get_device() const { return device().index(); }
  uint32_t _version() const { return static_cast<uint32_t>(pullback::as_int(self().attr("_version").get())); }
  std::string name() const { return pullback::words(self().attr("name").get()); }

  // ---- memory
  void* data_ptr() const {
    pullback::Lock lock;
    pullback::Object at = pullback::bridge().call("address", self());
    void* p = PyLong_AsVoidPtr(at.get());
    if (!p && PyErr_Occurred()) pullback::throw_pending();
    return p;
  }
  template <class T>
  T* data_ptr() const {
    ScalarType have = scalar_type(), want = CppTypeToScalarType<std::remove_const_t<T>>::value;
    TORCH_CHECK(have == want, "expected scalar type ", want, " but found ", have);
    return static_cast<T*>(data_ptr());
  }
  template <class T>
  T* data() const { return data_ptr<T>(); }
  const void* const_data_ptr() const { return data_ptr(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  template <class T>
  const std::remove_const_t<T>* const_data_ptr() const { return data_ptr<std::remove_const_t<T>>(); }
  template <class T>
  T* mutable_data_ptr() const { return data_ptr<T>(); }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const&;
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;  // it would refer to a tensor that is gone
  Scalar item() const { return Scalar(self().call("item")); }
  template <class T>
  T item() const { return item().to<T>(); }

  // ---- gradients
  bool requires_grad() const { return fact("requires_grad"); }
  const Tensor& set_requires_grad(bool on) const {
    self().set_attr("requires_grad", pullback::boolean(on));
    return *this;
  }
  const Tensor& requires_grad_(bool on = true) const { return set_requires_grad(on); }
  bool is_leaf() const { return fact("is_leaf"); }
  void retain_grad() const { self().call("retain_grad"); }
  Tensor grad() const { return Tensor(self().attr("grad")); }
  Tensor mutable_grad() const { return grad(); }
  void set_grad(const Tensor& g) const { self().set_attr("grad", g.object()); }
  pullback::Object grad_fn() const { return self().attr("grad_fn"); }
  int64_t output_nr() const { return pullback::as_int(self().attr("output_nr").get()); }
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt,
                bool create_graph = false) const {
    self().call("backward", gradient.object(), pullback::to_python(retain_graph), pullback::boolean(create_graph));
  }
  Tensor data() const { return Tensor(self().attr("data")); }
  Tensor tensor_data() const { return data(); }
  Tensor variable_data() const { return data(); }
  template <class F>
  unsigned register_hook(F&& hook) const;

  // ---- conversion
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    if (format == MemoryFormat::Contiguous) return Tensor(self().call("contiguous"));
    return Tensor(pullback::bridge().call("contiguous", self(), pullback::Cast<MemoryFormat>::to(format)));
  }
  Tensor cpu() const { return Tensor(self().call("cpu")); }
  Tensor cuda() const { return Tensor(self().call("cuda")); }
  Tensor toType(ScalarType t) const { return Tensor(self().call("to", pullback::Cast<ScalarType>::to(t))); }

  // ---- items
  Tensor operator[](const Arg& index) const {
    pullback::Lock lock;
    return Tensor(pullback::Object::steal(PyObject_GetItem(self().get(), index.object().get())));
  }
  Tensor index(ArrayRef<TensorIndex> places) const;
  Tensor index(std::initializer_list<TensorIndex> places) const;
  Tensor& index_put_(ArrayRef<TensorIndex> places, const Arg& value) const;
  Tensor& index_put_(std::initializer_list<TensorIndex> places, const Arg& value) const;

  Tensor operator-() const { return neg(); }
  Tensor operator~() const { return bitwise_not(); }
  Tensor& operator+=(const Arg& o) { return add_(o); }
  Tensor& operator-=(const Arg& o) { return sub_(o); }
  Tensor& operator*=(const Arg& o) { return mul_(o); }
  Tensor& operator/=(const Arg& o) { return div_(o); }
  Tensor& operator&=(const Arg& o) { return bitwise_and_(o); }
  Tensor& operator|=(const Arg& o) { return bitwise_or_(o); }
  Tensor& operator^=(const Arg& o) { return bitwise_xor_(o); }

  // ---- every other method, declared from the operators there are
#include "pullback/declared_methods.h"

 private:
  pullback::Object self() const {
    need();
    return object();
  }
  TensorImpl& need() const {
    TORCH_CHECK(impl_, "Expected a proper Tensor but got None (or an undefined Tensor in C++)");
    return *impl_;
  }
  std::vector<int64_t> whole(const char* name) const {
    return pullback::Cast<std::vector<int64_t>>::from(self().attr(name).get());
  }
  bool fact(const char* name) const { return pullback::Cast<bool>::from(self().attr(name).get()); }
  bool truth(const char* name) const { return pullback::Cast<bool>::from(self().call(name).get()); }
  Tensor& write(const Arg& value) {
    self().call("copy_", pullback::bridge().call("as_tensor", value.object(), object()));
    return *this;
  }
  TensorImpl* impl_;
};

}  // namespace at

namespace pullback {

inline PyObject* tensor_class() {
  static const Object* kind = nullptr;
  return once(kind, [] { return bridge().attr("Tensor"); }).get();
}
inline bool is_tensor(PyObject* p) { return PyObject_IsInstance(p, tensor_class()) == 1; }
inline at::Tensor tensor_or_undefined(PyObject* p) {
  if (p != Py_None && !is_tensor(p)) no_cast(p, "Tensor");
  return at::Tensor(Object::borrow(p));
}
template <>
struct Cast<at::Tensor> {
  static Object to(const at::Tensor& t) { return t.object(); }
  static at::Tensor from(PyObject* p) {
    if (!is_tensor(p)) no_cast(p, "Tensor");
    return at::Tensor(Object::borrow(p));
  }
  static std::string schema() { return "Tensor"; }
  static std::string python() { return "torch.Tensor"; }
};
template <>
struct Cast<at::Tensor&> {  // what in-place calls give: the tensor itself, which the caller has
  static void from(PyObject*) {}
};
template <>
struct Cast<void> {
  static void from(PyObject*) {}
  static std::string schema() { return "()"; }
  static std::string python() { return "None"; }
};
template <>
struct Cast<at::indexing::Slice> {
  static Object to(const at::indexing::Slice& s) { return s.object; }
};

inline Object item_of(const at::Tensor& t, const Object& places) {
  Lock lock;
  return Object::steal(PyObject_GetItem(t.object().get(), places.get()));
}
inline Object tuple_of(const std::vector<Object>& items) {
  Lock lock;
  Object made = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); i++) {
    take(items[i].get());
    PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), items[i].get());
  }
  return made;
}

}  // namespace pullback

namespace at {

struct TensorIndex {
  pullback::Object object;
  TensorIndex(const Tensor& t) : object(t.object()) {}
  TensorIndex(const indexing::Slice& s) : object(s.object) {}
  TensorIndex(indexing::EllipsisIndexType) : object(pullback::Object::borrow(Py_Ellipsis)) {}
  TensorIndex(std::nullopt_t) : object(pullback::none()) {}
  TensorIndex(const char* dots) : object(pullback::Object::borrow(Py_Ellipsis)) {
    TORCH_CHECK_VALUE(std::strcmp(dots, "...") == 0,
                      "Expected \"...\" to represent an ellipsis index, but got \"", dots, "\"");
  }
  TensorIndex(const SymInt& i) : object(i.object()) {}
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  TensorIndex(T i) : object(pullback::to_python(i)) {}
};
namespace indexing {
using at::TensorIndex;
}
inline pullback::Object places_of(const TensorIndex* from, size_t count) {
  std::vector<pullback::Object> items;
  for (size_t i = 0; i < count; i++) items.push_back(from[i].object);
  return pullback::tuple_of(items);
}
inline Tensor Tensor::index(ArrayRef<TensorIndex> places) const {
  return Tensor(pullback::item_of(*this, places_of(places.data(), places.size())));
}
inline Tensor Tensor::index(std::initializer_list<TensorIndex> places) const {
  return Tensor(pullback::item_of(*this, places_of(places.begin(), places.size())));
}
inline Tensor& Tensor::index_put_(ArrayRef<TensorIndex> places, const Arg& value) const {
  pullback::Lock lock;
  pullback::Object at = places_of(places.data(), places.size());
  if (PyObject_SetItem(object().get(), at.get(), value.object().get()) < 0) pullback::throw_pending();
  return const_cast<Tensor&>(*this);
}
inline Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> places, const Arg& value) const {
  return index_put_(ArrayRef<TensorIndex>(places.begin(), places.size()), value);
}

#define PULLBACK_BINARY(op, method)                                                        \
  inline Tensor operator op(const Tensor& a, const Arg& b) { return a.method(b); }
PULLBACK_BINARY(+, add)
PULLBACK_BINARY(-, sub)
PULLBACK_BINARY(*, mul)
PULLBACK_BINARY(/, div)
PULLBACK_BINARY(%, remainder)
PULLBACK_BINARY(&, bitwise_and)
PULLBACK_BINARY(|, bitwise_or)
PULLBACK_BINARY(^, bitwise_xor)
PULLBACK_BINARY(<, lt)
PULLBACK_BINARY(<=, le)
PULLBACK_BINARY(>, gt)
PULLBACK_BINARY(>=, ge)
PULLBACK_BINARY(==, eq)
PULLBACK_BINARY(!=, ne)
#undef PULLBACK_BINARY
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return b.neg().add(a); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return b.reciprocal().mul(a); }
inline Tensor operator<(const Scalar& a, const Tensor& b) { return b.gt(a); }
inline Tensor operator<=(const Scalar& a, const Tensor& b) { return b.ge(a); }
inline Tensor operator>(const Scalar& a, const Tensor& b) { return b.lt(a); }
inline Tensor operator>=(const Scalar& a, const Tensor& b) { return b.le(a); }
inline Tensor operator==(const Scalar& a, const Tensor& b) { return b.eq(a); }
inline Tensor operator!=(const Scalar& a, const Tensor& b) { return b.ne(a); }
inline std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  return out << (t.defined() ? pullback::words(t.object().get()) : std::string("[ Tensor (undefined) ]"));
}

// ---- elements in place
template <class T, size_t N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides) : data_(data), sizes_(sizes), strides_(strides) {}
  IntArrayRef sizes() const { return IntArrayRef(sizes_, N); }
  IntArrayRef strides() const { return IntArrayRef(strides_, N); }
  int64_t size(int64_t i) const { return sizes_[i]; }
  int64_t stride(int64_t i) const { return strides_[i]; }
  T* data() const { return data_; }
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1) return (data_[strides_[0] * i]);
    else return TensorAccessor<T, N - 1>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};
template <class T, size_t N>
TensorAccessor<T, N> Tensor::accessor() const& {
  static_assert(N > 0, "accessor is used for indexing tensor, for scalars use *data_ptr<T>()");
  TORCH_CHECK(dim() == static_cast<int64_t>(N), "TensorAccessor expected ", N, " dims but tensor has ", dim());
  sizes(), strides();
  return TensorAccessor<T, N>(data_ptr<T>(), impl_->sizes.data(), impl_->strides.data());
}

using Scalar = c10::Scalar;
using ScalarType = c10::ScalarType;

}  // namespace at
