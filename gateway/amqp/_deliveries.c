/* Runs of deliveries between proton and Python's columns: the loops that every message goes through.
 *
 * A call through cffi costs as much as what proton does in it, and lets go of the interpreter's lock besides; a message
 * took a dozen of them. Here a run is one call. This is part of the engine's fence (engine.py): a pointer is an int on
 * the Python side, and nothing is kept between two calls. proton's functions come from the cproton that the fence
 * imports, so that both speak to one library: `bind` looks them up once.
 *
 * Errors: an exception means that we are wrong (or out of memory); the deliveries handled so far are in the columns.
 */
#include "../../native_backend/log/octets.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

static void *(*collector_peek)(void *collector);
static bool (*collector_pop)(void *collector);
static int (*event_type)(void *event);
static void *(*event_delivery)(void *event);
static void *(*delivery_link)(void *delivery);
static size_t (*delivery_pending)(void *delivery);
static bool (*delivery_settled)(void *delivery);
static uint64_t (*delivery_remote_state)(void *delivery);
static void (*delivery_update)(void *delivery, uint64_t state);
static void (*delivery_settle)(void *delivery);
static ssize_t (*link_recv)(void *link, char *room, size_t size);
static bool (*link_advance)(void *link);
static int a_delivery; /* the type of a delivery's event */

static const struct {
    const char *name;
    void *place;
} functions[] = {
    {"pn_collector_peek", &collector_peek},
    {"pn_collector_pop", &collector_pop},
    {"pn_event_type", &event_type},
    {"pn_event_delivery", &event_delivery},
    {"pn_delivery_link", &delivery_link},
    {"pn_delivery_pending", &delivery_pending},
    {"pn_delivery_settled", &delivery_settled},
    {"pn_delivery_remote_state", &delivery_remote_state},
    {"pn_delivery_update", &delivery_update},
    {"pn_delivery_settle", &delivery_settle},
    {"pn_link_recv", &link_recv},
    {"pn_link_advance", &link_advance},
};
#include "../../native_backend/log/loaded_library.h"

enum { ACCEPTED = 0x24 };

