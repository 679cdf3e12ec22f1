"""A node's properties in the words of the command line and of `node apply` files: `ttl=1h`, `capacity-bytes=10MiB`.

Times take ms, s, m, h, d (no unit: ms); sizes B, kB, MB, GB, KiB, MiB, GiB (no unit: octets); `none` takes a bound, a
time or a target away. `-` and `_` in a key are the same. Errors: `PropertyError`, one line a problem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mappings.language.yaml_lines import suggest
from native_backend.nodes.properties import DEFAULT, REDELIVERIES, TYPES, Properties, PropertyError

_TIMES = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_AMOUNT = re.compile(r"([0-9]{1,16})\s*([A-Za-z]*)")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Word:
    """One property: its key, its field of `Properties`, what a value looks like, and both directions of a value."""

    key: str
    field: str
    example: str
    about: str
    read: Callable[[str], Any]  # raises ValueError
    show: Callable[[Any], str]


def _amount(units: dict[str, int]) -> Callable[[str], int]:
    def read(text: str) -> int:
        if text == "none":
            return 0
        match = _AMOUNT.fullmatch(text)
        if match is None or (match[2] and match[2] not in units):
            raise ValueError(f"a whole number with or without a unit ({', '.join(units) or 'there is none'}), or none")
        return int(match[1]) * (units[match[2]] if match[2] else 1)

    return read


def _shown(units: dict[str, int], plain: str) -> Callable[[int], str]:
    """With the largest unit that gives a whole number."""
    largest_first = sorted(units.items(), key=lambda unit: -unit[1])

    def show(value: int) -> str:
        if not value:
            return "none"
        return next((f"{value // size}{unit}" for unit, size in largest_first if value % size == 0), f"{value}{plain}")

    return show


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return read


def _boolean(text: str) -> bool:
    if text not in _BOOLEANS:
        raise ValueError("true or false")
    return _BOOLEANS[text]


def _name(text: str) -> str:
    return "" if text == "none" else text


def _shown_name(name: str) -> str:
    return (name if name.isprintable() else json.dumps(name)) or "none"


_COUNT, _TIME, _SIZE = _amount({}), _amount(_TIMES), _amount(_SIZES)
_BINARY = {unit: size for unit, size in _SIZES.items() if unit.endswith("iB") or unit == "B"}
_shown_count, _shown_time, _shown_size = _shown({}, ""), _shown(_TIMES, ""), _shown(_BINARY, "")
WORDS: tuple[Word, ...] = (
    Word("type", "type", "mixed", f"{', '.join(TYPES)}", _one_of(TYPES), str),
    Word("capacity-events", "capacity_events", "100000", "events it holds at most", _COUNT, _shown_count),
    Word("capacity-bytes", "capacity_bytes", "1GiB", "octets it holds at most", _SIZE, _shown_size),
    Word(
        "honour-capacity",
        "honour_capacity",
        "true",
        "a full node refuses (true) or gives up its oldest events (false)",
        _boolean,
        json.dumps,
    ),
    Word("ttl", "ttl_ms", "1h", "time to live: how long an event can be delivered", _TIME, _shown_time),
    Word(
        "dead-letter",
        "dead_letter",
        "dead",
        "the node that gets what expired, was rejected or failed too often",
        _name,
        _shown_name,
    ),
    Word("attempts", "attempts", "5", "failed attempts until an event is a dead letter", _COUNT, _shown_count),
    Word("redelivery-delay", "redelivery_delay_ms", "5s", "before an event is delivered again", _TIME, _shown_time),
    Word("redelivery-delay-max", "redelivery_delay_max_ms", "10m", "the longest such delay", _TIME, _shown_time),
    Word("partitions", "partitions", "4", "number of partitions, a store each; it only grows", _COUNT, str),
    Word(
        "priority-levels",
        "priority_levels",
        "10",
        "levels of priority, a partition each; fixed when the node is created",
        _COUNT,
        _shown_count,
    ),
    Word("redelivery", "redelivery", "exponential", f"{', '.join(REDELIVERIES)} delay", _one_of(REDELIVERIES), str),
)
KEYS = {word.key: word for word in WORDS}


def read_assignments(pairs: Sequence[str]) -> dict[str, Any]:
    """`key=value` each, as fields of `Properties`."""
    fields: dict[str, Any] = {}
    problems: list[str] = []
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            problems.append(f"{pair!r} is no key=value; write {pair}=VALUE")
        else:
            read_word(key, text, fields, problems)
    if problems:
        raise PropertyError(problems)
    return fields


def read_word(key: str, text: str, fields: dict[str, Any], problems: list[str]) -> None:
    """One value into `fields`, or what is wrong with it into `problems`."""
    word = KEYS.get(key.replace("_", "-").removesuffix("-ms"))
    if word is None:
        problems.append(f"there is no property {key}; {suggest(key, KEYS)}")
        return
    try:
        fields[word.field] = word.read(text)
    except ValueError as error:
        problems.append(f"{word.key}={text}: write {error}, as in {word.key}={word.example}")


def shown(properties: Properties) -> dict[str, str]:
    """Every property but the grants, in words."""
    return {word.key: word.show(getattr(properties, word.field)) for word in WORDS}


def shown_acl(properties: Properties) -> list[str]:
    return [f"{grant.who}: {', '.join(sorted(grant.operations))}" for grant in properties.acl]


def departures(properties: Properties) -> list[str]:
    """What differs from the defaults, in words: `ttl 1h`."""
    default, own = shown(DEFAULT), shown(properties)
    grants = [f"acl {line}" for line in shown_acl(properties)]
    return [f"{key} {value}" for key, value in own.items() if value != default[key]] + grants


def differences(before: Properties, after: Properties) -> list[str]:
    """What changes, in words: `ttl none -> 1h`."""
    old, new = shown(before), shown(after)
    changes = [f"{key} {old[key]} -> {new[key]}" for key in new if old[key] != new[key]]
    if before.acl != after.acl:
        changes.append(f"acl {'; '.join(shown_acl(before)) or 'none'} -> {'; '.join(shown_acl(after)) or 'none'}")
    return changes
