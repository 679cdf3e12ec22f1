/* A librdkafka for tests: the functions that column_producer.c looks up. What becomes of each message, and in which
   order that is reported, is what the test says; and memory ends when it says so. Messages are numbered from 0 in the
   order in which they were taken. A value that begins with R is not taken. One client, one thread. */
#include <Python.h>
#include <string.h>

#include "../../../../native_backend/log/kafka/librdkafka.h"

enum { SENT_MAX = 100000, EVENTS_MAX = 10000, QUEUE_FULL = -184 };

typedef struct {
    int type, code, fatal;
    int first, end, at; /* of `reports` */
    const char *text;
} event;

static message sent[SENT_MAX];
static char bodies[SENT_MAX][16];
static message reports[SENT_MAX];
static event events[EVENTS_MAX];
static int sent_count, report_count, event_count, event_at, destroyed;

/* -- memory that ends: for one allocation, so many after the queue was first polled */

static PyMemAllocatorEx real[2];
static int countdown = -1, is_polled, ended;

static int ends(void)
{
    if (!is_polled || countdown < 0 || countdown-- > 0)
        return 0;
    return ++ended;
}
static void *ending_malloc(void *of, size_t size)
{
    return ends() ? NULL : ((PyMemAllocatorEx *)of)->malloc(((PyMemAllocatorEx *)of)->ctx, size);
}
static void *ending_calloc(void *of, size_t count, size_t size)
{
    return ends() ? NULL : ((PyMemAllocatorEx *)of)->calloc(((PyMemAllocatorEx *)of)->ctx, count, size);
}
static void *ending_realloc(void *of, void *at, size_t size)
{
    return ends() ? NULL : ((PyMemAllocatorEx *)of)->realloc(((PyMemAllocatorEx *)of)->ctx, at, size);
}
static void ending_free(void *of, void *at) { ((PyMemAllocatorEx *)of)->free(((PyMemAllocatorEx *)of)->ctx, at); }

void fake_end_memory_after(int allocations)
{
    static const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
    for (int i = 0; i < 2 && !real[i].malloc; i++) {
        PyMem_GetAllocator(domains[i], &real[i]);
        PyMemAllocatorEx ending = {&real[i], ending_malloc, ending_calloc, ending_realloc, ending_free};
        PyMem_SetAllocator(domains[i], &ending);
    }
    countdown = allocations, is_polled = 0;
}

int fake_memory_ended(void) { return ended; }

/* -- what the test says */

int fake_sent(void) { return sent_count; }
const char *fake_body(int i) { return bodies[i]; }
int fake_destroyed(void) { return destroyed; }

void fake_report(int i, int err, int64_t offset)
{
    message *one = &reports[report_count++];
    *one = sent[i];
    one->err = err, one->offset = offset;
    if (!event_count || event_count == event_at || events[event_count - 1].type != DELIVERED)
        events[event_count++] = (event){DELIVERED, 0, 0, report_count - 1, report_count - 1, report_count - 1, ""};
    events[event_count - 1].end = report_count;
}

void fake_next_event(void) { events[event_count++] = (event){.type = 0}; }

void fake_say(int type, int code, int fatal, const char *text)
{
    events[event_count++] = (event){.type = type, .code = code, .fatal = fatal, .text = text};
}

/* -- librdkafka's */

int rd_kafka_version(void) { return 0x021000ff; }
void *rd_kafka_conf_new(void) { return &sent_count; }
void rd_kafka_conf_destroy(void *conf) {}
int rd_kafka_conf_set(void *conf, const char *name, const char *value, char *text, size_t size) { return 0; }
void rd_kafka_conf_set_events(void *conf, int events) {}
void *rd_kafka_new(int type, void *conf, char *text, size_t size) { return &sent_count; }
void rd_kafka_destroy(void *client) {}
int rd_kafka_set_log_queue(void *client, void *queue) { return 0; }
void *rd_kafka_queue_get_main(void *client) { return &event_count; }
void rd_kafka_queue_destroy(void *queue) {}
void rd_kafka_queue_io_event_enable(void *queue, int descriptor, const void *payload, size_t size) {}
void *rd_kafka_topic_new(void *client, const char *name, void *conf) { return &report_count; }
void rd_kafka_topic_destroy(void *topic) {}
int rd_kafka_purge(void *client, int flags) { return 0; }
int rd_kafka_metadata(void *client, int all, void *topic, const void **found, int timeout_ms) { return -1; }
void rd_kafka_metadata_destroy(const void *found) {}
const char *rd_kafka_err2str(int err) { return err == QUEUE_FULL ? "full" : "failed"; }

int rd_kafka_produce_batch(void *topic, int32_t partition, int flags, message *messages, int count)
{
    int taken = 0;
    for (int i = 0; i < count; i++) {
        if (messages[i].len && *(char *)messages[i].payload == 'R') {
            messages[i].err = QUEUE_FULL;
            continue;
        }
        size_t size = messages[i].len < sizeof *bodies ? messages[i].len : sizeof *bodies - 1;
        memcpy(bodies[sent_count], messages[i].payload, size);
        sent[sent_count++] = messages[i];
        taken++;
    }
    return taken;
}

void *rd_kafka_queue_poll(void *queue, int timeout_ms)
{
    is_polled = 1;
    return event_at < event_count ? &events[event_at++] : NULL;
}

int rd_kafka_event_type(void *one) { return ((event *)one)->type; }
const message *rd_kafka_event_message_next(void *one)
{
    event *its = one;
    return its->at < its->end ? &reports[its->at++] : NULL;
}
int rd_kafka_event_error(void *one) { return ((event *)one)->code; }
const char *rd_kafka_event_error_string(void *one) { return ((event *)one)->text; }
int rd_kafka_event_error_is_fatal(void *one) { return ((event *)one)->fatal; }
int rd_kafka_event_log(void *one, const char **facility, const char **text, int *level)
{
    *facility = "", *text = ((event *)one)->text, *level = ((event *)one)->code;
    return 0;
}
void rd_kafka_event_destroy(void *one) { destroyed++; }
int rd_kafka_fatal_error(void *client, char *text, size_t size)
{
    snprintf(text, size, "fatal");
    return -150;
}
