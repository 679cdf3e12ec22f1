/* many: several AMQP 1.0 connections in one process, each with one thing under way; prints one line of JSON.
 *
 *   many send     each connection sends a message, waits for its outcome, and sends the next
 *   many transact each connection declares a transaction, posts its messages and the discharge behind them, waits until
 *                 the discharge is answered, and declares the next
 *
 * Latency is from when the message, or the declare, was handed to the socket to when its outcome, or the discharge's,
 * was read. The rate is of messages, from when every link was open.
 */
#include "many.h"

#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <proton/disposition.h>
#include <proton/link.h>
#include <proton/session.h>

#include "latency.h"
#include "wire.h"

#define CLIENTS_MAX 1000
#define SIZE_MAX_BYTES 65536

enum step { IDLE, DECLARING, POSTING, DISCHARGING };

struct client {
  struct wire wire;
  pn_session_t *session;
  pn_link_t *link, *control;
  enum step step;
  uint32_t posted;
  char id[64];
  size_t id_size;
  uint64_t since_us;
};

static struct {
  struct options options;
  bool transact;
  uint32_t clients, messages;
  double seconds;
  char message[SIZE_MAX_BYTES];
  size_t message_size;
  uint64_t now_us, number, done, units, failed;
  struct latency latency;
} all = {.options = {.size = 100, .timeout_s = 30}, .clients = 1, .messages = 1, .seconds = 5};

static void fail(const char *what) {
  fprintf(stderr, "many: %s\nmany send|transact --address HOST:PORT --node NAME [--capability NAME] [--clients N]"
                  " [--messages N (of a transaction)] [--seconds N] [--size BYTES]\n", what);
  exit(2);
}

static void parse(int argc, char **argv) {
  static const struct option known[] = {{"address", 1, 0, 'a'}, {"node", 1, 0, 'n'},     {"capability", 1, 0, 'k'},
                                        {"clients", 1, 0, 'c'}, {"messages", 1, 0, 'm'}, {"seconds", 1, 0, 's'},
                                        {"size", 1, 0, 'z'},    {0, 0, 0, 0}};
  if (argc < 2) fail("say send or transact");
  all.transact = !strcmp(argv[1], "transact");
  if (!all.transact && strcmp(argv[1], "send")) fail("neither send nor transact");
  int letter;
  optind = 2;
  while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
    char *colon;
    switch (letter) {
      case 'a':
        colon = strrchr(optarg, ':');
        if (!colon || strlen(colon + 1) >= sizeof all.options.port || colon - optarg >= (long)sizeof all.options.host)
          fail("not HOST:PORT");
        memcpy(all.options.host, optarg, (size_t)(colon - optarg));
        strcpy(all.options.port, colon + 1);
        break;
      case 'n': all.options.node = optarg; break;
      case 'k': all.options.capability = optarg; break;
      case 'c': all.clients = (uint32_t)strtoul(optarg, NULL, 10); break;
      case 'm': all.messages = (uint32_t)strtoul(optarg, NULL, 10); break;
      case 's': all.seconds = strtod(optarg, NULL); break;
      case 'z': all.options.size = (uint32_t)strtoul(optarg, NULL, 10); break;
      default: fail("unknown option");
    }
  }
  if (!all.options.port[0] || !all.options.node) fail("missing --address and --node");
  if (!all.clients || all.clients > CLIENTS_MAX || !all.messages || all.options.size < 8 ||
      all.options.size > SIZE_MAX_BYTES - 32)
    fail("a number out of range");
}

/* header (durable) and one data section */
static void encode(void) {
  static const char head[] = {0x00, 0x53, 0x70, (char)0xc0, 0x02, 0x01, 0x41, 0x00, 0x53, 0x75, (char)0xb0};
  uint32_t big_endian = __builtin_bswap32(all.options.size);
  memcpy(all.message, head, sizeof head);
  memcpy(all.message + sizeof head, &big_endian, 4);
  all.message_size = sizeof head + 4 + all.options.size;
}

static pn_delivery_t *hand(pn_link_t *link, const char *bytes, size_t size) {
  uint64_t number = __builtin_bswap64(all.number++);
  pn_delivery_t *delivery = pn_delivery(link, pn_dtag((const char *)&number, 8));
  pn_link_send(link, bytes, size);
  return delivery;
}

static void open_client(struct client *client, uint32_t number) {
  char container[32];
  snprintf(container, sizeof container, "many-%u", number);
  struct options options = all.options;
  options.container = container;
  wire_open(&client->wire, &options);
  client->session = pn_session(client->wire.connection);
  pn_session_open(client->session);
  client->link = pn_sender(client->session, "many-out");
  pn_terminus_t *target = pn_link_target(client->link);
  pn_terminus_set_address(target, options.node);
  if (options.capability)
    pn_data_put_symbol(pn_terminus_capabilities(target), pn_bytes(strlen(options.capability), options.capability));
  pn_link_set_snd_settle_mode(client->link, PN_SND_UNSETTLED);
  pn_link_open(client->link);
  if (all.transact) {
    client->control = pn_sender(client->session, "many-control");
    pn_terminus_set_type(pn_link_target(client->control), PN_COORDINATOR);
    pn_link_set_snd_settle_mode(client->control, PN_SND_UNSETTLED);
    pn_link_open(client->control);
  }
}

static bool is_open(const struct client *client) {
  return pn_link_credit(client->link) > 0 && (!client->control || pn_link_credit(client->control) > 0);
}

