#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <proton/sasl.h>

uint64_t now_us(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (uint64_t)at.tv_sec * 1000000u + (uint64_t)at.tv_nsec / 1000u;
}

static int connected(const char *host, const char *port) {
  struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  int error = getaddrinfo(host, port, &wanted, &found);
  if (error) {
    fprintf(stderr, "load: %s:%s: %s\n", host, port, gai_strerror(error));
    exit(1);
  }
  int handle = socket(found->ai_family, found->ai_socktype, 0);
  if (handle < 0 || connect(handle, found->ai_addr, found->ai_addrlen)) {
    fprintf(stderr, "load: %s:%s: ", host, port);
    perror(NULL);
    exit(1);
  }
  freeaddrinfo(found);
  int on = 1;
  setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(handle, F_SETFL, O_NONBLOCK);
  return handle;
}

void wire_open(struct wire *wire, const struct options *options) {
  *wire = (struct wire){.socket = connected(options->host, options->port)};
  wire->connection = pn_connection();
  wire->transport = pn_transport();
  pn_transport_set_max_frame(wire->transport, 65536);
  if (!options->bare) pn_sasl_allowed_mechs(pn_sasl(wire->transport), "ANONYMOUS");
  char container[32];
  snprintf(container, sizeof container, "load-%d", (int)getpid());
  pn_connection_set_container(wire->connection, options->container ? options->container : container);
  pn_connection_set_hostname(wire->connection, options->host);
  pn_transport_bind(wire->transport, wire->connection);
  pn_connection_open(wire->connection);
}

void wire_write(struct wire *wire) {
  while (!wire->write_closed) {
    ssize_t pending = pn_transport_pending(wire->transport);
    if (pending < 0) {
      shutdown(wire->socket, SHUT_WR);
      wire->write_closed = true;
    }
    if (pending <= 0) return;
    ssize_t sent = send(wire->socket, pn_transport_head(wire->transport), (size_t)pending, MSG_NOSIGNAL);
    if (sent > 0) {
      pn_transport_pop(wire->transport, (size_t)sent);
      continue;
    }
    if (errno == EAGAIN || errno == EINTR) return;
    wire->write_closed = true;
    pn_transport_close_head(wire->transport);
  }
}

static bool read_once(struct wire *wire) {
  ssize_t room = pn_transport_capacity(wire->transport);
  if (room <= 0) {
    wire->read_closed = room < 0;
    return false;
  }
  ssize_t got = recv(wire->socket, pn_transport_tail(wire->transport), (size_t)room, 0);
  if (got > 0) {
    pn_transport_process(wire->transport, (size_t)got);
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  wire->read_closed = true;
  pn_transport_close_tail(wire->transport);
  return false;
}

bool wire_wait(struct wire *wire, int64_t timeout_us) {
  struct pollfd ready = {.fd = wire->socket};
  if (!wire->read_closed) ready.events |= POLLIN;
  if (!wire->write_closed && pn_transport_pending(wire->transport) > 0) ready.events |= POLLOUT;
  struct timespec timeout = {.tv_sec = timeout_us / 1000000, .tv_nsec = timeout_us % 1000000 * 1000};
  if (ppoll(&ready, 1, &timeout, NULL) <= 0) return false;
  if (wire->read_closed || !(ready.revents & (POLLIN | POLLHUP | POLLERR))) return false;
  return read_once(wire);
}

bool wire_done(const struct wire *wire) { return wire->read_closed && wire->write_closed; }
