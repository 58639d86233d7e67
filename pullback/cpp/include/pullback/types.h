// The small values of the C++ API: element types, devices, layouts, numbers that are no Python objects, arrays of values.
#pragma once
#include <array>
#include <complex>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <ostream>
#include <vector>

#include "object.h"

namespace c10 {

using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;

// ---- arrays that somebody else owns
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  template <class A>
  ArrayRef(const std::vector<T, A>& v) : data_(v.data()), size_(v.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& a) : data_(a.data()), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&a)[N]) : data_(a), size_(N) {}
  // Lives as long as the full expression, like the list it is made of.
  ArrayRef(const std::initializer_list<T>& list)
      : data_(list.size() == 0 ? nullptr : list.begin()), size_(list.size()) {}

  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const {
    TORCH_CHECK_INDEX(i < size_, "ArrayRef: invalid index Index = ", i, "; Length = ", size_);
    return data_[i];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  ArrayRef slice(size_t from, size_t count) const {
    TORCH_CHECK(from + count <= size_, "ArrayRef: invalid slice, N = ", from, "; M = ", count, "; size = ", size_);
    return ArrayRef(data_ + from, count);
  }
  ArrayRef slice(size_t from) const { return slice(from, size_ - from); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; i++)
      if (!(data_[i] == other.data_[i])) return false;
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) { return a.equals(b); }
template <class T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) { return !a.equals(b); }
template <class T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) { return ArrayRef<T>(a).equals(b); }
template <class T>
bool operator==(ArrayRef<T> a, const std::vector<T>& b) { return a.equals(ArrayRef<T>(b)); }
template <class T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> list) {
  out << "[";
  for (size_t i = 0; i < list.size(); i++) out << (i ? ", " : "") << list[i];
  return out << "]";
}
using IntArrayRef = ArrayRef<int64_t>;
template <class T>
using OptionalArrayRef = std::optional<ArrayRef<T>>;
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;
template <class T, unsigned N = 6>
using SmallVector = std::vector<T>;
template <class T>
ArrayRef<T> makeArrayRef(const std::vector<T>& v) { return v; }

template <class T>
struct irange_ {
  struct at {
    T value;
    T operator*() const { return value; }
    at& operator++() {
      ++value;
      return *this;
    }
    bool operator!=(const at& o) const { return value < o.value; }
    bool operator==(const at& o) const { return !(value < o.value); }
  };
  T from, to;
  at begin() const { return {from}; }
  at end() const { return {to}; }
};
template <class T>
irange_<T> irange(T to) { return {T(0), to}; }
template <class A, class T>
irange_<T> irange(A from, T to) { return {static_cast<T>(from), to}; }

// ---- element types
namespace detail {
inline float from_bits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
inline uint32_t bits_of(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return bits;
}
inline uint16_t half_bits(float f) {  // round to nearest, ties to even
  uint32_t bits = bits_of(f), sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (rest >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {  // subnormal: adding 0.5 lines the bits up, with the processor's own rounding
    float lined = from_bits(rest) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_of(lined) - 0x3f000000u));
  }
  rest += 0xc8000fffu + ((rest >> 13) & 1u);
  return static_cast<uint16_t>(sign | (rest >> 13));
}
inline float half_value(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 1023u;
  if (exponent == 31) return from_bits(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {
    float small = static_cast<float>(fraction) * 5.9604644775390625e-8f;  // 2**-24
    return sign ? -small : small;
  }
  return from_bits(sign | ((exponent + 112u) << 23) | (fraction << 13));
}
inline uint16_t bfloat_bits(float f) {
  uint32_t bits = bits_of(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
}  // namespace detail

struct alignas(2) Half {
  uint16_t x;
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }
  Half() = default;
  constexpr Half(uint16_t bits, from_bits_t) : x(bits) {}
  Half(float v) : x(detail::half_bits(v)) {}
  operator float() const { return detail::half_value(x); }
};
struct alignas(2) BFloat16 {
  uint16_t x;
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }
  BFloat16() = default;
  constexpr BFloat16(uint16_t bits, from_bits_t) : x(bits) {}
  BFloat16(float v) : x(detail::bfloat_bits(v)) {}
  operator float() const { return detail::from_bits(static_cast<uint32_t>(x) << 16); }
};
#define PULLBACK_SMALL_FLOAT(T)                                                            \
  inline T operator-(T a) { return T(-static_cast<float>(a)); }                            \
  inline T operator+(T a, T b) { return T(static_cast<float>(a) + static_cast<float>(b)); } \
  inline T operator-(T a, T b) { return T(static_cast<float>(a) - static_cast<float>(b)); } \
  inline T operator*(T a, T b) { return T(static_cast<float>(a) * static_cast<float>(b)); } \
  inline T operator/(T a, T b) { return T(static_cast<float>(a) / static_cast<float>(b)); } \
  inline T& operator+=(T& a, T b) { return a = a + b; }                                    \
  inline T& operator-=(T& a, T b) { return a = a - b; }                                    \
  inline T& operator*=(T& a, T b) { return a = a * b; }                                    \
  inline T& operator/=(T& a, T b) { return a = a / b; }
