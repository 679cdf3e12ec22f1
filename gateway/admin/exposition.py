"""Families of samples as text for Prometheus, in steps: a part of a family at a time, so that many samples delay no
other work.

prometheus-client writes the text (its classic format, 0.0.4); what is ours is the cutting into parts. Counters are
named without `_total`. Source: the exposition format of Prometheus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric

from native_backend.state.durations import BOUNDS_S, Durations

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
STEP_SAMPLES = 40  # written without a pause: some 300 us
Kind = Literal["counter", "gauge", "histogram"]
Values = tuple[str, ...]  # of the labels


@dataclass(frozen=True, slots=True)
class Family:
    """Samples of one name: label values and a number each."""

    name: str
    kind: Kind
    about: str
    labels: tuple[str, ...] = ()
    samples: Iterable[tuple[Values, float]] = field(default_factory=list)


def single(name: str, kind: Kind, about: str, value: float) -> Family:
    return Family(name, kind, about, (), [((), value)])


def histogram(name: str, about: str, durations: Durations) -> Metric:
    metric = Metric(name, about, "histogram")
    counted = 0
    for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), durations.counts, strict=True):
        counted += count
        metric.add_sample(f"{name}_bucket", {"le": bound}, counted)
    metric.add_sample(f"{name}_count", {}, counted)
    metric.add_sample(f"{name}_sum", {}, durations.total_s)
    return metric


def written(families: Iterable[Family | Metric | None]) -> Iterator[bytes]:
    """The text, part after part; b"" where other work may run first."""
    for family in families:
        if family is None:
            yield b""
        elif isinstance(family, Metric):
            yield _text(family)
        else:
            yield from _parts(family)


def _parts(family: Family) -> Iterator[bytes]:
    name = f"{family.name}_total" if family.kind == "counter" else family.name
    samples, is_first = iter(family.samples), True
    while (part := [*islice(samples, STEP_SAMPLES)]) or is_first:
        metric = Metric(family.name, family.about, family.kind)
        for values, number in part:
            metric.add_sample(name, dict(zip(family.labels, values, strict=True)), number)
        text = _text(metric)
        yield text if is_first else text.split(b"\n", 2)[2]  # help and type stand once
        is_first = False


class _One:
    """A collector of one family."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return [self._metric]


def _text(metric: Metric) -> bytes:
    return generate_latest(_One(metric))
