"""What every Kafka client of the gateway is configured with: one function a role. Times are milliseconds.

Source: kafka.md section 12. `client` is what the operator wrote under `realm.client`; it overrides, but for what a role
cannot do without, and each role takes only what concerns it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

Setting = str | int | float | bool
Client = Mapping[str, Setting]
Config = dict[str, object]
OnError = Callable[[Any], None]  # takes the client's own error

RECORD_BYTES_MAX = 64 << 20
"""librdkafka's message.max.bytes: what a topic takes is the topic's own setting. A reader's answer of 100 MB
(receive.message.max.bytes) holds a record of this size and what is fetched beside it."""
RECORD_BYTES_EVERYWHERE = 1_000_000
"""A broker's default (message.max.bytes) is 48,588 more."""
IN_FLIGHT_MAX = 1_000_000
QUEUE_KBYTES = 1 << 20
LAUNCH_MESSAGES = 256
"""librdkafka sends as many at once, without lingering; the publisher launches no more of a partition at a time."""
DELIVERY_TIMEOUT_MS = 60_000
EVIDENCE_TIMEOUT_MS = 300_000
"""At least so long evidence is tried: what has no answer by then is not written again."""
TRANSACTION_TIMEOUT_MS = 10_000

PRODUCER_ONLY = (
    "acks",
    "batch.",
    "compression.",
    "delivery.",
    "enable.idempotence",
    "linger.",
    "max.in.flight",
    "message.max.bytes",
    "message.send",
    "queue.buffering.",
    "request.required.acks",
    "sticky.",
    "transactional.",
    "transaction.",
)
CONSUMER_ONLY = (
    "group.id",
    "fetch.",
    "queued.",
    "max.partition.fetch",
    "auto.offset",
    "isolation.",
    "check.crcs",
    "max.poll",
)
KAFKA_PYTHON = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.cipher.suites": "ssl_ciphers",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "client.id": "client_id",
}
_VALUES: dict[str, Callable[[str], object]] = {
    "security.protocol": str.upper,
    "ssl.endpoint.identification.algorithm": lambda algorithm: algorithm != "none",
}
_GETTING_IN = ("sasl.", "ssl.", "enable.ssl.", "enable.sasl.")


def one_sided(client: Client) -> list[str]:
    """Settings about getting in that kafka-python cannot be given: half of the gateway would not get in, or
    by other rules."""
    return sorted(name for name in client if name.startswith(_GETTING_IN) and name not in KAFKA_PYTHON)


def publish(bootstrap: str, client: Client, on_error: OnError) -> Config:
    """The producer of events."""
    return {
        **_connection(bootstrap),
        "linger.ms": 1,
        "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
        "queue.buffering.max.messages": IN_FLIGHT_MAX,
        "queue.buffering.max.kbytes": QUEUE_KBYTES,
        "message.max.bytes": RECORD_BYTES_MAX,
        **_without(client, CONSUMER_ONLY),
        "enable.idempotence": True,
        "acks": "all",
        "batch.num.messages": LAUNCH_MESSAGES,
        "error_cb": on_error,
        "logger": logging.getLogger("librdkafka"),
    }


def evidence(bootstrap: str, client: Client, on_error: OnError) -> Config:
    """The producer of evidence. A record that passes its deadline makes librdkafka begin a new epoch, and what was
    under way then may be stored twice: messages must not be because of evidence, nor evidence because of messages."""
    config = publish(bootstrap, client, on_error)
    return {**config, "delivery.timeout.ms": max(EVIDENCE_TIMEOUT_MS, int(str(config["delivery.timeout.ms"])))}


def single(bootstrap: str, client: Client, on_error: OnError) -> Config:
    """The producer of single records, one at a time. Not idempotent: asking for a producer id costs a fresh process
    half a second, and what a retry may store twice is the same record of a compacted topic."""
    return {
        **publish(bootstrap, client, on_error),
        "enable.idempotence": False,
        "max.in.flight.requests.per.connection": 1,
        "linger.ms": 0,
    }


def transactional(bootstrap: str, client: Client, shard: str, on_error: OnError) -> Config:
    """The producer of one shard. `retry.backoff.ms` is 1: after a commit the first request is refused once."""
    return {
        **publish(bootstrap, client, on_error),
        "transactional.id": shard,
        "batch.num.messages": 10_000,
        "linger.ms": 0,
        "retry.backoff.ms": 1,
        "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        "delivery.timeout.ms": TRANSACTION_TIMEOUT_MS,
        "socket.timeout.ms": 10_000,
    }


def tail(bootstrap: str, client: Client, on_error: OnError) -> Config:
    """A reader that waits at the end. No end-of-partition messages: what has no key is an error or a foreigner's."""
    return {
        **_consumer(bootstrap, on_error),
        "fetch.queue.backoff.ms": 5,
        "queued.min.messages": 10_000,
        "queued.max.messages.kbytes": 16_384,  # fetched ahead, by each reader
        **_without(client, PRODUCER_ONLY),
        "enable.partition.eof": False,
    }


def ranges(bootstrap: str, client: Client, on_error: OnError) -> Config:
    """A reader of ranges: told when the end is reached, and it does not fetch far ahead of one record."""
    return {
        **_consumer(bootstrap, on_error),
        "fetch.queue.backoff.ms": 1,
        "queued.min.messages": 1000,
        "fetch.wait.max.ms": 10,  # what is asked next waits behind a fetch at the end
        **_without(client, PRODUCER_ONLY),
        "enable.partition.eof": True,
    }


def altering(bootstrap: str, client: Client, on_error: OnError) -> Config:
    """librdkafka's admin client: of group offsets only."""
    return {
        **_connection(bootstrap),
        **_without(client, (*PRODUCER_ONLY, *CONSUMER_ONLY)),
        "error_cb": on_error,
        "log_level": 2,  # a lost connection is told by error_cb
    }


def admin(bootstrap: str, client: Client) -> Config:
    """kafka-python's names for the same things."""
    return {
        "bootstrap_servers": bootstrap.split(","),
        "request_timeout_ms": 10_000,
        "reconnect_backoff_max_ms": 500,
        **{
            KAFKA_PYTHON[name]: _VALUES[name](str(value)) if name in _VALUES else value
            for name, value in client.items()
            if name in KAFKA_PYTHON
        },
    }


def _connection(bootstrap: str) -> Config:
    return {
        "bootstrap.servers": bootstrap,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.propagation.max.ms": 500,
    }


def _consumer(bootstrap: str, on_error: OnError) -> Config:
    return {
        **_connection(bootstrap),
        "group.id": "realmgate-reader",  # never joined, never committed: readers are assigned; rights need it, though
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "error_cb": on_error,
        "log_level": 2,  # a lost connection is told by error_cb
    }


def _without(client: Client, prefixes: tuple[str, ...]) -> Config:
    return {name: value for name, value in client.items() if not name.startswith(prefixes)}
