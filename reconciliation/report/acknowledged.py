"""What is acknowledged, in words: apart from what is not, and never left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciliation.history.standing import Known
from reconciliation.model.classes import CLASSES
from reconciliation.report.since import messages


def write(known: Sequence[Known], file: str) -> Iterator[str]:
    if known:
        yield f"Acknowledged in {file}"
        for entry in known:
            yield f"  {named(entry)}"
        yield ""


def named(known: Known) -> str:
    """A line: what it is of, who says so and why, and whether it still holds."""
    note = f"acknowledged by {known.said.by}, {until_words(known)}: {known.said.reason}"
    if known.cause is None:
        return f"{known.said.id} {note}. It is not found any more: remove the entry, line {known.said.line}"
    cause = known.cause
    place = f" in {cause.place}" if cause.place else ""
    return f"{known.said.id} {CLASSES[cause.code].name}{place}, {messages(cause.count)}, {note}{standing_words(known)}"


def until_words(known: Known) -> str:
    return f"expired after {known.said.until}" if known.expired else f"until {known.said.until}"


def standing_words(known: Known) -> str:
    """What counts again; empty where all of it is covered."""
    if known.cause is not None and known.has_grown:
        return f". It has grown: {known.cause.open:,} of {known.cause.count:,} are not acknowledged, and count"
    return ". All of it counts again" if known.expired else ""
