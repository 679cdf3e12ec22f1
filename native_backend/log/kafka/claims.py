"""The shards that this process has claimed: the transactions of each, and those that go on until they have ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaException, Producer

from native_backend.log.kafka.batches import BatchSizes
from native_backend.log.kafka.causes import CLOSED, failure_in, unsent
from native_backend.log.kafka.transactions import Transactions, claim
from native_backend.log.port import Completion, Failure, LogError, Transacted, Write


class Claims:
    """`make` gives a producer with this transactional id. `claim` may be called from any thread, the rest from one."""

    def __init__(self, make: Callable[[str], Producer], batches: BatchSizes) -> None:
        self._make, self._batches = make, batches
        self._transactions: dict[str, Transactions] = {}
        self._retired: list[Transactions] = []
        self._fenced: list[Completion] = []
        self._lock, self._is_closed = threading.Lock(), False

    def claim(self, shard: str, deadline_s: float) -> None:
        if self._is_closed:  # it would fence who owns the shard now
            raise LogError(CLOSED)
        deadline = time.monotonic() + deadline_s
        held = self._transactions.pop(shard, None)
        if held is not None:
            self._retired.append(held)
            held.retire(deadline_s / 2)
        if self._is_closed:
            raise LogError(CLOSED)
        claimed = claim(shard, self._producers(shard), self._batches, max(deadline - time.monotonic(), 0.1))
        with self._lock:
            if not self._is_closed:
                self._transactions[shard] = claimed
                return
        claimed.retire(0.0)
        raise LogError(CLOSED)

    def _producers(self, shard: str) -> list[Producer]:
        """Raises LogError, which holds none of them: a file of the TLS settings cannot be read, or there is no room for
        a thread."""
        try:
            return [self._make(name) for name in (shard, f"{shard}.second")]
        except KafkaException as error:
            failure = unsent(failure_in(error))
        raise LogError(failure)

    def transact(self, shard: str, writes: Sequence[Write], owner: object) -> None:
        transactions = self._transactions.get(shard)
        if transactions is None:
            failure = Failure("fenced", f"shard {shard} is not claimed")
            self._fenced.append(Transacted(owner, [-1] * len(writes), failure))
            return
        transactions.submit(writes, owner)

    def poll(self) -> list[Completion]:
        completions: list[Completion] = []
        for transactions in [*self._retired, *self._transactions.values()]:
            completions += transactions.poll()
        if self._retired:
            self._retired = [txns for txns in self._retired if not txns.is_done]
        if self._fenced:
            completions += self._fenced
            self._fenced = []
        return completions

    def close(self, deadline: float) -> None:
        with self._lock:
            self._is_closed = True
            claimed = [*self._transactions.values()]
        for transactions in claimed:
            transactions.retire(max(deadline - time.monotonic(), 0.1))
