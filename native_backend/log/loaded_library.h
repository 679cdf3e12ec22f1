/* How a part in C comes to the functions of a library that an extension module of Python has brought: they are looked
 * up in that extension, so there is one such library in the process.
 *
 * To be included behind a table `functions` of names and places.
 */
#ifndef LOADED_LIBRARY_H
#define LOADED_LIBRARY_H

#include <Python.h>
#include <dlfcn.h>

/* 0, or -1 with an ImportError. `extension`: the file of the extension module. */
static int find_functions(const char *extension)
{
    void *handle = dlopen(extension, RTLD_LAZY);
    if (!handle) {
        PyErr_SetString(PyExc_ImportError, dlerror());
        return -1;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *function = dlsym(handle, functions[i].name);
        if (!function) {
            PyErr_Format(PyExc_ImportError, "%s has no %s", extension, functions[i].name);
            return -1;
        }
        *(void **)functions[i].place = function;
    }
    return 0;
}

#endif