PULLBACK_SMALL_FLOAT(Half)
PULLBACK_SMALL_FLOAT(BFloat16)
template <class T>
using complex = std::complex<T>;

// (C++ type, name, place in the enumeration, Python name) of what kernels can be written for
#define PULLBACK_SCALAR_TYPES(_)      \
  _(uint8_t, Byte, 0, "uint8")        \
  _(int8_t, Char, 1, "int8")          \
  _(int16_t, Short, 2, "int16")       \
  _(int, Int, 3, "int32")             \
  _(int64_t, Long, 4, "int64")        \
  _(::c10::Half, Half, 5, "float16")  \
  _(float, Float, 6, "float32")       \
  _(double, Double, 7, "float64")     \
  _(::c10::complex<float>, ComplexFloat, 9, "complex64")    \
  _(::c10::complex<double>, ComplexDouble, 10, "complex128") \
  _(bool, Bool, 11, "bool")           \
  _(::c10::BFloat16, BFloat16, 15, "bfloat16") \
  _(uint16_t, UInt16, 27, "uint16")   \
  _(uint32_t, UInt32, 28, "uint32")   \
  _(uint64_t, UInt64, 29, "uint64")

enum class ScalarType : int8_t {
#define PULLBACK_ROW(T, name, place, python) name = place,
  PULLBACK_SCALAR_TYPES(PULLBACK_ROW)
#undef PULLBACK_ROW
  ComplexHalf = 8, Float8_e5m2 = 23, Float8_e4m3fn = 24, Float8_e5m2fnuz = 25, Float8_e4m3fnuz = 26, Float8_e8m0fnu = 44,
  Undefined = 46, NumOptions = 47
};
inline const char* toString(ScalarType t) {
  switch (t) {
#define PULLBACK_ROW(T, name, place, python) \
  case ScalarType::name:                     \
    return #name;
    PULLBACK_SCALAR_TYPES(PULLBACK_ROW)
#undef PULLBACK_ROW
    case ScalarType::ComplexHalf: return "ComplexHalf";
    case ScalarType::Float8_e5m2: return "Float8_e5m2";
    case ScalarType::Float8_e4m3fn: return "Float8_e4m3fn";
    case ScalarType::Float8_e5m2fnuz: return "Float8_e5m2fnuz";
    case ScalarType::Float8_e4m3fnuz: return "Float8_e4m3fnuz";
    case ScalarType::Float8_e8m0fnu: return "Float8_e8m0fnu";
    case ScalarType::Undefined: return "Undefined";
    default: return "UNKNOWN_SCALAR";
  }
}
inline std::ostream& operator<<(std::ostream& out, ScalarType t) { return out << toString(t); }
inline size_t elementSize(ScalarType t) {
  switch (t) {
#define PULLBACK_ROW(T, name, place, python) \
  case ScalarType::name:                     \
    return sizeof(T);
    PULLBACK_SCALAR_TYPES(PULLBACK_ROW)
#undef PULLBACK_ROW
    case ScalarType::ComplexHalf: return 4;
    default: return 1;
  }
}
inline bool isFloatingType(ScalarType t) {
  return t == ScalarType::Double || t == ScalarType::Float || t == ScalarType::Half || t == ScalarType::BFloat16 ||
         (t >= ScalarType::Float8_e5m2 && t <= ScalarType::Float8_e4m3fnuz) || t == ScalarType::Float8_e8m0fnu;
}
inline bool isComplexType(ScalarType t) { return t >= ScalarType::ComplexHalf && t <= ScalarType::ComplexDouble; }
inline bool isIntegralType(ScalarType t, bool with_bool = false) {
  return t <= ScalarType::Long || (t >= ScalarType::UInt16 && t <= ScalarType::UInt64) ||
         (with_bool && t == ScalarType::Bool);
}
template <class T>
struct CppTypeToScalarType {
  static_assert(sizeof(T) == 0, "no element type of tensors is this C++ type");
};
template <ScalarType>
struct ScalarTypeToCPPType;
#define PULLBACK_ROW(T, name, place, python)                           \
  template <>                                                          \
  struct CppTypeToScalarType<T> {                                      \
    static constexpr ScalarType value = ScalarType::name;              \
  };                                                                   \
  template <>                                                          \
  struct ScalarTypeToCPPType<ScalarType::name> {                       \
    using type = T;                                                    \
  };                                                                   \
  constexpr ScalarType k##name = ScalarType::name;
