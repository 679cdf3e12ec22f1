"""The text of `/metrics`, read into samples by name. Source: the exposition format of Prometheus, 0.0.4.

Errors: `WrongAnswer` where a line cannot be read, or there are more than `SAMPLES`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Final

from gateway.verdict.limits import SAMPLES, TEXT

_LINE: Final = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*")
_LABEL: Final = re.compile(r'\s*([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPES: Final = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
Labels = Mapping[str, str]


class WrongAnswer(Exception):
    """A gateway's answer that cannot be used; says why."""


class Samples:
    """Of one page: label values and a number each, by name."""

    def __init__(self, samples: Mapping[str, list[tuple[Labels, float]]] | None = None) -> None:
        self._of = samples or {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def all(self, name: str) -> list[tuple[Labels, float]]:
        return self._of.get(name, [])

    def one(self, name: str) -> float | None:
        """The number of a family without labels; None: it is not there."""
        samples = self._of.get(name)
        return samples[0][1] if samples else None

    def sums(self, name: str, label: str) -> dict[str, int]:
        """By that label, over all others."""
        sums: Counter[str] = Counter()
        for labels, number in self.all(name):
            sums[labels.get(label, "")] += int(number)
        return dict(sums)

    def highest(self, name: str, label: str) -> dict[str, int]:
        """The largest one of each."""
        highest: dict[str, int] = {}
        for labels, number in self.all(name):
            key = labels.get(label, "")
            highest[key] = max(highest.get(key, 0), int(number))
        return highest


def quantile_s(samples: Samples, name: str, part: float) -> float | None:
    """Of a histogram: the bound below which that part of it lies, as far as its buckets say. None: there is none, or
    nothing was counted. What lies above the last bound is that bound."""
    buckets = [(float(labels.get("le", "nan")), count) for labels, count in samples.all(f"{name}_bucket")]
    known = sorted((bound, count) for bound, count in buckets if bound == bound)  # no NaN
    total = known[-1][1] if known else 0.0
    if not total:
        return None
    finite = [(bound, count) for bound, count in known if isfinite(bound)]
    return next((bound for bound, count in finite if count >= part * total), finite[-1][0] if finite else None)


def read_samples(text: str) -> Samples:
    """Of a whole page. Raises WrongAnswer."""
    by_name: dict[str, list[tuple[Labels, float]]] = {}
    count = 0
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise WrongAnswer(f"/metrics has a line that cannot be read: {line[:80]!a}")
        count += 1
        if count > SAMPLES:
            raise WrongAnswer(f"/metrics has more than {SAMPLES:,} samples")
        name, labels, number = match.groups()
        by_name.setdefault(name, []).append((dict(_labels(labels or "", line)), _number(number, line)))
    return Samples(by_name)


def _labels(text: str, line: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise WrongAnswer(f"/metrics has labels that cannot be read: {line[:80]!a}")
        value = match[2]
        if "\\" in value:
            value = re.sub(r"\\.", lambda escaped: _ESCAPES.get(escaped[0], escaped[0]), value)
        yield match[1], value[:TEXT]
        at = match.end()


def _number(text: str, line: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise WrongAnswer(f"/metrics has a number that cannot be read: {line[:80]!a}") from None
    return number if isfinite(number) else 0.0
