/* Runs of plain transfers of one link, cut from the stream without their payloads; and runs of dispositions.
 *
 * What a publisher mostly sends is one transfer after another, each a whole message. Proton would copy every
 * payload twice to give it back; so it gets the frames without (it does all the counting there is to do), and the
 * payloads go into a column directly (`engine_runs.c`). A frame is of the run when it is whole, on the channel and
 * handle of the first, and nothing but an ordinary complete transfer; the caller has looked at the first one. What is
 * posted in a transaction says more, all in the same octets: of such a run the caller has had the first one alone.
 *
 * A consumer that settles one by one sends a disposition for each: a run of them is told from the rest, and left as it
 * is.
 *
 * Errors: none; what is odd ends the run and is looked at by the caller. Source: AMQP 1.0 part 2, 2.3.1, 2.7.5.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    HEADER = 8,
    LIST_SIZE_AT = 12,    /* 00 53 14 c0 SIZE COUNT, from behind the frame's header on */
    FIELDS_AT = 13,
    HANDLE_AT = 14,
    FIELDS_MAX = 5,       /* `more` would be the next */
    TAG_MAX = 32,
    LONG_TAG = 38,        /* octets of a list; in a smaller one a longer tag has no room */
    SMALL_UINT = 0x52,
    UINT0 = 0x43,
    RUN_MIN = 4,          /* fewer are not worth a push of their own */
    ROLE_AT = 14,         /* in a disposition */
    IDS_AT = 15,
    BRIEF = 38,           /* octets of a disposition; one that names its state by a symbol takes 40 at least */
    PLAIN_KIND = 0x0200   /* data offset 2, an AMQP frame */
};
static const unsigned char transfer[] = {0x00, 0x53, 0x14, 0xc0}, disposition[] = {0x00, 0x53, 0x15, 0xc0};

typedef struct {
    uint32_t payload, size; /* where its payload begins in the stream, and how long that is */
} place;

static uint32_t big_endian(const unsigned char *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return __builtin_bswap32(number);
}

/* How long a field with this constructor is, behind the constructor; -1: too odd to tell here. */
static int width(unsigned char constructor, unsigned char next)
{
    switch (constructor) {
    case 0x40: case 0x41: case 0x42: case 0x43: case 0x44: case 0x45:
        return 0;
    case 0x50: case 0x52: case 0x53: case 0x56:
        return 1;
    case 0x70:
        return 4;
    case 0xa0: /* the delivery tag */
        return next > TAG_MAX ? -1 : 1 + next;
    default:
        return -1;
    }
}

/* Where that field of a transfer begins, or the last one ends; 0: too odd to tell. */
static size_t field_at(const unsigned char *at, size_t head, int number)
{
    size_t field = HANDLE_AT;
    for (int i = 0; i < number; i++) {
        int behind = field < head ? width(at[field], field + 1 < head ? at[field + 1] : 0) : -1;
        if (behind < 0)
            return 0;
        field += 1 + (size_t)behind;
    }
    return field > head ? 0 : field;
}

/* Where `more` is in a transfer; 0: it has none, or is too odd to tell. */
static size_t more_at(const unsigned char *at, size_t head)
{
    size_t field = at[FIELDS_AT] > FIELDS_MAX ? field_at(at, head, FIELDS_MAX) : 0;
    return field < head ? field : 0;
}

/* Nothing but null or false from `more` on, and nothing that is too odd. */
static bool is_whole(const unsigned char *at, size_t head)
{
    if (at[FIELDS_AT] <= FIELDS_MAX)
        return field_at(at, head, at[FIELDS_AT]) > 0;
    size_t field = more_at(at, head), end = field + at[FIELDS_AT] - FIELDS_MAX;
    if (!field || end > head)
        return false;
    while (field < end && (at[field] == 0x40 || at[field] == 0x42))
        field++;
    return field == end;
}

/* Two transfers say the same from `more` on, and say something there. */
static bool says_the_same(const unsigned char *at, size_t head, const unsigned char *like)
{
    size_t like_head = FIELDS_AT + (size_t)like[LIST_SIZE_AT];
    size_t more = more_at(at, head), other = more_at(like, like_head);
    return more && other && at[FIELDS_AT] == like[FIELDS_AT] && head - more == like_head - other &&
           memcmp(at + more, like + other, head - more) == 0;
}

/* The size of the frame, when it is one of the run that began with `first`; else 0. `posted`: the first says more than
 * an ordinary one. */
