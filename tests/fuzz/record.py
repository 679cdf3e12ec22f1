"""`python -m tests.fuzz.record`: makes the corpus anew, from what the wire client says in the scenarios of the tables.

Of every rule of every table one combination, so that each kind of frame, state and terminus is in it; what several
scenarios say alike is kept once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mappings import TableSet, load_tables
from tests.fuzz.steps import Case, Step
from tests.kit.scenarios.table_scenarios import SCENARIOS
from tests.kit.wire.conversation import Conversation

CORPUS = Path(__file__).parent / "corpus"


def main() -> None:
    tables = load_tables()
    cases: dict[str, Case] = {}
    for table in SCENARIOS:
        for case in sessions(table, tables):
            cases.setdefault("".join(map(str, case.steps)), case)
    for path in CORPUS.glob("scenario-*.case"):
        path.unlink()
    for number, case in enumerate(cases.values()):
        (CORPUS / f"scenario-{number:03}.case").write_text(str(case))
    print(f"{len(cases)} cases")


def sessions(table: str, tables: TableSet) -> Iterator[Case]:
    decided = {decision.rule: decision.cell for decision in reversed(tables[table].cells) if decision is not None}
    for rule in sorted(decided):
        facts = tables[table].facts(decided[rule])
        with Recording() as recording:
            SCENARIOS[table](facts, tables)
        yield Case("plain", recording.steps, f"table {table}, rule {rule}")


class Recording:
    """Everything that the wire clients of a scenario say, while it lasts."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._peers: list[Conversation] = []
        self._say, self._lose = Conversation.say, Conversation.lose

    def _number(self, peer: Conversation) -> int:
        if peer not in self._peers:
            self._peers.append(peer)
        return self._peers.index(peer)

    def __enter__(self) -> Recording:
        recording, say, lose = self, self._say, self._lose

        def noted(peer, *pieces, cut=None):  # type: ignore[no-untyped-def]
            recording.steps.append(Step(recording._number(peer), "send", b"".join(pieces)))
            return say(peer, *pieces, cut=cut)

        def lost(peer: Conversation) -> None:
            recording.steps.append(Step(recording._number(peer), "lose"))
            lose(peer)

        Conversation.say, Conversation.lose = noted, lost  # type: ignore[method-assign, assignment]
        return self

    def __exit__(self, *_: object) -> None:
        Conversation.say, Conversation.lose = self._say, self._lose  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
