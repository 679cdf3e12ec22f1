"""Waiting for cores that a host holds back, with looks and pauses as told."""

from __future__ import annotations

import pytest

from bench.cores import APART_S, LOOKS, PATIENCE_S, Cores


def test_a_single_slow_look_is_no_slow_machine() -> None:
    looks = iter([1.0] * LOOKS + [1.0] * (LOOKS - 2) + [3.0, 3.0])
    cores = Cores(lambda: next(looks), lambda _: None)
    assert [cores.speed(), cores.speed()] == [1.0, 1.0]


def test_it_waits_until_they_run_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    looks = iter([1.0] * LOOKS + [2.0] * 3 * LOOKS + [1.1] * LOOKS)
    cores = Cores(lambda: next(looks), lambda _: None)
    assert cores.await_full() == 1.0
    assert cores.await_full() == 0.91
    assert capsys.readouterr().err.count("the cores run at 50% of their best: waiting") == 3


def test_its_patience_ends() -> None:
    looks, waited = iter([1.0] * LOOKS + [2.0] * 1_000_000), 0.0

    def pause(seconds: float) -> None:
        nonlocal waited
        waited += seconds

    cores = Cores(lambda: next(looks), pause)
    cores.await_full()
    assert cores.await_full() == 0.5
    assert waited == pytest.approx(PATIENCE_S, abs=3 * LOOKS * APART_S)
    assert cores.await_full() == 0.5, "it waits no second time"
