/* Frames that are not decoded: runs of plain transfers, runs of dispositions, and flows, cut from the rest of a stream.
 *
 * They are checked as strictly as those that are decoded: `know` and `describe` bring the types of AMQP 1.0 and the
 * composites of these frames, as `gateway/frames/performatives.py` has them, and every field is of a type that it may
 * have. What is not certain here (another encoding, a longer list, a string, a map, an extended header) is left to
 * the caller, who decodes it.
 *
 * What a publisher mostly sends is one transfer after another, each a whole message. Proton would copy every
 * payload twice to give it back; so it gets the frames without (it does all the counting there is to do), and the
 * payloads go into a column directly (`_deliveries.c`). A frame is of the run when it is whole, on the channel and
 * handle of the first, has the next delivery-id, and is nothing but an ordinary complete transfer. What is posted in a
 * transaction says more, all in the same octets: of such a run the caller has had the first one alone.
 *
 * A consumer that settles one by one sends a disposition for each: a run of them is recognised, and left as it is.
 *
 * Errors: none; what is odd ends the run and is looked at by the caller. Source: AMQP 1.0 part 1, 1.2 and 1.6; part 2,
 * 2.3.1, 2.7.4 to 2.7.6.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    DOFF_AT = 4, TYPE_AT = 5, CHANNEL_AT = 6, BODY_AT = 8,  /* of a frame */
    DOFF = 2, AMQP_TYPE = 0,                                /* no extended header */
    LIST_AT = BODY_AT + 3,                                  /* 00 53 CODE, then the list of a performative */
    DESCRIBED = 0x00, NO_VALUE = 0x40, YES = 0x41, NO = 0x42, LIST0 = 0x45, SMALL_UINT = 0x52, SMALL_ULONG = 0x53,
    BOOLEAN = 0x56, WHOLE_UINT = 0x70, BINARY = 0xa0, LIST8 = 0xc0,
    LIST8_HEAD = 2,                                         /* octets of a list8 that its size does not count */
    SIZED = 255,                                            /* a width: the next octet says it */
    FIELDS_MAX = 11,
    DEPTH_MAX = 2,                                          /* a transactional-state, and the outcome in it */
    TAG_MAX = 32,
    RUN_MIN = 4                                             /* fewer are not worth a push of their own */
};
enum { FLOW = 0x13, TRANSFER = 0x14, DISPOSITION = 0x15 };
enum { HANDLE, DELIVERY_ID, DELIVERY_TAG, MORE = 5 };       /* places in a transfer */
enum { ROLE, FIRST, LAST, STATE = 4 };                      /* in a disposition */
enum { TRANSACTIONAL_STATE = 0x34 };
enum { FLOW_HANDLE = 4, DRAIN = 8, ECHO };                  /* in a flow */
enum { ANY_ID = -1 };                                       /* in place of the next delivery-id */

static uint8_t widths[256]; /* by constructor: octets behind it */
static uint32_t kinds[256]; /* by constructor: its type, as a bit; 0: not told here */
typedef struct {
    uint32_t provides;      /* the types of field that it may stand in, as bits */
    int least, most;        /* fields */
    uint32_t allowed[FIELDS_MAX];
} composite;
static composite composites[256]; /* by code */

typedef struct {
    const unsigned char *at[FIELDS_MAX], *end; /* of each field its constructor; where the list ends */
    int count;
} list;

typedef struct {
    uint32_t payload, size; /* where its payload begins in the stream, and how long that is */
} place;

static uint32_t big_endian(const unsigned char *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return __builtin_bswap32(number);
}

/* The fields of a list, if each is of a type that it may have, and none is missing. */
static bool read_list(const unsigned char *at, const unsigned char *end, const composite *as, int depth, list *into)
{
    into->count = 0;
    into->end = at + 1;
    if (at < end && *at == LIST0)
        return as->least == 0;
    if (end - at <= LIST8_HEAD || *at != LIST8 || at[2] < as->least || at[2] > as->most ||
        end - at < LIST8_HEAD + at[1])
        return false;
    const unsigned char *field = at + LIST8_HEAD + 1;
    into->count = at[2];
    into->end = end = at + LIST8_HEAD + at[1];
    for (int i = 0; i < into->count; i++) {
        if (field >= end)
            return false;
        into->at[i] = field;
        if (*field == DESCRIBED) {
            list inner;
            if (depth == DEPTH_MAX || end - field < 4 || field[1] != SMALL_ULONG ||
                !(composites[field[2]].provides & as->allowed[i]) ||
                !read_list(field + 3, end, &composites[field[2]], depth + 1, &inner))
                return false;
            field = inner.end;
            continue;
        }
        int width = widths[*field];
        if (!(kinds[*field] & as->allowed[i]) || end - field < 1 + (width > 0) || (*field == BOOLEAN && field[1] > 1))
            return false;
        field += 1 + (width == SIZED ? 1 + field[1] : width);
    }
    return field == end;
}

