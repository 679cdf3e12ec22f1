"""Notes in the journal: what it says of stores, and no state follows from (an end, a loss, a count).

Records: docs/records.md "Journal".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from native_backend.journal.journal import Journal
from native_backend.journal.settlement import Settlement
from native_backend.nodes.words import Operation
from native_backend.state.ack_state import Run

Keys = tuple[str, str, int]
"""Node, durable, store."""


def _nothing() -> None:
    """Nothing waits for the note."""


class EachStore:
    """One note for each of some stores. `stored` is called when the journal holds all of them; `refused` once, when it
    will never hold one of them."""

    def __init__(
        self, journal: Journal, stored: Callable[[], None] = _nothing, refused: Callable[[], None] = _nothing
    ) -> None:
        self._journal, self._stored, self._refused = journal, stored, refused
        self._open = 0  # notes that the journal does not hold yet
        self._failed = False

    def note(self, operation: Operation, cause: str, notes: dict[Keys, Run]) -> None:
        """The runs of a note are no deliveries: no event is counted."""
        self._open = len(notes)
        for keys, run in notes.items():
            keeper = _Note(self, keys)
            self._journal.add(Settlement(keeper, None, operation, False, False, cause, [run], 0, None))

    def one_stored(self) -> None:
        self._open -= 1
        if not self._open:
            self._stored()

    def one_refused(self) -> None:
        if not self._failed:
            self._failed = True
            self._refused()


@dataclass(frozen=True, slots=True, eq=False)
class _Note:
    """Keeper of the note of one store."""

    stores: EachStore
    names: Keys

    def keys(self) -> Keys:
        return self.names

    def settled(self, settlement: Settlement) -> None:
        self.stores.one_stored()

    def restore(self, settlement: Settlement) -> None:
        self.stores.one_refused()
