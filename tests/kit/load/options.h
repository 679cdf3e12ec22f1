/* What the load client was asked to do. Counts in messages, sizes in bytes, times in seconds, rate in messages a
   second. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum mode { MODE_SEND, MODE_RECEIVE };

struct options {
  enum mode mode;
  char host[256];
  char port[16];
  const char *node;
  const char *capability; /* of the terminus: "queue", "topic"; NULL for none */
  const char *durable;    /* receive: link name of a durable subscription; NULL for none */
  const char *container;  /* NULL for load-PID */
  uint64_t count;
  uint32_t size;      /* of the data section's content; at least 8: it begins with the message's number */
  uint32_t in_flight; /* send: unsettled at most; receive: credit */
  double rate;        /* send: 0 for as fast as accepted */
  double timeout_s;   /* give up after that long without progress */
  bool presettled;    /* send: settled; receive: asks for settled deliveries */
  bool first;         /* receive: from the first event that a channel keeps */
  bool bare;          /* no SASL */
};

/* Fills `options`, or prints what is wrong and exits with 2. */
void options_parse(struct options *options, int argc, char **argv);

#endif
