"""As much of PromQL as deploy/prometheus/rules.yml uses, evaluated over scrapes: what is true when the last was made.

    at(parse("realmgate_ready < 1"), [(0.0, samples), (15.0, samples)])     # what is left of them: labels -> number

Of the language: selectors with `=` and `=~`, ranges, `offset`, `rate`, `increase`, `changes`, `absent`, `time()`,
`histogram_quantile`, `sum by`, `max by`, `*`, `-`, comparisons, `and`, `unless`, `or`, `on`. As Prometheus does: a
comparison keeps what it is true of; a counter that goes down has begun anew; a series needs two samples in a range to
have a rate. It is not extrapolated to the range's ends: samples lie on them. What else is written raises `ValueError`.
Source: prometheus.io/docs/prometheus/latest/querying.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Scrape = tuple[float, Mapping[tuple[str, Labels], float]]  # seconds; by name and labels
_TOKEN = re.compile(r'\s*(?:([A-Za-z_:][\w:]*)|([0-9.]+)([smh])?|("[^"]*")|(<=|>=|==|!=|=~|[-+*/(){}\[\],=<>]))')
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_COMPARES: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_CALCULATES: dict[str, Callable[[float, float], float]] = {"*": operator.mul, "-": operator.sub}
_LOOKBACK_S = 300.0


@dataclass
class Node:
    """`what`: number, series, call, by, binary."""

    what: str
    name: str = ""
    number: float = 0.0
    labels: dict[str, str] = field(default_factory=dict)
    patterns: dict[str, str] = field(default_factory=dict)  # labels that match a regular expression
    range_s: float = 0.0
    offset_s: float = 0.0
    inner: list[Node] = field(default_factory=list)
    by: tuple[str, ...] = ()
    on: tuple[str, ...] | None = None  # the labels that both sides have to agree in; None: all

    def names(self) -> set[str]:
        """Of all series."""
        own = {self.name} if self.what == "series" else set()
        return own.union(*(node.names() for node in self.inner))


def parse(text: str) -> Node:
    reader = _Reader(text)
    node = reader.either()
    if reader.next:
        raise ValueError(f"cannot read {reader.next!r} in {text!r}")
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"cannot read {text[at:]!r}")
            self._tokens.append(match.group().strip())
            at = match.end()
        self._tokens.append("")

    @property
    def next(self) -> str:
        return self._tokens[0]

    def take(self, wanted: str = "") -> str:
        if wanted and self.next != wanted:
            raise ValueError(f"{wanted!r} is missing before {self.next!r}")
        return self._tokens.pop(0)

    def either(self) -> Node:
        return self._chain(("or",), lambda: self._chain(("and", "unless"), self._compared))

    def _compared(self) -> Node:
        return self._chain(tuple(_COMPARES), lambda: self._chain(("-",), lambda: self._chain(("*",), self._atom)))

    def _chain(self, words: Sequence[str], operand: Callable[[], Node]) -> Node:
        left = operand()
        while self.next in words:
            name, on = self.take(), None
            if self.next == "on":
                self.take()
                on = self._labels()
            left = Node("binary", name, inner=[left, operand()], on=on)
        return left

    def _labels(self) -> tuple[str, ...]:
        self.take("(")
        labels = []
        while self.next != ")":
            labels.append(self.take())
            if self.next == ",":
                self.take()
        self.take(")")
        return tuple(labels)

    def _atom(self) -> Node:
        token = self.take()
        if not token:
            raise ValueError("the expression ends too early")
        if token == "(":
            node = self.either()
            self.take(")")
            return node
        if re.fullmatch(r"[0-9.]+", token):
            return Node("number", number=float(token))
        if token in ("sum", "max"):
            return self._aggregation(token)
        if self.next == "(":
            return Node("call", token, inner=self._arguments())
        return self._series(token)

    def _aggregation(self, name: str) -> Node:
        self.take("by")
        by = self._labels()
        return Node("by", name, inner=self._arguments(), by=by)

    def _arguments(self) -> list[Node]:
        self.take("(")
        inner = [self.either()] if self.next != ")" else []
        while self.next == ",":
            self.take()
            inner.append(self.either())
        self.take(")")
        return inner

    def _series(self, name: str) -> Node:
        node = Node("series", name)
        if self.next == "{":
            self.take()
            while self.next != "}":
                label = self.take()
                wanted = node.patterns if self.next == "=~" else node.labels
                self.take("=~" if self.next == "=~" else "=")
                wanted[label] = self.take().strip('"')
                if self.next == ",":
                    self.take()
            self.take("}")
        if self.next == "[":
            self.take()
            node.range_s = self._length_s()
            self.take("]")
        if self.next == "offset":
            self.take()
            node.offset_s = self._length_s()
        return node

    def _length_s(self) -> float:
        length = self.take()
        return float(length[:-1]) * _SECONDS[length[-1]]


def at(node: Node, scrapes: Sequence[Scrape]) -> Vector | float:
    """At the time of the last scrape."""
    if node.what == "number":
        return node.number
    if node.what == "series":
        return {key: points[-1][1] for key, points in _points(node, scrapes, _LOOKBACK_S, newest=True).items()}
    if node.what == "by":
        return _aggregated(node, _vector(node.inner[0], scrapes))
    if node.what == "call":
        return _called(node, scrapes)
    return _binary(node, at(node.inner[0], scrapes), at(node.inner[1], scrapes))


def _vector(node: Node, scrapes: Sequence[Scrape]) -> Vector:
    value = at(node, scrapes)
    if isinstance(value, float):
        raise ValueError("a series belongs here, not a number")
    return value


def _points(
    node: Node, scrapes: Sequence[Scrape], length_s: float, newest: bool = False
) -> dict[Labels, list[tuple[float, float]]]:
    """By series. `newest`: only those of the last scrape, for one that is gone from a scrape is gone at once."""
    until_s = scrapes[-1][0] - node.offset_s
    scrapes = [scrape for scrape in scrapes if scrape[0] <= until_s]
    if not scrapes:
        return {}
    now_s, last = scrapes[-1]
    wanted = set(node.labels.items())
    points: dict[Labels, list[tuple[float, float]]] = {}
    for at_s, samples in scrapes:
        for (name, labels), number in samples.items():
            is_wanted = name == node.name and wanted <= labels and at_s >= now_s - length_s
            if is_wanted and _matches(node, labels) and (not newest or (name, labels) in last):
                points.setdefault(labels, []).append((at_s, number))
    return points


def _matches(node: Node, labels: Labels) -> bool:
    values = dict(labels) if node.patterns else {}
    return all(re.fullmatch(pattern, values.get(label, "")) for label, pattern in node.patterns.items())


def _called(node: Node, scrapes: Sequence[Scrape]) -> Vector | float:
    if node.name == "time":
        return scrapes[-1][0]
    if node.name == "histogram_quantile":
        share = at(node.inner[0], scrapes)
        assert isinstance(share, float)
        return _quantile(share, _vector(node.inner[1], scrapes))
    [argument] = node.inner
    if node.name == "absent":
        return {} if _vector(argument, scrapes) else {frozenset(argument.labels.items()): 1.0}
    of_range = {"rate": _increase, "increase": _increase, "changes": _changes}.get(node.name)
    if of_range is None or not argument.range_s:
        raise ValueError(f"{node.name} is not known here, or has no range")
    divisor = argument.range_s if node.name == "rate" else 1.0
    points = _points(argument, scrapes, argument.range_s)
    return {
        key: of_range(pairs, argument.range_s) / divisor
        for key, pairs in points.items()
        if len(pairs) > 1 or of_range is _changes
    }


def _increase(points: list[tuple[float, float]], _: float) -> float:
    return sum(after - before if after >= before else after for (_, before), (_, after) in pairwise(points))


def _changes(points: list[tuple[float, float]], _: float) -> float:
    return float(sum(before != after for (_, before), (_, after) in pairwise(points)))


def _aggregated(node: Node, vector: Vector) -> Vector:
    groups: dict[Labels, list[float]] = {}
    for labels, number in vector.items():
        groups.setdefault(frozenset(pair for pair in labels if pair[0] in node.by), []).append(number)
    return {labels: (sum if node.name == "sum" else max)(numbers) for labels, numbers in groups.items()}


def _quantile(share: float, vector: Vector) -> Vector:
    groups: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in vector.items():
        bound = float(dict(labels)["le"])
        groups.setdefault(frozenset(pair for pair in labels if pair[0] != "le"), []).append((bound, count))
    quantiles: Vector = {}
    for labels, buckets in groups.items():
        buckets.sort()
        rank, low, below = share * buckets[-1][1], 0.0, 0.0
        for bound, count in buckets:
            if count >= rank and count > 0:
                is_last = bound == float("inf")
                quantiles[labels] = low if is_last else low + (bound - low) * (rank - below) / (count - below)
                break
            low, below = bound, count
    return quantiles


def _binary(node: Node, left: Vector | float, right: Vector | float) -> Vector | float:
    if node.name in ("and", "unless", "or"):
        assert not isinstance(left, float) and not isinstance(right, float)
        return _of_sets(node, left, right)
    if node.on is not None:
        raise ValueError("`on` is known here of and, unless and or only")
    if node.name in _CALCULATES:
        return _each(left, right, _CALCULATES[node.name])
    holds = _COMPARES[node.name]
    if isinstance(left, float):
        raise ValueError("write the series first")
    return {
        key: number
        for key, number in left.items()
        if (other := _other(right, key)) is not None and holds(number, other)
    }


def _of_sets(node: Node, left: Vector, right: Vector) -> Vector:
    def key(labels: Labels) -> Labels:
        return labels if node.on is None else frozenset(pair for pair in labels if pair[0] in node.on)

    if node.name == "or":
        lefts = {key(labels) for labels in left}
        return left | {labels: number for labels, number in right.items() if key(labels) not in lefts}
    rights = {key(labels) for labels in right}
    return {labels: number for labels, number in left.items() if (key(labels) in rights) == (node.name == "and")}


def _each(left: Vector | float, right: Vector | float, calculate: Callable[[float, float], float]) -> Vector | float:
    if isinstance(left, float) and isinstance(right, float):
        return calculate(left, right)
    if isinstance(left, float):
        assert not isinstance(right, float)
        return {key: calculate(left, number) for key, number in right.items()}
    return {key: calculate(number, other) for key, number in left.items() if (other := _other(right, key)) is not None}


def _other(operand: Vector | float, key: Labels) -> float | None:
    return operand if isinstance(operand, float) else operand.get(key)
