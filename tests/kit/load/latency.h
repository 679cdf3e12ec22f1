/* A histogram of durations in microseconds: exact below 128 us, within 1.6 % above (64 steps an octave). */
#ifndef LATENCY_H
#define LATENCY_H

#include <stdint.h>

#define LATENCY_BUCKETS (64 * 40)

struct latency {
  uint64_t total;
  uint64_t max_us;
  uint64_t buckets[LATENCY_BUCKETS];
};

void latency_add(struct latency *latency, uint64_t us);
/* The smallest duration that `fraction` of all are not longer than; 0 when there are none. */
uint64_t latency_at(const struct latency *latency, double fraction);

#endif
