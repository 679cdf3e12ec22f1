"""What the plan keeps of what it takes, on a machine that slows down when it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from bench.machine import Machine
from bench.plan import RETAKEN_MAX, Plan, Taken
from bench.runs import Case, RunFailed

CASE = Case(100, 1000, 1)
KEY = ("in", "kafka", 100, 1000)


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(Machine, "settle", lambda self: None)
    return Plan(SimpleNamespace(pids=list), [CASE], 1)  # type: ignore[arg-type]


def steady(monkeypatch: pytest.MonkeyPatch, *looks: bool) -> None:
    """What the looks after each take will find; the last one for ever."""
    left = list(looks)
    monkeypatch.setattr(Machine, "is_steady", lambda self: left.pop(0) if len(left) > 1 else left[0])


def taking(queues: list[str]) -> Iterator[Taken]:
    yield "in", {"rate": float(len(queues)), "foreign_cpu": 0.0}


def keep(plan: Plan) -> list[str]:
    queues: list[str] = []

    def take(queue: str) -> Iterator[Taken]:
        queues.append(queue)
        return taking(queues)

    plan.keep("kafka", CASE, take)
    return queues


def test_what_was_taken_while_the_cores_slowed_down_is_taken_again(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    steady(monkeypatch, False, False, True)
    assert keep(plan) == ["bench-1", "bench-2", "bench-3"]
    assert [sample["rate"] for sample in plan.samples[KEY]] == [3.0]
    assert len(plan.retaken) == 2, "and what was thrown away is told"


def test_there_is_an_end_of_taking_again(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    steady(monkeypatch, False)
    assert len(keep(plan)) == RETAKEN_MAX + 1
    assert len(plan.samples[KEY]) == 1


def test_a_run_that_failed_is_never_thrown_away(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    steady(monkeypatch, False)

    def take(queue: str) -> Iterator[Taken]:
        yield from taking([queue])
        raise RunFailed("exit 1")

    plan.keep("kafka", CASE, take)
    assert plan.failures == ["kafka, 100 B, 1000 in flight: exit 1"]
    assert (len(plan.samples[KEY]), plan.retaken) == (1, [])
