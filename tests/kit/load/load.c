/* load: one AMQP 1.0 connection, one link, as fast as the peer allows; prints one line of JSON.
 *
 * A measuring client: its own cost a message (`cpu_us`, user and system time) is printed beside the rates, so that a
 * reader sees whether it or the peer was the bottleneck. Latency is from the turn in which a message was handed to the
 * socket (with --rate: from when it was due) to the turn in which its outcome was read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <proton/delivery.h>
#include <proton/disposition.h>
#include <proton/link.h>
#include <proton/session.h>

#include "latency.h"
#include "options.h"
#include "seen.h"
#include "wire.h"

#define OUTPUT_MAX (256 * 1024) /* bytes waiting in proton before more is encoded */

struct load {
  struct options options;
  struct wire wire;
  pn_session_t *session;
  pn_link_t *link;
  char *message; /* header, data descriptor, content */
  size_t message_size;
  uint64_t sent, settled; /* send; in receive `settled` counts what has come */
  uint64_t accepted, rejected, released, modified, stateless;
  uint64_t begin_us, end_us, now_us, progress_us;
  struct latency latency;
  struct seen seen;
  bool closing;
};

/* header (durable) and one data section; the content is noise, so that no compression flatters anybody */
static void encode(struct load *load) {
  static const char head[] = {0x00, 0x53, 0x70, (char)0xc0, 0x02, 0x01, 0x41, 0x00, 0x53, 0x75, (char)0xb0};
  uint32_t size = load->options.size;
  load->message_size = sizeof head + 4 + size;
  load->message = malloc(load->message_size);
  if (!load->message) abort();
  memcpy(load->message, head, sizeof head);
  uint32_t big_endian = __builtin_bswap32(size);
  memcpy(load->message + sizeof head, &big_endian, 4);
  uint64_t noise = 88172645463325252u;
  for (size_t at = sizeof head + 4; at < load->message_size; at++) {
    noise ^= noise << 13;
    noise ^= noise >> 7;
    noise ^= noise << 17;
    load->message[at] = (char)noise;
  }
}

/* As clients of RabbitMQ's streams ask for it. */
static void begin_at_first(pn_terminus_t *source) {
  static const char name[] = "rabbitmq:stream-offset-spec", first[] = "first";
  pn_data_t *filter = pn_terminus_filter(source);
  pn_data_put_map(filter);
  pn_data_enter(filter);
  pn_data_put_symbol(filter, pn_bytes(sizeof name - 1, name));
  pn_data_put_described(filter);
  pn_data_enter(filter);
  pn_data_put_symbol(filter, pn_bytes(sizeof name - 1, name));
  pn_data_put_string(filter, pn_bytes(sizeof first - 1, first));
  pn_data_exit(filter);
  pn_data_exit(filter);
}

static void attach(struct load *load) {
  const struct options *options = &load->options;
  load->session = pn_session(load->wire.connection);
  pn_session_open(load->session);
  bool send = options->mode == MODE_SEND;
  const char *name = options->durable ? options->durable : send ? "load-out" : "load-in";
  load->link = send ? pn_sender(load->session, name) : pn_receiver(load->session, name);
  pn_terminus_t *terminus = send ? pn_link_target(load->link) : pn_link_source(load->link);
  pn_terminus_set_address(terminus, options->node);
  if (options->capability)
    pn_data_put_symbol(pn_terminus_capabilities(terminus), pn_bytes(strlen(options->capability), options->capability));
  if (options->durable) {
    pn_terminus_set_durability(terminus, PN_DELIVERIES);
    pn_terminus_set_expiry_policy(terminus, PN_EXPIRE_NEVER);
  }
  if (options->first) begin_at_first(terminus);
  pn_link_set_snd_settle_mode(load->link, options->presettled ? PN_SND_SETTLED : PN_SND_UNSETTLED);
  pn_link_open(load->link);
}

static uint64_t due(const struct load *load) { /* messages that may have been sent by now */
  const struct options *options = &load->options;
  if (options->rate == 0) return options->count;
  uint64_t by_now = 1 + (uint64_t)((double)(load->now_us - load->begin_us) * options->rate / 1e6);
  return by_now < options->count ? by_now : options->count;
}

