"""Notes of several stores: told once all are in the journal, and once when one never will be."""

from __future__ import annotations

from typing import Any, cast

from native_backend.journal.each_store import EachStore
from native_backend.journal.journal import Journal
from native_backend.journal.settlement import Settlement


class Kept:
    """A journal that answers when the test says so."""

    def __init__(self) -> None:
        self.items: list[Settlement] = []

    def add(self, settlement: Settlement) -> None:
        self.items.append(settlement)


def noted() -> tuple[list[Settlement], list[str]]:
    journal, heard = Kept(), list[str]()
    stores = EachStore(
        cast("Journal", cast("Any", journal)), lambda: heard.append("stored"), lambda: heard.append("no")
    )
    stores.note("delete", "command", {("node", "durable", store): (store, store, 0, store) for store in (1, 2, 3)})
    return journal.items, heard


def test_all_are_stored() -> None:
    items, heard = noted()
    assert [item.keeper.keys() for item in items] == [("node", "durable", store) for store in (1, 2, 3)]
    assert [(item.operation, item.cause, item.runs[0][0], item.count) for item in items] == [
        ("delete", "command", store, 0) for store in (1, 2, 3)
    ]
    for item in items:
        assert heard == []
        item.keeper.settled(item)
    assert heard == ["stored"]


def test_one_or_more_are_refused() -> None:
    items, heard = noted()
    items[0].keeper.settled(items[0])
    items[1].keeper.restore(items[1])
    items[2].keeper.restore(items[2])
    assert heard == ["no"]
