/* librdkafka's public C interface (rdkafka.h, 2.x), as far as it is used here, looked up in the extension that
 * confluent-kafka brings: so there is one librdkafka in the process. */
#ifndef LIBRDKAFKA_H
#define LIBRDKAFKA_H

#include <Python.h>
#include <stdint.h>

typedef struct {
    int err;
    void *topic;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *opaque;
} message; /* rd_kafka_message_t */

enum {
    PRODUCER = 0,
    COPY = 0x2,
    DELIVERED = 0x1,
    LOGGED = 0x4,
    FAILED = 0x8,
    NO_OFFSET = -168, /* RD_KAFKA_RESP_ERR__NO_OFFSET */
    MAJOR = 2,        /* of the version that this is written down from: rd_kafka_message_t is as it is there */
    PURGE_ALL = 0x1 | 0x2 | 0x4 /* queue, in flight, non-blocking */
};

static int (*version)(void);
static void *(*conf_new)(void);
static void (*conf_destroy)(void *conf);
static int (*conf_set)(void *conf, const char *name, const char *value, char *text, size_t size);
static void (*conf_set_events)(void *conf, int events);
static void *(*client_new)(int type, void *conf, char *text, size_t size);
static void (*client_destroy)(void *client);
static int (*set_log_queue)(void *client, void *queue);
static void *(*queue_get_main)(void *client);
static void (*queue_destroy)(void *queue);
static void *(*queue_poll)(void *queue, int timeout_ms);
static void (*queue_io_event_enable)(void *queue, int descriptor, const void *payload, size_t size);
static void *(*topic_new)(void *client, const char *name, void *conf);
static void (*topic_destroy)(void *topic);
static int (*produce_batch)(void *topic, int32_t partition, int flags, message *messages, int count);
static int (*event_type)(void *event);
static const message *(*event_message_next)(void *event);
static int (*event_error)(void *event);
static const char *(*event_error_string)(void *event);
static int (*event_error_is_fatal)(void *event);
static int (*event_log)(void *event, const char **facility, const char **text, int *level);
static void (*event_destroy)(void *event);
static int (*fatal_error)(void *client, char *text, size_t size);
static const char *(*err2str)(int err);
static int (*purge)(void *client, int flags);
static int (*metadata)(void *client, int all, void *topic, const void **found, int timeout_ms);
static void (*metadata_destroy)(const void *found);

static const struct {
    const char *name;
    void *place;
} functions[] = {
    {"rd_kafka_version", &version},
    {"rd_kafka_conf_new", &conf_new},
    {"rd_kafka_conf_destroy", &conf_destroy},
    {"rd_kafka_conf_set", &conf_set},
    {"rd_kafka_conf_set_events", &conf_set_events},
    {"rd_kafka_new", &client_new},
    {"rd_kafka_destroy", &client_destroy},
    {"rd_kafka_set_log_queue", &set_log_queue},
    {"rd_kafka_queue_get_main", &queue_get_main},
    {"rd_kafka_queue_destroy", &queue_destroy},
    {"rd_kafka_queue_poll", &queue_poll},
    {"rd_kafka_queue_io_event_enable", &queue_io_event_enable},
    {"rd_kafka_topic_new", &topic_new},
    {"rd_kafka_topic_destroy", &topic_destroy},
    {"rd_kafka_produce_batch", &produce_batch},
    {"rd_kafka_event_type", &event_type},
    {"rd_kafka_event_message_next", &event_message_next},
    {"rd_kafka_event_error", &event_error},
    {"rd_kafka_event_error_string", &event_error_string},
    {"rd_kafka_event_error_is_fatal", &event_error_is_fatal},
    {"rd_kafka_event_log", &event_log},
    {"rd_kafka_event_destroy", &event_destroy},
    {"rd_kafka_fatal_error", &fatal_error},
    {"rd_kafka_err2str", &err2str},
    {"rd_kafka_purge", &purge},
    {"rd_kafka_metadata", &metadata},
    {"rd_kafka_metadata_destroy", &metadata_destroy},
};

#include "../loaded_library.h"

static int find_librdkafka(const char *extension)
{
    if (find_functions(extension) < 0)
        return -1;
    if (version() >> 24 != MAJOR) {
        PyErr_Format(PyExc_ImportError, "%s is librdkafka %d; this is made for %d", extension, version() >> 24, MAJOR);
        client_new = NULL; /* looked up again by who tries again */
        return -1;
    }
    return 0;
}

#endif
