/* Backward: the walk of the engine, in C. What it does is said in Python in `autograd.engine` (`_walk`), which runs where this
 * extension is absent or somebody looks at every step. Included by `_objects.c`, whose slots it reads.
 *
 * In: where gradients enter (edges and gradients) and, where only some are wanted, the edges at which they are. Out: those.
 * Nodes are found once (`collect`), those on the way to what is wanted are marked (`mark`), and each knows for how many
 * gradients it waits. From then on a node runs when it waits for nothing more: sinks first, then the newest.
 */

typedef struct {
    PyObject *node, *outputs;      /* outputs: NULL where nothing arrives, or no longer */
    PyObject *only, **many;        /* gradients: one for each output */
    long long sequence, owned;     /* owned: a bit for each output whose sum is the walk's to write into */
    Py_ssize_t count, waits, wanted, above; /* first place among what is wanted, first way from a node above; -1: none */
    char runs, needed, sink;
} Stop;

typedef struct {
    Py_ssize_t from, to, next; /* next: another way to the same stop */
} Way;

typedef struct {
    Stop *stops;
    Way *ways;
    Py_ssize_t *table, *next_wanted, *heap, *sinks;
    Py_ssize_t entries; /* the first stops, at which gradients enter */
    Py_ssize_t stop_count, stop_room, way_count, way_room, table_size, ready, sinking;
    PyObject *task, *inputs, *found; /* inputs: NULL where all gradients go to leaves; found: what has arrived at them */
    int keep_graph, in_place;
} Walk;

enum { MOST_NUMBERS = 62 }; /* outputs beyond this are summed without the mark of ownership */
static Py_ssize_t large;
static PyObject *validate_gradient, *total_of, *add_arrays, *add_name, *accumulate_gradient, *run_hooked, *run_late_hooks, *run_tensor_hooks;
static PyObject *outputs_name, *sequence_name, *hooked_name, *run_name, *run_for_name, *release_name, *node_name, *branches_name,
    *dtype_kept_name, *name_name;

static PyObject *py_setup_walk(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    static const struct {
        PyObject **at;
        const char *text;
    } names[] = {{&outputs_name, "outputs"}, {&sequence_name, "sequence"},        {&hooked_name, "hooked"},
                 {&run_name, "run"},         {&run_for_name, "run_for"},          {&release_name, "release"},
                 {&node_name, "node"},       {&branches_name, "branches"},        {&name_name, "name"},
                 {&add_name, "add_"},        {&dtype_kept_name, "grad_dtype"}};
    if (n != 8) {
        PyErr_SetString(PyExc_TypeError,
                        "setup_walk(validate, total, add, large, accumulate, run_hooked, run_late_hooks, run_tensor_hooks)");
        return NULL;
    }
    validate_gradient = Py_NewRef(args[0]);
    total_of = Py_NewRef(args[1]);
    add_arrays = Py_NewRef(args[2]);
    large = PyLong_AsSsize_t(args[3]);
    accumulate_gradient = Py_NewRef(args[4]);
    run_hooked = Py_NewRef(args[5]);
    run_late_hooks = Py_NewRef(args[6]);
    run_tensor_hooks = Py_NewRef(args[7]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].at = PyUnicode_InternFromString(names[i].text))) return NULL;
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* An attribute that classes of nodes keep in a slot, and some of them elsewhere: a new reference. */
static PyObject *of_node(PyObject *node, int slot, PyObject *name) {
    PyObject *held = get(node, node_at[slot]);
    return held ? Py_NewRef(held) : PyObject_GetAttr(node, name);
}

static PyObject *edges_of_node(PyObject *node) {
    PyObject *held = of_node(node, EDGES, edges_name);
    if (!held || PyTuple_Check(held)) return held;
    PyObject *edges = PySequence_Tuple(held);
    Py_DECREF(held);
    return edges;
}

/* ((shape, dtype, device),) of what arrives at a leaf; where it says of which dtype that is to be, it is asked itself. */
static PyObject *outputs_of_node(PyObject *node) {
    if (!Py_IS_TYPE(node, sink_type)) return of_node(node, OUTPUTS, outputs_name);
    PyObject *variable = get(node, variable_at), *known = get(variable, tensor_at[AUTOGRAD]);
    PyObject *kept = PyObject_GetAttr(known, dtype_kept_name);
    if (!kept) return NULL;
    Py_DECREF(kept);
    return kept == Py_Ellipsis ? outputs_of(variable) : PyObject_GetAttr(node, outputs_name);
}

