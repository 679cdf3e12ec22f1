"""The simulated log: the same seed is the same history, and every fault does what it is called."""

from __future__ import annotations

from random import Random

from native_backend.log.port import Append, Appended, Completion, TopicSpec, Transacted, Write
from native_backend.log.simulated.disk import TRANSACTION_TIMEOUT_MS, Disk
from native_backend.log.simulated.driver import SimulatedLog
from native_backend.log.simulated.faults import Faults


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000

    def __call__(self) -> int:
        return self.ms


class Setup:
    """A log with two topics, its disk and its clock."""

    def __init__(self, faults: Faults, seed: int = 1) -> None:
        self.disk = Disk()
        self.clock = Clock()
        self.random = Random(seed)
        self.log = SimulatedLog(self.disk, self.random, self.clock, faults)
        self.log.control.create_topics([TopicSpec("a"), TopicSpec("b")])

    def successor(self) -> SimulatedLog:
        return SimulatedLog(self.disk, self.random, self.clock)

    def append(self, topic: str, number: int, count: int = 1) -> None:
        self.log.append(Append(topic, 0, [b"k"] * count, [b"%d.%d" % (number, n) for n in range(count)], number))

    def run(self, ms: int = 1_000) -> list[tuple[int, Completion]]:
        """Let time pass, jumping from one event to the next; (when, what)."""
        end = self.clock.ms + ms
        completions: list[tuple[int, Completion]] = [(self.clock.ms, answer) for answer in self.log.poll()]
        while (due := self.log.next_due_ms()) is not None and due <= end:
            self.clock.ms = max(due, self.clock.ms)
            completions += [(self.clock.ms, answer) for answer in self.log.poll()]
        self.clock.ms = end
        return completions

    def values(self, topic: str) -> list[bytes | None]:
        return self.successor().control.read_range(topic, 0, 0, 10_000).values


def history(seed: int) -> list[tuple[int, object, list[int], str]]:
    faults = Faults(0.3, 0.3, 0.7, 50, 0.5, 50, 0.1, ("unavailable",), 0.1, 0.1)
    setup = Setup(faults, seed)
    setup.log.control.claim("s")
    for number in range(50):
        setup.append("a" if number % 2 else "b", number, 3)
        if number % 10 == 0:
            setup.log.transact("s", [Write("a", 0, b"k", b"t")], f"t{number}")
    return [
        (
            when,
            answer.batch.owner if isinstance(answer, Appended) else answer.owner,
            answer.offsets,
            answer.failure.cause if answer.failure else "",
        )
        for when, answer in setup.run()
    ]


def test_the_same_seed_is_the_same_history() -> None:
    assert history(7) == history(7)
    assert history(7) != history(8)


def test_completions_keep_the_order_of_a_partition_and_change_places_between_partitions() -> None:
    setup = Setup(Faults(delay=0.8))
    for number in range(40):
        setup.append("a" if number % 2 else "b", number)
    owners = [answer.batch.owner for _, answer in setup.run() if isinstance(answer, Appended)]
    assert sorted(owners) == list(range(40))
    assert owners != sorted(owners)
    for rest in (0, 1):
        assert [owner for owner in owners if owner % 2 == rest] == list(range(rest, 40, 2))


def test_without_faults_everything_completes_at_the_next_poll_and_dense() -> None:
    setup = Setup(Faults())
    setup.append("a", 0, 10)
    (answer,) = setup.log.poll()
    assert answer.offsets == list(range(10))


def test_the_stable_offset_lags_behind_what_was_acknowledged() -> None:
    setup = Setup(Faults(lag=1.0, lag_ms_max=20))
    reader = setup.log.open_reader("a", 0, 0)
    setup.append("a", 0)
    assert len(setup.log.poll()) == 1
    assert setup.log.control.bounds("a", 0) == (0, 0)
    assert reader.read(10) is None
    setup.clock.ms += 20
    assert setup.log.control.bounds("a", 0) == (0, 1)
    assert reader.read(10) == ([0], [b"0.0"], [b"k"])


def test_a_refused_append_is_not_stored() -> None:
    setup = Setup(Faults(refuse=1.0, refusals=("refused",)))
    setup.append("a", 0, 2)
    (answer,) = setup.log.poll()
    assert answer.failure is not None
    assert (answer.failure.cause, answer.offsets) == ("refused", [-1, -1])
    assert setup.values("a") == []


def test_an_append_in_doubt_is_stored_or_not() -> None:
    stored = set()
    for seed in range(20):
        setup = Setup(Faults(unknown_append=1.0), seed)
        setup.append("a", 0, 2)
        (answer,) = setup.log.poll()
        assert answer.failure is not None
        assert answer.failure.cause == "indeterminate"
        stored.add(len(setup.values("a")))
    assert stored == {0, 2}


def test_a_commit_in_doubt_is_decided_by_the_next_claim() -> None:
    fates = set()
    for seed in range(60):
        setup = Setup(Faults(unknown_commit=1.0), seed)
        setup.log.control.claim("s")
        setup.log.transact("s", [Write("a", 0, b"k", b"t"), Write("b", 0, b"k", b"t")], "me")
        ((_, answer),) = setup.run(1)
        assert isinstance(answer, Transacted)
        assert answer.failure is not None
        assert answer.failure.cause == "indeterminate"
        was_open = bool(setup.disk.left_open)
        before = (setup.values("a"), setup.values("b"))
        if was_open:
            assert before == ([], [])
        setup.successor().control.claim("s")
        after = (setup.values("a"), setup.values("b"))
        assert after in (([b"t"], [b"t"]), ([], []))
        assert was_open or after == before
        fates.add((was_open, len(after[0])))
    assert fates == {(False, 0), (False, 1), (True, 0), (True, 1)}


def test_an_open_transaction_holds_the_stable_offset_back_until_it_times_out() -> None:
    for seed in range(60):
        setup = Setup(Faults(unknown_commit=1.0), seed)
        setup.log.control.claim("s")
        setup.log.transact("s", [Write("a", 0, b"k", b"t")], "me")
        setup.run(1)
        if not setup.disk.left_open:
            continue
        setup.append("a", 0)
        setup.run(1)
        assert setup.values("a") == []
        setup.run(TRANSACTION_TIMEOUT_MS)
        setup.log.poll()
        assert setup.values("a")[-1] == b"0.0"
        return
    raise AssertionError("no seed left a transaction open")


def test_another_process_may_fence_the_shard() -> None:
    setup = Setup(Faults(fence=1.0))
    setup.log.control.claim("s")
    setup.log.transact("s", [Write("a", 0, b"k", b"t")], "me")
    ((_, answer),) = setup.run(1)
    assert answer.failure is not None
    assert answer.failure.cause == "fenced"
    assert setup.values("a") == []


def test_kill_stores_a_prefix_of_what_was_under_way_and_answers_no_call() -> None:
    lengths = set()
    for seed in range(40):
        setup = Setup(Faults(delay=1.0, split=0.5), seed)
        for number in range(5):
            setup.append("a", number, 4)
        setup.log.kill()
        assert setup.log.poll() == []
        values = setup.values("a")
        assert values == [b"%d.%d" % (number, n) for number in range(5) for n in range(4)][: len(values)]
        lengths.add(len(values))
    assert {0, 20} & lengths
    assert len(lengths) > 3


def test_a_compacted_topic_keeps_the_newest_only() -> None:
    setup = Setup(Faults())
    setup.log.control.create_topics([TopicSpec("c", compacted=True)])
    for number in range(10):
        setup.log.control.put("c", b"k%d" % (number % 2), b"%d" % number)
    assert setup.values("c") == [b"8", b"9"]