/* The size of the plain frame with that performative, and its fields; 0: it is another, or not certain. */
static size_t read_frame(const unsigned char *at, size_t left, int code, list *fields)
{
    if (left <= LIST_AT || at[DOFF_AT] != DOFF || at[TYPE_AT] != AMQP_TYPE || at[BODY_AT] != DESCRIBED ||
        at[BODY_AT + 1] != SMALL_ULONG || at[BODY_AT + 2] != code)
        return 0;
    size_t size = big_endian(at);
    if (size > left || size <= LIST_AT)
        return 0;
    return read_list(at + LIST_AT, at + size, &composites[code], 0, fields) ? size : 0;
}

static uint32_t uint_at(const unsigned char *field)
{
    return *field == WHOLE_UINT ? big_endian(field + 1) : *field == SMALL_UINT ? field[1] : 0;
}

/* It is there, and not null. */
static bool says(const list *fields, int which) { return fields->count > which && *fields->at[which] != NO_VALUE; }

/* Nothing but null or false from that field on. */
static bool is_silent(const list *fields, int from)
{
    for (int i = from; i < fields->count; i++)
        if (*fields->at[i] != NO_VALUE && *fields->at[i] != NO)
            return false;
    return true;
}

/* Transfers that belong together. */
typedef struct {
    Py_ssize_t frame_max, message_max;
    uint32_t channel, handle;        /* the channel's octets are the lower two */
    long long next;                  /* delivery-id; or ANY_ID */
    const unsigned char *like, *end; /* what a posted one says from `more` on; NULL: they are not posted */
} run;

/* The size of the frame, when it is of the run; else 0. */
static size_t of_run(const unsigned char *at, size_t left, const run *of, list *fields)
{
    size_t size = read_frame(at, left, TRANSFER, fields);
    if (!size || size > (size_t)of->frame_max || at + size - fields->end > of->message_max ||
        big_endian(at + DOFF_AT) != of->channel || uint_at(fields->at[HANDLE]) != of->handle)
        return 0;
    if (!says(fields, DELIVERY_ID) || (of->next != ANY_ID && uint_at(fields->at[DELIVERY_ID]) != of->next) ||
        !says(fields, DELIVERY_TAG) || fields->at[DELIVERY_TAG][1] > TAG_MAX)
        return 0;
    if (!of->like)
        return is_silent(fields, MORE) ? size : 0;
    ptrdiff_t length = fields->count > MORE ? fields->end - fields->at[MORE] : 0;
    return length && length == of->end - of->like && memcmp(fields->at[MORE], of->like, (size_t)length) == 0 ? size : 0;
}

/* The frames of a run without their payloads, and the places of those. */
static PyObject *thinned(const unsigned char *stream, Py_ssize_t position, Py_ssize_t count, size_t thin_size,
                         PyObject *places)
{
    PyObject *thin = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)thin_size);
    if (!thin || !places)
        return thin;
    unsigned char *to = (unsigned char *)PyBytes_AS_STRING(thin);
    place *one = (place *)PyBytes_AS_STRING(places);
    for (const unsigned char *at = stream + position; count--; one++) {
        uint32_t head = LIST_AT + LIST8_HEAD + (uint32_t)at[LIST_AT + 1], swapped = __builtin_bswap32(head);
        uint32_t size = big_endian(at);
        memcpy(to, at, head);
        memcpy(to, &swapped, sizeof swapped);
        to += head;
        *one = (place){(uint32_t)(at - stream) + head, size - head};
        at += size;
    }
    return thin;
}

