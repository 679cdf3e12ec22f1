"""The checker sees what may go wrong with nodes of several stores: partitions with groups, and levels of priority."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.torture.history import Said
from tests.torture.realm_reader import Store
from tests.torture.scene import Scene

S = [("s", 81), ("s", 82)]  # a queue of two partitions
L = [("l", 91), ("l", 92), ("l", 93)]  # one of three levels


def _spread(scene: Scene, *sent: tuple[str, int, Store]) -> None:
    """One link sends so many messages: group, priority, and the store that each is found in. One link takes them."""
    node = sent[0][2][0]
    for store in (*S, *L):
        scene.kept.events.setdefault(store, {})
        scene.kept.terminal.setdefault((store, "queue"), set())
        scene.kept.starts[store, "queue"] = 0
    scene.kept.partitions |= {store: partition for stores in (S, L) for partition, store in enumerate(stores)}
    scene.kept.levels |= {"s": 0, "l": 3}
    scene.note("link", 10, "publish", node, "", 10, "queue")
    for link in (11, 12):
        scene.note("link", link, "subscribe", node, "queue", link, "queue")
    for index, (group, priority, store) in enumerate(sent):
        scene.note("send", 10, index, index + 1, 0, group, priority)
        scene.note("told", 10, index, "accepted", "")
        events = scene.kept.events[store]
        eid = len(events)
        events[eid] = said = Said(10, index + 1, 10, index)
        scene.note("received", 11, store[1], eid, *said, 0, 0)
        scene.note("settle", 11, store[1], eid, "accepted", 0)
        scene.note("settled", 11, store[1], eid, "accepted")
        scene.kept.terminal[store, "queue"].add(eid)


IN_PLACE = [
    [("", 4, S[0]), ("a", 4, S[1]), ("b", 4, S[0]), ("", 4, S[0]), ("a", 4, S[1])],
    [("", 0, L[0]), ("", 3, L[0]), ("", 4, L[1]), ("", 5, L[2]), ("", 9, L[2]), ("", 255, L[2]), ("a", 4, L[1])],
]


@pytest.mark.parametrize("sent", IN_PLACE, ids=["partitions", "levels"])
def test_a_good_history_of_several_stores_breaks_no_promise(scene: Scene, sent: list[tuple[str, int, Store]]) -> None:
    """EIDs of one store are not those of another."""
    _spread(scene, *sent)
    assert scene.found() == set()


def _wrong_level(scene: Scene) -> None:
    _spread(scene, ("", 4, L[1]), ("", 5, L[1]))


def _group_in_two_stores(scene: Scene) -> None:
    _spread(scene, ("a", 4, S[0]), ("a", 4, S[1]))


def _link_in_two_stores(scene: Scene) -> None:
    _spread(scene, ("", 4, S[0]), ("", 4, S[1]))


def _stored_in_two_stores(scene: Scene) -> None:
    """One accept, and one event in each of two stores."""
    _spread(scene, ("a", 4, S[0]))
    said = scene.kept.events[S[0]][0]
    assert said is not None
    scene.kept.events[S[1]][0] = said
    scene.kept.terminal[S[1], "queue"].add(0)
    scene.note("received", 11, 82, 0, *said, 0, 0)
    scene.note("settle", 11, 82, 0, "accepted", 0)


def _swapped_in_its_store(scene: Scene) -> None:
    """All is well in the store of the level below."""
    _spread(scene, *[("", 4, L[1])] * 2, *[("", 5, L[2])] * 3)
    events = scene.kept.events[L[2]]
    events[1], events[2] = events[2], events[1]


def _acknowledged_elsewhere(scene: Scene) -> None:
    """The journal ended the same EID of the other store."""
    _spread(scene, ("a", 4, S[0]), ("b", 4, S[1]))
    scene.kept.terminal[S[0], "queue"].discard(0)


def _left_in_one_store(scene: Scene) -> None:
    _spread(scene, ("a", 4, S[0]), ("b", 4, S[1]))
    scene.rows = [row for row in scene.rows if not (row[0] in ("received", "settle", "settled") and row[3] == 82)]
    scene.kept.terminal[S[1], "queue"].clear()


def _tagged_with_another_store(scene: Scene) -> None:
    _spread(scene, ("a", 4, S[0]))
    scene.replace("received", 11, 81, 0, by=(11, 82, 0, *Said(10, 1, 10, 0), 0, 0))


def _torn_between_stores(scene: Scene) -> None:
    """A transaction posts to two stores, and is there in one."""
    _spread(scene, ("a", 4, S[0]), ("b", 4, S[1]))
    for at, row in enumerate(scene.rows):
        if row[0] == "send" and row[2] == 10:
            scene.rows[at] = (*row[:5], 7, *row[6:])
    scene.note("discharge", 7, 1)
    assert scene.found() == set()
    scene.rows = [row for row in scene.rows if not (row[0] in ("received", "settle", "settled") and row[3] == 82)]
    scene.kept.events[S[1]].clear()
    scene.kept.terminal[S[1], "queue"].clear()


def _divided(scene: Scene) -> None:
    """The next one of the group goes to another consumer, while the first one is there."""
    _spread(scene, ("a", 4, S[0]), ("a", 4, S[0]))
    at = scene.find("received", 11, 81, 1)
    scene.rows[at] = (*scene.rows[at][:2], 12, *scene.rows[at][3:])


def test_a_group_may_go_to_another_when_its_consumer_has_gone(scene: Scene) -> None:
    _divided(scene)
    at = scene.find("received", 12, 81, 1)
    scene.rows.insert(at, ("end", scene.rows[at][1], 11, "cut"))
    assert scene.found() == set()


def _group_backwards(scene: Scene) -> None:
    _spread(scene, ("a", 4, S[0]), ("a", 4, S[0]))
    first, second = scene.find("received", 11, 81, 0), scene.find("received", 11, 81, 1)
    scene.rows[first], scene.rows[second] = scene.rows[second], scene.rows[first]


def test_a_group_that_waited_for_another_link_may_come_late(scene: Scene) -> None:
    """Behind others of its store, not out of order within itself."""
    _spread(scene, ("a", 4, S[0]), ("", 4, S[0]))
    first, second = scene.find("received", 11, 81, 0), scene.find("received", 11, 81, 1)
    scene.rows[first], scene.rows[second] = scene.rows[second], scene.rows[first]
    scene.rows = [row for row in scene.rows if row[0] not in ("settle", "settled") or row[3] != 81]
    for eid in (0, 1):
        scene.note("settle", 11, 81, eid, "accepted", 0)
    assert scene.found() == set()


PLANTED: list[tuple[str, Callable[[Scene], None]]] = [
    ("in the wrong store", _wrong_level),
    ("in the wrong store", _group_in_two_stores),
    ("in the wrong store", _link_in_two_stores),
    ("duplicated", _stored_in_two_stores),
    ("out of order", _swapped_in_its_store),
    ("acknowledged but not committed", _acknowledged_elsewhere),
    ("never given to the end", _left_in_one_store),
    ("given but not stored", _tagged_with_another_store),
    ("torn transaction", _torn_between_stores),
    ("group divided", _divided),
    ("new ones out of order", _group_backwards),
]


@pytest.mark.parametrize(("promise", "plant"), PLANTED, ids=lambda each: getattr(each, "__name__", "").strip("_"))
def test_a_planted_breach_is_seen(scene: Scene, promise: str, plant: Callable[[Scene], None]) -> None:
    plant(scene)
    assert promise in scene.found()
