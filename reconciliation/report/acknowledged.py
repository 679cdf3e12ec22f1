"""What is acknowledged, in words: apart from what is not, and never left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciliation.history.standing import Known
from reconciliation.model.classes import CLASSES
from reconciliation.report.since import messages


def write(known: Sequence[Known], file: str) -> Iterator[str]:
    if known:
        yield f"Acknowledged in {file}"
        for one in known:
            yield f"  {named(one)}"
        yield ""


def named(one: Known) -> str:
    """A line: what it is of, who says so and why, and whether it still holds."""
    said = f"acknowledged by {one.said.by}, {until_words(one)}: {one.said.reason}"
    if one.cause is None:
        return f"{one.said.id} {said}. It is not found any more: remove the entry, line {one.said.line}"
    cause = one.cause
    place = f" in {cause.place}" if cause.place else ""
    return f"{one.said.id} {CLASSES[cause.code].name}{place}, {messages(cause.count)}, {said}{standing_words(one)}"


def until_words(one: Known) -> str:
    return f"expired after {one.said.until}" if one.expired else f"until {one.said.until}"


def standing_words(one: Known) -> str:
    """What counts again; empty where all of it is covered."""
    if one.cause is not None and one.has_grown:
        return f". It has grown: {one.cause.open:,} of {one.cause.count:,} are not acknowledged, and count"
    return ". All of it counts again" if one.expired else ""
