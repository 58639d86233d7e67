// How operators are called from C++: any value as an `Arg`, and a `Callee`, which finds the Python function once.
//
// `Arg` takes whatever `Cast` knows, and braces: `x.view({-1, 4})`, `torch::cat({a, b}, 0)`. One that was not given is
// absent, and so are those after it; options of factories go over by keyword.
#pragma once
#include "convert.h"

namespace c10 {

// dtype, device, layout, ... of tensors to be made; what was not said is left to the function.
struct TensorOptions {
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<bool> requires_grad_, pinned_;
  std::optional<MemoryFormat> format_;

  TensorOptions() = default;
  TensorOptions(ScalarType t) : dtype_(t) {}
  TensorOptions(TypeMeta t) : dtype_(t.type) {}
  TensorOptions(Device d) : device_(d) {}
  TensorOptions(DeviceType d) : device_(Device(d)) {}
  TensorOptions(Layout l) : layout_(l) {}
  TensorOptions(MemoryFormat f) : format_(f) {}

  TensorOptions dtype(std::optional<ScalarType> t) const { return with(&TensorOptions::dtype_, t); }
  TensorOptions dtype(TypeMeta t) const { return with(&TensorOptions::dtype_, std::optional<ScalarType>(t.type)); }
  TensorOptions dtype(ScalarType t) const { return with(&TensorOptions::dtype_, std::optional<ScalarType>(t)); }
  TensorOptions device(std::optional<Device> d) const { return with(&TensorOptions::device_, d); }
  TensorOptions device(DeviceType d, int index = -1) const {
    return with(&TensorOptions::device_, std::optional<Device>(Device(d, index)));
  }
  TensorOptions layout(std::optional<Layout> l) const { return with(&TensorOptions::layout_, l); }
  TensorOptions requires_grad(std::optional<bool> on) const { return with(&TensorOptions::requires_grad_, on); }
  TensorOptions pinned_memory(std::optional<bool> on) const { return with(&TensorOptions::pinned_, on); }
  TensorOptions memory_format(std::optional<MemoryFormat> f) const { return with(&TensorOptions::format_, f); }

  TypeMeta dtype() const { return dtype_.value_or(ScalarType::Float); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  Layout layout() const { return layout_.value_or(kStrided); }
  bool requires_grad() const { return requires_grad_.value_or(false); }
  bool pinned_memory() const { return pinned_.value_or(false); }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  bool has_layout() const { return layout_.has_value(); }
  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }

 private:
  template <class M, class V>
  TensorOptions with(M member, V value) const {
    TensorOptions out = *this;
    out.*member = value;
    return out;
  }
};
inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
inline TensorOptions dtype(TypeMeta t) { return TensorOptions(t); }
template <class T>
TensorOptions dtype() { return TensorOptions(CppTypeToScalarType<T>::value); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions layout(Layout l) { return TensorOptions(l); }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }
inline TensorOptions memory_format(MemoryFormat f) { return TensorOptions(f); }

}  // namespace c10

namespace pullback {

inline Object keywords(const c10::TensorOptions& o) {  // a dict of what was said
  Lock lock;
  Object made = Object::steal(PyDict_New());
  auto put = [&](const char* name, const auto& value) {
    if (value && PyDict_SetItemString(made.get(), name, move_to_python(*value).get()) < 0) throw_pending();
  };
  put("dtype", o.dtype_), put("device", o.device_), put("layout", o.layout_), put("requires_grad", o.requires_grad_);
  put("pin_memory", o.pinned_), put("memory_format", o.format_);
  return made;
}

class Arg {
 public:
  Arg() = default;
  template <class T, std::enable_if_t<!std::is_same_v<std::decay_t<T>, Arg> &&
                                          !std::is_convertible_v<const T&, const c10::TensorOptions&>, int> = 0>
  Arg(const T& v) : object_(Cast<T>::to(v)) {}
  Arg(const char* v) : object_(text(v)) {}
  Arg(c10::ScalarType v) : object_(Cast<c10::ScalarType>::to(v)) {}
  Arg(c10::TypeMeta v) : object_(Cast<c10::ScalarType>::to(v.type)) {}
  Arg(const c10::Device& v) : object_(Cast<c10::Device>::to(v)) {}
  Arg(c10::DeviceType v) : object_(Cast<c10::DeviceType>::to(v)) {}
  Arg(c10::Layout v) : object_(Cast<c10::Layout>::to(v)) {}
  Arg(c10::MemoryFormat v) : object_(keywords(v)), keywords_(true) {}
  Arg(const c10::TensorOptions& v) : object_(keywords(v)), keywords_(true) {}
  Arg(std::initializer_list<Arg> items) {
    Lock lock;
    object_ = Object::steal(PyList_New(0));
    for (const Arg& item : items)
      if (PyList_Append(object_.get(), item.object_.get()) < 0) throw_pending();
  }
  bool absent() const { return !object_; }
  bool is_keywords() const { return keywords_; }
  const Object& object() const { return object_; }

 private:
  Object object_;
  bool keywords_ = false;
};

// A function of pullback, by the name of its operator. Found at the first call, and never let go.
struct Callee {
  static constexpr size_t limit = 62;
  const char* name;
  PyObject* function = nullptr;

  Object operator()(const Arg* const* args, size_t count) {
    Lock lock;
    if (!function) function = bridge().call("function", text(name)).release();
    PyObject* given[limit + 2] = {nullptr};
    Py_ssize_t n = 0;
    PyObject* options = nullptr;
    TORCH_CHECK(count <= limit, name, ": more than ", limit, " arguments");
    bool ended = false;
    for (size_t i = 0; i < count; i++) {
      TORCH_CHECK(!ended || args[i]->absent(), name, ": {} was given before argument ", i + 1,
                  ", and may mean several things: write at::IntArrayRef(), std::nullopt or torch::Tensor(), whichever is meant");
      if (args[i]->absent()) ended = true;
      else if (args[i]->is_keywords()) options = args[i]->object().get();
      else given[++n] = args[i]->object().get();
    }
    if (!options)
      return Object::steal(PyObject_Vectorcall(function, given + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    return Object::steal(PyObject_VectorcallDict(function, given + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, options));
  }
};

}  // namespace pullback

#define PULLBACK_MADE(name, ...)                  \
  static ::pullback::Callee callee{name};         \
  const ::pullback::Arg* given[] = {__VA_ARGS__}; \
  [[maybe_unused]] const ::pullback::Object made = callee(given, sizeof(given) / sizeof(*given))
#define PULLBACK_CALL(R, name, ...)  \
  PULLBACK_MADE(name, __VA_ARGS__); \
  return ::pullback::Cast<R>::from(made.get())
