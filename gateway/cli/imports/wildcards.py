"""Matches of addresses, as Artemis and RabbitMQ's topic exchanges have them: words between dots, `*` is one word, `#`
any number of words. For Artemis the more specific match wins. Source: Artemis' user manual, "Wildcard Syntax" and
"Address Settings", the default delimiters; RabbitMQ's documentation, "Topic exchange".
"""

from __future__ import annotations

from collections.abc import Sequence


def matches(pattern: str, address: str) -> bool:
    return _match(pattern.split("."), address.split("."))


def _match(pattern: Sequence[str], words: Sequence[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_match(pattern[1:], words[skipped:]) for skipped in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and _match(pattern[1:], words[1:])


def specific_first(patterns: Sequence[str], address: str) -> list[str]:
    """Those that match, the most specific one first, in the order of Artemis 2.55 (`HierarchicalObjectRepository`)."""
    return sorted((pattern for pattern in patterns if matches(pattern, address)), key=_generality)


def _generality(pattern: str) -> tuple[int, ...]:
    """Words alone are more specific than any `*`, and that than any `#`. Of two with `#` the longer one is, of two with
    `*` the one whose `*` is farther to the right."""
    if "#" in pattern:
        return 2, -len(pattern)
    stars = [int(word == "*") for word in pattern.split(".")]
    return (1, *stars, len(pattern)) if any(stars) else (0,)
