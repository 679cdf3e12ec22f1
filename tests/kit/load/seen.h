/* Which message numbers have come: proves that none is missing and counts those that came twice. */
#ifndef SEEN_H
#define SEEN_H

#include <stdint.h>

struct seen {
  uint64_t limit; /* numbers 0 .. limit-1 are ours */
  uint64_t distinct, again, foreign, backwards;
  uint64_t next; /* one past the highest number so far */
  uint8_t *bits;
};

void seen_init(struct seen *seen, uint64_t limit);
void seen_add(struct seen *seen, uint64_t number);

#endif
