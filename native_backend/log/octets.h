/* A column of octet strings, packed into one buffer: its layout, and what C needs of it. See octets.c. */
#ifndef OCTETS_H
#define OCTETS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef struct octets {
    PyObject_HEAD
    struct octets *whole; /* of which this is a slice; NULL: it holds its own */
    Py_ssize_t first;     /* in the whole */
    Py_ssize_t count;
    Py_ssize_t numbered; /* so many of a whole, from the first on, differ by a number alone */
    Py_ssize_t room_octets, room_count; /* of the two that follow; of a whole only */
    char *octets;
    size_t *ends; /* string i is [ends[i], ends[i + 1]) */
} octets;

static PyTypeObject *octets_type;

static inline int octets_import(void)
{
    PyObject *module = PyImport_ImportModule("native_backend.log.octets");
    octets_type = module ? (PyTypeObject *)PyObject_GetAttrString(module, "Octets") : NULL;
    Py_XDECREF(module);
    return octets_type ? 0 : -1;
}

static inline int octets_check(PyObject *object) { return Py_TYPE(object) == octets_type; }

static inline octets *octets_whole(octets *column) { return column->whole ? column->whole : column; }

/* String `i` of a column, good until the column grows. */
static inline const char *octets_at(octets *column, Py_ssize_t i, size_t *size)
{
    octets *whole = octets_whole(column);
    size_t start = whole->ends[column->first + i];
    *size = whole->ends[column->first + i + 1] - start;
    return whole->octets + start;
}

static inline size_t octets_size(octets *column)
{
    octets *whole = octets_whole(column);
    return column->count ? whole->ends[column->first + column->count] - whole->ends[column->first] : 0;
}

/* Room for `count` more strings of `size` octets in all; where the first begins. NULL: no memory, or a slice. */
static inline char *octets_room(octets *column, Py_ssize_t count, size_t size)
{
    if (column->whole) {
        PyErr_SetString(PyExc_TypeError, "a slice of a column does not grow");
        return NULL;
    }
    if (column->count + count >= column->room_count) {
        Py_ssize_t room = 2 * (column->count + count) + 8;
        size_t *ends = PyMem_Realloc(column->ends, (size_t)room * sizeof *ends);
        if (!ends)
            return (char *)PyErr_NoMemory();
        if (!column->ends)
            ends[0] = 0;
        column->ends = ends, column->room_count = room;
    }
    size_t used = column->ends[column->count];
    if (!column->octets || used + size > (size_t)column->room_octets) {
        size_t room = used ? 2 * (used + size) : size + 1; /* the first time it is mostly known how many come */
        char *start = PyMem_Realloc(column->octets, room);
        if (!start)
            return (char *)PyErr_NoMemory();
        column->octets = start, column->room_octets = (Py_ssize_t)room;
    }
    return column->octets + used;
}

/* The string that was written where `octets_room` said is one of the column. */
static inline void octets_add(octets *column, size_t size)
{
    column->ends[column->count + 1] = column->ends[column->count] + size;
    column->count++;
}

/* The same of a list of bytes or a column, whichever it is; NULL and TypeError where it is neither. */
static inline void *strings_at(PyObject *strings, Py_ssize_t i, size_t *size)
{
    if (octets_check(strings))
        return (void *)octets_at((octets *)strings, i, size);
    PyObject *string = PyList_GET_ITEM(strings, i);
    if (!PyBytes_Check(string)) {
        PyErr_SetString(PyExc_TypeError, "not a column of bytes");
        return NULL;
    }
    *size = (size_t)PyBytes_GET_SIZE(string);
    return PyBytes_AS_STRING(string);
}

/* How many strings; -1 and TypeError where it is neither a list nor a column. */
static inline Py_ssize_t strings_count(PyObject *strings)
{
    if (octets_check(strings))
        return ((octets *)strings)->count;
    if (PyList_Check(strings))
        return PyList_GET_SIZE(strings);
    PyErr_SetString(PyExc_TypeError, "neither a list nor a column");
    return -1;
}

#endif
