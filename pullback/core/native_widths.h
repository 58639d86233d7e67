/* The loops of _elements.c that take bfloat16 and float16 to single precision and back, for other modules: `use_casts` is called once. */
enum { FLOAT16_NUMBER = 23 }; /* NumPy's */
typedef void (*Loop)(i64, char *const *);
static Loop widens[2], narrows[2]; /* of bfloat16, of float16 */
static PyObject *float16;

/* use_casts(float16, (addresses of the loops that widen bfloat16 and float16, and of those that narrow to them)) */
static PyObject *use_casts(PyObject *self, PyObject *args) {
    unsigned long long at[4];
    if (!PyArg_ParseTuple(args, "O(KKKK)", &float16, at, at + 1, at + 2, at + 3)) return NULL;
    for (int i = 0; i < 2; i++) *(void **)&widens[i] = (void *)at[i], *(void **)&narrows[i] = (void *)at[2 + i];
    Py_INCREF(float16);
    Py_RETURN_NONE;
}
