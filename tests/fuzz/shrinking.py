"""Makes a case that fails smaller, as long as it fails: fewer steps, then fewer frames in each.

`fails` runs a case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.fuzz.cutting import cut
from tests.fuzz.steps import Case, Step

Part = TypeVar("Part")
TRIES_MAX = 400


def smaller(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest that was found in `TRIES_MAX` tries."""
    tries = [TRIES_MAX]

    def still(steps: Sequence[Step]) -> bool:
        tries[0] -= 1
        return tries[0] >= 0 and fails(case.then(*steps))

    steps = without(case.steps, still)
    for _ in range(2):
        pieces = [piece for step in steps for piece in _frames(step)]
        if still(pieces):
            steps = without(pieces, still)
            joined = _joined(steps)
            steps = joined if still(joined) else steps
    return case.then(*steps)


def without(parts: list[Part], fails: Callable[[list[Part]], bool]) -> list[Part]:
    """Halves, quarters, ... left out while what is left still fails."""
    size = max(1, len(parts) // 2)
    while parts:
        at = 0
        while at < len(parts):
            rest = parts[:at] + parts[at + size :]
            if rest and fails(rest):
                parts = rest
            else:
                at += size
        if size == 1:
            return parts
        size //= 2
    return parts


def _frames(step: Step) -> list[Step]:
    return [Step(step.connection, "send", piece) for piece in cut(step.data)] if step.verb == "send" else [step]


def _joined(steps: list[Step]) -> list[Step]:
    """What one connection sends in a row is sent at once."""
    joined: list[Step] = []
    for step in steps:
        last = joined[-1] if joined else None
        if last is not None and step.verb == last.verb == "send" and step.connection == last.connection:
            joined[-1] = Step(step.connection, "send", last.data + step.data)
        else:
            joined.append(step)
    return joined
