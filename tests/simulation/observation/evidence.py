"""The evidence of all runs, read when all is over: records of the disk, and those that the log refused to store.

A refused record is no fault of the gateway's (it counts them, and says so): what it would have said counts here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Told:
    """One delivery's outcome: its place in the columns of a group."""

    seq: int
    eid: int
    group: dict[str, Any]

    def __str__(self) -> str:
        names = ("direction", "name", "rule", "answer_rule", "operation", "cause", "answer", "outcome", "presettled")
        return f"seq {self.seq}, event {self.eid}, " + ", ".join(f"{name} {self.group[name]}" for name in names)


def column(outcome: Told, name: str) -> Any:
    return outcome.group[name]


class Evidence:
    """Every record once, in order."""

    def __init__(self, stored: list[dict[str, Any]], refused: list[dict[str, Any]]) -> None:
        unique = {(record["run"], record["n"]): record for record in [*stored, *refused]}
        self.records = [unique[key] for key in sorted(unique)]
        self.stored_twice = len(stored) - len({(record["run"], record["n"]) for record in stored})

    def by_run(self) -> dict[str, list[dict[str, Any]]]:
        runs: dict[str, list[dict[str, Any]]] = {}
        for record in self.records:
            runs.setdefault(record["run"], []).append(record)
        return runs

    def complete(self, run: str) -> bool:
        """The run ended in order, with an outcome for every delivery."""
        return any(record["closed"] for record in self.records if record["run"] == run)

    def told(self) -> list[tuple[str, Told]]:
        return [
            (record["run"], Told(seq, eid, group))
            for record in self.records
            for group in record["groups"]
            for seq, eid in zip(group["seq"], group["eid"], strict=True)
        ]

    def by_seq(self) -> dict[tuple[str, int], Told]:
        return {(run, outcome.seq): outcome for run, outcome in self.told()}

    def doubled_seqs(self) -> dict[str, list[int]]:
        seen: set[tuple[str, int]] = set()
        doubled: dict[str, list[int]] = {}
        for run, outcome in self.told():
            if (run, outcome.seq) in seen:
                doubled.setdefault(run, []).append(outcome.seq)
            seen.add((run, outcome.seq))
        return doubled

    def by_link(self) -> dict[tuple[str, str, str], list[Told]]:
        """By run, container and link name, in the order of the seqs."""
        links: dict[tuple[str, str, str], list[Told]] = {}
        for run, outcome in self.told():
            links.setdefault((run, outcome.group["container"], outcome.group["name"]), []).append(outcome)
        for outcomes in links.values():
            outcomes.sort(key=lambda outcome: outcome.seq)
        return links
