/* `Octets`: a column of octet strings (messages, keys, events) packed into one buffer.
 *
 * A list of bytes costs two allocations and several cache misses a message, in every room that looks at it; the engine
 * fills a column, the transformer looks at shapes in it, and a log takes its octets from it, without an object a
 * message. For all other code it is a sequence of bytes. A slice holds its column and copies nothing; a column that has
 * slices may grow, a slice may not. Used by one thread.
 *
 * Errors: TypeError for what is no bytes, IndexError. Sizes in octets. Imports nothing of ours.
 */
#include "octets.h"
#include <stdio.h>

static PyTypeObject type;

static PyObject *made(void) { return PyType_GenericAlloc(&type, 0); }

static int init(octets *self, PyObject *args, PyObject *words)
{
    PyObject *strings = NULL, *each, *one;
    if (!PyArg_ParseTuple(args, "|O", &strings) || !strings)
        return PyErr_Occurred() ? -1 : 0;
    if (!(each = PyObject_GetIter(strings)))
        return -1;
    while ((one = PyIter_Next(each))) {
        char *start = NULL;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(one, &start, &size) == 0) {
            char *room = octets_room(self, 1, (size_t)size);
            if (room) {
                memcpy(room, start, (size_t)size);
                octets_add(self, (size_t)size);
            }
        }
        Py_DECREF(one);
        if (PyErr_Occurred())
            break;
    }
    Py_DECREF(each);
    return PyErr_Occurred() ? -1 : 0;
}

static void dealloc(octets *self)
{
    Py_XDECREF(self->whole);
    PyMem_Free(self->octets);
    PyMem_Free(self->ends);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static Py_ssize_t length(octets *self) { return self->count; }

static PyObject *item(octets *self, Py_ssize_t i)
{
    if (i < 0 || i >= self->count) {
        PyErr_SetString(PyExc_IndexError, "no such string in the column");
        return NULL;
    }
    size_t size;
    const char *start = octets_at(self, i, &size);
    return PyBytes_FromStringAndSize(start, (Py_ssize_t)size);
}

static PyObject *slice(octets *self, Py_ssize_t start, Py_ssize_t count)
{
    octets *part = (octets *)made();
    if (part) {
        part->whole = (octets *)Py_NewRef((PyObject *)octets_whole(self));
        part->first = self->first + start;
        part->count = count;
    }
    return (PyObject *)part;
}

static PyObject *subscript(octets *self, PyObject *key)
{
    if (PyIndex_Check(key)) {
        Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
        return i == -1 && PyErr_Occurred() ? NULL : item(self, i < 0 ? i + self->count : i);
    }
    Py_ssize_t start, stop, step;
    if (!PySlice_Check(key))
        return PyErr_Format(PyExc_TypeError, "a column is indexed by an int or a slice");
    if (PySlice_Unpack(key, &start, &stop, &step) < 0)
        return NULL;
    if (step != 1)
        return PyErr_Format(PyExc_ValueError, "a slice of a column has no step");
    return slice(self, start, PySlice_AdjustIndices(self->count, &start, &stop, step));
}

static PyObject *compare(PyObject *self, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || !(PyList_Check(other) || Py_TYPE(other) == &type))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *mine = PySequence_List(self), *its = PySequence_List(other);
    PyObject *answer = mine && its ? PyObject_RichCompare(mine, its, operation) : NULL;
    Py_XDECREF(mine);
    Py_XDECREF(its);
    return answer;
}

static PyObject *repr(PyObject *self)
{
    PyObject *list = PySequence_List(self), *words = list ? PyUnicode_FromFormat("Octets(%R)", list) : NULL;
    Py_XDECREF(list);
    return words;
}

static PyObject *append(octets *self, PyObject *string)
{
    char *start, *room;
    Py_ssize_t size;
    if (PyByteArray_Check(string)) {
        start = PyByteArray_AS_STRING(string);
        size = PyByteArray_GET_SIZE(string);
    } else if (PyBytes_AsStringAndSize(string, &start, &size) < 0)
        return NULL;
    if (!(room = octets_room(self, 1, (size_t)size)))
        return NULL;
    memcpy(room, start, (size_t)size);
    octets_add(self, (size_t)size);
    Py_RETURN_NONE;
}

static int wrong_count(const char *wanted)
{
    PyErr_Format(PyExc_TypeError, "wanted: %s", wanted);
    return -1;
}

/* Its size and its first octets: what can be known of a large string without another one like it. */
static PyObject *front(octets *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 && wrong_count("i, most"))
        return NULL;
    Py_ssize_t i = PyLong_AsSsize_t(args[0]), most = PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred())
        return NULL;
    if (i < 0 || i >= self->count || most < 0)
        return PyErr_Format(PyExc_IndexError, "no such string in the column");
    size_t size;
    const char *start = octets_at(self, i, &size);
    PyObject *octets = PyBytes_FromStringAndSize(start, (Py_ssize_t)size < most ? (Py_ssize_t)size : most);
    PyObject *length = PyLong_FromSize_t(size), *two = octets && length ? PyTuple_Pack(2, length, octets) : NULL;
    Py_XDECREF(octets);
    Py_XDECREF(length);
    return two;
}