PULLBACK_SCALAR_TYPES(PULLBACK_ROW)
#undef PULLBACK_ROW
static_assert(sizeof(long) != sizeof(long long) || sizeof(long) == 8, "64-bit long expected");
template <>
struct CppTypeToScalarType<long long> {
  static constexpr ScalarType value = ScalarType::Long;
};
constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong, kFloat16 = kHalf,
                     kFloat32 = kFloat, kFloat64 = kDouble, kComplexHalf = ScalarType::ComplexHalf,
                     kFloat8_e5m2 = ScalarType::Float8_e5m2, kFloat8_e4m3fn = ScalarType::Float8_e4m3fn;

struct TypeMeta {  // what `tensor.dtype()` gives: a ScalarType with a name
  ScalarType type = ScalarType::Undefined;
  TypeMeta() = default;
  TypeMeta(ScalarType t) : type(t) {}
  template <class T>
  static TypeMeta Make() { return CppTypeToScalarType<T>::value; }
  template <class T>
  bool Match() const { return type == CppTypeToScalarType<T>::value; }
  operator ScalarType() const { return type; }
  ScalarType toScalarType() const { return type; }
  size_t itemsize() const { return elementSize(type); }
  const char* name() const {  // of the C++ type
    switch (type) {
      case ScalarType::Byte: return "unsigned char";
      case ScalarType::Char: return "signed char";
      case ScalarType::Short: return "short int";
      case ScalarType::Int: return "int";
      case ScalarType::Long: return "long int";
      case ScalarType::Half: return "c10::Half";
      case ScalarType::Float: return "float";
      case ScalarType::Double: return "double";
      case ScalarType::ComplexFloat: return "c10::complex<float>";
      case ScalarType::ComplexDouble: return "c10::complex<double>";
      case ScalarType::Bool: return "bool";
      case ScalarType::BFloat16: return "c10::BFloat16";
      case ScalarType::UInt16: return "unsigned short";
      case ScalarType::UInt32: return "unsigned int";
      case ScalarType::UInt64: return "unsigned long";
      default: return toString(type);
    }
  }
  friend bool operator==(TypeMeta a, TypeMeta b) { return a.type == b.type; }
  friend bool operator!=(TypeMeta a, TypeMeta b) { return a.type != b.type; }
  friend bool operator==(TypeMeta a, ScalarType b) { return a.type == b; }
  friend bool operator!=(TypeMeta a, ScalarType b) { return a.type != b; }
  friend bool operator==(ScalarType a, TypeMeta b) { return a == b.type; }
  friend bool operator!=(ScalarType a, TypeMeta b) { return a != b.type; }
};
inline std::ostream& operator<<(std::ostream& out, TypeMeta t) { return out << t.name(); }
inline ScalarType typeMetaToScalarType(TypeMeta t) { return t.type; }

