/* A producer of columns: keys and values in (lists of bytes, or `Octets`), offsets out; no object a message on the way.
 *
 * The same librdkafka that confluent-kafka brings (its functions are looked up in the extension that Python imported,
 * so that there is one librdkafka in the process), through its event interface: what was delivered comes as events,
 * each with all messages of an answer, in an order of librdkafka's own (ADR 0073), and becomes ints in the caller's
 * list, in the order of the messages. confluent-kafka's own way takes a dict
 * a message in and gives a Message with copies of key and value out, which cost more than storing them (ADR 0034).
 *
 * Used by one thread, which holds the interpreter's lock; `look_up` and `close` may block and release it.
 * Errors: ValueError for a wrong configuration.
 */
#include "../octets.h"
#include <stdbool.h>
#include <stdint.h>

#include "librdkafka.h"

enum { EVENTS_MAX = 1000, TEXT_SIZE = 512 };
#define UNREPORTED INT64_MIN

/* What became of one message. librdkafka's opaque of that message points here, so a report finds its message whatever
 * the order of reports: what times out in librdkafka's queue is reported before what is still in flight. */
typedef struct {
    struct launch *launch;
    int64_t offset; /* UNREPORTED until it is known, then -1 where the message was not stored */
    int err;
} report;

/* Messages that were handed over together, and the lists that say what became of them: in the order of the messages. */
typedef struct launch {
    struct launch *before, *after;
    struct launch *next_heard;  /* of the producer's launches with reports that the lists do not have */
    PyObject *offsets, *errors; /* lists; `offsets` has an element for each of the first `told` messages */
    Py_ssize_t count, told;
    Py_ssize_t left; /* messages without a report */
    bool is_heard;
    report reports[];
} launch;

typedef struct {
    PyObject_HEAD
    void *client, *queue;
    void *dying;     /* a client that was closed during a look-up in it */
    void *unsaid;    /* an event that memory did not suffice to tell of: the next poll begins with it */
    int looking;     /* how many look something up */
    launch *heard;   /* the first of those with reports that the lists do not have */
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
    if (!client_new && find_librdkafka(library) < 0)
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

static launch *launch_of(producer *self, PyObject *offsets, PyObject *errors, Py_ssize_t count)
{
    launch *one = PyMem_Malloc(sizeof *one + (size_t)count * sizeof *one->reports);
    if (!one)
        return NULL;
    *one = (launch){.before = self->launches.before,
                    .after = &self->launches,
                    .offsets = Py_NewRef(offsets),
                    .errors = Py_NewRef(errors),
                    .count = count};
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
        one->reports[i] = (report){.launch = one, .offset = UNREPORTED};
        *each = (message){.opaque = &one->reports[i]};
        each->key = strings_at(keys, i, &each->key_len);
        each->payload = each->key ? strings_at(values, i, &each->len) : NULL;
        if (!each->payload)
            return -1;
    }
    return 0;
}

