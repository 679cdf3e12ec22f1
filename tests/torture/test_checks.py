"""The checker sees each thing that it is there to see: a good history, and one planted breach at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.torture.checks import CHECKS
from tests.torture.history import Said
from tests.torture.scene import DURABLE, LANE, QUEUE, Q, Scene
from tests.torture.test_spread_checks import PLANTED as SPREAD


def test_a_good_history_breaks_no_promise(scene: Scene) -> None:
    assert scene.found() == set()


def _lost(scene: Scene) -> None:
    scene.rows = [row for row in scene.rows if not (row[0] in ("received", "settle", "settled") and row[4] == 4)]
    del scene.kept.events[Q][4]


def _duplicated(scene: Scene) -> None:
    scene.kept.events[Q][20] = scene.kept.events[Q][4]
    scene.kept.terminal[QUEUE].add(20)
    scene.receive("C1", 20, scene.kept.events[Q][4] or Said(0, 0, 0, 0))
    scene.end("C1", 20)


def _refused(scene: Scene) -> None:
    scene.replace("told", 1, 2, by=(1, 2, "rejected", "amqp:resource-limit-exceeded"))


def _stranger(scene: Scene) -> None:
    scene.kept.events[Q][20] = None
    scene.kept.terminal[QUEUE].add(20)
    scene.note("settle", 2, 71, 20, "accepted", 0)


def _swapped(scene: Scene) -> None:
    events = scene.kept.events[Q]
    events[2], events[4] = events[4], events[2]
    for eid in (2, 4):
        at = scene.find("received", 2, 71, eid)
        said = events[eid]
        assert said is not None
        scene.rows[at] = (*scene.rows[at][:5], *said, 0, 0)


def _unstored(scene: Scene) -> None:
    scene.receive("S", 99, Said(1, 1, 6, 0))


def _damaged(scene: Scene) -> None:
    scene.note("damaged", 2, 71, 4)


def _given_again(scene: Scene) -> None:
    scene.receive("C2", 4, Said(1, 3, 1, 2), again=1)


def _given_twice(scene: Scene) -> None:
    at = scene.find("received", 2, 71, 4)
    row = ("received", scene.rows[at][1], 3, 71, 4, *Said(1, 3, 1, 2), 0, 1)
    scene.rows.insert(at + 1, row)


def _uncommitted(scene: Scene) -> None:
    scene.kept.terminal[QUEUE].discard(4)
    scene.kept.starts[QUEUE] = 6  # not left over: only the confirmation was wrong


def _unasked(scene: Scene) -> None:
    scene.rows = [row for row in scene.rows if not (row[0] in ("settle", "settled") and row[2:5] == (2, 71, 4))]


def _left(scene: Scene) -> None:
    scene.rows = [row for row in scene.rows if not (row[0] in ("received", "settle", "settled") and row[4] == 14)]
    scene.rows = [row for row in scene.rows if not (row[0] == "received" and row[2] == 5)]
    scene.kept.terminal[DURABLE].discard(14)


def _unentitled(scene: Scene) -> None:
    """Where a durable begins must be known, or nothing that it was not given would be missed."""
    del scene.kept.starts[QUEUE]


def _deleted(scene: Scene) -> None:
    """What has ended may go, and is known from before; this one has not ended."""
    scene.kept.trimmed[Q] = {*scene.kept.terminal[QUEUE]}
    assert scene.found() == set()
    ended = scene.kept.terminal[QUEUE].pop()
    assert ended in scene.kept.trimmed[Q]


def _count_lost(scene: Scene) -> None:
    at = scene.find("settle", 2, 71, 4)
    failed = [("settle", 0, 2, 71, 4, "modified", 0), ("settled", 0, 2, 71, 4, "modified")]
    scene.rows[at:at] = [*failed, ("received", 0, 2, 71, 4, *Said(1, 3, 1, 2), 0, 1)]


def _count_invented(scene: Scene) -> None:
    at = scene.find("received", 2, 71, 4)
    scene.rows[at] = (*scene.rows[at][:9], 1, 1)


def _count_lost_twice(scene: Scene) -> None:
    """Two attempts, and but one link was cut off."""
    _cut_off(scene, count=2)


def _cut_off(scene: Scene, count: int) -> None:
    """C1 is cut off before it has settled the last event; C2 gets it, counted."""
    at = scene.find("settle", 2, 71, 10)
    said = scene.kept.events[Q][10]
    assert said is not None
    scene.rows[at : at + 2] = [
        ("end", scene.rows[at][1], 2, "ended"),
        ("received", scene.rows[at][1], 3, 71, 10, *said, count, 1),
    ]
    scene.end("C2", 10)


def _skipped(scene: Scene) -> None:
    del scene.rows[scene.find("received", 5, 72, 14)]


def _backwards(scene: Scene) -> None:
    first, second = scene.find("received", 4, 72, 12), scene.find("received", 4, 72, 14)
    scene.rows[first], scene.rows[second] = scene.rows[second], scene.rows[first]


def _transact(scene: Scene, *, stored: bool, wanted: bool | None, outcome: str) -> None:
    """Transaction 7: two more numbers, and the retirement of EID 10 of the queue."""
    for index in (6, 7):
        scene.note("send", 1, index, index + 1, 7, *LANE)
        scene.kept.events[Q][8 + index * 2] = Said(1, index + 1, 1, index)
        if stored or index == 6:
            scene.kept.terminal[QUEUE].add(8 + index * 2)
            scene.note("settle", 2, 71, 8 + index * 2, "accepted", 0)
        else:
            del scene.kept.events[Q][8 + index * 2]
    if wanted is not None:
        scene.note("discharge", 7, int(wanted))
    if outcome:
        scene.note("discharged", 7, outcome)


def _torn(scene: Scene) -> None:
    _transact(scene, stored=False, wanted=True, outcome="")


def _committed_in_part(scene: Scene) -> None:
    _transact(scene, stored=False, wanted=True, outcome="accepted")


def _rolled_back(scene: Scene) -> None:
    _transact(scene, stored=True, wanted=False, outcome="accepted")


def _never_discharged(scene: Scene) -> None:
    _transact(scene, stored=True, wanted=None, outcome="")


PLANTED: list[tuple[str, Callable[[Scene], None]]] = [
    ("accepted but lost", _lost),
    ("duplicated", _duplicated),
    ("refused but stored", _refused),
    ("stored but never sent", _stranger),
    ("out of order", _swapped),
    ("given but not stored", _unstored),
    ("given but not stored", _damaged),
    ("acknowledged and given again", _given_again),
    ("given twice at a time", _given_twice),
    ("acknowledged but not committed", _uncommitted),
    ("committed but not acknowledged", _unasked),
    ("never given to the end", _left),
    ("never given to the end", _unentitled),
    ("deleted before its end", _deleted),
    ("attempts miscounted", _count_lost),
    ("attempts miscounted", _count_invented),
    ("attempts miscounted", _count_lost_twice),
    ("new ones out of order", _skipped),
    ("new ones out of order", _backwards),
    ("torn transaction", _torn),
    ("torn transaction", _committed_in_part),
    ("aborted seen", _rolled_back),
    ("aborted seen", _never_discharged),
]


@pytest.mark.parametrize(("promise", "plant"), PLANTED, ids=lambda each: getattr(each, "__name__", "").strip("_"))
def test_a_planted_breach_is_seen(scene: Scene, promise: str, plant: Callable[[Scene], None]) -> None:
    plant(scene)
    assert promise in scene.found()


@pytest.mark.parametrize("count", [0, 1])
def test_what_is_cut_off_may_be_counted(scene: Scene, count: int) -> None:
    """It is not where the gateway was killed, and nobody knows when it did hear of the end."""
    _cut_off(scene, count)
    assert scene.found() == set()


def test_every_promise_has_a_planted_breach() -> None:
    assert {promise for promise, _ in [*PLANTED, *SPREAD]} == set(CHECKS)


def test_what_at_least_once_and_unknown_results_allow_is_no_breach(scene: Scene) -> None:
    """Said twice and stored twice; a commit without an answer that is there as a whole; a release and its return."""
    scene.note("send", 1, 6, 6, 0, *LANE)
    scene.kept.events[Q][20] = Said(1, 6, 1, 6)
    scene.receive("C1", 20, Said(1, 6, 1, 6))
    scene.end("C1", 20, "released")
    scene.receive("C2", 20, Said(1, 6, 1, 6), again=1)
    scene.end("C2", 20, "modified")
    scene.receive("C1", 20, Said(1, 6, 1, 6), count=1, again=1)
    scene.end("C1", 20)
    scene.kept.terminal[QUEUE].add(20)
    scene.note("send", 1, 7, 7, 9, *LANE)
    scene.note("discharge", 9, 1)
    scene.kept.events[Q][22] = Said(1, 7, 1, 7)
    scene.receive("C2", 22, Said(1, 7, 1, 7))
    scene.end("C2", 22)
    scene.kept.terminal[QUEUE].add(22)
    assert scene.found() == set()


def test_a_double_is_forgiven_only_while_a_result_was_unknown(scene: Scene) -> None:
    _duplicated(scene)
    assert scene.found() == {"duplicated"}
    unknown = ("told", scene.rows[scene.find("send", 1, 2)][1], 1, 1, "released", "")
    scene.rows.insert(scene.find("told", 1, 2), unknown)
    assert scene.found() == set()
    scene.replace("told", 1, 1, "released", by=(6, 1, "released", ""))
    assert scene.found() == set(), "one producer sends to both nodes"
    scene.replace("told", 6, 1, "released", by=(6, 1, "accepted", ""))
    assert scene.found() == {"duplicated"}


def test_a_double_is_not_forgiven_long_after_its_link(scene: Scene) -> None:
    """What nobody was told of may have been under way when a result was unknown, but not for ever."""
    _duplicated(scene)
    told = scene.find("told", 1, 2)
    ended_ms = scene.rows[told][1]
    scene.rows[told] = ("end", ended_ms, 1, "cut")
    scene.rows.append(("told", ended_ms + 1000, 6, 1, "released", ""))
    assert scene.found() == set()
    scene.rows[-1] = ("told", ended_ms + 10_000, 6, 1, "released", "")
    assert scene.found() == {"duplicated"}


def test_a_transaction_is_never_doubled(scene: Scene) -> None:
    _duplicated(scene)
    send = scene.find("send", 1, 2)
    scene.rows[send] = (*scene.rows[send][:5], 9, *LANE)
    scene.rows.insert(send + 1, ("told", scene.rows[send][1], 6, 1, "released", ""))
    assert "duplicated" in scene.found()


def test_an_aborted_retirement_that_is_kept_is_seen(scene: Scene) -> None:
    at = scene.find("settle", 2, 71, 4)
    scene.rows[at] = (*scene.rows[at][:6], 8)
    del scene.rows[scene.find("settled", 2, 71, 4)]
    scene.note("discharge", 8, 0)
    scene.note("discharged", 8, "accepted")
    assert scene.found() == {"committed but not acknowledged"}
