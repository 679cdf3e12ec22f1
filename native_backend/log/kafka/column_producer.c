/* A producer of columns: keys and values in (lists of bytes, or `Octets`), offsets out; no object a message on the way.
 *
 * The same librdkafka that confluent-kafka brings (its functions are looked up in the extension that Python imported,
 * so that there is one librdkafka in the process), through its event interface: what was delivered comes as events,
 * each with all messages of an answer, and becomes an int in the caller's list. confluent-kafka's own way takes a dict
 * a message in and gives a Message with copies of key and value out, which cost more than storing them (ADR 0034).
 *
 * Used by one thread, which holds the interpreter's lock; `look_up` and `close` may block and let go of it.
 * Errors: ValueError for a wrong configuration.
 */
#include "../../octets.h"
#include <stdbool.h>
#include <stdint.h>

#include "librdkafka.h"

enum { EVENTS_MAX = 1000, TEXT_SIZE = 512 };

/* Messages that were handed over together, and where what becomes of them is written. */
typedef struct launch {
    struct launch *before, *after;
    PyObject *offsets, *errors; /* lists */
    Py_ssize_t left;
} launch;

typedef struct {
    PyObject_HEAD
    void *client, *queue;
    void *dying;     /* a client that was closed while somebody looked something up in it */
    int looking;     /* how many do */
    launch launches; /* the ring's own place */
} producer;

static void *configuration(PyObject *settings)
{
    char text[TEXT_SIZE] = "";
    void *conf = conf_new();
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(settings, &position, &name, &value)) {
        const char *key = PyUnicode_AsUTF8(name), *words = key ? PyUnicode_AsUTF8(value) : NULL;
        if (!words || conf_set(conf, key, words, text, sizeof text) != 0) {
            if (words)
                PyErr_SetString(PyExc_ValueError, text);
            conf_destroy(conf);
            return NULL;
        }
    }
    conf_set(conf, "log.queue", "true", text, sizeof text);
    conf_set_events(conf, DELIVERED | LOGGED | FAILED);
    return conf;
}

static int producer_init(producer *self, PyObject *args, PyObject *words)
{
    const char *library;
    PyObject *settings;
    char text[TEXT_SIZE] = "";
    if (!PyArg_ParseTuple(args, "sO!", &library, &PyDict_Type, &settings))
        return -1;
    self->launches.before = self->launches.after = &self->launches;
    if (!client_new && find_functions(library) < 0)
        return -1;
    void *conf = configuration(settings);
    if (!conf)
        return -1;
    self->client = client_new(PRODUCER, conf, text, sizeof text);
    if (!self->client) {
        conf_destroy(conf);
        PyErr_SetString(PyExc_ValueError, text);
        return -1;
    }
    self->queue = queue_get_main(self->client);
    set_log_queue(self->client, NULL);
    return 0;
}

static void forget(launch *one)
{
    one->before->after = one->after;
    one->after->before = one->before;
    Py_DECREF(one->offsets);
    Py_DECREF(one->errors);
    PyMem_Free(one);
}

static launch *launch_of(producer *self, PyObject *offsets, PyObject *errors)
{
    launch *one = PyMem_Malloc(sizeof *one);
    if (!one)
        return NULL;
    *one = (launch){self->launches.before, &self->launches, Py_NewRef(offsets), Py_NewRef(errors), 0};
    one->before->after = one->after->before = one;
    return one;
}

static int is_open(producer *self)
{
    return self->client || PyErr_Format(PyExc_ValueError, "the producer is closed");
}

static int fill(message *messages, PyObject *keys, PyObject *values, Py_ssize_t count, launch *one)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        message *each = &messages[i];
        *each = (message){.opaque = one};
        each->key = strings_at(keys, i, &each->key_len);
        each->payload = each->key ? strings_at(values, i, &each->len) : NULL;
        if (!each->payload)
            return -1;
    }
    return 0;
}

static PyObject *refused_of(const message *messages, Py_ssize_t count)
{
    PyObject *refused = PyList_New(0);
    for (Py_ssize_t i = 0; refused && i < count; i++) {
        if (!messages[i].err)
            continue;
        PyObject *one = Py_BuildValue("(nis)", i, messages[i].err, err2str(messages[i].err));
        if (!one || PyList_Append(refused, one) < 0)
            Py_CLEAR(refused);
        Py_XDECREF(one);
    }
    return refused;
}

static PyObject *producer_produce(producer *self, PyObject *args)
{
    const char *name;
    int partition;
    PyObject *keys, *values, *offsets, *errors, *refused = NULL;
    if (!PyArg_ParseTuple(args, "siOOO!O!", &name, &partition, &keys, &values, &PyList_Type, &offsets, &PyList_Type,
                          &errors) ||
        !is_open(self))
        return NULL;
    Py_ssize_t count = strings_count(keys), others = count < 0 ? -1 : strings_count(values);
    if (others < 0)
        return NULL;
    if (count != others)
        return PyErr_Format(PyExc_ValueError, "%zd keys, %zd values", count, others);
    launch *one = launch_of(self, offsets, errors);
    message *messages = PyMem_Malloc((count ? (size_t)count : 1) * sizeof *messages);
    void *topic = one && messages ? topic_new(self->client, name, NULL) : NULL;
    if (!topic)
        PyErr_NoMemory();
    else if (fill(messages, keys, values, count, one) == 0) {
        one->left = produce_batch(topic, partition, COPY, messages, (int)count);
        refused = refused_of(messages, one->left == count ? 0 : count);
    }
    if (topic)
        topic_destroy(topic);
    PyMem_Free(messages);
    if (one && one->left == 0)
        forget(one); /* nothing of it was taken, so nothing comes back */
    return refused;
}

