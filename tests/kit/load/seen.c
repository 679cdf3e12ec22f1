#include "seen.h"

#include <stdio.h>
#include <stdlib.h>

void seen_init(struct seen *seen, uint64_t limit) {
  *seen = (struct seen){.limit = limit, .bits = calloc(limit / 8 + 1, 1)};
  if (!seen->bits) {
    perror("load: seen");
    exit(1);
  }
}

void seen_add(struct seen *seen, uint64_t number) {
  if (number >= seen->limit) {
    seen->foreign++;
    return;
  }
  uint8_t bit = (uint8_t)(1u << (number & 7));
  if (seen->bits[number >> 3] & bit) {
    seen->again++;
    return;
  }
  seen->bits[number >> 3] |= bit;
  seen->distinct++;
  if (number < seen->next) seen->backwards++;
  else seen->next = number + 1;
}
