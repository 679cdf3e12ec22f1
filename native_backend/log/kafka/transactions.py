"""One shard's transactions, one after another, on a thread of its own, because the calls block, now and then far beyond
the time they were given (kafka.md, surprise 5). Two transactional producers take turns: Kafka answers a commit before
it has written the last marker, and who begins another under the same id meanwhile is made to wait.

A transaction that was not asked to commit is certainly not stored. One that was, and got no answer, is in doubt: no
other may follow then, until a new claim (new producers under the same ids) has ended it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from native_backend.log.kafka.batches import BatchSizes, Filling
from native_backend.log.kafka.causes import delivery_failure_of, failure_in, is_retriable, unsent
from native_backend.log.kafka.flight import BESIDE
from native_backend.log.kafka.producer import discard
from native_backend.log.kafka.publisher import UNKNOWN
from native_backend.log.port import Failure, LogError, Transacted, Write
from native_backend.log.record_headers import HeadedKey, record_key

TRANSACTION_S = 5.0
ABORT_S = 2.0
REFUSED_S = 0.02
PAUSE_MIN_S, PAUSE_MAX_S, PAUSE_STEP_S = 0.001, 0.008, 0.001
PAUSE_PATIENCE = 200  # transactions that went well, for one that came too early
GRACE_S = 3.0  # a call may overrun its own time; after this it is not waited for


@dataclass(eq=False, slots=True)
class CommitPause:
    """How long after its commit a producer's next transaction begins, in seconds.

    A transaction that begins before the last marker is written is refused, and librdkafka then waits 20 ms whatever its
    settings; one that begins later has waited for nothing. How long the markers take depends on the broker and on what
    else it does, so it is learnt: an early one costs as much as many that went well give back. The other producer's
    turn is nearly always as long.
    """

    seconds: float = 0.002
    free_at: float = 0.0

    @property
    def rest(self) -> float:
        """What is left of it."""
        return max(self.free_at - time.monotonic(), 0.0)

    def learn(self, took: float) -> None:
        """`took`: from the beginning of a transaction until its records were stored."""
        if took >= REFUSED_S:
            self.seconds = min(self.seconds + PAUSE_STEP_S, PAUSE_MAX_S)
        else:
            self.seconds = max(self.seconds - PAUSE_STEP_S / PAUSE_PATIENCE, PAUSE_MIN_S)

    def committed(self) -> None:
        self.free_at = time.monotonic() + self.seconds


@dataclass(eq=False, slots=True)
class Lane:
    """One of the producers that take turns."""

    producer: Producer = field(repr=False)  # until its thread ends
    pause: CommitPause = field(default_factory=CommitPause)


@dataclass(eq=False, slots=True)
class Job:
    """A transaction on its way. `is_answered` guards the one answer that it gets."""

    writes: Sequence[Write]
    owner: object
    overdue_at: float
    offsets: list[int] = field(default_factory=list)
    errors: list[KafkaError] = field(default_factory=list)
    is_answered: bool = False

    def delivered(self, index: int, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.offsets[index] = message.offset()  # type: ignore[assignment]  # never None without an error
        else:
            self.errors.append(error)


class Transactions:
    """One shard's. Made by `claim`, replaced by the next claim of the same shard."""

    def __init__(self, shard: str, producers: Sequence[Producer], batches: BatchSizes | None = None) -> None:
        self._shard = shard
        self._batches = batches or BatchSizes()
        self._lanes = deque(Lane(producer) for producer in producers)  # the first one's turn is next
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._under_way: deque[Job] = deque()
        self._answers: deque[Transacted] = deque()
        self._lock = threading.Lock()
        self._broken: Failure | None = None
        self._thread = threading.Thread(target=self._run, name=f"kafka-transactions-{shard}", daemon=True)
        self._thread.start()

    def submit(self, writes: Sequence[Write], owner: object) -> None:
        budget = TRANSACTION_S + ABORT_S + GRACE_S
        job = Job(writes, owner, time.monotonic() + budget * (1 + len(self._under_way)), [-1] * len(writes))
        self._under_way.append(job)
        self._jobs.put(job)

    def poll(self) -> list[Transacted]:
        """Answers since the last call; a transaction that is overdue is answered here, as in doubt."""
        now = time.monotonic()
        while self._under_way and (self._under_way[0].is_answered or self._under_way[0].overdue_at < now):
            job = self._under_way.popleft()
            if not job.is_answered:
                doubt = Failure("indeterminate", "the transaction's thread does not answer")
                self._break(doubt)
                self._answer(job, doubt)
        answers = self._answers
        return [answers.popleft() for _ in range(len(answers))]

    @property
    def is_done(self) -> bool:
        """Everything that was submitted has been answered, and the answers were taken."""
        return not self._under_way and not self._answers

    def retire(self, deadline_s: float) -> None:
        """No more jobs; waits for the one under way."""
        self._jobs.put(None)
        self._thread.join(deadline_s)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._answer(job, self._broken or self._carry_out(job))
        for lane in self._lanes:
            if self._broken is None:  # a broken producer would only warn that it cannot abort
                discard(lane.producer)
            del lane.producer  # its last reference: it ends here, and not on the thread that polls

    def _answer(self, job: Job, failure: Failure | None) -> None:
        with self._lock:
            if job.is_answered:
                return
            job.is_answered = True
            offsets = job.offsets if failure is None else [-1] * len(job.writes)
            self._answers.append(Transacted(job.owner, offsets, failure, self._lanes[0].pause.rest))

    def _carry_out(self, job: Job) -> Failure | None:
        lane = self._lanes[0]
        self._lanes.rotate(-1)
        time.sleep(lane.pause.rest)
        began = time.monotonic()
        deadline = began + TRANSACTION_S
        try:
            lane.producer.begin_transaction()
            failure = self._send(lane.producer, job, deadline)
        except (KafkaException, SystemError) as error:
            failure = _failure_in(error)
        if failure is None:
            lane.pause.learn(time.monotonic() - began)
            failure = self._commit(lane.producer, deadline)
            lane.pause.committed()
            return failure
        self._abort(lane.producer)
        if self._broken is not None:
            return self._broken
        # No commit was requested: what could not be sent in time is certainly not stored.
        return unsent(failure)

    def _send(self, producer: Producer, job: Job, deadline: float) -> Failure | None:
        filling = Filling(self._batches)
        for index, write in enumerate(job.writes):
            if filling.is_full(write):
                producer.flush(max(deadline - time.monotonic(), 0.0))
            if (failure := self._produce(producer, job, index, write, deadline)) is not None:
                return failure
        left = producer.flush(max(deadline - time.monotonic(), 0.0))
        if job.errors:
            return delivery_failure_of(next((error for error in job.errors if error.code() != BESIDE), job.errors[0]))
        return Failure("unavailable", "the records were not stored in time") if left else None

    def _produce(self, producer: Producer, job: Job, index: int, write: Write, deadline: float) -> Failure | None:
        looked_up = False
        while True:
            try:
                producer.produce(
                    write.topic,
                    write.value,
                    record_key(write.key),
                    write.partition,
                    on_delivery=lambda error, message: job.delivered(index, error, message),
                    headers=list(write.key.headers) if type(write.key) is HeadedKey else None,
                )
                return None
            except BufferError:
                if time.monotonic() >= deadline:
                    return Failure("unavailable", "the producer's queue is full")
                producer.poll(0.01)
            except KafkaException as error:
                if looked_up or error.args[0].code() not in UNKNOWN:
                    return _failure_in(error)
                looked_up = True
                producer.list_topics(write.topic, max(deadline - time.monotonic(), 0.1))

    def _commit(self, producer: Producer, deadline: float) -> Failure | None:
        try:
            producer.commit_transaction(max(deadline - time.monotonic(), 0.1))
        except (KafkaException, SystemError) as error:
            failure = _failure_in(error)
            known = error.args[0] if isinstance(error, KafkaException) else None
            if known is not None and known.txn_requires_abort():
                self._abort(producer)
                if self._broken is not None:
                    return self._broken
                return unsent(failure)
            self._break(failure)
            if known is not None and known.fatal() and failure.cause != "indeterminate":
                return failure
            return Failure("indeterminate", failure.detail, failure.code)
        return None

    def _abort(self, producer: Producer) -> None:
        """End the transaction; when even that fails, the next claim does it."""
        try:
            producer.purge()
            producer.flush(ABORT_S)
            producer.abort_transaction(ABORT_S)
        except (KafkaException, SystemError) as error:
            self._break(_failure_in(error))

    def _break(self, failure: Failure) -> None:
        """No transaction may follow: fenced for good, or in doubt until the shard is claimed again. Not
        `unavailable`, even for what is certainly not stored: who only tries again would do so for ever."""
        doubt = Failure("indeterminate", f"shard {self._shard} has a transaction in doubt: claim it again")
        self._broken = failure if failure.cause == "fenced" else doubt


