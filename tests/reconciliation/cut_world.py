"""A world that is looked at in the middle of its history, between any two of its writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from native_backend.log.open import open_embedded, open_kafka
from native_backend.log.port import Write
from reconciliation.model.settings import Realm
from tests.reconciliation.world import World


@dataclass(slots=True)
class CutWorld(World):
    """`look` is called behind the writes whose numbers, from 1 on, are in `cuts`."""

    look: Callable[[], object] = lambda: None
    cuts: Collection[int] = ()
    writes: int = 0

    def append(self, topic: str, keys: list[bytes], values: list[bytes]) -> list[int]:
        offsets = World.append(self, topic, keys, values)
        self._written()
        return offsets

    def commit(self, run: str, value: dict[str, Any], copies: Sequence[Write] = ()) -> int:
        offset = World.commit(self, run, value, copies)
        self._written()
        return offset

    def _written(self) -> None:
        self.writes += 1
        if self.writes in self.cuts:
            self.look()


@contextmanager
def cut_world(realm: Realm, look: Callable[[], object], cuts: Collection[int] = ()) -> Iterator[CutWorld]:
    log = open_embedded(realm.path) if realm.path else open_kafka(realm.bootstrap, {})
    with closing(log):
        yield CutWorld(log, realm.prefix, look=look, cuts=cuts)
