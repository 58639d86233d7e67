// AT_DISPATCH_*: a block of code for each element type that a kernel is written for, with `scalar_t` as its name.
#pragma once
#include "functions.h"

namespace pullback {
inline c10::ScalarType scalar_type(c10::ScalarType t) { return t; }
inline c10::ScalarType scalar_type(c10::TypeMeta t) { return t.type; }
inline c10::ScalarType scalar_type(const at::TypeProperties& t) { return t.scalar; }
}  // namespace pullback

#define AT_DISPATCH_CASE(enum_type, ...)                                            \
  case enum_type: {                                                                 \
    using scalar_t [[maybe_unused]] = ::c10::ScalarTypeToCPPType<enum_type>::type;  \
    return __VA_ARGS__();                                                           \
  }
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                         \
  [&] {                                                                             \
    const ::c10::ScalarType pullback_type = ::pullback::scalar_type(TYPE);          \
    constexpr const char* at_dispatch_name [[maybe_unused]] = NAME;                 \
    switch (pullback_type) {                                                        \
      __VA_ARGS__                                                                   \
      default:                                                                      \
        throw ::c10::NotImplementedError(::c10::str('"', at_dispatch_name, "\" not implemented for '", pullback_type, "'")); \
    }                                                                               \
  }()
#define PULLBACK_T(name) ::c10::ScalarType::name
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(PULLBACK_T(Double), __VA_ARGS__) AT_DISPATCH_CASE(PULLBACK_T(Float), __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...) \
  AT_DISPATCH_CASE(PULLBACK_T(ComplexDouble), __VA_ARGS__) AT_DISPATCH_CASE(PULLBACK_T(ComplexFloat), __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)                                                       \
  AT_DISPATCH_CASE(PULLBACK_T(Byte), __VA_ARGS__) AT_DISPATCH_CASE(PULLBACK_T(Char), __VA_ARGS__) \
  AT_DISPATCH_CASE(PULLBACK_T(Int), __VA_ARGS__) AT_DISPATCH_CASE(PULLBACK_T(Long), __VA_ARGS__)  \
  AT_DISPATCH_CASE(PULLBACK_T(Short), __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(PULLBACK_T(Half), __VA_ARGS__)

#define PULLBACK_DISPATCH(GROUP, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_##GROUP(__VA_ARGS__))
#define PULLBACK_DISPATCH_AND(GROUP, A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_##GROUP(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define PULLBACK_DISPATCH_AND2(GROUP, A, B, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_##GROUP(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__))
#define PULLBACK_DISPATCH_AND3(GROUP, A, B, C, TYPE, NAME, ...)                                            \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_##GROUP(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__)    \
                                     AT_DISPATCH_CASE(B, __VA_ARGS__) AT_DISPATCH_CASE(C, __VA_ARGS__))

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) PULLBACK_DISPATCH(FLOATING_TYPES, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) PULLBACK_DISPATCH(FLOATING_TYPES_AND_HALF, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) PULLBACK_DISPATCH_AND(FLOATING_TYPES, A, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...) PULLBACK_DISPATCH_AND2(FLOATING_TYPES, A, B, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES(TYPE, NAME, ...) PULLBACK_DISPATCH(COMPLEX_TYPES, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, NAME, ...) PULLBACK_DISPATCH(FLOATING_AND_COMPLEX_TYPES, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(A, TYPE, NAME, ...) PULLBACK_DISPATCH_AND(FLOATING_AND_COMPLEX_TYPES, A, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(A, B, TYPE, NAME, ...) PULLBACK_DISPATCH_AND2(FLOATING_AND_COMPLEX_TYPES, A, B, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) PULLBACK_DISPATCH(INTEGRAL_TYPES, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(A, TYPE, NAME, ...) PULLBACK_DISPATCH_AND(INTEGRAL_TYPES, A, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) PULLBACK_DISPATCH(ALL_TYPES, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) PULLBACK_DISPATCH_AND(ALL_TYPES, A, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...) PULLBACK_DISPATCH_AND2(ALL_TYPES, A, B, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(A, B, C, TYPE, NAME, ...) PULLBACK_DISPATCH_AND3(ALL_TYPES, A, B, C, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(TYPE, NAME, ...) PULLBACK_DISPATCH(ALL_TYPES_AND_COMPLEX, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(A, TYPE, NAME, ...) PULLBACK_DISPATCH_AND(ALL_TYPES_AND_COMPLEX, A, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(A, B, TYPE, NAME, ...) PULLBACK_DISPATCH_AND2(ALL_TYPES_AND_COMPLEX, A, B, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(A, B, C, TYPE, NAME, ...) PULLBACK_DISPATCH_AND3(ALL_TYPES_AND_COMPLEX, A, B, C, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                    \
  AT_DISPATCH_SWITCH(TYPE, NAME, PULLBACK_INDEX_CASE(PULLBACK_T(Int), __VA_ARGS__) PULLBACK_INDEX_CASE(PULLBACK_T(Long), __VA_ARGS__))
#define PULLBACK_INDEX_CASE(enum_type, ...)                                         \
  case enum_type: {                                                                 \
    using index_t [[maybe_unused]] = ::c10::ScalarTypeToCPPType<enum_type>::type;   \
    return __VA_ARGS__();                                                           \
  }
