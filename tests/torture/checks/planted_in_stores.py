"""Histories of nodes of several stores that break a guarantee: partitions with groups, and levels of priority."""

from __future__ import annotations

from collections.abc import Callable

from tests.torture.checks.good_history import GoodHistory
from tests.torture.checks.realm_reader import Store
from tests.torture.history import Said

S = [("s", 81), ("s", 82)]  # a queue of two partitions


L = [("l", 91), ("l", 92), ("l", 93)]  # one of three levels


def spread(history: GoodHistory, *sent: tuple[str, int, Store]) -> None:
    """One link sends so many messages: group, priority, and the store that each is found in. One link takes them."""
    node = sent[0][2][0]
    for store in (*S, *L):
        history.kept.events.setdefault(store, {})
        history.kept.terminal.setdefault((store, "queue"), set())
        history.kept.starts[store, "queue"] = 0
    history.kept.partitions |= {store: partition for stores in (S, L) for partition, store in enumerate(stores)}
    history.kept.levels |= {"s": 0, "l": 3}
    history.note("link", 10, "publish", node, "", 10, "queue")
    for link in (11, 12):
        history.note("link", link, "subscribe", node, "queue", link, "queue")
    for index, (group, priority, store) in enumerate(sent):
        history.note("send", 10, index, index + 1, 0, group, priority)
        history.note("told", 10, index, "accepted", "")
        events = history.kept.events[store]
        eid = len(events)
        events[eid] = entry = Said(10, index + 1, 10, index)
        history.note("received", 11, store[1], eid, *entry, 0, 0)
        history.note("settle", 11, store[1], eid, "accepted", 0)
        history.note("settled", 11, store[1], eid, "accepted")
        history.kept.terminal[store, "queue"].add(eid)


IN_PLACE = [
    [("", 4, S[0]), ("a", 4, S[1]), ("b", 4, S[0]), ("", 4, S[0]), ("a", 4, S[1])],
    [("", 0, L[0]), ("", 3, L[0]), ("", 4, L[1]), ("", 5, L[2]), ("", 9, L[2]), ("", 255, L[2]), ("a", 4, L[1])],
]


def _wrong_level(history: GoodHistory) -> None:
    spread(history, ("", 4, L[1]), ("", 5, L[1]))


def _group_in_two_stores(history: GoodHistory) -> None:
    spread(history, ("a", 4, S[0]), ("a", 4, S[1]))


def _link_in_two_stores(history: GoodHistory) -> None:
    spread(history, ("", 4, S[0]), ("", 4, S[1]))


def _stored_in_two_stores(history: GoodHistory) -> None:
    """One accept, and one event in each of two stores."""
    spread(history, ("a", 4, S[0]))
    body = history.kept.events[S[0]][0]
    assert body is not None
    history.kept.events[S[1]][0] = body
    history.kept.terminal[S[1], "queue"].add(0)
    history.note("received", 11, 82, 0, *body, 0, 0)
    history.note("settle", 11, 82, 0, "accepted", 0)


def _swapped_in_its_store(history: GoodHistory) -> None:
    """All is well in the store of the level below."""
    spread(history, *[("", 4, L[1])] * 2, *[("", 5, L[2])] * 3)
    events = history.kept.events[L[2]]
    events[1], events[2] = events[2], events[1]


def _acknowledged_elsewhere(history: GoodHistory) -> None:
    """The journal ended the same EID of the other store."""
    spread(history, ("a", 4, S[0]), ("b", 4, S[1]))
    history.kept.terminal[S[0], "queue"].discard(0)


def _left_in_one_store(history: GoodHistory) -> None:
    spread(history, ("a", 4, S[0]), ("b", 4, S[1]))
    history.rows = [row for row in history.rows if not (row[0] in ("received", "settle", "settled") and row[3] == 82)]
    history.kept.terminal[S[1], "queue"].clear()


def _tagged_with_another_store(history: GoodHistory) -> None:
    spread(history, ("a", 4, S[0]))
    history.replace("received", 11, 81, 0, by=(11, 82, 0, *Said(10, 1, 10, 0), 0, 0))


def _torn_between_stores(history: GoodHistory) -> None:
    """A transaction posts to two stores, and is there in one."""
    spread(history, ("a", 4, S[0]), ("b", 4, S[1]))
    for at, row in enumerate(history.rows):
        if row[0] == "send" and row[2] == 10:
            history.rows[at] = (*row[:5], 7, *row[6:])
    history.note("discharge", 7, 1)
    assert history.found() == set()
    history.rows = [row for row in history.rows if not (row[0] in ("received", "settle", "settled") and row[3] == 82)]
    history.kept.events[S[1]].clear()
    history.kept.terminal[S[1], "queue"].clear()


def divided(history: GoodHistory) -> None:
    """The next one of the group goes to another consumer, while the first one is there."""
    spread(history, ("a", 4, S[0]), ("a", 4, S[0]))
    at = history.find("received", 11, 81, 1)
    history.rows[at] = (*history.rows[at][:2], 12, *history.rows[at][3:])


def _group_backwards(history: GoodHistory) -> None:
    spread(history, ("a", 4, S[0]), ("a", 4, S[0]))
    first, second = history.find("received", 11, 81, 0), history.find("received", 11, 81, 1)
    history.rows[first], history.rows[second] = history.rows[second], history.rows[first]


PLANTED: list[tuple[str, Callable[[GoodHistory], None]]] = [
    ("in the wrong store", _wrong_level),
    ("in the wrong store", _group_in_two_stores),
    ("in the wrong store", _link_in_two_stores),
    ("duplicated", _stored_in_two_stores),
    ("out of order", _swapped_in_its_store),
    ("acknowledged but not committed", _acknowledged_elsewhere),
    ("never given to the end", _left_in_one_store),
    ("given but not stored", _tagged_with_another_store),
    ("torn transaction", _torn_between_stores),
    ("group divided", divided),
    ("new ones out of order", _group_backwards),
]