/* ---- the graph */
static int grow(void *items, Py_ssize_t *room, size_t size) {
    Py_ssize_t larger = *room ? *room * 2 : 16;
    void *moved = PyMem_Realloc(*(void **)items, larger * size);
    if (!moved) return PyErr_NoMemory(), -1;
    *(void **)items = moved;
    *room = larger;
    return 0;
}

static Py_ssize_t *place_of(const Walk *walk, PyObject *node) {
    size_t mask = walk->table_size - 1, at = ((size_t)node >> 4) * 0x9E3779B97F4A7C15u >> 20 & mask;
    while (walk->table[at] >= 0 && walk->stops[walk->table[at]].node != node) at = (at + 1) & mask;
    return &walk->table[at];
}

static int widen_table(Walk *walk) {
    Py_ssize_t size = walk->table_size ? walk->table_size * 2 : 32;
    Py_ssize_t *table = PyMem_Realloc(walk->table, size * sizeof *table);
    if (!table) return PyErr_NoMemory(), -1;
    walk->table = table;
    walk->table_size = size;
    for (Py_ssize_t i = 0; i < size; i++) table[i] = -1;
    for (Py_ssize_t i = 0; i < walk->stop_count; i++) *place_of(walk, walk->stops[i].node) = i;
    return 0;
}

/* The number of a node's stop, which is made at first need; -1 on error. */
static Py_ssize_t stop_of(Walk *walk, PyObject *node) {
    Py_ssize_t *place = place_of(walk, node);
    if (*place >= 0) return *place;
    if (!PyObject_TypeCheck(node, node_type)) {
        PyErr_Format(PyExc_TypeError, "an edge goes to a %s, which is no node", Py_TYPE(node)->tp_name);
        return -1;
    }
    if (walk->stop_count == walk->stop_room && grow(&walk->stops, &walk->stop_room, sizeof *walk->stops)) return -1;
    walk->stops[walk->stop_count] = (Stop){.node = Py_NewRef(node), .wanted = -1, .above = -1, .sink = Py_IS_TYPE(node, sink_type)};
    *place = walk->stop_count++;
    if (walk->stop_count * 2 > walk->table_size && widen_table(walk)) return -1;
    return walk->stop_count - 1;
}

static PyObject *end_of(PyObject *edge) {
    if (PyTuple_Check(edge) && PyTuple_GET_SIZE(edge) >= 2) return PyTuple_GET_ITEM(edge, 0);
    PyErr_SetString(PyExc_TypeError, "an edge is a node and the number of an output");
    return NULL;
}

static int add_ways(Walk *walk, Py_ssize_t from) {
    PyObject *edges = walk->stops[from].sink ? NULL : edges_of_node(walk->stops[from].node);
    if (!edges) return walk->stops[from].sink ? 0 : -1;
    int failed = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(edges) && !failed; i++) {
        if (PyTuple_GET_ITEM(edges, i) == Py_None) continue;
        PyObject *end = end_of(PyTuple_GET_ITEM(edges, i));
        Py_ssize_t to = end ? stop_of(walk, end) : -1;
        failed = to < 0 || (walk->way_count == walk->way_room && grow(&walk->ways, &walk->way_room, sizeof *walk->ways));
        if (failed) break;
        walk->ways[walk->way_count] = (Way){from, to, walk->stops[to].above};
        walk->stops[to].above = walk->way_count++;
    }
    Py_DECREF(edges);
    return failed ? -1 : 0;
}

/* Whether an output of a node may lead to some of its edges only; -1 on error. */
static int has_branches(PyObject *node) {
    PyObject *branches = PyObject_GetAttr(node, branches_name);
    Py_XDECREF(branches);
    return branches ? branches != Py_None : -1;
}

/* All stops and ways from the roots. 1 where the graph is one that Python is to walk, -1 on error. */
static int collect(Walk *walk, PyObject *roots, int branching) {
    if (widen_table(walk)) return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(roots); i++) {
        PyObject *end = end_of(PyList_GET_ITEM(roots, i));
        if (!end || stop_of(walk, end) < 0) return -1;
    }
    walk->entries = walk->stop_count;
    for (Py_ssize_t i = 0; i < walk->stop_count; i++) {
        int other = branching ? has_branches(walk->stops[i].node) : 0;
        if (other || add_ways(walk, i)) return other ? other : -1;
    }
    return 0;
}