static void send_some(struct load *load) {
  uint64_t limit = due(load);
  size_t content = load->message_size - load->options.size;
  int budget = (int)(OUTPUT_MAX / load->message_size) + 1;
  while (load->sent < limit && load->sent - load->settled < load->options.in_flight && budget-- > 0 &&
         pn_link_credit(load->link) > 0) {
    uint64_t number = __builtin_bswap64(load->sent);
    memcpy(load->message + content, &number, 8);
    pn_delivery_t *delivery = pn_delivery(load->link, pn_dtag((const char *)&number, 8));
    uint64_t since = load->options.rate == 0
                         ? load->now_us
                         : load->begin_us + (uint64_t)((double)load->sent * 1e6 / load->options.rate);
    pn_delivery_set_context(delivery, (void *)(uintptr_t)since);
    pn_link_send(load->link, load->message, load->message_size);
    pn_link_advance(load->link);
    load->sent++;
    if (load->options.presettled) {
      pn_delivery_settle(delivery);
      load->settled++;
    }
  }
}

static void count_outcome(struct load *load, uint64_t state) {
  switch (state) {
    case PN_ACCEPTED: load->accepted++; break;
    case PN_REJECTED: load->rejected++; break;
    case PN_RELEASED: load->released++; break;
    case PN_MODIFIED: load->modified++; break;
    default: load->stateless++;
  }
}

static void read_outcomes(struct load *load) {
  pn_delivery_t *delivery = pn_work_head(load->wire.connection);
  while (delivery) {
    pn_delivery_t *next = pn_work_next(delivery);
    uint64_t state = pn_delivery_remote_state(delivery);
    bool final = pn_delivery_settled(delivery) || (state >= PN_ACCEPTED && state <= PN_MODIFIED);
    if (pn_delivery_updated(delivery) && final) {
      count_outcome(load, state);
      latency_add(&load->latency, load->now_us - (uint64_t)(uintptr_t)pn_delivery_get_context(delivery));
      pn_delivery_settle(delivery);
      load->settled++;
    } else {
      pn_delivery_clear(delivery);
    }
    delivery = next;
  }
}

static void take(struct load *load, pn_delivery_t *delivery) {
  static char content[1 << 16];
  size_t size = pn_delivery_pending(delivery), skip = load->options.size, got = 0;
  uint64_t number = UINT64_MAX;
  while (size > 0) { /* the number is where the last `size` bytes begin: whatever sections the peer put before it */
    ssize_t piece = pn_link_recv(load->link, content, sizeof content);
    if (piece <= 0) break;
    if (size >= skip && size - skip >= got && size - skip + 8 <= got + (size_t)piece)
      memcpy(&number, content + (size - skip - got), 8);
    got += (size_t)piece;
    if (got >= size) break;
  }
  seen_add(&load->seen, __builtin_bswap64(number));
  pn_link_advance(load->link);
  pn_delivery_update(delivery, PN_ACCEPTED);
  pn_delivery_settle(delivery);
  load->settled++;
}

static void receive_some(struct load *load) {
  pn_delivery_t *delivery;
  while (load->settled < load->options.count && (delivery = pn_link_current(load->link))) {
    if (pn_delivery_aborted(delivery)) pn_delivery_settle(delivery); /* and the next one becomes current */
    else if (!pn_delivery_partial(delivery)) take(load, delivery);
    else break;
  }
  uint64_t left = load->options.count - load->settled;
  uint64_t wanted = left < load->options.in_flight ? left : load->options.in_flight;
  uint64_t credit = (uint64_t)pn_link_credit(load->link);
  if (wanted > credit && (credit <= wanted / 2 || left <= wanted)) pn_link_flow(load->link, (int)(wanted - credit));
}

static const char *refusal(struct load *load) {
  pn_condition_t *conditions[] = {pn_link_remote_condition(load->link), pn_session_remote_condition(load->session),
                                  pn_connection_remote_condition(load->wire.connection),
                                  pn_transport_condition(load->wire.transport)};
  for (size_t at = 0; at < sizeof conditions / sizeof *conditions; at++) {
    if (!pn_condition_is_set(conditions[at])) continue;
    fprintf(stderr, "load: %s: %s\n", pn_condition_get_name(conditions[at]),
            pn_condition_get_description(conditions[at]) ? pn_condition_get_description(conditions[at]) : "");
    return pn_condition_get_name(conditions[at]);
  }
  return "";
}

