"""What an operator gives to `explain`: words like `state=modified undeliverable_here=true profile=extended`, understood
as a table, a profile and facts.

The table may be left out where the axes that are named belong to one table only. The two flags of `modified` may be
given as such: they are part of the state.

Errors: `UnknownFact` for a word that the tables do not have, with the likeliest one that they do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mappings.language.vocabulary import PROFILES, TABLES, TableWords
from mappings.language.yaml_lines import suggest

_FLAGS = {"delivery_failed": "-failed", "undeliverable_here": "-undeliverable"}  # in the order of the state's words
_STATE_AXES = ("state", "default_outcome")
_TRUE = {"true": True, "false": False, "yes": True, "no": False}


class UnknownFact(Exception):
    """A word that the tables do not have."""


@dataclass(slots=True)
class Question:
    """What `explain` is asked; `profile` None: the command's. `node`: a name to classify; where there is one, `table`
    may be None: nothing else is asked."""

    table: str | None
    profile: str | None = None
    node: str | None = None
    facts: dict[str, str] = field(default_factory=dict)


def read_question(words: list[str], tables: Mapping[str, TableWords] = TABLES) -> Question:
    """`[TABLE] [profile=NAME] [node=NAME] [AXIS=VALUE ...]`."""
    table = words[0] if words and "=" not in words[0] else None
    if table is not None:
        known("table", table, tables)
    given = _pairs(words[table is not None :], tables[table] if table else None)
    profile = given.pop("profile", None)
    if profile is not None:
        known("profile", profile, PROFILES)
    node = given.pop("node", None)
    _join_flags(given)
    if table is None and node is not None and not given:
        return Question(None, profile, node)
    if table is None:
        table = _table_of(given, tables)
    for axis, value in given.items():
        known("axis", axis, tables[table].axes)
        known(axis, value, tables[table].axes[axis])
    return Question(table, profile, node, given)


def known(what: str, word: str, words: Collection[str]) -> None:
    """Raise `UnknownFact` for a word that is not one of these."""
    if word not in words:
        raise UnknownFact(f"there is no {what} {word}; {suggest(word, words)}")


def _pairs(words: list[str], table: TableWords | None) -> dict[str, str]:
    given: dict[str, str] = {}
    for word in words:
        axis, equals, value = word.partition("=")
        if not equals:
            axes = f"one of {', '.join(table.axes)} and its value" if table else "AXIS=VALUE"
            raise UnknownFact(f"{word} is not AXIS=VALUE; write {axes}")
        if axis in given:
            raise UnknownFact(f"{axis} is given twice; keep one")
        given[axis] = value
    return given


def _join_flags(given: dict[str, str]) -> None:
    """`state=modified delivery_failed=true` is `state=modified-failed`."""
    flags = {flag: given.pop(flag) for flag in _FLAGS if flag in given}
    if not flags:
        return
    axis = next((axis for axis in _STATE_AXES if axis in given), None)
    if axis is None or given[axis] != "modified":
        raise UnknownFact(f"{' and '.join(flags)} belong to state modified; write state=modified")
    for flag, ending in _FLAGS.items():
        value = flags.get(flag, "false")
        known(flag, value, _TRUE)
        given[axis] += ending if _TRUE[value] else ""


def _table_of(given: Mapping[str, str], tables: Mapping[str, TableWords]) -> str:
    if not given:
        raise UnknownFact(f"no table and no fact is given; write one of {', '.join(tables)}")
    fitting = [name for name, words in tables.items() if given.keys() <= words.axes.keys()]
    fitting = [name for name in fitting if all(value in tables[name].axes[axis] for axis, value in given.items())]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UnknownFact(f"several tables know these facts; write one of {', '.join(fitting)} before them")
    axes = {axis: None for words in tables.values() for axis in words.axes}
    for axis, value in given.items():
        known("axis", axis, axes)
        values = {word: None for words in tables.values() for word in words.axes.get(axis, ())}
        known(axis, value, values)
    raise UnknownFact(f"no one table has all of {', '.join(given)}; write a table's name before them")