def _failure_in(error: BaseException) -> Failure:
    """The same, of an exception that is handled here. confluent-kafka never lets go of one that a fatal error raised
    inside a callback, and its frames would keep the producer."""
    link: BaseException | None = error
    failure = failure_in(error)
    while link is not None:
        link.__traceback__, link = None, link.__cause__ or link.__context__
    return failure


def claim(shard: str, producers: list[Producer], batches: BatchSizes, deadline_s: float) -> Transactions:
    """Fence the previous owner of the shard, and end the transactions that it left open. Raises `LogError`: then the
    producers have ended. A realm claims again and again while it cannot, and each of them has threads of its own."""
    deadline = time.monotonic() + deadline_s
    with ThreadPoolExecutor(len(producers)) as pool:  # each takes its time to find its coordinator
        failures = [*pool.map(lambda producer: _fence(producer, deadline), producers)]
    if failure := next((failure for failure in failures if failure is not None), None):
        producers.clear()  # their last references: they hold nothing, and one that is closed in words warns
        raise LogError(failure)
    return Transactions(shard, producers, batches)


def _fence(producer: Producer, deadline: float) -> Failure | None:
    """Why it could not be done. No exception: one of a pool's threads would keep the producers in a cycle."""
    while True:
        try:
            producer.init_transactions(max(deadline - time.monotonic(), 0.1))
            return None
        except KafkaException as error:
            known = error.args[0]
            if known.fatal() or not is_retriable(known.code()) or time.monotonic() >= deadline:
                return unsent(failure_in(error))
