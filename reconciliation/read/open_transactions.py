"""Who keeps a partition's end from being read: the transaction that is open there, as far as Kafka tells."""

from __future__ import annotations

from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaError

from reconciliation.model.window import readable

WHAT_TO_DO = "it ends when its producer commits or aborts, or with its timeout; kafka-transactions.sh abort ends it now"


def why_open(admin: Any, place: TopicPartition, stable_end: int) -> str:
    """In words: whose transaction begins at that offset, and since when it is open. `admin`: a KafkaAdminClient."""
    try:
        producers = admin.describe_producers([place])[place].active_producers
    except KafkaError as error:
        why = f"Kafka does not tell whose: {type(error).__name__}"
        return f"not readable yet, a transaction is open ({why}); {WHAT_TO_DO}"
    open_ = [producer for producer in producers if producer.current_transaction_start_offset >= 0]
    first = min(open_, key=lambda producer: int(producer.current_transaction_start_offset), default=None)
    if first is None:
        return f"not readable yet, a transaction is open and Kafka names no producer; {WHAT_TO_DO}"
    name, since_ms = _of(admin, first.producer_id)
    since = readable((since_ms if since_ms > 0 else first.last_timestamp) * 1000)
    words = f"producer {first.producer_id}, epoch {first.producer_epoch}{name}"
    return f"not readable yet, a transaction is open since {since} ({words}); {WHAT_TO_DO}"


def _of(admin: Any, producer: int) -> tuple[str, int]:
    """The transactional id of a producer in words, and when its transaction began (milliseconds since 1970, 0 unknown).
    Who may not describe it learns neither."""
    try:
        listed = admin.list_transactions(producer_id_filters=[producer])
        names = [transaction.transactional_id for transactions in listed.values() for transaction in transactions]
        if not names:
            return "", 0
        began_ms = int(admin.describe_transactions(names[:1])[names[0]].transaction_start_time_ms)
        return f", transactional id {names[0]}", began_ms
    except KafkaError:
        return "", 0
