"""Whole-name patterns in which `*` stands for any characters, none included: whether a name matches, and whether there
is a name that matches some of them and none of others.

A pattern is a regular language. Read from left to right it needs no more memory than the places in the pattern that the
name so far can have come to, and a match that has come to a `*` may forget what lies before it; so the states that
several patterns can be in together are few, and are searched breadth first. The answer is exact, and its name a
shortest one.

Errors: `Budget.Spent` when a search would take more steps than it was given.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

_ANY = "*"
_STRANGERS = "xyzabcdefghijklmnopqrstuvw0123456789"  # one of them stands for whatever no pattern names

_Places = tuple[int, ...]
_State = tuple[_Places, ...]  # the places that a name so far can have come to, in each pattern


@dataclass(slots=True)
class Budget:
    """How many steps all searches together may still take."""

    steps: int

    class Spent(Exception):
        """The searches took more steps than they were given."""

    def spend(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Budget.Spent


def compiled(patterns: Sequence[str]) -> re.Pattern[str]:
    """Matches, by `fullmatch`, the names that match one of the patterns. What follows a `*` is looked for once: the
    first place where it fits is as good as any later one, so no name takes long."""
    return re.compile("|".join(_expression(pattern) for pattern in patterns) or "(?!)", re.DOTALL)


def _expression(pattern: str) -> str:
    first, *parts = [re.escape(part) for part in re.split(r"\*+", pattern)]
    if not parts:
        return first
    *middle, last = parts
    return first + "".join(f"(?>.*?{part})" for part in middle) + f".*{last}"


def example(include: Sequence[str], exclude: Sequence[str], budget: Budget) -> str | None:
    """A shortest name that matches all of `include` and none of `exclude`; None when there is none."""
    if _apart(include):
        return None
    patterns, wanted = (*include, *exclude), len(include)
    letters = _letters(patterns)
    start: _State = tuple(_settle(pattern, {0}) for pattern in patterns)
    came: dict[_State, tuple[_State, str] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        for letter in letters:
            budget.spend()
            after = tuple(_step(pattern, places, letter) for pattern, places in zip(patterns, state, strict=True))
            if not all(after[:wanted]):
                continue
            ended = [len(pattern) in places for pattern, places in zip(patterns, after, strict=True)]
            if all(ended[:wanted]) and not any(ended[wanted:]):
                return _way(came, state) + letter
            if after not in came:
                came[after] = (state, letter)
                waiting.append(after)
    return None


def _apart(patterns: Sequence[str]) -> bool:
    """Seen at once: no name begins, or ends, as all of them want it."""
    heads = [pattern.split(_ANY)[0] for pattern in patterns]
    tails = [pattern.rsplit(_ANY)[-1] for pattern in patterns]
    head, tail = max(heads, key=len), max(tails, key=len)
    return not (all(map(head.startswith, heads)) and all(map(tail.endswith, tails)))


def _letters(patterns: Sequence[str]) -> list[str]:
    """One character that no pattern names, and those that they name."""
    named = set("".join(patterns)) - {_ANY}
    strangers = (*_STRANGERS, *map(chr, range(0x100, 0x100 + len(named) + 1)))
    return [next(letter for letter in strangers if letter not in named), *sorted(named)]


def _settle(pattern: str, places: set[int]) -> _Places:
    """With what a `*` may skip, and without what lies before the last `*` that was come to: it accepts as much."""
    reached = set(places)
    for place in places:
        while place < len(pattern) and pattern[place] == _ANY:
            place += 1
            reached.add(place)
    last = max((place for place in reached if pattern[place : place + 1] == _ANY), default=0)
    return tuple(sorted(place for place in reached if place >= last))


def _step(pattern: str, places: _Places, letter: str) -> _Places:
    after = set()
    for place in places:
        if pattern[place : place + 1] == _ANY:
            after.add(place)
        elif pattern[place : place + 1] == letter:
            after.add(place + 1)
    return _settle(pattern, after) if after else ()


def _way(came: dict[_State, tuple[_State, str] | None], state: _State) -> str:
    """The letters that lead to a state."""
    letters = []
    step = came[state]
    while step is not None:
        state, letter = step
        letters.append(letter)
        step = came[state]
    return "".join(reversed(letters))