/* How far strings go on that have this size and begin like this. */
static PyObject *alike(octets *self, PyObject *const *args, Py_ssize_t count)
{
    char *head;
    Py_ssize_t head_size;
    if (count != 3 && wrong_count("start, size, head"))
        return NULL;
    Py_ssize_t i = PyLong_AsSsize_t(args[0]), size = PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(args[2], &head, &head_size) < 0)
        return NULL;
    for (; i >= 0 && i < self->count; i++) {
        size_t each;
        const char *start = octets_at(self, i, &each);
        if (each != (size_t)size || size < head_size || memcmp(start, head, (size_t)head_size) != 0)
            break;
    }
    return PyLong_FromSsize_t(i);
}

/* PREFIX NUMBER SUFFIX, PREFIX NUMBER+1 SUFFIX, ... */
static PyObject *number(octets *self, PyObject *const *args, Py_ssize_t given)
{
    char *prefix, *suffix;
    Py_ssize_t prefix_size, suffix_size;
    enum { DIGITS = 20 };
    if ((given != 4 && wrong_count("prefix, first, count, suffix")) ||
        PyBytes_AsStringAndSize(args[0], &prefix, &prefix_size) < 0 ||
        PyBytes_AsStringAndSize(args[3], &suffix, &suffix_size) < 0)
        return NULL;
    unsigned long long first = PyLong_AsUnsignedLongLong(args[1]);
    Py_ssize_t count = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred())
        return NULL;
    if (count <= 0)
        Py_RETURN_NONE;
    if (!octets_room(self, count, (size_t)count * (size_t)(prefix_size + DIGITS + suffix_size)))
        return NULL;
    if (self->count == 0)
        self->numbered = count;
    for (unsigned long long each = first; each < first + (unsigned long long)count; each++) {
        char digits[DIGITS], *at = self->octets + self->ends[self->count];
        int from = DIGITS;
        unsigned long long left = each;
        do
            digits[--from] = (char)('0' + left % 10);
        while (left /= 10);
        memcpy(at, prefix, (size_t)prefix_size);
        memcpy(at + prefix_size, digits + from, (size_t)(DIGITS - from));
        memcpy(at + prefix_size + DIGITS - from, suffix, (size_t)suffix_size);
        octets_add(self, (size_t)(prefix_size + DIGITS - from + suffix_size));
    }
    Py_RETURN_NONE;
}

static PyObject *empty(octets *self, PyObject *nothing) { return made(); }

static PyObject *size_of(octets *self, void *nothing) { return PyLong_FromSize_t(octets_size(self)); }

static PyObject *largest_of(octets *self, void *nothing)
{
    size_t largest = 0, size;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        octets_at(self, i, &size);
        largest = size > largest ? size : largest;
    }
    return PyLong_FromSize_t(largest);
}

static PyObject *letters_of(octets *self, void *nothing)
{
    size_t size;
    if (self->count && self->first + self->count <= octets_whole(self)->numbered)
        return item(self, 0);
    return self->count ? PyBytes_FromStringAndSize(octets_at(self, 0, &size), (Py_ssize_t)octets_size(self))
                       : PyBytes_FromStringAndSize(NULL, 0);
}

#define FAST(function) (PyCFunction)(void (*)(void)) function
static PyMethodDef methods[] = {
    {"append", (PyCFunction)append, METH_O, "One more string."},
    {"front", FAST(front), METH_FASTCALL,
     "front(i, most): the size of string `i`, and its first octets, `most` of them."},
    {"alike", FAST(alike), METH_FASTCALL,
     "alike(start, size, head): the first from `start` on that has another size or begins otherwise."},
    {"number", FAST(number), METH_FASTCALL,
     "number(prefix, first, count, suffix): `count` more strings, of prefix, a rising number and suffix."},
    {"empty", (PyCFunction)empty, METH_NOARGS, "Another column, with nothing in it."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getters[] = {
    {"size", (getter)size_of, NULL, "Octets in all.", NULL},
    {"letters", (getter)letters_of, NULL,
     "Every octet but digits that one of them has: the first of those that one `number` has made, or all.", NULL},
    {"largest", (getter)largest_of, NULL, "Octets of its largest string; 0 when there is none.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PySequenceMethods as_sequence = {.sq_length = (lenfunc)length, .sq_item = (ssizeargfunc)item};
static PyMappingMethods as_mapping = {.mp_length = (lenfunc)length, .mp_subscript = (binaryfunc)subscript};

static PyTypeObject type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "native_backend.log.octets.Octets",
    .tp_basicsize = sizeof(octets),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_SEQUENCE,
    .tp_doc = "Octets(strings=()): a column of octet strings; see the source.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)init,
    .tp_dealloc = (destructor)dealloc,
    .tp_richcompare = compare,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_repr = repr,
    .tp_methods = methods,
    .tp_getset = getters,
    .tp_as_sequence = &as_sequence,
    .tp_as_mapping = &as_mapping,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "octets", "Columns of octet strings; see the source.", -1,
                                    NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_octets(void)
{
    PyObject *made_module = PyModule_Create(&module);
    octets_type = &type;
    if (made_module && PyModule_AddType(made_module, &type) < 0)
        Py_CLEAR(made_module);
    return made_module;
}
