/* One socket and one proton connection on it, driven without an event collector: the caller looks at the endpoints. */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include <proton/connection.h>
#include <proton/transport.h>

#include "options.h"

struct wire {
  int socket;
  bool read_closed, write_closed;
  pn_connection_t *connection;
  pn_transport_t *transport;
};

uint64_t now_us(void);
/* Connects and starts the transport; exits with 1 when no one answers. */
void wire_open(struct wire *wire, const struct options *options);
/* Writes what the transport has until the socket is full. */
void wire_write(struct wire *wire);
/* Waits up to `timeout_us` until the socket can be read, or written when something is left to write; then reads once.
   Returns true when bytes came. */
bool wire_wait(struct wire *wire, int64_t timeout_us);
bool wire_done(const struct wire *wire);

#endif