static PyObject *know(PyObject *self, PyObject *type)
{
    a_delivery = (int)PyLong_AsLong(type);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* The next event's delivery, when it is one of this link's. */
static void *next_delivery(void *collector, void *link)
{
    void *event = collector_peek(collector);
    if (!event || event_type(event) != a_delivery)
        return NULL;
    void *delivery = event_delivery(event);
    return delivery_link(delivery) == link ? delivery : NULL;
}

static int append(PyObject *list, PyObject *item) /* steals item */
{
    if (!item)
        return -1;
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return failed;
}

/* The current delivery's octets, as one more message of the column. */
static int receive(void *link, size_t size, octets *messages)
{
    char *room = octets_room(messages, 1, size);
    if (!room)
        return -1;
    ssize_t got = size ? link_recv(link, room, size) : 0;
    octets_add(messages, got < 0 ? 0 : (size_t)got);
    return 0;
}

static int noted(void *delivery, PyObject *presettled, PyObject *arrived)
{
    return PyList_Append(presettled, delivery_settled(delivery) ? Py_True : Py_False) < 0
               ? -1
               : append(arrived, PyLong_FromVoidPtr(delivery));
}

static PyObject *read_transfers(PyObject *self, PyObject *args)
{
    unsigned long long collector_at, link_at;
    Py_ssize_t size_max;
    PyObject *messages, *presettled, *arrived;
    if (!PyArg_ParseTuple(args, "KKnO!O!O!", &collector_at, &link_at, &size_max, octets_type, &messages, &PyList_Type,
                          &presettled, &PyList_Type, &arrived))
        return NULL;
    void *collector = (void *)(uintptr_t)collector_at, *link = (void *)(uintptr_t)link_at, *delivery;
    while ((delivery = next_delivery(collector, link))) {
        size_t size = delivery_pending(delivery);
        if (size > (size_t)size_max)
            Py_RETURN_FALSE; /* the event stays */
        if (receive(link, size, (octets *)messages) < 0 || noted(delivery, presettled, arrived) < 0)
            return NULL;
        link_advance(link);
        collector_pop(collector);
    }
    Py_RETURN_TRUE;
}

/* As `read_transfers`, of deliveries that came without their payloads: those are at their places in the stream. */
static PyObject *read_run(PyObject *self, PyObject *args)
{
    unsigned long long collector_at, link_at;
    Py_buffer stream, places;
    Py_ssize_t taken;
    PyObject *messages, *presettled, *arrived;
    if (!PyArg_ParseTuple(args, "KKy*y*nO!O!O!", &collector_at, &link_at, &stream, &places, &taken, octets_type,
                          &messages, &PyList_Type, &presettled, &PyList_Type, &arrived))
        return NULL;
    void *collector = (void *)(uintptr_t)collector_at, *link = (void *)(uintptr_t)link_at, *delivery;
    const uint32_t *place = places.buf; /* where, and how much */
    Py_ssize_t count = places.len / (Py_ssize_t)(2 * sizeof *place);
    size_t size = 0;
    for (Py_ssize_t i = taken; i < count; i++)
        size += place[2 * i + 1];
    bool failed = !octets_room((octets *)messages, count - taken, size);
    while (!failed && taken < count && (delivery = next_delivery(collector, link))) {
        size = place[2 * taken + 1];
        char *room = octets_room((octets *)messages, 1, size);
        if (room) {
            memcpy(room, (const char *)stream.buf + place[2 * taken], size);
            octets_add((octets *)messages, size);
        }
        failed = !room || noted(delivery, presettled, arrived) < 0;
        taken++;
        link_advance(link);
        collector_pop(collector);
    }
    PyBuffer_Release(&stream);
    PyBuffer_Release(&places);
    return failed ? NULL : PyLong_FromSsize_t(taken);
}

static PyObject *read_accepted(PyObject *self, PyObject *args)
{
    unsigned long long collector_at, link_at;
    PyObject *unsettled, *seqs, *eids;
    if (!PyArg_ParseTuple(args, "KKO!O!O!", &collector_at, &link_at, &PyDict_Type, &unsettled, &PyList_Type, &seqs,
                          &PyList_Type, &eids))
        return NULL;
    void *collector = (void *)(uintptr_t)collector_at, *link = (void *)(uintptr_t)link_at, *delivery;
    while ((delivery = next_delivery(collector, link)) && delivery_remote_state(delivery) == ACCEPTED &&
           delivery_settled(delivery)) {
        PyObject *key = PyLong_FromVoidPtr(delivery);
        if (!key)
            return NULL;
        PyObject *numbers = PyDict_GetItemWithError(unsettled, key); /* (seq, eid) */
        int failed = 0;
        if (numbers) {
            failed = PyList_Append(seqs, PyTuple_GET_ITEM(numbers, 0)) < 0 ||
                     PyList_Append(eids, PyTuple_GET_ITEM(numbers, 1)) < 0 || PyDict_DelItem(unsettled, key) < 0;
            if (!failed)
                delivery_settle(delivery); /* the peer has settled: no disposition follows */
        }
        Py_DECREF(key);
        if (failed || PyErr_Occurred())
            return NULL;
        collector_pop(collector);
    }
    Py_RETURN_NONE;
}

static PyObject *settle(PyObject *self, PyObject *args)
{
    PyObject *deliveries, *seqs;
    unsigned long long state;
    int settles;
    if (!PyArg_ParseTuple(args, "O!OKp", &PyDict_Type, &deliveries, &seqs, &state, &settles))
        return NULL;
    PyObject *each = PyObject_GetIter(seqs), *seq;
    if (!each)
        return NULL;
    while ((seq = PyIter_Next(each))) {
        PyObject *at = PyDict_GetItemWithError(deliveries, seq); /* its link has gone where there is none */
        if (at) {
            void *delivery = PyLong_AsVoidPtr(at);
            if (state)
                delivery_update(delivery, state);
            if (settles) {
                delivery_settle(delivery);
                PyDict_DelItem(deliveries, seq);
            }
        }
        Py_DECREF(seq);
        if (PyErr_Occurred())
            break;
    }
    Py_DECREF(each);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *settle_run(PyObject *self, PyObject *args)
{
    PyObject *run;
    unsigned long long state;
    if (!PyArg_ParseTuple(args, "O!K", &PyList_Type, &run, &state))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(run); i++) {
        void *delivery = PyLong_AsVoidPtr(PyList_GET_ITEM(run, i));
        if (!delivery)
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no delivery at %zd", i);
        if (state)
            delivery_update(delivery, state);
        delivery_settle(delivery);
    }
    Py_RETURN_NONE;
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
    {"know", know, METH_O, "know(the type of a delivery's event)"},
    {"read_transfers", read_transfers, METH_VARARGS,
     "read_transfers(collector, link, size_max, messages, presettled, arrived): False where a message is larger."},
    {"read_run", read_run, METH_VARARGS,
     "read_run(collector, link, stream, places, taken, messages, presettled, arrived): how many places are taken now."},
    {"read_accepted", read_accepted, METH_VARARGS,
     "read_accepted(collector, link, unsettled, seqs, eids): up to the first that is not accepted and settled."},
    {"settle", settle, METH_VARARGS, "settle(deliveries, seqs, state or 0, whether to settle)"},
    {"settle_run", settle_run, METH_VARARGS, "settle_run(deliveries in order, state or 0)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_deliveries",
                                    "Runs of deliveries between proton and columns; see the source.", -1, methods};

PyMODINIT_FUNC PyInit__deliveries(void) { return octets_import() < 0 ? NULL : PyModule_Create(&module); }
