// at:: and torch:: functions: those declared from pullback's operators, factories, and guards of ambient state.
#pragma once
#include "ivalue.h"

namespace at {

// ---- any operator, by name: at::call("add", x, y), at::call<std::tuple<Tensor, Tensor>>("topk", x, 3)
template <class R = Tensor, class... A>
R call(const char* name, const A&... args) {
  const Arg given[] = {Arg(args)..., Arg()};
  const Arg* places[sizeof...(A) + 1];
  for (size_t i = 0; i <= sizeof...(A); i++) places[i] = &given[i];
  pullback::Callee callee{name};
  pullback::Object made = callee(places, sizeof...(A));
  pullback::drop(callee.function);
  return pullback::Cast<R>::from(made.get());
}

// ---- factories
#define PULLBACK_FACTORY(name)                                                                                        \
  inline Tensor name(IntArrayRef size, const TensorOptions& options = {}) {                                           \
    const Arg shape(size), more(options);                                                                             \
    PULLBACK_CALL(Tensor, #name, &shape, &more);                                                                      \
  }                                                                                                                   \
  inline Tensor name##_symint(SymIntArrayRef size, const TensorOptions& options = {}) {                               \
    const Arg shape(size), more(options);                                                                             \
    PULLBACK_CALL(Tensor, #name, &shape, &more);                                                                      \
  }
PULLBACK_FACTORY(empty)
PULLBACK_FACTORY(zeros)
PULLBACK_FACTORY(ones)
PULLBACK_FACTORY(rand)
PULLBACK_FACTORY(randn)
#undef PULLBACK_FACTORY
inline Tensor full(IntArrayRef size, const Scalar& value, const TensorOptions& options = {}) {
  const Arg shape(size), fill(value), more(options);
  PULLBACK_CALL(Tensor, "full", &shape, &fill, &more);
}
inline Tensor randint(int64_t high, IntArrayRef size, const TensorOptions& options = {}) {
  const Arg h(high), shape(size), more(options);
  PULLBACK_CALL(Tensor, "randint", &h, &shape, &more);
}
inline Tensor randint(int64_t low, int64_t high, IntArrayRef size, const TensorOptions& options = {}) {
  const Arg l(low), h(high), shape(size), more(options);
  PULLBACK_CALL(Tensor, "randint", &l, &h, &shape, &more);
}
inline Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& options = {}) {
  const Arg shape(size), steps(stride), more(options);
  PULLBACK_CALL(Tensor, "empty_strided", &shape, &steps, &more);
}
inline Tensor made_tensor(const pullback::Object& values, const pullback::Object& dtype, const TensorOptions& o) {
  return Tensor(pullback::bridge().call("tensor", values, dtype, pullback::keywords(o)));
}
// torch::tensor(3.5), torch::tensor({1, 2}), torch::tensor(std::vector<float>{...}): the dtype of the C++ values
template <class T>
ScalarType made_dtype() { return CppTypeToScalarType<T>::value; }
template <class T>
std::optional<ScalarType> literal_dtype() {  // literals such as 0.5 and 3 have the defaults: default dtype, and long
  if constexpr (std::is_same_v<T, double>) return std::nullopt;
  else if constexpr (std::is_same_v<T, int>) return kLong;
  else return made_dtype<T>();
}
template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
Tensor tensor(T value, const TensorOptions& o = {}) {
  return made_tensor(pullback::to_python(value), pullback::to_python(literal_dtype<T>()), o);
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& o = {}) {
  return made_tensor(pullback::list_of(values.begin(), values.end()), pullback::to_python(literal_dtype<T>()), o);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> values, const TensorOptions& o = {}) {
  return made_tensor(pullback::list_of(values.begin(), values.end()), pullback::to_python(literal_dtype<T>()), o);
}
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& o = {}) {
  return made_tensor(pullback::to_python(values), pullback::to_python(made_dtype<T>()), o);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& o = {}) {
  return made_tensor(pullback::to_python(values), pullback::to_python(made_dtype<T>()), o);
}

// A tensor on memory that the caller owns; `deleter` is called when nobody holds the memory any more.
inline Tensor from_memory(void* data, IntArrayRef sizes, std::optional<IntArrayRef> strides,
                          std::function<void(void*)> deleter, const TensorOptions& o) {
  TORCH_CHECK(o.device().is_cpu(), "from_blob: only memory of the CPU can be used, got device ", o.device());
  pullback::Lock lock;
  struct Owner {
    void* data;
    std::function<void(void*)> deleter;
  };
  pullback::Object capsule = pullback::Object::steal(
      PyCapsule_New(new Owner{data, std::move(deleter)}, "pullback.memory", [](PyObject* c) {
        auto* owner = static_cast<Owner*>(PyCapsule_GetPointer(c, "pullback.memory"));
        if (owner->deleter) owner->deleter(owner->data);
        delete owner;
      }));
  pullback::Object place = pullback::Object::steal(PyLong_FromVoidPtr(data));
  Tensor made(pullback::bridge().call("from_memory", place, pullback::to_python(sizes), pullback::to_python(strides),
                                      pullback::to_python(o.dtype().type), capsule));
  if (o.requires_grad()) made.set_requires_grad(true);
  return made;
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& o = {}) {
  return from_memory(data, sizes, std::nullopt, nullptr, o);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& o = {}) {
  return from_memory(data, sizes, strides, nullptr, o);
}
template <class D, std::enable_if_t<std::is_invocable_v<D, void*>, int> = 0>
Tensor from_blob(void* data, IntArrayRef sizes, D&& deleter, const TensorOptions& o = {}) {
  return from_memory(data, sizes, std::nullopt, std::forward<D>(deleter), o);
}
template <class D, std::enable_if_t<std::is_invocable_v<D, void*>, int> = 0>
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, D&& deleter, const TensorOptions& o = {}) {
  return from_memory(data, sizes, strides, std::forward<D>(deleter), o);
}

