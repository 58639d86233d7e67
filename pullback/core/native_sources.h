/* Words of a generator in C: its Mersenne twister, taken with its lock, and uniform numbers one at a time.
 *
 * `use_generators` is called once by `core.random`. `open_source` gives 0 where somebody has the generator's lock, or it is not of the CPU;
 * `close_source` says whether anything was drawn meanwhile.
 */
#include <structmember.h>

typedef int i32;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

/* NumPy's public `bitgen_t` */
typedef struct {
    void *state;
    u64 (*next_uint64)(void *);
    u32 (*next_uint32)(void *);
    f64 (*next_double)(void *);
    u64 (*next_raw)(void *);
} Words;

typedef struct {
    Words *words;
    PyObject *generator, *lock;
} Source;

enum { ENGINE, FRESH, NEXT_NORMAL, LOCK, SLOTS };
static const char *slot_names[SLOTS] = {"_engine", "_fresh", "next_normal", "lock"};
static Py_ssize_t slot_at[SLOTS];
enum { ACQUIRE, RELEASE, CAPSULE, WORDS };
static PyObject *asked_words[WORDS];
static PyTypeObject *generator_type;
static PyObject *default_generator;
enum { ALONE = 1 << 16 }; /* so many numbers are drawn without the interpreter's lock */

/* use_generators(Generator, default_generator) */
static PyObject *use_generators(PyObject *self, PyObject *args) {
    static const char *words[WORDS] = {"acquire", "release", "capsule"};
    if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &generator_type, &default_generator)) return NULL;
    for (int i = 0; i < WORDS; i++)
        if (!(asked_words[i] = PyUnicode_InternFromString(words[i]))) return NULL;
    for (int i = 0; i < SLOTS; i++) {
        PyObject *slot = PyObject_GetAttrString((PyObject *)generator_type, slot_names[i]);
        if (!slot) return NULL;
        if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) return PyErr_Format(PyExc_TypeError, "Generator.%s is not a slot", slot_names[i]);
        slot_at[i] = ((PyMemberDescrObject *)slot)->d_member->offset;
        Py_DECREF(slot);
    }
    Py_INCREF(generator_type);
    Py_INCREF(default_generator);
    Py_RETURN_NONE;
}

static inline PyObject **slot_of(PyObject *generator, int which) { return (PyObject **)((char *)generator + slot_at[which]); }

static void set_slot(PyObject *generator, int which, PyObject *value) {
    PyObject *before = *slot_of(generator, which);
    *slot_of(generator, which) = value;
    Py_XDECREF(before);
}

static void unlock(const Source *s) {
    PyObject *done = PyObject_VectorcallMethod(asked_words[RELEASE], &s->lock, 1, NULL);
    if (!done) PyErr_Clear();
    Py_XDECREF(done);
}

static Words *words_of(PyObject *generator) {
    PyObject *engine = *slot_of(generator, ENGINE);
    engine = engine && engine != Py_None ? Py_NewRef(engine) : PyObject_CallMethod(generator, "_loaded", NULL);
    PyObject *capsule = engine ? PyObject_GetAttr(engine, asked_words[CAPSULE]) : NULL;
    Words *words = capsule ? PyCapsule_GetPointer(capsule, "BitGenerator") : NULL;
    Py_XDECREF(capsule); /* the generator has its engine, and that its words */
    Py_XDECREF(engine);
    return words;
}

/* Take the generator's lock without waiting for it. */
static int open_source(Source *s, PyObject *generator) {
    s->generator = generator ? generator : default_generator;
    if (!s->generator || !Py_IS_TYPE(s->generator, generator_type) || !(s->lock = *slot_of(s->generator, LOCK))) return 0;
    PyObject *asked[2] = {s->lock, Py_False}, *taken = PyObject_VectorcallMethod(asked_words[ACQUIRE], asked, 2, NULL);
    Py_XDECREF(taken);
    s->words = taken == Py_True ? words_of(s->generator) : NULL;
    if (taken == Py_True && !s->words) unlock(s);
    if (!s->words) PyErr_Clear();
    return s->words != NULL;
}

static void close_source(const Source *s, int has_drawn) {
    if (has_drawn) set_slot(s->generator, FRESH, Py_NewRef(Py_False));
    unlock(s);
}

/* The normal number that waits in the generator: 0 where there is none. */
static inline int take_waiting(const Source *s, f64 *into) {
    PyObject *waiting = *slot_of(s->generator, NEXT_NORMAL);
    int is_waiting = waiting && PyFloat_Check(waiting);
    *into = is_waiting ? PyFloat_AS_DOUBLE(waiting) : 0;
    return is_waiting;
}

static inline void leave_waiting(const Source *s, int is_waiting, f64 value) {
    PyObject *kept = is_waiting ? PyFloat_FromDouble(value) : Py_NewRef(Py_None);
    if (kept) set_slot(s->generator, NEXT_NORMAL, kept);
}

/* ---- numbers */
static inline u32 word(const Words *w) { return w->next_uint32(w->state); }

static inline u64 word64(const Words *w) {
    u64 high = word(w);
    return high << 32 | word(w);
}

static inline f32 unit(const Words *w) { return (f32)(i32)(word(w) & 0xFFFFFF) * 0x1p-24f; }
static inline f64 unit64(const Words *w) { return (f64)(i64)(word64(w) & (((u64)1 << 53) - 1)) * 0x1p-53; }