static size_t of_run(const unsigned char *at, size_t left, const unsigned char *first, bool posted, size_t frame_max,
                     size_t message_max)
{
    if (left <= HANDLE_AT + 1)
        return 0;
    size_t size = big_endian(at);
    if (size > left || size > frame_max || size <= HANDLE_AT + 1 || memcmp(at + 4, first + 4, 4) != 0 ||
        memcmp(at + HEADER, transfer, sizeof transfer) != 0)
        return 0;
    size_t head = FIELDS_AT + (size_t)at[LIST_SIZE_AT];
    bool same = at[HANDLE_AT] == first[HANDLE_AT] &&
                (at[HANDLE_AT] == UINT0 || (at[HANDLE_AT] == SMALL_UINT && at[HANDLE_AT + 1] == first[HANDLE_AT + 1]));
    bool brief = at[FIELDS_AT] <= FIELDS_MAX && at[LIST_SIZE_AT] < LONG_TAG;
    if (!same || head > size || size - head > message_max)
        return 0;
    return (posted ? says_the_same(at, head, first) : brief || is_whole(at, head)) ? size : 0;
}

static PyObject *cut(PyObject *self, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t position, frame_max, message_max, like, end, count = 0;
    size_t thin_size = 0, size;
    PyObject *thin = NULL, *places = NULL, *answer = NULL;
    if (!PyArg_ParseTuple(args, "y*nnnn", &data, &position, &frame_max, &message_max, &like))
        return NULL;
    const unsigned char *stream = data.buf, *first = stream + (like < 0 ? position : like);
    for (end = position; (size = of_run(stream + end, (size_t)(data.len - end), first, like >= 0, (size_t)frame_max,
                                        (size_t)message_max)); end += (Py_ssize_t)size, count++)
        thin_size += FIELDS_AT + (size_t)stream[end + LIST_SIZE_AT];
    if (count < RUN_MIN) {
        PyBuffer_Release(&data);
        Py_RETURN_NONE;
    }
    thin = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)thin_size);
    places = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(place));
    if (thin && places) {
        unsigned char *to = (unsigned char *)PyBytes_AS_STRING(thin);
        place *one = (place *)PyBytes_AS_STRING(places);
        for (Py_ssize_t at = position; at < end; at += (Py_ssize_t)size, one++) {
            uint32_t head = FIELDS_AT + (uint32_t)stream[at + LIST_SIZE_AT], swapped = __builtin_bswap32(head);
            size = big_endian(stream + at);
            memcpy(to, stream + at, head);
            memcpy(to, &swapped, sizeof swapped);
            to += head;
            *one = (place){(uint32_t)at + head, (uint32_t)size - head};
        }
        answer = Py_BuildValue("(nOO)", end, thin, places);
    }
    Py_XDECREF(thin);
    Py_XDECREF(places);
    PyBuffer_Release(&data);
    return answer;
}

/* One number of a disposition; `before` for a null behind it; -1: too odd to tell, or not all there. */
static int64_t id_at(const unsigned char **at, const unsigned char *end, int64_t before)
{
    const unsigned char *from = *at;
    int behind = from < end ? width(*from, 0) : -1;
    if (behind < 0 || from + 1 + behind > end)
        return -1;
    *at = from + 1 + behind;
    switch (*from) {
    case 0x40:
        return before;
    case UINT0:
        return 0;
    case SMALL_UINT:
        return from[1];
    case 0x70:
        return big_endian(from + 1);
    default:
        return -1;
    }
}

static PyObject *told(PyObject *self, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t position;
    unsigned int channel;
    long long stated;
    if (!PyArg_ParseTuple(args, "y*nIL", &data, &position, &channel, &stated))
        return NULL;
    const unsigned char *stream = data.buf;
    for (;;) {
        const unsigned char *at = stream + position, *ids = at + IDS_AT;
        size_t left = (size_t)(data.len - position), size = left > IDS_AT ? big_endian(at) : 0;
        if (size <= IDS_AT || size > BRIEF || size > left ||
            big_endian(at + 4) != ((unsigned)PLAIN_KIND << 16 | channel) ||
            memcmp(at + HEADER, disposition, sizeof disposition) != 0 || at[ROLE_AT] != 0x41)
            break;
        int64_t low = id_at(&ids, at + size, -1), high = low < 0 ? -1 : id_at(&ids, at + size, low);
        if (low <= stated || high < low)
            break;
        stated = high;
        position += (Py_ssize_t)size;
    }
    PyBuffer_Release(&data);
    return Py_BuildValue("(nL)", position, stated);
}

static PyMethodDef methods[] = {
    {"cut", cut, METH_VARARGS,
     "cut(data, position, frame_size_max, message_size_max, like): (where the run ends, its frames without payloads, "
     "where those are), or None where it is too short. `like`: the posted transfer that it goes on from; or -1."},
    {"told", told, METH_VARARGS,
     "told(data, position, channel, stated): where the receiver's brief dispositions end that follow from there on, "
     "each about later deliveries than `stated` and than the one before; and the last delivery that they speak of."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "tap_runs", "Runs of plain transfers; see the source.", -1,
                                    methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_tap_runs(void) { return PyModule_Create(&module); }