/* One delivered or failed message, into its launch's columns. */
static int land(const message *delivered)
{
    launch *one = delivered->opaque;
    PyObject *number = PyLong_FromLongLong(delivered->err ? -1 : delivered->offset);
    int failed = !number;
    if (!failed && delivered->err) {
        PyObject *error =
            Py_BuildValue("(nis)", PyList_GET_SIZE(one->offsets), delivered->err, err2str(delivered->err));
        failed = !error || PyList_Append(one->errors, error) < 0;
        Py_XDECREF(error);
    }
    failed = failed || PyList_Append(one->offsets, number) < 0;
    Py_XDECREF(number);
    if (--one->left == 0)
        forget(one);
    return failed ? -1 : 0;
}

static PyObject *said(producer *self, void *event, int type)
{
    char text[TEXT_SIZE] = "";
    const char *facility = "", *words = "";
    int level = 0;
    if (type == LOGGED) {
        if (event_log(event, &facility, &words, &level) != 0)
            return Py_BuildValue("(sis)", "log", 7, "");
        return Py_BuildValue("(sis)", "log", level, words);
    }
    if (event_error_is_fatal(event)) {
        int code = fatal_error(self->client, text, sizeof text);
        return Py_BuildValue("(sis)", "fatal", code, text);
    }
    return Py_BuildValue("(sis)", "error", event_error(event), event_error_string(event));
}

static PyObject *producer_poll(producer *self, PyObject *nothing)
{
    if (!is_open(self))
        return NULL;
    PyObject *news = PyList_New(0);
    void *event;
    for (int i = 0; news && i < EVENTS_MAX && (event = queue_poll(self->queue, 0)); i++) {
        int type = event_type(event), failed = 0;
        if (type == DELIVERED) {
            const message *delivered;
            while (!failed && (delivered = event_message_next(event)))
                failed = land(delivered) < 0;
        } else if (type == LOGGED || type == FAILED) {
            PyObject *one = said(self, event, type);
            failed = !one || PyList_Append(news, one) < 0;
            Py_XDECREF(one);
        }
        event_destroy(event);
        if (failed)
            Py_CLEAR(news);
    }
    return news;
}

static PyObject *producer_look_up(producer *self, PyObject *args)
{
    const char *name;
    int timeout_ms;
    if (!PyArg_ParseTuple(args, "si", &name, &timeout_ms) || !is_open(self))
        return NULL;
    void *client = self->client, *dying = NULL;
    const void *found = NULL;
    self->looking++;
    Py_BEGIN_ALLOW_THREADS;
    void *topic = topic_new(client, name, NULL);
    if (topic && metadata(client, 0, topic, &found, timeout_ms) == 0)
        metadata_destroy(found);
    if (topic)
        topic_destroy(topic);
    Py_END_ALLOW_THREADS;
    if (--self->looking == 0 && self->dying) {
        dying = self->dying;
        self->dying = NULL;
        Py_BEGIN_ALLOW_THREADS;
        client_destroy(dying);
        Py_END_ALLOW_THREADS;
    }
    Py_RETURN_NONE;
}

/* The descriptor (an eventfd) is written to when there is something to poll; -1: no more. */
static PyObject *producer_wake(producer *self, PyObject *args)
{
    static const uint64_t one = 1;
    int descriptor;
    if (!PyArg_ParseTuple(args, "i", &descriptor) || !is_open(self))
        return NULL;
    queue_io_event_enable(self->queue, descriptor, descriptor < 0 ? NULL : &one, descriptor < 0 ? 0 : sizeof one);
    Py_RETURN_NONE;
}

static PyObject *producer_close(producer *self, PyObject *nothing)
{
    void *client = self->client, *queue = self->queue;
    bool looked_up = self->looking > 0;
    self->client = self->queue = NULL;
    if (client) {
        queue_io_event_enable(queue, -1, NULL, 0);
        self->dying = looked_up ? client : NULL;
        Py_BEGIN_ALLOW_THREADS;
        purge(client, PURGE_ALL);
        queue_destroy(queue);
        if (!looked_up)
            client_destroy(client);
        Py_END_ALLOW_THREADS;
        while (self->launches.after != &self->launches)
            forget(self->launches.after);
    }
    Py_RETURN_NONE;
}

static void producer_dealloc(producer *self)
{
    PyObject *done = self->client ? producer_close(self, NULL) : NULL;
    Py_XDECREF(done);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef producer_methods[] = {
    {"produce", (PyCFunction)producer_produce, METH_VARARGS,
     "produce(topic, partition, keys, values, offsets, errors): the refused, as (index, code, words)."},
    {"poll", (PyCFunction)producer_poll, METH_NOARGS,
     "Fill the columns of what has landed; the news, as (log|error|fatal, level or code, words)."},
    {"look_up", (PyCFunction)producer_look_up, METH_VARARGS, "look_up(topic, timeout_ms): read its metadata anew."},
    {"wake", (PyCFunction)producer_wake, METH_VARARGS, "wake(descriptor): it becomes readable with something to poll."},
    {"close", (PyCFunction)producer_close, METH_NOARGS, "Give up what is on its way; nothing comes back."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject producer_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "native_backend.logs.kafka.column_producer.ColumnProducer",
    .tp_basicsize = sizeof(producer),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "ColumnProducer(extension that librdkafka came with, settings); see the source.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)producer_init,
    .tp_dealloc = (destructor)producer_dealloc,
    .tp_methods = producer_methods,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "column_producer", "A producer of columns; see the source.",
                                    -1, NULL};

PyMODINIT_FUNC PyInit_column_producer(void)
{
    PyObject *made = octets_import() < 0 ? NULL : PyModule_Create(&module);
    if (made && PyModule_AddType(made, &producer_type) < 0)
        Py_CLEAR(made);
    return made;
}
