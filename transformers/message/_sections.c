/* `_sections`: where the sections of an AMQP message begin, for the encodings that nearly every client writes.
 *
 * What `sections.py` finds in general, found in a fraction of the time where each section has its numeric descriptor in
 * one octet and its size in one, and the body is one data section, binary or string that ends the message. Of anything
 * else it says that it does not know (None, 0), never that it is wrong: the general way decides.
 *
 * `free_annotations` says of annotations that they are right where it knows.
 *
 * Errors: TypeError for what is no bytes. Source: seed 001 section 3.2. Imports nothing of ours.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { HEADER = 0x70, APPLICATION_PROPERTIES = 0x74, DATA = 0x75, VALUE = 0x77, LIST8 = 0xc0, MAP8 = 0xc1 };
enum { SECTIONS_BEFORE_BODY = 5, SMALL = 4 /* octets before the size */,
       BEFORE_GROUP = 10 /* fields of properties that end before the group-id */,
       DIGITS = 20,
       KEY_MIN = 7 /* octets of a key: its format, its size, x-opt */,
       ANNOTATIONS_MAX = 20000 /* keys and values; of more the general way decides */ };

/* The format of the only encoding taken here, by section. */
static const unsigned char formats[SECTIONS_BEFORE_BODY] = {LIST8, MAP8, MAP8, LIST8, MAP8};

/* Where the content of the one section at `at` begins when it is a body that ends the message; 0 otherwise. The first
 * `there` octets are here of a message of `size`. */
static Py_ssize_t content_of(const unsigned char *octets, Py_ssize_t there, Py_ssize_t size, Py_ssize_t at)
{
    if (at < 0 || there - at < SMALL + 1 || octets[at] != 0 || octets[at + 1] != 0x53)
        return 0;
    unsigned char section = octets[at + 2], format = octets[at + 3];
    if (section != DATA && section != VALUE)
        return 0;
    const unsigned char *announced = octets + at + SMALL;
    if (format == 0xa0 || (format == 0xa1 && section == VALUE))
        return size - at - SMALL - 1 == announced[0] ? at + SMALL + 1 : 0;
    if ((format != 0xb0 && !(format == 0xb1 && section == VALUE)) || there - at < SMALL + 4)
        return 0;
    Py_ssize_t length = (Py_ssize_t)announced[0] << 24 | announced[1] << 16 | announced[2] << 8 | announced[3];
    return size - at - SMALL - 4 == length ? at + SMALL + 4 : 0;
}

/* The places of the sections before the body, -1 for one that is not there; returns the body's, or -1: not so simple.
 * Puts where the content of the body begins into `inside`. */
static Py_ssize_t found_body(const unsigned char *octets, Py_ssize_t there, Py_ssize_t size, Py_ssize_t *places,
                             Py_ssize_t *inside)
{
    Py_ssize_t at = 0;
    for (int each = 0; each < SECTIONS_BEFORE_BODY; each++) {
        places[each] = -1;
        if (there - at > SMALL && octets[at] == 0 && octets[at + 1] == 0x53 && octets[at + 2] == HEADER + each &&
            octets[at + 3] == formats[each]) {
            places[each] = at;
            at += SMALL + 1 + octets[at + SMALL];
        }
    }
    *inside = content_of(octets, there, size, at);
    return *inside ? at : -1;
}

static PyObject *offsets(PyObject *module, PyObject *message)
{
    char *start;
    Py_ssize_t size, body, inside, found[SECTIONS_BEFORE_BODY];
    if (PyBytes_AsStringAndSize(message, &start, &size) < 0)
        return NULL;
    if ((body = found_body((const unsigned char *)start, size, size, found, &inside)) < 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(nnnnnni)", found[0], found[1], found[2], found[3], found[4], body, -1);
}

/* Writes ";" and a place before `to`, nothing behind it where there is none; returns where it begins. */
static char *digits(char *to, Py_ssize_t place)
{
    if (place >= 0)
        do
            *--to = (char)('0' + place % 10);
        while (place /= 10);
    *--to = ';';
    return to;
}

/* The two arguments of a function; -1: `wanted` says what they are. */
static int octets_and_number(PyObject *const *arguments, Py_ssize_t count, const char *wanted, char **start,
                             Py_ssize_t *there, Py_ssize_t *number)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, wanted);
        return -1;
    }
    if (PyBytes_AsStringAndSize(arguments[0], start, there) < 0)
        return -1;
    *number = PyLong_AsSsize_t(arguments[1]);
    return *number == -1 && PyErr_Occurred() ? -1 : 0;
}

