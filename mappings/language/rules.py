"""What a table file says, once read: rules with the lines that they were written on, not yet proven to fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mappings.language.boxes import Box
from mappings.language.classification import Classification
from mappings.language.vocabulary import PROFILES, TableWords, Value


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `then` is complete: keys that were left out hold their defaults, in the vocabulary's order."""

    id: str
    box: Box
    then: Mapping[str, Value]
    because: str
    sources: tuple[str, ...]
    file: str
    line: int
    column: int = 1

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Impossible:
    """Combinations that cannot occur, and why."""

    box: Box
    because: str
    line: int
    column: int = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """The rules that hold in one profile, inherited ones first."""

    name: str
    rules: tuple[Rule, ...]
    line: int
    column: int = 1


@dataclass(frozen=True, slots=True)
class TableRules:
    """One table file."""

    words: TableWords
    file: str
    impossible: tuple[Impossible, ...]
    profiles: Mapping[str, Profile]


class RuleBook(dict[str, TableRules]):
    """The tables of a directory by name, and the classes of nodes that their rules may speak of."""

    def __init__(
        self, classification: Classification | None = None, tables: Mapping[str, TableRules] | None = None
    ) -> None:
        super().__init__(tables or {})
        self.classification = classification or Classification()


def named(profiles: Sequence[str]) -> str:
    """Profiles in a sentence."""
    return "every profile" if len(profiles) == len(PROFILES) else ", ".join(profiles)


def facts_of(words: TableWords, positions: tuple[int, ...]) -> dict[str, str]:
    """A combination by its words."""
    return {axis: values[at] for (axis, values), at in zip(words.axes.items(), positions, strict=True)}


def write_facts(facts: Mapping[str, str]) -> str:
    """A combination as an operator types it: `state=accepted subscription=queue`."""
    return " ".join(f"{axis}={value}" for axis, value in facts.items())


def words_of(words: TableWords, box: Box) -> str:
    """The combinations of a box, in words: what it leaves open goes without saying."""
    parts = [
        f"{axis} is {' or '.join(values_in(values, mask))}"
        for (axis, values), mask in zip(words.axes.items(), box, strict=True)
        if mask.bit_count() < len(values)
    ]
    return " and ".join(parts) or "whatever the facts"


def when_of(words: TableWords, box: Box) -> str:
    """A box as a rule's `when` writes it."""
    parts = []
    for (axis, values), mask in zip(words.axes.items(), box, strict=True):
        named = [quoted(value) for value in values_in(values, mask)]
        if len(named) < len(values):
            parts.append(f"{axis}: {named[0] if len(named) == 1 else '[' + ', '.join(named) + ']'}")
    return f"{{{', '.join(parts)}}}"


def values_in(values: Sequence[str], mask: int) -> list[str]:
    return [value for bit, value in enumerate(values) if mask >> bit & 1]


def quoted(word: str) -> str:
    """A word as YAML must have it: bare `no` would be something else."""
    return f'"{word}"' if word in ("yes", "no", "on", "off", "true", "false", "null") else word