static bool is_over(struct load *load) {
  int closed = PN_REMOTE_CLOSED;
  return load->settled == load->options.count || (pn_link_state(load->link) & closed) ||
         (pn_session_state(load->session) & closed) || (pn_connection_state(load->wire.connection) & closed) ||
         load->wire.read_closed || load->wire.write_closed;
}

/* One turn: look at what came, do what can be done, write, wait. */
static void turn(struct load *load) {
  load->now_us = now_us();
  uint64_t before = load->settled + load->sent;
  if (load->options.mode == MODE_RECEIVE) {
    receive_some(load);
  } else {
    read_outcomes(load);
    send_some(load);
  }
  if (load->settled + load->sent != before) load->progress_us = load->now_us;
  wire_write(&load->wire);
  int64_t wait_us = 100000;
  if (load->options.mode == MODE_SEND && load->sent < load->options.count &&
      load->sent - load->settled < load->options.in_flight && pn_link_credit(load->link) > 0)
    wait_us = load->options.rate == 0 ? 0 : 200; /* more to send: only look whether something came */
  if (!is_over(load)) wire_wait(&load->wire, wait_us);
}

static void close_in_order(struct load *load) {
  pn_link_close(load->link);
  pn_connection_close(load->wire.connection);
  uint64_t until = now_us() + 5000000;
  do {
    wire_write(&load->wire);
    if (pn_connection_state(load->wire.connection) & PN_REMOTE_CLOSED) break;
    wire_wait(&load->wire, 100000);
  } while (!wire_done(&load->wire) && !load->wire.read_closed && now_us() < until);
  wire_write(&load->wire);
}

static void report(struct load *load, const char *condition) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double cpu_us = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
                  (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  double seconds = (double)(load->end_us - load->begin_us) / 1e6;
  double done = (double)load->settled;
  printf("{\"mode\":\"%s\",\"count\":%" PRIu64 ",\"size\":%u,\"in_flight\":%u,\"seconds\":%.6f,\"rate\":%.1f,"
         "\"cpu_us\":%.3f,\"condition\":\"%s\",\"done\":%" PRIu64,
         load->options.mode == MODE_SEND ? "send" : "receive", load->options.count, load->options.size,
         load->options.in_flight, seconds, seconds > 0 ? done / seconds : 0, done > 0 ? cpu_us / done : 0, condition,
         load->settled);
  if (load->options.mode == MODE_SEND)
    printf(",\"sent\":%" PRIu64 ",\"accepted\":%" PRIu64 ",\"rejected\":%" PRIu64 ",\"released\":%" PRIu64
           ",\"modified\":%" PRIu64 ",\"stateless\":%" PRIu64 ",\"latency_us\":{\"p50\":%" PRIu64 ",\"p99\":%" PRIu64
           ",\"p999\":%" PRIu64 ",\"max\":%" PRIu64 "}}\n",
           load->sent, load->accepted, load->rejected, load->released, load->modified, load->stateless,
           latency_at(&load->latency, 0.5), latency_at(&load->latency, 0.99), latency_at(&load->latency, 0.999),
           load->latency.max_us);
  else
    printf(",\"distinct\":%" PRIu64 ",\"again\":%" PRIu64 ",\"foreign\":%" PRIu64 ",\"backwards\":%" PRIu64 "}\n",
           load->seen.distinct, load->seen.again, load->seen.foreign, load->seen.backwards);
}

int main(int argc, char **argv) {
  static struct load load;
  options_parse(&load.options, argc, argv);
  encode(&load);
  seen_init(&load.seen, load.options.mode == MODE_RECEIVE ? load.options.count : 0);
  wire_open(&load.wire, &load.options);
  attach(&load);
  uint64_t timeout_us = (uint64_t)(load.options.timeout_s * 1e6);
  load.progress_us = load.now_us = now_us();
  while (!(pn_link_state(load.link) & PN_REMOTE_ACTIVE) && !is_over(&load) &&
         now_us() < load.progress_us + timeout_us) { /* the rates begin when the link is open */
    wire_write(&load.wire);
    wire_wait(&load.wire, 100000);
  }
  load.begin_us = load.progress_us = load.now_us = now_us();
  while (!is_over(&load) && load.now_us < load.progress_us + timeout_us) turn(&load);
  load.end_us = now_us();
  const char *condition = load.settled == load.options.count ? "" : refusal(&load);
  close_in_order(&load);
  report(&load, condition);
  return load.settled == load.options.count ? 0 : 1;
}
