/* Runs of events to a consumer: the loop that every event goes through on its way out.
 *
 * `send_run` has proton write the frames of a run without payloads and puts the payloads in between: proton would copy
 * each of them three times. That takes that proton writes down all of the run at once: the caller has flushed what was
 * before it, the peer's session has room for as many frames, and no message is larger than a frame. Otherwise `send`
 * gives proton the payloads, and it sends them as it may. This is part of the engine's fence (engine.py): a pointer is
 * an int on the Python side, and nothing is kept between two calls.
 *
 * Errors: an exception means that we are wrong (or out of memory), and the connection is given up.
 */
#include "../../native_backend/log/octets.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct {
    size_t size;
    const char *start;
} tag_octets; /* pn_bytes_t */

static void *(*new_delivery)(void *link, tag_octets tag);
static void (*delivery_settle)(void *delivery);
static ssize_t (*link_send)(void *link, const char *start, size_t size);
static bool (*link_advance)(void *link);
static void *(*link_session)(void *link);
static uint32_t (*incoming_window)(void *session);
static uint32_t (*remote_max_frame)(void *transport);
static ssize_t (*transport_pending)(void *transport);
static ssize_t (*transport_peek)(void *transport, char *room, size_t size);
static void (*transport_pop)(void *transport, size_t size);

static const struct {
    const char *name;
    void *place;
} functions[] = {
    {"pn_delivery", &new_delivery},
    {"pn_delivery_settle", &delivery_settle},
    {"pn_link_send", &link_send},
    {"pn_link_advance", &link_advance},
    {"pn_link_session", &link_session},
    {"pn_session_remote_incoming_window", &incoming_window},
    {"pn_transport_get_remote_max_frame", &remote_max_frame},
    {"pn_transport_pending", &transport_pending},
    {"pn_transport_peek", &transport_peek},
    {"pn_transport_pop", &transport_pop},
};
#include "../../native_backend/log/loaded_library.h"

enum {
    TAG_MAX = 32,
    DIGITS = 20,
    FRAME_HEAD_MAX = 96, /* a transfer of ours without its payload, at most */
    HEADER = 8,
    TRANSFER = 0x14
};

typedef struct {
    void *link;
    const char *prefix; /* of its tags */
    Py_ssize_t prefix_size;
    unsigned long long seq; /* of the first */
    PyObject *eids, *values, *unsettled;
    Py_ssize_t count;
} run;

static int parse(run *one, PyObject *args, unsigned long long *transport)
{
    unsigned long long link_at;
    if (!PyArg_ParseTuple(args, "KKy#KO!OO", transport, &link_at, &one->prefix, &one->prefix_size, &one->seq,
                          &PyList_Type, &one->eids, &one->values, &one->unsettled))
        return -1;
    one->link = (void *)(uintptr_t)link_at;
    one->count = PyList_GET_SIZE(one->eids);
    Py_ssize_t values = strings_count(one->values);
    if (values < 0)
        return -1;
    if (one->count != values || one->prefix_size >= TAG_MAX ||
        (one->unsettled != Py_None && !PyDict_Check(one->unsettled))) {
        PyErr_Format(PyExc_ValueError, "%zd EIDs, %zd values, a prefix of %zd octets", one->count, values,
                     one->prefix_size);
        return -1;
    }
    return 0;
}

static PyObject *numbers_of(unsigned long long seq, PyObject *eid)
{
    PyObject *first = PyLong_FromUnsignedLongLong(seq);
    PyObject *numbers = first ? PyTuple_Pack(2, first, eid) : NULL;
    Py_XDECREF(first);
    return numbers;
}

/* A delivery tagged PREFIX EID, the link's current one. */
static void *begin(run *one, PyObject *eid)
{
    char tag[TAG_MAX], digits[DIGITS];
    long long number = PyLong_AsLongLong(eid);
    int from = DIGITS;
    if (number < 0) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "an EID of %lld", number);
        return NULL;
    }
    do
        digits[--from] = (char)('0' + number % 10);
    while (number /= 10);
    if (one->prefix_size + DIGITS - from > TAG_MAX) {
        PyErr_SetString(PyExc_ValueError, "a delivery tag of more than 32 octets");
        return NULL;
    }
    memcpy(tag, one->prefix, (size_t)one->prefix_size);
    memcpy(tag + one->prefix_size, digits + from, (size_t)(DIGITS - from));
    return new_delivery(one->link, (tag_octets){(size_t)(one->prefix_size + DIGITS - from), tag});
}

static int end(run *one, void *delivery, Py_ssize_t i)
{
    if (one->unsettled == Py_None) {
        delivery_settle(delivery); /* settling the current delivery advances the link */
        return 0;
    }
    link_advance(one->link);
    PyObject *key = PyLong_FromVoidPtr(delivery);
    PyObject *numbers = numbers_of(one->seq + (unsigned long long)i, PyList_GET_ITEM(one->eids, i));
    int failed = !key || !numbers || PyDict_SetItem(one->unsettled, key, numbers) < 0;
    Py_XDECREF(key);
    Py_XDECREF(numbers);
    return failed ? -1 : 0;
}