static bool is_lost(const struct client *client) {
  return client->wire.read_closed || client->wire.write_closed ||
         (pn_connection_state(client->wire.connection) & PN_REMOTE_CLOSED) ||
         (pn_link_state(client->link) & PN_REMOTE_CLOSED) ||
         (client->control && (pn_link_state(client->control) & PN_REMOTE_CLOSED));
}

static void begin(struct client *client) {
  client->since_us = all.now_us;
  client->posted = 0;
  if (all.transact) {
    hand(client->control, declare_message, declare_size);
    pn_link_advance(client->control);
    client->step = DECLARING;
  } else {
    hand(client->link, all.message, all.message_size);
    pn_link_advance(client->link);
    client->step = DISCHARGING; /* the outcome ends it */
  }
}

/* As much as credit allows; the discharge behind the last. */
static void post(struct client *client) {
  while (client->posted < all.messages && pn_link_credit(client->link) > 0) {
    enlist(hand(client->link, all.message, all.message_size), client->id, client->id_size);
    pn_link_advance(client->link);
    client->posted++;
  }
  if (client->posted == all.messages && pn_link_credit(client->control) > 0) {
    char bytes[DISCHARGE_MAX];
    hand(client->control, bytes, write_discharge(bytes, client->id, client->id_size));
    pn_link_advance(client->control);
    client->step = DISCHARGING;
  }
}

static void ended(struct client *client, uint64_t state) {
  client->step = IDLE;
  if (state != PN_ACCEPTED) {
    all.failed++;
    return;
  }
  all.units++;
  all.done += all.transact ? all.messages : 1;
  latency_add(&all.latency, all.now_us - client->since_us);
}

static void look(struct client *client) {
  pn_delivery_t *next, *delivery = pn_work_head(client->wire.connection);
  for (; delivery; delivery = next) {
    next = pn_work_next(delivery);
    if (!pn_delivery_updated(delivery) || !pn_delivery_settled(delivery)) {
      pn_delivery_clear(delivery);
      continue;
    }
    bool decides = pn_delivery_link(delivery) == (all.transact ? client->control : client->link);
    if (decides && client->step == DECLARING) {
      client->id_size = read_declared(delivery, client->id);
      client->step = client->id_size ? POSTING : IDLE;
      if (!client->id_size) all.failed++;
    } else if (decides) {
      ended(client, pn_delivery_remote_state(delivery));
    }
    pn_delivery_settle(delivery);
  }
}

/* Waits until one of the sockets can be read, or written where something is left to write; then reads. */
static void wait_for_any(struct client *clients, struct pollfd *polled) {
  for (uint32_t at = 0; at < all.clients; at++) {
    short out = pn_transport_pending(clients[at].wire.transport) > 0 ? POLLOUT : 0;
    polled[at] = (struct pollfd){.fd = clients[at].wire.socket, .events = (short)(POLLIN | out)};
  }
  poll(polled, all.clients, 100);
  for (uint32_t at = 0; at < all.clients; at++)
    if (polled[at].revents) wire_wait(&clients[at].wire, 0);
}

static void report(double seconds, uint64_t lost) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double cpu_us = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
                  (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  printf("{\"mode\":\"%s\",\"clients\":%u,\"messages\":%u,\"seconds\":%.6f,\"rate\":%.1f,\"units\":%" PRIu64
         ",\"done\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"cpu_us\":%.3f,\"latency_us\":{\"p50\":%"
         PRIu64 ",\"p99\":%" PRIu64 ",\"max\":%" PRIu64 "}}\n",
         all.transact ? "transact" : "send", all.clients, all.messages, seconds, (double)all.done / seconds, all.units,
         all.done, all.failed, lost, all.done ? cpu_us / (double)all.done : 0, latency_at(&all.latency, 0.5),
         latency_at(&all.latency, 0.99), all.latency.max_us);
}

int main(int argc, char **argv) {
  parse(argc, argv);
  encode();
  struct client *clients = calloc(all.clients, sizeof *clients);
  struct pollfd *polled = calloc(all.clients, sizeof *polled);
  if (!clients || !polled) abort();
  for (uint32_t at = 0; at < all.clients; at++) open_client(&clients[at], at);
  uint64_t begin_us = 0, end_us = UINT64_MAX, give_up_us = now_us() + (uint64_t)(all.options.timeout_s * 1e6);
  uint64_t lost = 0;
  for (;;) {
    all.now_us = now_us();
    uint32_t open = 0, busy = 0;
    lost = 0;
    for (uint32_t at = 0; at < all.clients; at++) {
      struct client *client = &clients[at];
      if (is_lost(client)) {
        lost++;
        continue;
      }
      look(client);
      open += client->step != IDLE || is_open(client);
      if (begin_us && client->step == IDLE && all.now_us < end_us && is_open(client)) begin(client);
      if (client->step == POSTING) post(client);
      busy += client->step != IDLE;
      wire_write(&client->wire);
    }
    if (!begin_us && open == all.clients) {
      begin_us = all.now_us;
      end_us = begin_us + (uint64_t)(all.seconds * 1e6);
      give_up_us = end_us + (uint64_t)(all.options.timeout_s * 1e6);
      continue;
    }
    if (lost || all.now_us > give_up_us || (all.now_us >= end_us && !busy)) break;
    wait_for_any(clients, polled);
  }
  bool whole = !lost && !all.failed && begin_us && all.now_us <= give_up_us;
  report(begin_us ? (double)(all.now_us - begin_us) / 1e6 : 1, lost);
  for (uint32_t at = 0; at < all.clients; at++) {
    pn_connection_close(clients[at].wire.connection);
    wire_write(&clients[at].wire);
  }
  return whole ? 0 : 1;
}