/* Mark the stops that lead to what is wanted: those above run, the wanted ones with `run_inputs` alone. */
static int mark(Walk *walk, int run_inputs) {
    Py_ssize_t n = walk->inputs ? PyList_GET_SIZE(walk->inputs) : 0, waiting = 0, *stack = walk->sinks;
    for (Py_ssize_t i = 0; !walk->inputs && i < walk->stop_count; i++) walk->stops[i].runs = walk->stops[i].needed = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *end = end_of(PyList_GET_ITEM(walk->inputs, i));
        if (!end) return -1;
        Py_ssize_t at = *place_of(walk, end);
        if (at < 0) continue;
        Stop *stop = &walk->stops[at];
        if (!stop->needed) stack[waiting++] = at;
        stop->needed = 1;
        stop->runs |= run_inputs;
        walk->next_wanted[i] = stop->wanted;
        stop->wanted = i;
    }
    while (waiting)
        for (Py_ssize_t way = walk->stops[stack[--waiting]].above; way >= 0; way = walk->ways[way].next) {
            Stop *above = &walk->stops[walk->ways[way].from];
            if (!above->needed) stack[waiting++] = walk->ways[way].from;
            above->runs = above->needed = 1;
        }
    return 0;
}

static PyObject **gradients_of(Stop *stop) { return stop->many ? stop->many : &stop->only; }

/* Room for the gradients of a stop, and its place in the order. */
static int open_stop(Stop *stop) {
    if (!(stop->outputs = outputs_of_node(stop->node))) return -1;
    if (!PyTuple_Check(stop->outputs)) {
        PyErr_SetString(PyExc_TypeError, "the outputs of a node are a tuple");
        return -1;
    }
    stop->count = PyTuple_GET_SIZE(stop->outputs);
    if (stop->count > 1 && !(stop->many = PyMem_Calloc(stop->count, sizeof *stop->many))) return PyErr_NoMemory(), -1;
    PyObject *number = stop->sink ? NULL : of_node(stop->node, SEQUENCE, sequence_name);
    if (!number) return stop->sink ? 0 : -1;
    stop->sequence = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return stop->sequence == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Whether gradients arrive at a stop: where they enter, whatever they lead to, or on the way to what is wanted. */
static int takes_part(const Walk *walk, Py_ssize_t stop) { return walk->stops[stop].needed || stop < walk->entries; }

static int open_stops(Walk *walk) {
    for (Py_ssize_t i = 0; i < walk->way_count; i++) {
        const Way *way = &walk->ways[i];
        walk->stops[way->to].waits += walk->stops[way->from].runs && takes_part(walk, way->to);
    }
    for (Py_ssize_t i = 0; i < walk->stop_count; i++)
        if (takes_part(walk, i) && open_stop(&walk->stops[i])) return -1;
    return 0;
}

/* ---- what is ready: a heap, the newest node first */
static void push_ready(Walk *walk, Py_ssize_t stop) {
    if (walk->stops[stop].sink) {
        walk->sinks[walk->sinking++] = stop;
        return;
    }
    Py_ssize_t at = walk->ready++;
    for (; at && walk->stops[walk->heap[(at - 1) / 2]].sequence < walk->stops[stop].sequence; at = (at - 1) / 2)
        walk->heap[at] = walk->heap[(at - 1) / 2];
    walk->heap[at] = stop;
}

static Py_ssize_t pop_ready(Walk *walk) {
    if (walk->sinking) return walk->sinks[--walk->sinking];
    Py_ssize_t top = walk->heap[0], last = walk->heap[--walk->ready], at = 0;
    long long sequence = walk->stops[last].sequence;
    for (Py_ssize_t child; (child = 2 * at + 1) < walk->ready; at = child) {
        if (child + 1 < walk->ready && walk->stops[walk->heap[child + 1]].sequence > walk->stops[walk->heap[child]].sequence) child++;
        if (walk->stops[walk->heap[child]].sequence <= sequence) break;
        walk->heap[at] = walk->heap[child];
    }
    walk->heap[at] = last;
    return top;
}

/* ---- gradients on their way */
/* A new reference to the gradient as `spec` (shape, dtype, device) wants it. */
static PyObject *fitting(PyObject *node, Py_ssize_t index, PyObject *spec, PyObject *g) {
    if (PyObject_TypeCheck(g, tensor_type) && PyTuple_Check(spec) && PyTuple_GET_SIZE(spec) == 3 &&
        get(g, tensor_at[DTYPE]) == PyTuple_GET_ITEM(spec, 1)) {
        PyObject *shape = PyObject_GetAttr(get(g, tensor_at[ARRAY]), shape_name);
        if (!shape) return NULL;
        int same = PyObject_RichCompareBool(shape, PyTuple_GET_ITEM(spec, 0), Py_EQ);
        Py_DECREF(shape);
        if (same) return same < 0 ? NULL : Py_NewRef(g);
    }
    PyObject *at = PyLong_FromSsize_t(index);
    PyObject *result = at ? PyObject_CallFunctionObjArgs(validate_gradient, node, at, spec, g, NULL) : NULL;
    Py_XDECREF(at);
    return result;
}

static int is_small(PyObject *shape) {
    Py_ssize_t size = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape) && size < large; i++)
        size *= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    return size < large;
}