static int send_all(run *one, bool with_payloads)
{
    for (Py_ssize_t i = 0; i < one->count; i++) {
        size_t size;
        void *start = strings_at(one->values, i, &size);
        void *delivery = start ? begin(one, PyList_GET_ITEM(one->eids, i)) : NULL;
        if (!delivery)
            return -1;
        if (with_payloads)
            link_send(one->link, start, size);
        if (end(one, delivery, i) < 0)
            return -1;
    }
    return 0;
}

static PyObject *send(PyObject *self, PyObject *args)
{
    run one;
    unsigned long long transport;
    if (parse(&one, args, &transport) < 0 || send_all(&one, true) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Will proton write a frame for each of them, at once? The octets of all, or -1. */
static Py_ssize_t fits(run *one, void *transport)
{
    size_t frame_max = remote_max_frame(transport), all = 0, size;
    if (incoming_window(link_session(one->link)) < (size_t)one->count)
        return -1;
    for (Py_ssize_t i = 0; i < one->count; i++, all += size)
        if (!strings_at(one->values, i, &size) || (frame_max && size + FRAME_HEAD_MAX > frame_max)) {
            PyErr_Clear();
            return -1;
        }
    return (Py_ssize_t)all;
}

/* What proton has to say, in a buffer of ours. */
static char *drain(void *transport, size_t *size)
{
    char *written = NULL;
    ssize_t pending;
    *size = 0;
    while ((pending = transport_pending(transport)) > 0) {
        char *room = PyMem_Realloc(written, *size + (size_t)pending);
        if (!room || transport_peek(transport, room + *size, (size_t)pending) != pending) {
            PyMem_Free(room ? room : written);
            PyErr_NoMemory();
            return NULL;
        }
        written = room, *size += (size_t)pending;
        transport_pop(transport, (size_t)pending);
    }
    if (!written)
        PyErr_SetString(PyExc_AssertionError, "proton wrote nothing of a run");
    return written;
}

static uint32_t big_endian(const char *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return __builtin_bswap32(number);
}

/* The frames with their payloads; there is one transfer for each, in order, and nothing else but heartbeats. */
static PyObject *splice(run *one, const char *frames, size_t left, Py_ssize_t payloads)
{
    PyObject *whole = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)left + payloads);
    char *to = whole ? PyBytes_AS_STRING(whole) : NULL;
    Py_ssize_t i = 0;
    while (whole && left >= HEADER) {
        size_t head = big_endian(frames), size = 0;
        bool transfers = head > HEADER + 3 && frames[HEADER] == 0 && frames[HEADER + 2] == TRANSFER;
        if (head < HEADER || head > left || (transfers && i == one->count))
            break;
        memcpy(to, frames, head);
        if (transfers) {
            void *start = strings_at(one->values, i++, &size);
            uint32_t swapped = __builtin_bswap32((uint32_t)(head + size));
            memcpy(to, &swapped, sizeof swapped);
            memcpy(to + head, start, size);
        }
        to += head + size, frames += head, left -= head;
    }
    if (whole && (left || i != one->count)) {
        PyErr_Format(PyExc_AssertionError, "proton wrote %zd transfers of %zd, %zu octets more", i, one->count, left);
        Py_CLEAR(whole);
    }
    return whole;
}

static PyObject *send_run(PyObject *self, PyObject *args)
{
    run one;
    unsigned long long transport_at;
    if (parse(&one, args, &transport_at) < 0)
        return NULL;
    void *transport = (void *)(uintptr_t)transport_at;
    Py_ssize_t payloads = one.count ? fits(&one, transport) : -1;
    if (payloads < 0)
        Py_RETURN_NONE;
    if (send_all(&one, false) < 0)
        return NULL;
    size_t size;
    char *frames = drain(transport, &size);
    PyObject *whole = frames ? splice(&one, frames, size, payloads) : NULL;
    PyMem_Free(frames);
    return whole;
}

/* Transfers that the peer's session takes now. */
static PyObject *window(PyObject *self, PyObject *link)
{
    void *at = PyLong_AsVoidPtr(link);
    return at ? PyLong_FromUnsignedLong(incoming_window(link_session(at))) : NULL;
}

static PyObject *bind(PyObject *self, PyObject *extension)
{
    const char *path = PyUnicode_AsUTF8(extension);
    if (!path || find_functions(path) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_O, "bind(file of the extension that brought proton)"},
    {"send", send, METH_VARARGS,
     "send(transport, link, tag_prefix, first_seq, eids, values, unsettled or None for settled)"},
    {"send_run", send_run, METH_VARARGS, "As `send`, and what is to be written to the peer; None where it cannot."},
    {"window", window, METH_O, "window(link): transfers that the peer's session takes now"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_sends", "Runs of events; see the source.", -1,
                                    methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__sends(void) { return octets_import() < 0 ? NULL : PyModule_Create(&module); }
