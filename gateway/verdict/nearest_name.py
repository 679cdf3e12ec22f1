"""The name that was meant by one that is not there."""

from __future__ import annotations

from collections.abc import Iterable


def nearest_name(wrong: str, names: Iterable[str]) -> str:
    """The one that is at most two edits away, case ignored; a swapped pair counts one. Empty: there is none."""
    distances = [(edits(wrong.lower(), name.lower()), name) for name in names if abs(len(name) - len(wrong)) <= 2]
    best = min(distances, default=(3, ""))
    return best[1] if best[0] <= 2 and len(wrong) > 2 else ""


def edits(word: str, other: str) -> int:
    """Letters to add, take away, replace or swap. Source: optimal string alignment."""
    before: list[int] = []
    row: list[int] = [*range(len(other) + 1)]
    for at, letter in enumerate(word, 1):
        earlier, before, row = before, row, [at]
        for to, there in enumerate(other, 1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (letter != there))
            if at > 1 and to > 1 and letter == other[to - 2] and word[at - 2] == there:
                cost = min(cost, earlier[to - 2] + 1)
            row.append(cost)
    return row[-1]