/* Those that were not taken: as (index, code, words). Nothing more is heard of them. */
static PyObject *refused_of(const message *messages, launch *one)
{
    PyObject *refused = PyList_New(0);
    for (Py_ssize_t i = 0; i < one->count; i++) {
        if (!messages[i].err)
            continue;
        one->reports[i].offset = -1;
        PyObject *each = refused ? Py_BuildValue("(nis)", i, messages[i].err, err2str(messages[i].err)) : NULL;
        if (!each || PyList_Append(refused, each) < 0)
            Py_CLEAR(refused);
        Py_XDECREF(each);
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
    launch *one = launch_of(self, offsets, errors, count);
    message *messages = PyMem_Malloc((count ? (size_t)count : 1) * sizeof *messages);
    void *topic = one && messages ? topic_new(self->client, name, NULL) : NULL;
    if (!topic)
        PyErr_NoMemory();
    else if (fill(messages, keys, values, count, one) == 0) {
        one->left = produce_batch(topic, partition, COPY, messages, (int)count);
        refused = one->left == count ? PyList_New(0) : refused_of(messages, one);
    }
    if (topic)
        topic_destroy(topic);
    PyMem_Free(messages);
    if (one && one->left == 0)
        forget(one); /* nothing of it was taken, so nothing comes back */
    return refused;
}

/* One report, kept at its message's place. It takes no memory, so that none is ever lost. */
static void hear(producer *self, const message *delivered)
{
    report *one = delivered->opaque;
    launch *its = one->launch;
    one->err = delivered->err;
    if (!one->err && delivered->offset < 0)
        one->err = NO_OFFSET; /* stored at an unknown offset (librdkafka: a duplicate that the broker forgot) */
    one->offset = one->err ? -1 : delivered->offset;
    its->left--;
    if (!its->is_heard) {
        its->is_heard = true;
        its->next_heard = self->heard;
        self->heard = its;
    }
}

/* The reports of a launch into its lists, as far as they follow on what those have. */
static int tell(launch *one)
{
    for (; one->told < one->count && one->reports[one->told].offset != UNREPORTED; one->told++) {
        const report *each = &one->reports[one->told];
        if (each->err) { /* twice, if memory ends behind it */
            PyObject *error = Py_BuildValue("(nis)", one->told, each->err, err2str(each->err));
            int failed = !error || PyList_Append(one->errors, error) < 0;
            Py_XDECREF(error);
            if (failed)
                return -1;
        }
        PyObject *offset = PyLong_FromLongLong(each->offset);
        int failed = !offset || PyList_Append(one->offsets, offset) < 0;
        Py_XDECREF(offset);
        if (failed)
            return -1;
    }
    return 0;
}

/* Report all answers; -1: out of memory, and the next poll reports the rest. */
static int tell_all(producer *self)
{
    while (self->heard) {
        launch *one = self->heard;
        if (tell(one) < 0)
            return -1;
        self->heard = one->next_heard;
        one->is_heard = false;
        if (one->told == one->count)
            forget(one);
    }
    return 0;
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

/* One event of the queue; -1: memory has ended, and the event is kept. */
static int take(producer *self, void *event, PyObject *news)
{
    int type = event_type(event);
    if (type == DELIVERED) {
        const message *delivered;
        while ((delivered = event_message_next(event)))
            hear(self, delivered);
    } else if (type == LOGGED || type == FAILED) {
        PyObject *one = said(self, event, type);
        int failed = !one || PyList_Append(news, one) < 0;
        Py_XDECREF(one);
        if (failed) {
            self->unsaid = event;
            return -1;
        }
    }
    event_destroy(event);
    return 0;
}

static PyObject *producer_poll(producer *self, PyObject *nothing)
{
    if (!is_open(self))
        return NULL;
    PyObject *news = PyList_New(0);
    int failed = !news;
    for (int i = 0; !failed && i < EVENTS_MAX; i++) {
        void *event = self->unsaid ? self->unsaid : queue_poll(self->queue, 0);
        self->unsaid = NULL;
        if (!event)
            break;
        failed = take(self, event, news) < 0;
    }
    failed = failed || tell_all(self) < 0;
    if (failed && news && PyList_GET_SIZE(news)) { /* the news would be lost; the next poll goes on */
        PyErr_Clear();
        failed = 0;
    }
    if (failed)
        Py_CLEAR(news);
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
        if (self->unsaid)
            event_destroy(self->unsaid);
        self->unsaid = NULL;
        self->heard = NULL;
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
     "produce(topic, partition, keys, values, offsets, errors): the refused, as (index, code, words). Unless all are, "
     "later polls append to `offsets` one element for each message, in order, -1 where it was not stored, and to "
     "`errors` why, as (index, code, words)."},
    {"poll", (PyCFunction)producer_poll, METH_NOARGS,
     "Fill the lists with what was reported; the news, as (log|error|fatal, level or code, words). MemoryError: the "
     "next call goes on where this one stopped."},
    {"look_up", (PyCFunction)producer_look_up, METH_VARARGS, "look_up(topic, timeout_ms): read its metadata anew."},
    {"wake", (PyCFunction)producer_wake, METH_VARARGS, "wake(descriptor): it becomes readable with something to poll."},
    {"close", (PyCFunction)producer_close, METH_NOARGS, "Give up what is on its way; nothing comes back."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject producer_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "native_backend.log.kafka.column_producer.ColumnProducer",
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
