"""Facts that no record contains, in words: what a reader of the report may know of his peers and realm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciliation.what_if.expanded_tables import ExpandedTables, differing
from reconciliation.what_if.job import Answer

_FACTS = {
    "framing": "whether the message came in one transfer (whole) or in several (partial)",
    "attempts": "whether one more failed attempt would have been the last",
    "default_outcome": "which default-outcome the source of the consumer has",
    "in_transaction": "whether the outcome was stated inside a transaction",
    "peer_settled": "whether the consumer had settled the delivery",
    "receiver_settle_mode": "which receiver settle mode was agreed on",
    "transformed": "whether the other transformer makes an event of the message",
}
NOT_SIMULATED = (
    "Only these decisions are made again. What would have followed from another one is not simulated: deliveries that "
    "come again, counters of failed attempts, links and transactions that end, and what clients do then."
)


def in_words(fact: str) -> str:
    return _FACTS.get(fact, f"the value of axis {fact}")


def not_recorded(answer: Answer, other: ExpandedTables) -> Iterator[str]:
    """Decisions that leave no record, where the other tables make them differently."""
    used = [tables for digest, tables in answer.own.items() if digest in answer.digests]
    for table, words in _UNRECORDED.items():
        count = max((differing(tables, other, table) for tables in used), default=0)
        if count:
            yield f"Combinations that table {table} decides differently: {count:,}. {words}"
    if any(_is_silent(tables) and not _is_silent(other) for tables in used):
        yield (
            "Table default takes a disposition that neither settles nor gives a state for an outcome, which the "
            "recorded tables do not. Such dispositions are not recorded."
        )
    for what, count in sorted(answer.left_out.items()):
        yield f"{count:,} decisions about {what} were counted, but have no record of their own."


_UNRECORDED: Mapping[str, str] = {
    "attach": "Attaches that were confirmed are not recorded, so deliveries count as if their links had been confirmed "
    "alike.",
    "capability": "What coordinators offered is not recorded.",
}


def _is_silent(tables: ExpandedTables) -> bool:
    """For it a silent disposition says nothing yet, whatever the default-outcome."""
    table = tables.table("default")
    silent = (facts for facts in table.combinations() if facts["cause"] == "silent")
    return all(table.look_up(facts).then["state"] == "received" for facts in silent)