static PyObject *cut(PyObject *self, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t position, like, end, count = 0;
    size_t size, thin_size = 0;
    run of = {.like = NULL};
    list fields;
    if (!PyArg_ParseTuple(args, "y*nnnnL", &data, &position, &of.frame_max, &of.message_max, &like, &of.next))
        return NULL;
    const unsigned char *stream = data.buf, *first = stream + (like < 0 ? position : like);
    size = read_frame(first, (size_t)(stream + data.len - first), TRANSFER, &fields);
    if (size) {
        of.channel = big_endian(first + DOFF_AT);
        of.handle = uint_at(fields.at[HANDLE]);
        of.end = fields.end;
        of.like = like < 0 ? NULL : fields.count > MORE ? fields.at[MORE] : fields.end;
    }
    for (end = position; size && (size = of_run(stream + end, (size_t)(data.len - end), &of, &fields)); count++) {
        thin_size += (size_t)(fields.end - (stream + end));
        end += (Py_ssize_t)size;
        of.next = (uint32_t)(uint_at(fields.at[DELIVERY_ID]) + 1);
    }
    PyObject *answer = NULL, *thin = NULL, *places = NULL;
    if (count >= RUN_MIN) {
        places = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(place));
        thin = thinned(stream, position, count, thin_size, places);
        answer = thin && places
            ? Py_BuildValue("(nkLnOO)", end, (unsigned long)of.handle, of.next, count, thin, places)
            : NULL;
    } else if (count)
        answer = Py_BuildValue("(nkLnOO)", end, (unsigned long)of.handle, of.next, count, Py_None, Py_None);
    else
        answer = Py_NewRef(Py_None);
    Py_XDECREF(thin);
    Py_XDECREF(places);
    PyBuffer_Release(&data);
    return answer;
}

/* A disposition, and where its ids are: most that follow it differ in nothing else, so they need not be read anew. */
typedef struct {
    const unsigned char *at;
    size_t size, first, last, tail; /* from `at` on; `last` is 0 where it has none */
    uint32_t low, high;
    const char *transaction;        /* its txn-id; NULL outside of a transaction */
    Py_ssize_t transaction_size;
} disposition;

/* The transaction that the state names. The frame was checked before: a txn-id is there. */
static void read_transaction(const list *fields, disposition *one)
{
    one->transaction = NULL;
    if (!says(fields, STATE) || *fields->at[STATE] != DESCRIBED || fields->at[STATE][2] != TRANSACTIONAL_STATE)
        return;
    const unsigned char *identity = fields->at[STATE] + 3 + LIST8_HEAD + 1;
    one->transaction = (const char *)identity + 2;
    one->transaction_size = identity[1];
}

static bool read_disposition(const unsigned char *at, size_t left, uint32_t channel, disposition *one)
{
    list fields;
    one->size = read_frame(at, left, DISPOSITION, &fields);
    if (!one->size || at + one->size != fields.end || big_endian(at + DOFF_AT) != ((unsigned)DOFF << 24 | channel) ||
        *fields.at[ROLE] != YES)
        return false;
    const unsigned char *last = says(&fields, LAST) ? fields.at[LAST] : fields.at[FIRST];
    one->at = at;
    one->first = (size_t)(fields.at[FIRST] - at);
    one->last = (size_t)(last - at);
    one->tail = one->last + 1 + widths[*last];
    one->low = uint_at(fields.at[FIRST]);
    one->high = uint_at(last);
    read_transaction(&fields, one);
    return true;
}

/* The same again, about other deliveries. */
static bool read_like(const unsigned char *at, size_t left, disposition *one)
{
    size_t between = one->last - one->first;
    if (!one->at || left < one->size || memcmp(at, one->at, one->first + 1) != 0 ||
        (between && (between != 1u + widths[at[one->first]] || at[one->last] != one->at[one->last])) ||
        memcmp(at + one->tail, one->at + one->tail, one->size - one->tail) != 0)
        return false;
    one->at = at;
    one->low = uint_at(at + one->first);
    one->high = uint_at(at + one->last);
    return true;
}

