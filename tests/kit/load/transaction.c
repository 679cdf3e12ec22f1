#include "many.h"

#include <string.h>

#include <proton/codec.h>
#include <proton/disposition.h>

#define DECLARED 0x33
#define TRANSACTIONAL 0x34
#define ID_MAX 64 /* Artemis has 36 */

/* amqp-value of declare (0x31), an empty list */
const char declare_message[] = {0x00, 0x53, 0x77, 0x00, 0x53, 0x31, 0x45};
const size_t declare_size = sizeof declare_message;

size_t write_discharge(char *to, const char *id, size_t id_size) {
  /* amqp-value of discharge (0x32): txn-id, fail false */
  const char size = (char)id_size, list_size = (char)(id_size + 4);
  const char head[] = {0x00, 0x53, 0x77, 0x00, 0x53, 0x32, (char)0xc0, list_size, 0x02, (char)0xa0, size};
  memcpy(to, head, sizeof head);
  memcpy(to + sizeof head, id, id_size);
  to[sizeof head + id_size] = 0x42;
  return sizeof head + id_size + 1;
}

size_t read_declared(pn_delivery_t *delivery, char *id) {
  if (pn_delivery_remote_state(delivery) != DECLARED) return 0;
  pn_data_t *data = pn_disposition_data(pn_delivery_remote(delivery));
  pn_data_rewind(data);
  if (!pn_data_next(data) || pn_data_type(data) != PN_LIST || !pn_data_enter(data) || !pn_data_next(data)) return 0;
  pn_bytes_t found = pn_data_get_binary(data);
  if (found.size > ID_MAX) return 0;
  memcpy(id, found.start, found.size);
  return found.size;
}

void enlist(pn_delivery_t *delivery, const char *id, size_t id_size) {
  pn_data_t *data = pn_disposition_data(pn_delivery_local(delivery));
  pn_data_clear(data);
  pn_data_put_list(data);
  pn_data_enter(data);
  pn_data_put_binary(data, pn_bytes(id_size, id));
  pn_data_exit(data);
  pn_delivery_update(delivery, TRANSACTIONAL);
}