// ---- functions whose results depend on which arguments are given
#define PULLBACK_EXTREME(name)                                                                                       \
  inline Tensor name(const Tensor& self) { return call("" #name, self); }                                            \
  inline std::tuple<Tensor, Tensor> name(const Tensor& self, int64_t dim, bool keepdim = false) {                    \
    return call<std::tuple<Tensor, Tensor>>("" #name, self, dim, keepdim);                                           \
  }                                                                                                                  \
  inline Tensor Tensor::name() const { return at::name(*this); }                                                     \
  inline std::tuple<Tensor, Tensor> Tensor::name(int64_t dim, bool keepdim) const { return at::name(*this, dim, keepdim); }
PULLBACK_EXTREME(max)
PULLBACK_EXTREME(min)
PULLBACK_EXTREME(median)
PULLBACK_EXTREME(nanmedian)
#undef PULLBACK_EXTREME
inline Tensor max(const Tensor& self, const Tensor& other) { return call("max", self, other); }
inline Tensor min(const Tensor& self, const Tensor& other) { return call("min", self, other); }
inline Tensor Tensor::max(const Tensor& other) const { return at::max(*this, other); }
inline Tensor Tensor::min(const Tensor& other) const { return at::min(*this, other); }

#include "pullback/declared_functions.h"

inline void manual_seed(uint64_t seed) { pullback::bridge().call("manual_seed", pullback::to_python(seed)); }
inline Tensor scalar_tensor(const Scalar& s, const TensorOptions& o = {}) {
  return made_tensor(s.object(), pullback::none(), o);
}
inline ScalarType result_type(const Tensor& a, const Arg& b) {
  static pullback::Callee callee{"result_type"};
  const Arg first(a);
  const Arg* given[] = {&first, &b};
  return pullback::Cast<ScalarType>::from(callee(given, 2).get());
}
inline ScalarType promote_types(ScalarType a, ScalarType b) {
  return pullback::Cast<ScalarType>::from(
      pullback::bridge().call("promote_types", pullback::to_python(a), pullback::to_python(b)).get());
}

// ---- loops: written for threads, run in one
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t, const F& f) {
  if (begin < end) f(begin, end);
}
inline int get_num_threads() { return 1; }
inline int get_thread_num() { return 0; }
inline bool in_parallel_region() { return false; }
inline int64_t divup(int64_t a, int64_t b) { return (a + b - 1) / b; }

// ---- ambient state, for a block
class Context {
 public:
  explicit Context(const char* name) : object_(pullback::bridge().call("context", pullback::text(name))) {
    object_.call("__enter__");
  }
  ~Context() {
    try {
      object_.call("__exit__", pullback::none(), pullback::none(), pullback::none());
    } catch (...) {  // a destructor has nobody to tell
    }
  }
  Context(const Context&) = delete;

 private:
  pullback::Object object_;
};
struct NoGradGuard : Context { NoGradGuard() : Context("no_grad") {} };
struct AutoGradMode : Context {
  explicit AutoGradMode(bool on) : Context(on ? "enable_grad" : "no_grad") {}
};
struct AutoDispatchBelowAutograd : Context { AutoDispatchBelowAutograd() : Context("below_autograd") {} };
struct AutoDispatchBelowADInplaceOrView : Context { AutoDispatchBelowADInplaceOrView() : Context("below_autograd") {} };
struct AutoNonVariableTypeMode : Context {
  explicit AutoNonVariableTypeMode(bool = true) : Context("below_autograd") {}
};
namespace impl {
using at::AutoDispatchBelowAutograd;
}
struct GradMode {
  static bool is_enabled() {
    return pullback::Cast<bool>::from(pullback::bridge().call("is_grad_enabled").get());
  }
};
inline bool hasCUDA() { return false; }

}  // namespace at

namespace c10 {
struct InferenceMode : at::Context {
  explicit InferenceMode(bool on = true) : Context(on ? "inference_mode" : "normal_mode") {}
};
using at::GradMode;
}  // namespace c10

namespace torch {
using namespace at;
using Dtype = c10::ScalarType;
using at::Tensor;
using c10::Device;
using c10::DeviceType;
using c10::IValue;
using c10::TensorOptions;
namespace indexing = at::indexing;
template <class T>
using List = c10::List<T>;
template <class K, class V>
using Dict = c10::Dict<K, V>;
namespace cuda {
inline bool is_available() { return false; }
inline size_t device_count() { return 0; }
}  // namespace cuda
}  // namespace torch
