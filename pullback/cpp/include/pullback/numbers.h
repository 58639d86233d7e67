// Numbers whose kind is known at run time: Scalar, and SymInt, SymFloat, SymBool, which may stand for a symbol of a trace.
//
// What always holds: a number without `object` is the plain C++ value; one with it is computed with in Python.
#pragma once
#include "types.h"

namespace pullback {

inline Object arithmetic(char op, const Object& a, const Object& b) {
  Lock lock;
  switch (op) {
    case '+': return Object::steal(PyNumber_Add(a.get(), b.get()));
    case '-': return Object::steal(PyNumber_Subtract(a.get(), b.get()));
    case '*': return Object::steal(PyNumber_Multiply(a.get(), b.get()));
    case '/': return Object::steal(PyNumber_TrueDivide(a.get(), b.get()));
    case '|': return Object::steal(PyNumber_FloorDivide(a.get(), b.get()));
    default: return Object::steal(PyNumber_Remainder(a.get(), b.get()));
  }
}
inline bool compare(const Object& a, const Object& b, int how) {
  Lock lock;
  Object made = Object::steal(PyObject_RichCompare(a.get(), b.get(), how));
  int truth = PyObject_IsTrue(made.get());
  if (truth < 0) throw_pending();
  return truth != 0;
}
inline int64_t as_int(PyObject* p) {
  Lock lock;
  Object whole = Object::steal(PyNumber_Index(p));
  long long v = PyLong_AsLongLong(whole.get());
  if (v == -1 && PyErr_Occurred()) throw_pending();
  return v;
}
inline double as_double(PyObject* p) {
  Lock lock;
  double v = PyFloat_AsDouble(p);
  if (v == -1.0 && PyErr_Occurred()) throw_pending();
  return v;
}

}  // namespace pullback

namespace c10 {

class SymInt {
 public:
  SymInt(int64_t v = 0) : value_(v) {}
  explicit SymInt(pullback::Object symbol) : object_(std::move(symbol)) {
    pullback::Lock lock;
    if (PyLong_CheckExact(object_.get())) {
      value_ = pullback::as_int(object_.get());
      object_ = pullback::Object();
    }
  }
  bool is_symbolic() const { return static_cast<bool>(object_); }
  bool is_heap_allocated() const { return is_symbolic(); }
  std::optional<int64_t> maybe_as_int() const {
    return is_symbolic() ? std::nullopt : std::optional<int64_t>(value_);
  }
  int64_t guard_int(const char*, int64_t) const { return expect_int(); }
  int64_t expect_int() const { return is_symbolic() ? pullback::as_int(object_.get()) : value_; }
  int64_t as_int_unchecked() const { return value_; }
  pullback::Object object() const { return is_symbolic() ? object_ : pullback::integer(value_); }

  SymInt operator+(const SymInt& o) const { return plain(o) ? SymInt(value_ + o.value_) : with('+', o); }
  SymInt operator-(const SymInt& o) const { return plain(o) ? SymInt(value_ - o.value_) : with('-', o); }
  SymInt operator*(const SymInt& o) const { return plain(o) ? SymInt(value_ * o.value_) : with('*', o); }
  SymInt operator/(const SymInt& o) const { return plain(o) ? SymInt(value_ / o.value_) : with('|', o); }
  SymInt operator%(const SymInt& o) const { return plain(o) ? SymInt(value_ % o.value_) : with('%', o); }
  SymInt operator-() const { return SymInt(0) - *this; }
  SymInt& operator+=(const SymInt& o) { return *this = *this + o; }
  SymInt& operator-=(const SymInt& o) { return *this = *this - o; }
  SymInt& operator*=(const SymInt& o) { return *this = *this * o; }
  SymInt& operator/=(const SymInt& o) { return *this = *this / o; }
  bool operator==(const SymInt& o) const { return plain(o) ? value_ == o.value_ : is(o, Py_EQ); }
  bool operator!=(const SymInt& o) const { return plain(o) ? value_ != o.value_ : is(o, Py_NE); }
  bool operator<(const SymInt& o) const { return plain(o) ? value_ < o.value_ : is(o, Py_LT); }
  bool operator<=(const SymInt& o) const { return plain(o) ? value_ <= o.value_ : is(o, Py_LE); }
  bool operator>(const SymInt& o) const { return plain(o) ? value_ > o.value_ : is(o, Py_GT); }
  bool operator>=(const SymInt& o) const { return plain(o) ? value_ >= o.value_ : is(o, Py_GE); }

