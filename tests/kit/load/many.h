/* What the client of many connections was asked to do. */
#ifndef MANY_H
#define MANY_H

#include <proton/delivery.h>

/* A declare and a discharge, as whole messages; `write_discharge` gives the size. `id_size` is at most 64. */
#define DISCHARGE_MAX 96
extern const char declare_message[];
extern const size_t declare_size;
size_t write_discharge(char *to, const char *id, size_t id_size);

/* The txn-id of a declared state; 0: it is none. `id` has 64 octets. */
size_t read_declared(pn_delivery_t *delivery, char *id);
/* Puts a delivery into a transaction. */
void enlist(pn_delivery_t *delivery, const char *id, size_t id_size);

#endif
