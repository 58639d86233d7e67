/* Names of numbers as the printed loops spell them. Templates include this once, before what they are made of. */
typedef signed char i8;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u16 bf16;
typedef float f32;
typedef double f64;
#undef NAN
#define INF __builtin_inff()
#define NAN __builtin_nanf("")
#define INLINE static inline __attribute__((always_inline, unused))