 private:
  bool plain(const SymInt& o) const { return !object_ && !o.object_; }
  SymInt with(char op, const SymInt& o) const { return SymInt(pullback::arithmetic(op, object(), o.object())); }
  bool is(const SymInt& o, int how) const { return pullback::compare(object(), o.object(), how); }
  int64_t value_ = 0;
  pullback::Object object_;
};
inline std::ostream& operator<<(std::ostream& out, const SymInt& s) { return out << pullback::words(s.object().get()); }
using SymIntArrayRef = ArrayRef<SymInt>;
using OptionalSymIntArrayRef = OptionalArrayRef<SymInt>;

class SymFloat {
 public:
  SymFloat(double v = 0) : value_(v) {}
  explicit SymFloat(pullback::Object symbol) : object_(std::move(symbol)) {
    pullback::Lock lock;
    if (PyFloat_CheckExact(object_.get()) || PyLong_CheckExact(object_.get())) {
      value_ = pullback::as_double(object_.get());
      object_ = pullback::Object();
    }
  }
  bool is_symbolic() const { return static_cast<bool>(object_); }
  double guard_float(const char*, int64_t) const { return expect_float(); }
  double expect_float() const { return is_symbolic() ? pullback::as_double(object_.get()) : value_; }
  double as_float_unchecked() const { return value_; }
  pullback::Object object() const { return is_symbolic() ? object_ : pullback::real(value_); }
  SymFloat operator+(const SymFloat& o) const { return plain(o) ? SymFloat(value_ + o.value_) : with('+', o); }
  SymFloat operator-(const SymFloat& o) const { return plain(o) ? SymFloat(value_ - o.value_) : with('-', o); }
  SymFloat operator*(const SymFloat& o) const { return plain(o) ? SymFloat(value_ * o.value_) : with('*', o); }
  SymFloat operator/(const SymFloat& o) const { return plain(o) ? SymFloat(value_ / o.value_) : with('/', o); }

 private:
  bool plain(const SymFloat& o) const { return !object_ && !o.object_; }
  SymFloat with(char op, const SymFloat& o) const { return SymFloat(pullback::arithmetic(op, object(), o.object())); }
  double value_ = 0;
  pullback::Object object_;
};
inline std::ostream& operator<<(std::ostream& out, const SymFloat& s) {
  return out << pullback::words(s.object().get());
}

class SymBool {
 public:
  SymBool(bool v = false) : object_(pullback::boolean(v)) {}
  explicit SymBool(pullback::Object symbol) : object_(std::move(symbol)) {}
  bool guard_bool(const char*, int64_t) const {
    pullback::Lock lock;
    int truth = PyObject_IsTrue(object_.get());
    if (truth < 0) pullback::throw_pending();
    return truth != 0;
  }
  bool expect_true(const char* file, int64_t line) const { return guard_bool(file, line); }
  pullback::Object object() const { return object_; }