// ---- devices, layouts, memory formats
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, HIP = 6, XLA = 9, MPS = 13, Meta = 14, XPU = 12, PrivateUse1 = 20 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kMeta = DeviceType::Meta, kMPS = DeviceType::MPS,
                     kXPU = DeviceType::XPU;
using DeviceIndex = int8_t;
inline const char* device_name(DeviceType t) {
  switch (t) {
    case DeviceType::CPU: return "cpu";
    case DeviceType::CUDA: return "cuda";
    case DeviceType::HIP: return "hip";
    case DeviceType::XLA: return "xla";
    case DeviceType::MPS: return "mps";
    case DeviceType::Meta: return "meta";
    case DeviceType::XPU: return "xpu";
    default: return "privateuseone";
  }
}
inline std::ostream& operator<<(std::ostream& out, DeviceType t) { return out << device_name(t); }
struct Device {
  DeviceType type_ = DeviceType::CPU;
  int index_ = -1;
  Device(DeviceType t, int index = -1) : type_(t), index_(index) {}
  Device(const std::string& words) {
    auto colon = words.find(':');
    std::string kind = words.substr(0, colon);
    bool known = false;
    for (int t : {0, 1, 6, 9, 12, 13, 14, 20})
      if (kind == device_name(static_cast<DeviceType>(t))) type_ = static_cast<DeviceType>(t), known = true;
    TORCH_CHECK(known, "Invalid device string: '", words, "'");
    if (colon != std::string::npos) index_ = std::stoi(words.substr(colon + 1));
  }
  Device(const char* words) : Device(std::string(words)) {}
  DeviceType type() const { return type_; }
  int index() const { return index_; }
  bool has_index() const { return index_ != -1; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_meta() const { return type_ == DeviceType::Meta; }
  std::string str() const {
    return index_ < 0 ? std::string(device_name(type_)) : device_name(type_) + (":" + std::to_string(index_));
  }
  friend bool operator==(const Device& a, const Device& b) { return a.type_ == b.type_ && a.index_ == b.index_; }
  friend bool operator!=(const Device& a, const Device& b) { return !(a == b); }
};
inline std::ostream& operator<<(std::ostream& out, const Device& d) { return out << d.str(); }
enum class Layout : int8_t { Strided, Sparse, SparseCsr, Mkldnn, SparseCsc, SparseBsr, SparseBsc, Jagged };
constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse, kSparseCsr = Layout::SparseCsr;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

}  // namespace c10
namespace caffe2 {
using c10::TypeMeta;
}
namespace pullback {
inline const char* python_name(c10::ScalarType t) {
  switch (t) {
#define PULLBACK_ROW(T, name, place, python) \
  case c10::ScalarType::name:                \
    return python;
    PULLBACK_SCALAR_TYPES(PULLBACK_ROW)
#undef PULLBACK_ROW
    case c10::ScalarType::ComplexHalf: return "complex32";
    case c10::ScalarType::Float8_e5m2: return "float8_e5m2";
    case c10::ScalarType::Float8_e4m3fn: return "float8_e4m3fn";
    case c10::ScalarType::Float8_e5m2fnuz: return "float8_e5m2fnuz";
    case c10::ScalarType::Float8_e4m3fnuz: return "float8_e4m3fnuz";
    case c10::ScalarType::Float8_e8m0fnu: return "float8_e8m0fnu";
    default: return nullptr;
  }
}
}  // namespace pullback