/* What asks nothing of its delivery beyond its header: no annotations, properties that end before the group-id. */
static PyObject *unmarked(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    char *start, places[3 * (1 + DIGITS)], *end = places + sizeof(places), *begin;
    Py_ssize_t there, size, body, inside, found[SECTIONS_BEFORE_BODY];
    if (octets_and_number(arguments, count, "the first octets of a message and its size", &start, &there, &size) < 0)
        return NULL;
    const unsigned char *octets = (const unsigned char *)start;
    if ((body = found_body(octets, there, size, found, &inside)) < 0 || found[1] >= 0 || found[2] >= 0 ||
        (found[3] >= 0 && octets[found[3] + SMALL + 1] > BEFORE_GROUP))
        Py_RETURN_NONE;
    begin = digits(digits(digits(end, body), found[4]), found[3]);
    PyObject *three = PyTuple_New(3);
    if (!three)
        return NULL;
    PyTuple_SET_ITEM(three, 0, PyBytes_FromStringAndSize(start, found[0] < 0 ? 0 : SMALL + 1 + octets[SMALL]));
    PyTuple_SET_ITEM(three, 1, PyBytes_FromStringAndSize(begin, end - begin));
    PyTuple_SET_ITEM(three, 2, PyBytes_FromStringAndSize(start, inside));
    if (PyErr_Occurred())
        Py_CLEAR(three);
    return three;
}

static PyObject *content(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    char *start;
    Py_ssize_t size, body;
    if (octets_and_number(arguments, count, "a message and where its body begins", &start, &size, &body) < 0)
        return NULL;
    return PyLong_FromSsize_t(content_of((const unsigned char *)start, size, size, body));
}

/* Whether so many octets are ASCII. */
static int is_ascii(const unsigned char *octets, Py_ssize_t count)
{
    unsigned char seen = 0;
    for (Py_ssize_t each = 0; each < count; each++)
        seen |= octets[each];
    return seen < 0x80;
}

/* Behind the value at `at`, where it is one that needs no more than its size to be right; 0: it may be, or is none. */
static Py_ssize_t behind_value(const unsigned char *octets, Py_ssize_t at, Py_ssize_t end)
{
    unsigned char format = octets[at];
    Py_ssize_t size = 0;
    if (format >= 0x40 && format <= 0x44)
        size = 1;
    else if (format >= 0x50 && format <= 0x55)
        size = 2;
    else if (format == 0x60 || format == 0x61)
        size = 3;
    else if (format >= 0x70 && format <= 0x72)
        size = 5;
    else if (format >= 0x80 && format <= 0x83)
        size = 9;
    else if (format == 0x98)
        size = 17;
    else if ((format == 0xa0 || format == 0xa1 || format == 0xa3) && end - at > 1)
        size = 2 + (Py_ssize_t)octets[at + 1];
    if (!size || end - at < size || ((format == 0xa1 || format == 0xa3) && !is_ascii(octets + at + 2, size - 2)))
        return 0;
    return at + size;
}

/* A section of annotations whose keys are symbols that begin with "x-opt", and whose values are simple: it is right. */
static PyObject *free_annotations(PyObject *module, PyObject *section)
{
    char *start;
    Py_ssize_t end, at;
    if (PyBytes_AsStringAndSize(section, &start, &end) < 0)
        return NULL;
    const unsigned char *octets = (const unsigned char *)start;
    unsigned long size, count;
    if (end < 6 || octets[0] != 0 || octets[1] != 0x53)
        Py_RETURN_FALSE;
    if (octets[3] == MAP8) {
        size = octets[4], count = octets[5], at = 6;
        if (5 + (Py_ssize_t)size != end)
            Py_RETURN_FALSE;
    } else if (octets[3] == 0xd1 && end >= 12) {
        size = (unsigned long)octets[4] << 24 | octets[5] << 16 | octets[6] << 8 | octets[7];
        count = (unsigned long)octets[8] << 24 | octets[9] << 16 | octets[10] << 8 | octets[11], at = 12;
        if (8 + (Py_ssize_t)size != end)
            Py_RETURN_FALSE;
    } else
        Py_RETURN_FALSE;
    if (count % 2 || count > ANNOTATIONS_MAX)
        Py_RETURN_FALSE;
    for (; count; count -= 2) {
        if (end - at < KEY_MIN || octets[at] != 0xa3 || octets[at + 1] < KEY_MIN - 2 ||
            memcmp(octets + at + 2, "x-opt", 5))
            Py_RETURN_FALSE;
        if (!(at = behind_value(octets, at, end)) || at >= end || !(at = behind_value(octets, at, end)))
            Py_RETURN_FALSE;
    }
    return PyBool_FromLong(at == end);
}

static PyMethodDef methods[] = {
    {"offsets", offsets, METH_O, "offsets(message): the seven offsets of sections.py; None where it is not so simple."},
    {"unmarked", (PyCFunction)(void (*)(void))unmarked, METH_FASTCALL,
     "unmarked(first octets, size): of a message its header section, `;PROPERTIES;APPLICATION;BODY`, and its octets "
     "before the content of its body; None where it is not so simple, has annotations, or may have a group."},
    {"content", (PyCFunction)(void (*)(void))content, METH_FASTCALL,
     "content(message, body): where the content of a sole body begins, in octets; 0 where it is not so simple."},
    {"free_annotations", free_annotations, METH_O,
     "free_annotations(section): its keys are symbols that begin with x-opt, its values simple; False: perhaps not."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_sections", "Sections of usual messages, see the source", 0,
                                    methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__sections(void) { return PyModuleDef_Init(&module); }
