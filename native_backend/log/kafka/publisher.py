"""Appends: columns in, completions sliced out of the column of offsets that the producer fills.

What is appended to a partition while something of it is in the producer waits, and is launched together when that has
landed. An idempotent librdkafka sends one request of a partition at a time anyhow (it holds the messages in flight
against its limit of five requests), and with more to send it spins until the answer comes, which takes a core.

The producer's queue never overflows: what exceeds `in_flight_max` or `in_flight_bytes_max` waits here, in order,
partition by partition. A topic that the producer does not know is looked up once by a thread (the producer would go on
refusing a topic that was deleted and made again), and what is appended to it meanwhile waits behind.

A broker refuses a whole request because of one record that it does not take. What it refused together is sent again in
halves, until each record has its own answer, before anything behind it is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf

from confluent_kafka import KafkaError, KafkaException

from native_backend.log.columns import largest_of
from native_backend.log.kafka.batches import BatchSizes
from native_backend.log.kafka.causes import failure_in, failure_of, unsent
from native_backend.log.kafka.flight import Flight
from native_backend.log.kafka.headed_producer import HeaderProducer
from native_backend.log.kafka.producer import Producer
from native_backend.log.kafka.settings import LAUNCH_MESSAGES
from native_backend.log.port import Append, Appended, Failure
from native_backend.log.record_headers import HeadedKey, key_bytes

LOOK_UP_S = 5.0
IN_FLIGHT_BYTES_MAX = 512 << 20  # half of what queue.buffering.max.kbytes is by default
RECORD_OVERHEAD_BYTES = 96  # librdkafka counts headers of batch and record towards message.max.bytes
UNKNOWN = {KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}


class Lane:
    """One partition: flights in the producer, flights that wait, and a look-up that holds them back. `most`: how many
    records may fly at once."""

    __slots__ = ("flying", "look_up", "most", "waiting")

    def __init__(self, most: int) -> None:
        self.most = most
        self.flying: deque[Flight] = deque()
        self.waiting: deque[Flight] = deque()
        self.look_up: Future[object] | None = None


class Publisher:
    """Used by the gateway's one thread."""

    def __init__(
        self,
        make: Callable[[], Producer],
        make_headed: Callable[[], HeaderProducer],
        in_flight_max: int,
        record_bytes_max: int,
        launch_max: int = LAUNCH_MESSAGES,
        in_flight_bytes_max: int = IN_FLIGHT_BYTES_MAX,
        batches: BatchSizes | None = None,
    ) -> None:
        self._make = make
        self._producer = make()
        self._make_headed = make_headed
        self._headed: HeaderProducer | None = None  # made when it is needed
        self._in_flight_max = in_flight_max
        self._launch_max = min(launch_max, in_flight_max)
        self._in_flight_bytes_max = in_flight_bytes_max
        self._record_bytes_max = record_bytes_max - RECORD_OVERHEAD_BYTES
        self._batches = batches or BatchSizes()
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._count = 0
        self._bytes = 0
        self._look_ups = ThreadPoolExecutor(1, "kafka-look-up")

    @property
    def is_idle(self) -> bool:
        return not self._lanes

    def append(self, batch: Append) -> None:
        lane = self._lanes.setdefault((batch.topic, batch.partition), Lane(self._launch_max))
        lane.waiting.extend(self._flights(batch))
        if not lane.flying:
            self._fill(lane)

    def poll(self) -> list[Appended]:
        """What has landed, in order for each partition."""
        landed: list[Appended] = []
        try:
            self._producer.poll()
            if self._headed is not None:
                self._headed.poll()
        except KafkaException as error:  # a fatal one
            return self._start_anew(error)
        for place, lane in list(self._lanes.items()):
            self._land(lane, landed)
            if not lane.flying:
                if lane.waiting:
                    self._fill(lane)
                else:
                    del self._lanes[place]
        return landed

    def close(self) -> None:
        """Let go of what is still on its way, and of the connections."""
        self._look_ups.shutdown(wait=False, cancel_futures=True)
        self._producer.close()
        if self._headed is not None:
            self._headed.close()

    def _flights(self, batch: Append) -> Iterator[Flight]:
        keys, values = batch.keys, batch.values
        limit, count = self._record_bytes_max, len(batch.keys)
        weigh = key_bytes if keys and type(keys[0]) is HeadedKey else len
        largest = (max(map(weigh, keys)) if weigh is key_bytes else largest_of(keys)) + largest_of(values)
        step = self._launch_max
        if largest <= limit and count <= step:
            yield Flight(batch, 0, count)
            return
        start = 0
        for index in range(count):
            if weigh(keys[index]) + len(values[index]) > limit:
                if start < index:
                    yield Flight(batch, start, index)
                yield Flight(batch, index, index + 1, {0: Failure("too-large", f"more than {limit} bytes")})
                start = index + 1
            elif index + 1 - start == step:
                yield Flight(batch, start, index + 1)
                start = index + 1
        if start < count:
            yield Flight(batch, start, count)

    def _fill(self, lane: Lane) -> None:
        """Give the producer what waits, as far as there is room: all that it had has landed."""
        room, room_bytes = lane.most, inf
        while lane.waiting and room:
            if lane.look_up is not None and not lane.look_up.done():
                return
            flight = lane.waiting[0]
            count = flight.count
            if not lane.flying:
                room_bytes = self._batches.most(flight.batch.topic)
            if room_bytes < inf and count and flight.record_bytes > room_bytes:
                if count > 1:
                    lane.waiting.appendleft(flight.cut(count // 2))
                    continue
                if lane.flying:
                    return
            if lane.flying and lane.flying[-1].headed != flight.headed:
                return  # two producers, one order
            if count > room:
                lane.waiting.appendleft(flight.cut(room))
                continue
            if flight.size > self._in_flight_bytes_max and count > 1:
                lane.waiting.appendleft(flight.cut(count // 2))
                continue
            if count:
                over_bytes = self._bytes + flight.size > self._in_flight_bytes_max
                if (over_bytes or self._count + count > self._in_flight_max) and self._count:
                    return
                if not self._produce(lane, flight):
                    return
                self._took(flight)
                room -= flight.count
                room_bytes -= flight.record_bytes if room_bytes < inf else 0
            lane.flying.append(lane.waiting.popleft())

    def _took(self, flight: Flight) -> None:
        """The producer has its records in its queue."""
        if count := flight.count:
            self._count += count
            self._bytes += flight.size

    def _gave_back(self, flight: Flight) -> None:
        if count := flight.count:
            self._count -= count
            self._bytes -= flight.size

    def _produce(self, lane: Lane, flight: Flight) -> bool:
        """Hand a flight over; False when its topic has to be looked up first."""
        batch = flight.batch
        producer = self._producer_of(flight)
        refused = producer.produce(batch.topic, batch.partition, *flight.columns(), flight.offsets, flight.errors)
        if not refused:
            return True
        accepted = flight.end - flight.start - len(refused)
        if not accepted and not flight.refreshed and all(code in UNKNOWN for _, code, _ in refused):
            flight.refreshed = True
            lane.look_up = self._look_ups.submit(producer.look_up, batch.topic, LOOK_UP_S)
            return False
        flight.refusals = {index: _not_taken(KafkaError(code, words)) for index, code, words in refused}
        return True

    def _producer_of(self, flight: Flight) -> Producer | HeaderProducer:
        if not flight.headed:
            return self._producer
        if self._headed is None:
            self._headed = self._make_headed()
        return self._headed

    def _land(self, lane: Lane, landed: list[Appended]) -> None:
        was_refused = False
        while lane.flying:
            flight = lane.flying[0]
            if flight.errors and not was_refused and flight.refused_together:
                if not all(launch.is_down for launch in lane.flying):
                    return
                was_refused = True
                self._take_back(lane)
                continue
            landed.extend(flight.land())
            if not flight.is_down:
                return
            lane.flying.popleft()
            self._gave_back(flight)
            if not lane.flying and not was_refused:
                lane.most = min(2 * lane.most, self._launch_max)

    def _take_back(self, lane: Lane) -> None:
        """All of a launch is down, and the broker refused some of it. A record that was alone has its answer. Of others
        those wait again behind which nothing is stored: sent again, they keep their order."""
        refused = sum(flight.refused_together for flight in lane.flying)
        if refused == 1:
            return
        lane.most = max(refused // 2, 1)
        first = 0
        while lane.flying and not first:
            flight = lane.flying.pop()
            first = flight.unstored_from()
            self._gave_back(flight)
            if not first or first < flight.end - flight.start:
                lane.waiting.appendleft(flight.unlaunched(first))
            if first:
                lane.flying.append(flight)
                self._took(flight)
        for flight in lane.flying:
            flight.lay_on_others()

    def _start_anew(self, error: BaseException) -> list[Appended]:
        """A producer is dead. The result of what was under way is unknown; what waited goes to a new producer."""
        words = failure_in(error)
        failure = Failure("indeterminate", words.detail, words.code)
        given_up = [
            answer for lane in self._lanes.values() for flight in lane.flying for answer in flight.give_up(failure)
        ]
        for lane in self._lanes.values():
            lane.flying.clear()
            lane.look_up = None
        self._count = self._bytes = 0
        self._producer.disable_wakeups()
        self._look_ups.submit(self._producer.close)
        self._producer = self._make()
        if self._headed is not None:
            self._look_ups.submit(self._headed.close)
            self._headed = None
        return given_up


def _not_taken(error: KafkaError) -> Failure:
    """What the producer would not take is certainly not stored, whatever the error says of others."""
    return unsent(failure_of(error))