static PyObject *dispositions(PyObject *self, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t position;
    unsigned int channel;
    long long stated;
    unsigned long long given, most;
    if (!PyArg_ParseTuple(args, "y*nILKK", &data, &position, &channel, &stated, &given, &most))
        return NULL;
    uint32_t known = given < INT32_MAX ? (uint32_t)given : INT32_MAX; /* so many back from the last one */
    disposition one = {.at = NULL}, of = {.at = NULL};
    unsigned long long named = 0;
    while (named < most) {
        const unsigned char *at = (const unsigned char *)data.buf + position;
        size_t left = (size_t)(data.len - position);
        if (!read_like(at, left, &one) && !read_disposition(at, left, channel, &one))
            break;
        if (one.low <= stated || one.high < one.low || one.high - one.low >= most ||
            (uint32_t)given - 1 - one.high >= known || (uint32_t)given - 1 - one.low >= known)
            break;
        if (!of.at)
            of = one;
        else if (one.transaction != of.transaction &&
                 (!one.transaction || !of.transaction || one.transaction_size != of.transaction_size ||
                  memcmp(one.transaction, of.transaction, (size_t)of.transaction_size) != 0))
            break;
        named += (unsigned long long)(one.high - one.low) + 1;
        stated = one.high;
        position += (Py_ssize_t)one.size;
    }
    PyObject *answer = of.at && of.transaction
        ? Py_BuildValue("(nLKy#)", position, stated, named, of.transaction, of.transaction_size)
        : Py_BuildValue("(nLKO)", position, stated, named, Py_None);
    PyBuffer_Release(&data);
    return answer;
}

static PyObject *flowed(PyObject *self, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t position;
    list fields;
    if (!PyArg_ParseTuple(args, "y*n", &data, &position))
        return NULL;
    const unsigned char *at = (const unsigned char *)data.buf + position;
    size_t size = read_frame(at, (size_t)(data.len - position), FLOW, &fields);
    bool plain = size && at + size == fields.end && fields.count <= ECHO && is_silent(&fields, DRAIN);
    long long handle = plain && says(&fields, FLOW_HANDLE) ? (long long)uint_at(fields.at[FLOW_HANDLE]) : -1;
    PyBuffer_Release(&data);
    return plain ? PyLong_FromLongLong(handle) : Py_NewRef(Py_None);
}

static PyObject *know(PyObject *self, PyObject *args)
{
    unsigned char code, width;
    unsigned int kind;
    if (!PyArg_ParseTuple(args, "bbI", &code, &width, &kind))
        return NULL;
    widths[code] = width;
    kinds[code] = kind;
    Py_RETURN_NONE;
}

static PyObject *describe(PyObject *self, PyObject *args)
{
    unsigned char code;
    composite as = {.least = 0};
    PyObject *allowed;
    if (!PyArg_ParseTuple(args, "bIiO!", &code, &as.provides, &as.least, &PyTuple_Type, &allowed))
        return NULL;
    as.most = (int)PyTuple_GET_SIZE(allowed);
    if (as.most > FIELDS_MAX)
        return PyErr_Format(PyExc_ValueError, "%d fields, there is room for %d", as.most, FIELDS_MAX);
    for (int i = 0; i < as.most; i++)
        as.allowed[i] = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(allowed, i));
    if (PyErr_Occurred())
        return NULL;
    composites[code] = as;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"know", know, METH_VARARGS,
     "know(constructor, width, kind): its type is that bit; a width of 255 is in an octet."},
    {"describe", describe, METH_VARARGS,
     "describe(code, provides, least, allowed): a composite, the kinds of each field, and how many it has at least."},
    {"cut", cut, METH_VARARGS,
     "cut(data, position, frame_size_max, message_size_max, like, next): None where no plain transfer is, else where "
     "those of one link end, its handle, the delivery-id that is next, how many they are, and, where they are many, "
     "their frames without payloads and where those are. `like`: the posted transfer that they go on from, or -1. "
     "`next`: the delivery-id that the first must have, or -1: any."},
    {"dispositions", dispositions, METH_VARARGS,
     "dispositions(data, position, channel, stated, given, most): where the receiver's plain dispositions end that "
     "follow from there on, each about later deliveries than `stated` and than the one before, all in one transaction "
     "or none; the last delivery that they speak of, how many they name, and the txn-id or None. `given`: how many "
     "deliveries there were. None of them names more than `most`, and the one that reaches it is the last."},
    {"flowed", flowed, METH_VARARGS,
     "flowed(data, position): the handle of a plain flow, -1 where it is of the session, None where it is none."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_frames", "Runs of plain frames; see the source.", -1,
                                    methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__frames(void) { return PyModule_Create(&module); }
