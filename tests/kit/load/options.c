#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "load send|receive --address HOST:PORT --node NAME [options]\n"
    "  --count N          messages (100000)\n"
    "  --size BYTES       of the data section, at least 8 (100)\n"
    "  --in-flight N      send: unsettled at most; receive: credit (1000)\n"
    "  --settle           receive: accept and settle each message (the default; the opposite of --presettled)\n"
    "  --presettled       send settled; receive: ask the peer to send settled\n"
    "  --rate N           send: messages a second; latency is then measured from when each was due\n"
    "  --timeout SECONDS  without progress (30)\n"
    "  --capability NAME  of the terminus (none)\n"
    "  --durable NAME     receive: durable subscription of that name\n"
    "  --first            receive: from the first event that a channel keeps\n"
    "  --container ID     container id (load-PID)\n"
    "  --bare             AMQP header without SASL\n"
    "Prints one line of JSON. Exit 0: all done; 1: not all done in time, or refused; 2: wrong call.\n";

static void fail(const char *what, const char *value) {
  fprintf(stderr, "load: %s: %s\n\n%s", what, value, usage);
  exit(2);
}

static double number(const char *text, double least, double most) {
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  if (errno || *end || end == text || value < least || value > most) fail("not a number in range", text);
  return value;
}

static void address(struct options *options, const char *text) {
  const char *colon = strrchr(text, ':');
  if (!colon || colon == text || !colon[1]) fail("not HOST:PORT", text);
  if ((size_t)(colon - text) >= sizeof options->host || strlen(colon + 1) >= sizeof options->port)
    fail("too long", text);
  memcpy(options->host, text, (size_t)(colon - text));
  options->host[colon - text] = 0;
  strcpy(options->port, colon + 1);
}

void options_parse(struct options *options, int argc, char **argv) {
  static const struct option known[] = {
      {"address", 1, 0, 'a'}, {"node", 1, 0, 'n'},     {"count", 1, 0, 'c'},     {"size", 1, 0, 's'},
      {"in-flight", 1, 0, 'f'}, {"settle", 0, 0, 'S'}, {"presettled", 0, 0, 'P'}, {"rate", 1, 0, 'r'},
      {"timeout", 1, 0, 't'}, {"capability", 1, 0, 'k'}, {"durable", 1, 0, 'd'}, {"container", 1, 0, 'i'},
      {"first", 0, 0, 'F'},   {"bare", 0, 0, 'b'},    {0, 0, 0, 0}};
  *options = (struct options){.count = 100000, .size = 100, .in_flight = 1000, .timeout_s = 30};
  if (argc < 2) fail("say", "send or receive");
  if (!strcmp(argv[1], "send")) options->mode = MODE_SEND;
  else if (!strcmp(argv[1], "receive")) options->mode = MODE_RECEIVE;
  else fail("neither send nor receive", argv[1]);
  int letter;
  optind = 2;
  while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
    switch (letter) {
      case 'a': address(options, optarg); break;
      case 'n': options->node = optarg; break;
      case 'c': options->count = (uint64_t)number(optarg, 1, 1e10); break;
      case 's': options->size = (uint32_t)number(optarg, 8, 1 << 30); break;
      case 'f': options->in_flight = (uint32_t)number(optarg, 1, 1e6); break;
      case 'S': options->presettled = false; break;
      case 'P': options->presettled = true; break;
      case 'r': options->rate = number(optarg, 0, 1e8); break;
      case 't': options->timeout_s = number(optarg, 0.01, 1e5); break;
      case 'k': options->capability = optarg; break;
      case 'd': options->durable = optarg; break;
      case 'i': options->container = optarg; break;
      case 'F': options->first = true; break;
      case 'b': options->bare = true; break;
      default: fail("unknown option", argv[optind - 1]);
    }
  }
  if (optind < argc) fail("what is this", argv[optind]);
  if (!options->port[0] || !options->node) fail("missing", "--address and --node");
}