/* Add `g` to the sum `have`, which only the walk holds. */
static int add_into(PyObject *have, PyObject *g, PyObject *shape) {
    PyObject *done;
    if (PyTuple_Check(shape) && is_small(shape)) {
        PyObject *into = get(have, tensor_at[ARRAY]);
        PyObject *operands[3] = {into, get(g, tensor_at[ARRAY]), into};
        done = PyObject_Vectorcall(add_arrays, operands, 3, NULL);
    } else {
        done = PyObject_CallMethodOneArg(have, add_name, g);
    }
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int is_plain(PyObject *g) { return PyObject_TypeCheck(g, tensor_type) && get(g, tensor_at[KEYS]) == zero; }

/* Put a gradient into a stop, at output `number`, or add it to what is there. Takes the reference to `g`. */
static int arrive(Walk *walk, Stop *stop, Py_ssize_t number, PyObject *spec, PyObject *g) {
    PyObject **at = &gradients_of(stop)[number], *have = *at;
    if (!have) return *at = g, 0;
    long long bit = number < MOST_NUMBERS ? 1LL << number : 0;
    if (walk->in_place && stop->owned & bit && is_plain(have) && is_plain(g)) {
        int failed = add_into(have, g, PyTuple_GET_ITEM(spec, 0));
        Py_DECREF(g);
        return failed;
    }
    PyObject *sum = PyObject_CallFunctionObjArgs(total_of, have, g, NULL);
    Py_DECREF(g);
    if (!sum) return -1;
    Py_SETREF(*at, sum);
    stop->owned |= bit;
    return 0;
}

static int is_output(const Stop *stop, Py_ssize_t number) {
    if (number >= 0 && number < stop->count) return 1;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "an edge goes to an output that its node does not have");
    return 0;
}

/* One gradient (or None) along one edge. */
static int deliver_one(Walk *walk, PyObject *node, Py_ssize_t index, PyObject *edge, PyObject *g) {
    PyObject *end = end_of(edge);
    if (!end) return -1;
    Py_ssize_t to = *place_of(walk, end);
    Stop *stop = to < 0 ? NULL : &walk->stops[to];
    if (!stop || !stop->outputs) return 0; /* not on a path to what was asked for */
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(edge, 1));
    if (!is_output(stop, number)) return -1;
    if (g != Py_None) {
        PyObject *spec = PyTuple_GET_ITEM(stop->outputs, number), *fit = fitting(node, index, spec, g);
        if (!fit || arrive(walk, stop, number, spec, fit)) return -1;
    }
    if (!--stop->waits) push_ready(walk, to);
    return 0;
}

static int refuse_count(PyObject *node, Py_ssize_t expected, Py_ssize_t got) {
    PyObject *name = PyObject_CallMethodNoArgs(node, name_name);
    if (name)
        PyErr_Format(PyExc_RuntimeError, "%S returned an incorrect number of gradients (expected %zd, got %zd)", name, expected, got);
    Py_XDECREF(name);
    return -1;
}

/* What a node returned goes to the nodes before it. */
static int deliver_all(Walk *walk, PyObject *node, PyObject *edges, PyObject *results) {
    PyObject *items = PySequence_Fast(results, "a node returns a gradient for each of its edges");
    if (!items) return -1;
    Py_ssize_t n = PyTuple_GET_SIZE(edges), got = PySequence_Fast_GET_SIZE(items);
    int failed = n == got ? 0 : refuse_count(node, n, got);
    for (Py_ssize_t i = 0; i < n && !failed; i++)
        if (PyTuple_GET_ITEM(edges, i) != Py_None)
            failed = deliver_one(walk, node, i, PyTuple_GET_ITEM(edges, i), PySequence_Fast_GET_ITEM(items, i));
    Py_DECREF(items);
    return failed;
}

