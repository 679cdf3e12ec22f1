#include "latency.h"

static unsigned bucket(uint64_t us) {
  if (us < 128) return (unsigned)us;
  unsigned octave = 63u - (unsigned)__builtin_clzll(us) - 6u; /* 128..255 is octave 1 */
  unsigned at = 64 * octave + (unsigned)(us >> octave);       /* the top bit is always set: 64..127 */
  return at < LATENCY_BUCKETS ? at : LATENCY_BUCKETS - 1;
}

static uint64_t upper(unsigned at) {
  if (at < 128) return at;
  unsigned octave = at / 64 - 1;
  return ((uint64_t)(64 + at % 64 + 1) << octave) - 1;
}

void latency_add(struct latency *latency, uint64_t us) {
  latency->buckets[bucket(us)]++;
  latency->total++;
  if (us > latency->max_us) latency->max_us = us;
}

uint64_t latency_at(const struct latency *latency, double fraction) {
  uint64_t wanted = (uint64_t)(fraction * (double)latency->total + 0.999999);
  uint64_t so_far = 0;
  for (unsigned at = 0; at < LATENCY_BUCKETS; at++) {
    so_far += latency->buckets[at];
    if (so_far >= wanted && so_far) return upper(at) < latency->max_us ? upper(at) : latency->max_us;
  }
  return latency->max_us;
}