 private:
  pullback::Object object_;
};

// A number as operators take it.
class Scalar {
 public:
  Scalar() : Scalar(int64_t(0)) {}
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Scalar(T v) {
    if constexpr (std::is_same_v<T, bool>) kind_ = Kind::Bool, i_ = v;
    else if constexpr (std::is_integral_v<T>) kind_ = Kind::Int, i_ = static_cast<int64_t>(v);
    else kind_ = Kind::Double, d_ = static_cast<double>(v);
  }
  Scalar(Half v) : Scalar(static_cast<float>(v)) {}
  Scalar(BFloat16 v) : Scalar(static_cast<float>(v)) {}
  template <class T>
  Scalar(std::complex<T> v) : kind_(Kind::Complex), d_(v.real()), imag_(v.imag()) {}
  Scalar(const SymInt& v) : Scalar(v.object()) {}
  Scalar(const SymFloat& v) : Scalar(v.object()) {}
  explicit Scalar(pullback::Object o) {
    pullback::Lock lock;
    PyObject* p = o.get();
    if (PyBool_Check(p)) kind_ = Kind::Bool, i_ = p == Py_True;
    else if (PyLong_CheckExact(p)) kind_ = Kind::Int, i_ = pullback::as_int(p);
    else if (PyFloat_Check(p)) kind_ = Kind::Double, d_ = PyFloat_AS_DOUBLE(p);
    else if (PyComplex_Check(p)) kind_ = Kind::Complex, d_ = PyComplex_RealAsDouble(p), imag_ = PyComplex_ImagAsDouble(p);
    else kind_ = Kind::Symbol, symbol_ = std::move(o);
  }
  bool isBoolean() const { return kind_ == Kind::Bool; }
  bool isFloatingPoint() const { return kind_ == Kind::Double; }
  bool isComplex() const { return kind_ == Kind::Complex; }
  bool isSymbolic() const { return kind_ == Kind::Symbol; }
  bool isIntegral(bool with_bool = false) const { return kind_ == Kind::Int || (with_bool && kind_ == Kind::Bool); }
  ScalarType type() const {
    switch (kind_) {
      case Kind::Bool: return ScalarType::Bool;
      case Kind::Double: return ScalarType::Double;
      case Kind::Complex: return ScalarType::ComplexDouble;
      default: return ScalarType::Long;
    }
  }
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      using V = typename T::value_type;
      return kind_ == Kind::Complex ? T(static_cast<V>(d_), static_cast<V>(imag_)) : T(static_cast<V>(real()));
    } else {
      TORCH_CHECK(kind_ != Kind::Complex || imag_ == 0, "value cannot be converted to type ",
                  TypeMeta(CppTypeToScalarType<T>::value).name(), " without overflow");
      if (kind_ == Kind::Int || kind_ == Kind::Bool) return static_cast<T>(i_);
      if constexpr (std::is_integral_v<T>)
        if (kind_ == Kind::Symbol) return static_cast<T>(pullback::as_int(symbol_.get()));
      return static_cast<T>(static_cast<std::conditional_t<std::is_arithmetic_v<T>, double, float>>(real()));
    }
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return to<bool>(); }
  SymInt toSymInt() const { return kind_ == Kind::Symbol ? SymInt(symbol_) : SymInt(to<int64_t>()); }
  Scalar operator-() const {
    if (kind_ == Kind::Double) return Scalar(-d_);
    if (kind_ == Kind::Complex) return Scalar(std::complex<double>(-d_, -imag_));
    if (kind_ == Kind::Symbol) return Scalar(pullback::arithmetic('-', pullback::integer(0), symbol_));
    return Scalar(-i_);
  }
  bool equal(const Scalar& o) const { return pullback::compare(object(), o.object(), Py_EQ); }
  pullback::Object object() const {
    switch (kind_) {
      case Kind::Bool: return pullback::boolean(i_ != 0);
      case Kind::Int: return pullback::integer(i_);
      case Kind::Double: return pullback::real(d_);
      case Kind::Complex: {
        pullback::Lock lock;
        return pullback::Object::steal(PyComplex_FromDoubles(d_, imag_));
      }
      default: return symbol_;
    }
  }

 private:
  enum class Kind { Int, Double, Bool, Complex, Symbol };
  double real() const {
    if (kind_ == Kind::Symbol) return pullback::as_double(symbol_.get());
    return kind_ == Kind::Int || kind_ == Kind::Bool ? static_cast<double>(i_) : d_;
  }
  Kind kind_ = Kind::Int;
  int64_t i_ = 0;
  double d_ = 0, imag_ = 0;
  pullback::Object symbol_;
};
inline std::ostream& operator<<(std::ostream& out, const Scalar& s) { return out << pullback::words(s.object().get()); }

}  // namespace c10