/* ---- one node */
/* The gradients of a stop as a list, which alone holds them: nothing arrives there any more. */
static PyObject *take_gradients(Stop *stop) {
    PyObject *list = PyList_New(stop->count), **own = gradients_of(stop);
    if (!list) return NULL;
    for (Py_ssize_t i = 0; i < stop->count; i++) {
        PyList_SET_ITEM(list, i, own[i] ? own[i] : Py_NewRef(Py_None));
        own[i] = NULL;
    }
    Py_CLEAR(stop->outputs);
    return list;
}

static int is_hooked(PyObject *node) {
    PyObject *found = PyObject_GenericGetAttr(node, hooked_name);
    int hooked = found ? PyObject_IsTrue(found) : -1;
    Py_XDECREF(found);
    return hooked;
}

/* Keep the gradients that were asked for. */
static int capture(Walk *walk, const Stop *stop, PyObject *gradients, int hooked) {
    int changes = hooked && !stop->runs;
    PyObject *seen = changes ? PyObject_CallFunctionObjArgs(run_tensor_hooks, stop->node, gradients, NULL) : Py_NewRef(gradients);
    if (!seen) return -1;
    for (Py_ssize_t i = stop->wanted; i >= 0; i = walk->next_wanted[i]) {
        PyObject *number = PyTuple_GET_ITEM(PyList_GET_ITEM(walk->inputs, i), 1), *g = PyObject_GetItem(seen, number);
        if (!g && PyErr_ExceptionMatches(PyExc_IndexError)) {
            PyErr_Clear();
            continue;
        }
        if (!g || PyList_SetItem(walk->found, i, g)) {
            Py_DECREF(seen);
            return -1;
        }
    }
    Py_DECREF(seen);
    return 0;
}

/* The edges of a node that lead to what was asked for; None in the place of the others. */
static PyObject *wanted_edges(const Walk *walk, PyObject *edges) {
    Py_ssize_t n = PyTuple_GET_SIZE(edges);
    PyObject *result = PyTuple_New(n);
    for (Py_ssize_t i = 0; result && i < n; i++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, i), *end = edge == Py_None ? NULL : end_of(edge);
        Py_ssize_t to = end ? *place_of(walk, end) : -1;
        PyTuple_SET_ITEM(result, i, Py_NewRef(to >= 0 && walk->stops[to].needed ? edge : Py_None));
        if (edge != Py_None && !end) Py_CLEAR(result);
    }
    return result;
}

/* What a node returned, when it is freed, and after the hooks that came meanwhile. Takes the reference to `results`. */
static PyObject *finished(Walk *walk, PyObject *node, PyObject *results) {
    PyObject *done = walk->keep_graph ? Py_NewRef(Py_None) : PyObject_CallMethodNoArgs(node, release_name);
    int hooked = done ? is_hooked(node) : -1;
    Py_XDECREF(done);
    if (!hooked) return results;
    PyObject *after = hooked > 0 ? PyObject_CallFunctionObjArgs(run_late_hooks, node, results, NULL) : NULL;
    Py_DECREF(results);
    return after;
}

/* Run a node and send on what it returns. */
static int run_stop(Walk *walk, PyObject *node, PyObject *gradients, int hooked) {
    PyObject *edges = edges_of_node(node), *results = NULL;
    if (!edges) return -1;
    int all = !walk->inputs || PyTuple_GET_SIZE(edges) == 1;
    PyObject *asked = all ? Py_NewRef(Py_None) : wanted_edges(walk, edges);
    if (asked && hooked) {
        PyObject *keeps = walk->keep_graph ? Py_True : Py_False;
        results = PyObject_CallFunctionObjArgs(run_hooked, node, gradients, asked, keeps, NULL);
    } else if (asked) {
        results = all ? PyObject_CallMethodOneArg(node, run_name, gradients)
                      : PyObject_CallMethodObjArgs(node, run_for_name, gradients, asked, NULL);
        if (results) results = finished(walk, node, results);
    }
    Py_XDECREF(asked);
    int failed = results ? deliver_all(walk, node, edges, results) : -1;
    Py_XDECREF(results);
    Py_DECREF(edges);
    return failed;
}

