/* How a part of the engine's fence in C comes to proton's functions: it names them, Python binds their addresses.
 *
 * To be included behind a table `functions` of names and places. proton's functions come from the cproton that the
 * fence imports, so that both speak to one library.
 */
#ifndef PROTON_BINDING_H
#define PROTON_BINDING_H

enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static PyObject *names(PyObject *self, PyObject *nothing)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < FUNCTIONS; i++) {
        PyObject *name = PyUnicode_FromString(functions[i].name);
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *bind(PyObject *self, PyObject *addresses)
{
    for (size_t i = 0; i < FUNCTIONS; i++) {
        PyObject *address = PyDict_Check(addresses) ? PyDict_GetItemString(addresses, functions[i].name) : NULL;
        if (!address)
            return PyErr_Format(PyExc_KeyError, "no address of %s", functions[i].name);
        void *function = PyLong_AsVoidPtr(address);
        if (!function)
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "%s is null", functions[i].name);
        *(void **)functions[i].place = function;
    }
    Py_RETURN_NONE;
}

#define BINDING_METHODS                                                                      \
    {"names", names, METH_NOARGS, "The functions of proton that `bind` wants."},             \
    {"bind", bind, METH_O, "bind(addresses by name)"}

#endif
