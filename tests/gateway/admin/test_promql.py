"""What evaluates the shipped alerts understands them as Prometheus does (checked beside promtool 2.42 on series like
these)."""

from __future__ import annotations

import pytest

from tests.gateway.admin.promql import Labels, Scrape, at, parse

STEP_S = 15.0


def labels(**pairs: str) -> Labels:
    return frozenset(pairs.items())


def scrapes(**series: list[float]) -> list[Scrape]:
    """Of a name each, with and without a label."""
    length = max(map(len, series.values()))
    return [
        (STEP_S * number, {(name, labels(of=name)): values[number] for name, values in series.items()})
        for number in range(length)
    ]


def value(expression: str, **series: list[float]) -> list[float]:
    samples = at(parse(expression), scrapes(**series))
    assert isinstance(samples, dict)
    return sorted(samples.values())


@pytest.mark.parametrize(
    ("expression", "series", "expected"),
    [
        ("up < 1", {"up": [1, 0]}, [0]),
        ("up < 1", {"up": [0, 1]}, []),
        ("up == 0 or absent(up)", {"up": [1, 0]}, [0]),
        ("absent(down)", {"up": [1, 1]}, [1]),
        ('up{of="up"} > 0', {"up": [1, 1]}, [1]),
        ('up{of="down"} > 0', {"up": [1, 1]}, []),
        ('up{of=~"u.*"} > 0', {"up": [1, 1]}, [1]),
        ('up{of=~"u"} > 0', {"up": [1, 1]}, []),
        ("increase(n[1m])", {"n": [0, 0, 3, 5]}, [5]),
        ("increase(n[1m])", {"n": [7, 9, 2, 3]}, [5]),
        ("rate(n[1m])", {"n": [0, 0, 0, 0, 30]}, [0.5]),
        ("increase(n[1m]) > 5", {"n": [0, 0, 3, 5]}, []),
        ("changes(n[1m]) == 0", {"n": [4, 4, 4]}, [0]),
        ("changes(n[1m]) == 0", {"n": [4, 5, 4]}, []),
        ("used > 0.9 * most", {"used": [95], "most": [100]}, []),
        ("sum by (job) (n)", {"n": [3], "m": [5]}, [3]),
        ("n - time() < 10", {"n": [0, 24]}, [9]),
        ("n - time() < 9", {"n": [0, 24]}, []),
        ("n offset 30s", {"n": [1, 2, 3, 4]}, [2]),
        ("n offset 1m", {"n": [1, 2, 3, 4]}, []),
        ("n unless m", {"n": [1], "m": [1]}, [1]),
        ("n unless on () m", {"n": [1], "m": [1]}, []),
        ("n and on () m", {"n": [2], "m": [1]}, [2]),
        ("n or m", {"n": [2], "m": [1]}, [1, 2]),
        ("n or on () m", {"n": [2], "m": [1]}, [2]),
    ],
)
def test_an_expression(expression: str, series: dict[str, list[float]], expected: list[float]) -> None:
    assert value(expression, **series) == expected


def test_two_series_meet_by_their_labels() -> None:
    both = [(0.0, {("used", labels(job="a")): 95.0, ("most", labels(job="a")): 100.0, ("used", labels(job="b")): 99.0})]
    assert at(parse("used > 0.9 * most"), both) == {labels(job="a"): 95.0}
    assert at(parse("used > 0 and most > 0"), both) == {labels(job="a"): 95.0}
    assert at(parse("max by (other) (used)"), both) == {frozenset(): 99.0}


def test_a_quantile_lies_within_its_bucket() -> None:
    counts = {"0.5": 90.0, "1.0": 90.0, "2.5": 100.0, "+Inf": 100.0}
    samples = [(0.0, {("took_bucket", labels(le=bound)): count for bound, count in counts.items()})]
    assert at(parse("histogram_quantile(0.99, sum by (le) (took_bucket)) > 1"), samples) == {frozenset(): 2.35}
    assert at(parse("histogram_quantile(0.5, sum by (le) (took_bucket)) > 1"), samples) == {}


@pytest.mark.parametrize("wrong", ["up ~ 1", "rate(up)", "avg_over_time(up[5m])", "up < ", "1 < up", "up) > 0"])
def test_what_it_does_not_know_is_no_answer(wrong: str) -> None:
    with pytest.raises((ValueError, KeyError, AssertionError)):
        at(parse(wrong), scrapes(up=[1.0, 1.0]))