static int visit(Walk *walk, Stop *stop) {
    PyObject *gradients = take_gradients(stop);
    int hooked = gradients ? is_hooked(stop->node) : -1, failed = hooked < 0 || PyObject_SetAttr(walk->task, node_name, stop->node);
    if (!failed && walk->inputs && (stop->wanted >= 0 || !stop->runs)) failed = capture(walk, stop, gradients, hooked);
    if (!failed && stop->runs && stop->sink && !hooked) {
        PyObject *operands[2] = {get(stop->node, variable_at), gradients};
        PyObject *done = PyObject_Vectorcall(accumulate_gradient, operands, 2, NULL);
        Py_XDECREF(done);
        failed = !done;
    } else if (!failed && stop->runs) {
        failed = run_stop(walk, stop->node, gradients, hooked);
    }
    Py_XDECREF(gradients);
    return failed ? -1 : 0;
}

/* ---- the whole */
static int start(Walk *walk, PyObject *roots, PyObject *gradients) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(roots); i++) {
        PyObject *edge = PyList_GET_ITEM(roots, i), *g = PyList_GET_ITEM(gradients, i);
        Stop *stop = &walk->stops[*place_of(walk, PyTuple_GET_ITEM(edge, 0))];
        Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(edge, 1));
        if (!is_output(stop, number)) return -1;
        PyObject **have = &gradients_of(stop)[number];
        PyObject *sum = g == Py_None ? NULL : *have ? PyObject_CallFunctionObjArgs(total_of, *have, g, NULL) : Py_NewRef(g);
        if (sum) Py_XSETREF(*have, sum);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static int run_walk(Walk *walk, PyObject *roots, PyObject *gradients, int run_inputs, int branching) {
    int other = collect(walk, roots, branching);
    if (other) return other;
    Py_ssize_t wanted = walk->inputs ? PyList_GET_SIZE(walk->inputs) : 0;
    walk->heap = PyMem_Malloc(walk->stop_count * sizeof *walk->heap);
    walk->sinks = PyMem_Malloc(walk->stop_count * sizeof *walk->sinks);
    walk->next_wanted = PyMem_Malloc((wanted + 1) * sizeof *walk->next_wanted);
    if (!walk->heap || !walk->sinks || !walk->next_wanted) return PyErr_NoMemory(), -1;
    if (mark(walk, run_inputs) || open_stops(walk) || start(walk, roots, gradients)) return -1;
    for (Py_ssize_t i = 0; i < walk->entries; i++)
        if (!walk->stops[i].waits) push_ready(walk, i);
    while (walk->ready || walk->sinking)
        if (visit(walk, &walk->stops[pop_ready(walk)])) return -1;
    return PyObject_SetAttr(walk->task, node_name, Py_None);
}

static void free_walk(Walk *walk) {
    for (Py_ssize_t i = 0; i < walk->stop_count; i++) {
        Stop *stop = &walk->stops[i];
        for (Py_ssize_t k = 0; k < stop->count; k++) Py_XDECREF(gradients_of(stop)[k]);
        PyMem_Free(stop->many);
        Py_XDECREF(stop->outputs);
        Py_DECREF(stop->node);
    }
    void *blocks[] = {walk->stops, walk->ways, walk->table, walk->next_wanted, walk->heap, walk->sinks};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) PyMem_Free(blocks[i]);
}

/* walk(task, roots, gradients, inputs, run_inputs, keep_graph, in_place, branching): a list of what has arrived at the
 * inputs, None where there are none; NotImplemented where an output of a node leads to some of its edges only. */
static PyObject *py_walk(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 8 || !add_arrays || !sink_type || !PyList_Check(args[1]) || !PyList_Check(args[2]) ||
        PyList_GET_SIZE(args[1]) != PyList_GET_SIZE(args[2]) || !(args[3] == Py_None || PyList_Check(args[3]))) {
        PyErr_SetString(PyExc_TypeError, "walk(task, roots, gradients, inputs, run_inputs, keep_graph, in_place, branching)");
        return NULL;
    }
    Walk walk = {.task = args[0], .inputs = args[3] == Py_None ? NULL : args[3]};
    walk.keep_graph = args[5] == Py_True;
    walk.in_place = args[6] == Py_True;
    Py_ssize_t wanted = walk.inputs ? PyList_GET_SIZE(walk.inputs) : 0;
    walk.found = PyList_New(wanted);
    if (!walk.found) return NULL;
    for (Py_ssize_t i = 0; i < wanted; i++) PyList_SET_ITEM(walk.found, i, Py_NewRef(Py_None));
    int other = run_walk(&walk, args[1], args[2], args[4] == Py_True, args[7] == Py_True);
    free_walk(&walk);
    if (!other) return walk.found;
    Py_DECREF(walk.found);
    return other > 0 ? Py_NewRef(Py_NotImplemented) : NULL;
}
