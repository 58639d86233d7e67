/* TEMPLATE for each set of instructions that a machine may have: LEVEL ends its names, VECTOR is the number of bytes of a vector.
 *
 * LEVELS(name) are the addresses of a thing of that name: a row for each level, of single precision and of double. `level` is the one in use:
 * the machine's best, once `find_level` was called; `instructions` is a function of Python that says it, and sets it.
 */
#include "native_machine.h"
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define N(name) JOIN(name, SUFFIX)
#define LEVEL _plain
#define VECTOR 16
#include TEMPLATE
#undef LEVEL
#undef VECTOR
#ifdef HAS_LEVELS
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define LEVEL _avx2
#define VECTOR 32
#include TEMPLATE
#undef LEVEL
#undef VECTOR
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#define LEVEL _avx512
#define VECTOR 64
#include TEMPLATE
#undef LEVEL
#undef VECTOR
#pragma GCC pop_options
#define LEVELS(name) {{&name##_f_plain, &name##_d_plain}, {&name##_f_avx2, &name##_d_avx2}, {&name##_f_avx512, &name##_d_avx512}}
#else
#define LEVELS(name) {{&name##_f_plain, &name##_d_plain}}
#endif
static int level, best_level;

static void find_level(void) { level = best_level = machine_level(); }

/* instructions(level or -1): the set of instructions in use (0 any machine's, 1 AVX2, 2 AVX-512); another is used from now on where the
 * machine has it. */
static PyObject *py_instructions(PyObject *self, PyObject *args) {
    int wanted, before = level;
    if (!PyArg_ParseTuple(args, "i", &wanted))
        return NULL;
    level = wanted >= 0 && wanted <= best_level ? wanted : level;
    return PyLong_FromLong(before);
}
