/* The set of instructions that a machine has: 0 any machine's, 1 AVX2, 2 AVX-512. Code for 1 and 2 is compiled where HAS_LEVELS says so. */
#ifndef NATIVE_MACHINE_H
#define NATIVE_MACHINE_H
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HAS_LEVELS
#endif

static int machine_level(void) {
#ifdef HAS_LEVELS
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 0;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl")
               ? 2
               : 1;
#else
    return 0;
#endif
}
#endif
