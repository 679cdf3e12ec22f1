"""The checker sees each thing that it is there to see: a good history, and one planted violation at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.torture.checks.good_history import DURABLE, LANE, QUEUE, GoodHistory, Q
from tests.torture.checks.guarantees import CHECKS
from tests.torture.checks.planted_in_stores import PLANTED as SPREAD
from tests.torture.history import Said


def test_a_good_history_breaks_no_guarantee(history: GoodHistory) -> None:
    assert history.found() == set()


def _lost(history: GoodHistory) -> None:
    history.rows = [row for row in history.rows if not (row[0] in ("received", "settle", "settled") and row[4] == 4)]
    del history.kept.events[Q][4]


def _duplicated(history: GoodHistory) -> None:
    history.kept.events[Q][20] = history.kept.events[Q][4]
    history.kept.terminal[QUEUE].add(20)
    history.receive("C1", 20, history.kept.events[Q][4] or Said(0, 0, 0, 0))
    history.end("C1", 20)


def _refused(history: GoodHistory) -> None:
    history.replace("told", 1, 2, by=(1, 2, "rejected", "amqp:resource-limit-exceeded"))


def _stranger(history: GoodHistory) -> None:
    history.kept.events[Q][20] = None
    history.kept.terminal[QUEUE].add(20)
    history.note("settle", 2, 71, 20, "accepted", 0)


def _swapped(history: GoodHistory) -> None:
    events = history.kept.events[Q]
    events[2], events[4] = events[4], events[2]
    for eid in (2, 4):
        at = history.find("received", 2, 71, eid)
        body = events[eid]
        assert body is not None
        history.rows[at] = (*history.rows[at][:5], *body, 0, 0)


def _unstored(history: GoodHistory) -> None:
    history.receive("S", 99, Said(1, 1, 6, 0))


def _damaged(history: GoodHistory) -> None:
    history.note("damaged", 2, 71, 4)


def _given_again(history: GoodHistory) -> None:
    history.receive("C2", 4, Said(1, 3, 1, 2), again=1)


def _given_twice(history: GoodHistory) -> None:
    at = history.find("received", 2, 71, 4)
    row = ("received", history.rows[at][1], 3, 71, 4, *Said(1, 3, 1, 2), 0, 1)
    history.rows.insert(at + 1, row)


def _uncommitted(history: GoodHistory) -> None:
    history.kept.terminal[QUEUE].discard(4)
    history.kept.starts[QUEUE] = 6  # not left over: only the confirmation was wrong


def _unasked(history: GoodHistory) -> None:
    history.rows = [row for row in history.rows if not (row[0] in ("settle", "settled") and row[2:5] == (2, 71, 4))]


def _left(history: GoodHistory) -> None:
    history.rows = [row for row in history.rows if not (row[0] in ("received", "settle", "settled") and row[4] == 14)]
    history.rows = [row for row in history.rows if not (row[0] == "received" and row[2] == 5)]
    history.kept.terminal[DURABLE].discard(14)


def _unentitled(history: GoodHistory) -> None:
    """Where a durable begins must be known, or nothing that it was not given would be missed."""
    del history.kept.starts[QUEUE]


def _deleted(history: GoodHistory) -> None:
    """What has ended may go, and is known from before; this one has not ended."""
    history.kept.trimmed[Q] = {*history.kept.terminal[QUEUE]}
    assert history.found() == set()
    ended = history.kept.terminal[QUEUE].pop()
    assert ended in history.kept.trimmed[Q]


def _count_lost(history: GoodHistory) -> None:
    at = history.find("settle", 2, 71, 4)
    failed = [("settle", 0, 2, 71, 4, "modified", 0), ("settled", 0, 2, 71, 4, "modified")]
    history.rows[at:at] = [*failed, ("received", 0, 2, 71, 4, *Said(1, 3, 1, 2), 0, 1)]


def _count_invented(history: GoodHistory) -> None:
    at = history.find("received", 2, 71, 4)
    history.rows[at] = (*history.rows[at][:9], 1, 1)


def _count_lost_twice(history: GoodHistory) -> None:
    """Two attempts, and but one link was cut off."""
    _cut_off(history, count=2)


def _cut_off(history: GoodHistory, count: int) -> None:
    """C1 is cut off before it has settled the last event; C2 gets it, counted."""
    at = history.find("settle", 2, 71, 10)
    body = history.kept.events[Q][10]
    assert body is not None
    history.rows[at : at + 2] = [
        ("end", history.rows[at][1], 2, "ended"),
        ("received", history.rows[at][1], 3, 71, 10, *body, count, 1),
    ]
    history.end("C2", 10)


def _skipped(history: GoodHistory) -> None:
    del history.rows[history.find("received", 5, 72, 14)]


def _backwards(history: GoodHistory) -> None:
    first, second = history.find("received", 4, 72, 12), history.find("received", 4, 72, 14)
    history.rows[first], history.rows[second] = history.rows[second], history.rows[first]


def _transact(history: GoodHistory, *, stored: bool, wanted: bool | None, outcome: str) -> None:
    """Transaction 7: two more numbers, and the retirement of EID 10 of the queue."""
    for index in (6, 7):
        history.note("send", 1, index, index + 1, 7, *LANE)
        history.kept.events[Q][8 + index * 2] = Said(1, index + 1, 1, index)
        if stored or index == 6:
            history.kept.terminal[QUEUE].add(8 + index * 2)
            history.note("settle", 2, 71, 8 + index * 2, "accepted", 0)
        else:
            del history.kept.events[Q][8 + index * 2]
    if wanted is not None:
        history.note("discharge", 7, int(wanted))
    if outcome:
        history.note("discharged", 7, outcome)


def _torn(history: GoodHistory) -> None:
    _transact(history, stored=False, wanted=True, outcome="")


def _committed_in_part(history: GoodHistory) -> None:
    _transact(history, stored=False, wanted=True, outcome="accepted")


def _rolled_back(history: GoodHistory) -> None:
    _transact(history, stored=True, wanted=False, outcome="accepted")


def _never_discharged(history: GoodHistory) -> None:
    _transact(history, stored=True, wanted=None, outcome="")


PLANTED: list[tuple[str, Callable[[GoodHistory], None]]] = [
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


@pytest.mark.parametrize(("guarantee", "plant"), PLANTED, ids=lambda case: getattr(case, "__name__", "").strip("_"))
def test_a_planted_violation_is_seen(
    history: GoodHistory, guarantee: str, plant: Callable[[GoodHistory], None]
) -> None:
    plant(history)
    assert guarantee in history.found()


@pytest.mark.parametrize("count", [0, 1])
def test_what_is_cut_off_may_be_counted(history: GoodHistory, count: int) -> None:
    """It is not where the gateway was killed, and no one knows when it did hear of the end."""
    _cut_off(history, count)
    assert history.found() == set()


@pytest.mark.parametrize(("stalled_ms", "excused"), [(0, False), (900, False), (2_000, True)])
def test_what_was_seen_late_because_the_peers_own_thread_stalled_is_no_violation(
    history: GoodHistory, stalled_ms: int, excused: bool
) -> None:
    """An event comes on link 3 while 2 has it; link 2 sees its end 3.5 s later, and may take 2 s for that."""
    at = history.find("settle", 2, 71, 10)
    body = history.kept.events[Q][10]
    assert body is not None
    ms = history.rows[at][1]
    history.rows[at : at + 2] = [("received", ms, 3, 71, 10, *body, 0, 1)]
    history.end("C2", 10)
    history.rows.append(("stalled", ms + 3_400, stalled_ms))
    history.rows.append(("end", ms + 3_500, 2, "ended"))
    assert history.found() == (set() if excused else {"given twice at a time"})


def test_every_guarantee_has_a_planted_violation() -> None:
    assert {guarantee for guarantee, _ in [*PLANTED, *SPREAD]} == set(CHECKS)


def test_what_at_least_once_and_unknown_results_allow_is_no_violation(history: GoodHistory) -> None:
    """Said twice and stored twice; a commit without an answer that is there as a whole; a release and its return."""
    history.note("send", 1, 6, 6, 0, *LANE)
    history.kept.events[Q][20] = Said(1, 6, 1, 6)
    history.receive("C1", 20, Said(1, 6, 1, 6))
    history.end("C1", 20, "released")
    history.receive("C2", 20, Said(1, 6, 1, 6), again=1)
    history.end("C2", 20, "modified")
    history.receive("C1", 20, Said(1, 6, 1, 6), count=1, again=1)
    history.end("C1", 20)
    history.kept.terminal[QUEUE].add(20)
    history.note("send", 1, 7, 7, 9, *LANE)
    history.note("discharge", 9, 1)
    history.kept.events[Q][22] = Said(1, 7, 1, 7)
    history.receive("C2", 22, Said(1, 7, 1, 7))
    history.end("C2", 22)
    history.kept.terminal[QUEUE].add(22)
    assert history.found() == set()


def test_a_double_is_forgiven_only_while_a_result_was_unknown(history: GoodHistory) -> None:
    _duplicated(history)
    assert history.found() == {"duplicated"}
    unknown = ("told", history.rows[history.find("send", 1, 2)][1], 1, 1, "released", "")
    history.rows.insert(history.find("told", 1, 2), unknown)
    assert history.found() == set()
    history.replace("told", 1, 1, "released", by=(6, 1, "released", ""))
    assert history.found() == set(), "one producer sends to both nodes"
    history.replace("told", 6, 1, "released", by=(6, 1, "accepted", ""))
    assert history.found() == {"duplicated"}


def test_a_double_is_not_forgiven_long_after_its_link(history: GoodHistory) -> None:
    """What no one was told of may have been under way when a result was unknown, but not for ever."""
    _duplicated(history)
    row = history.find("told", 1, 2)
    ended_ms = history.rows[row][1]
    history.rows[row] = ("end", ended_ms, 1, "cut")
    history.rows.append(("told", ended_ms + 1000, 6, 1, "released", ""))
    assert history.found() == set()
    history.rows[-1] = ("told", ended_ms + 10_000, 6, 1, "released", "")
    assert history.found() == {"duplicated"}


def test_a_transaction_is_never_doubled(history: GoodHistory) -> None:
    _duplicated(history)
    send = history.find("send", 1, 2)
    history.rows[send] = (*history.rows[send][:5], 9, *LANE)
    history.rows.insert(send + 1, ("told", history.rows[send][1], 6, 1, "released", ""))
    assert "duplicated" in history.found()


def test_an_aborted_retirement_that_is_kept_is_seen(history: GoodHistory) -> None:
    at = history.find("settle", 2, 71, 4)
    history.rows[at] = (*history.rows[at][:6], 8)
    del history.rows[history.find("settled", 2, 71, 4)]
    history.note("discharge", 8, 0)
    history.note("discharged", 8, "accepted")
    assert history.found() == {"committed but not acknowledged"}
