"""The report of a measurement: medians, ratios, and an honest verdict on what is required."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest

from bench.decisions import decisions
from bench.machine import Machine
from bench.report import markdown
from bench.runs import Case, move_both, move_in, move_out
from gateway.links.consuming import ConsumingLink
from gateway.links.publishing import PublishingLink
from mappings import load_tables
from tests.kit.processes.gateway import StartGateway
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.scripted_realm import ScriptedRealm


def row(name: str, system: str, figure: float) -> dict[str, Any]:
    return {"row": name, "system": system, "size": 100, "in_flight": 1000, "median": figure, "samples": []}


def results(*rows: dict[str, Any]) -> dict[str, Any]:
    return {
        "started": "2026-01-01T0000",
        "command": "python -m bench",
        "commit": "abc",
        "versions": {"python": "3.11"},
        "journal": "ASYNCIO",
        "failures": [],
        "memory": {"points": [{"messages": n, "rss_bytes": 100_000_000 + n} for n in range(0, 10_000_001, 1_000_000)]},
        "rows": list(rows),
    }


def test_ratios_stand_beside_the_rates() -> None:
    table = markdown(results(row("in", "kafka", 90_000), row("in", "artemis", 120_000), row("in", "producer", 400_000)))
    assert "| in | 100 | 1,000 | 90,000 |  | 120,000 | 400,000 | 0.75 | 0.23 |" in table


def test_what_is_required_is_judged_one_by_one() -> None:
    rows = [row("in", "kafka", 90_000), row("in", "artemis", 120_000), row("in", "producer", 400_000)]
    table = markdown(results(*rows, row("accept", "kafka", 30_001)))
    assert "in, 100 B: 0.75 x artemis, required 0.75: met" in table
    assert "in, 100 B: 0.23 x producer, required 0.30: NOT met" in table
    assert "p99 30.0 ms, required 30 ms: NOT met" in table


def test_memory_is_compared_after_the_warm_up() -> None:
    assert "101.0 MB after 1,000,000 messages, 110.0 MB after 10,000,000: +9.0 MB." in markdown(results())


def test_a_busy_neighbour_is_named() -> None:
    def measured(share: float) -> dict[str, Any]:
        return {**row("in", "kafka", 90_000), "samples": [{"foreign_cpu": share}]}

    assert "used 50% of the cores (median), 50% at most. **Too much" in markdown(results(measured(0.5)))
    assert "Too much" not in markdown(results(measured(0.01)))


def test_samples_begun_on_slow_cores_are_named() -> None:
    speeds = [{"foreign_cpu": 0.0, "core_speed": speed} for speed in (0.5, 0.9, 1.0)]
    rows = [{**row("in", "kafka", 90_000), "samples": speeds}]
    assert "The cores ran at 90% of their best when samples began (median), 50% at least." in markdown(results(*rows))


def test_what_others_use_is_kept_apart_from_what_we_use() -> None:
    """A child that has not been reaped counts as a stranger; a reaped one as ours."""
    work = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"]
    machine = Machine([])

    def stranger() -> dict[str, Any]:
        strays.append(subprocess.Popen(work))
        os.waitid(os.P_PID, strays[0].pid, os.WEXITED | os.WNOWAIT)
        return {}

    strays: list[subprocess.Popen[bytes]] = []
    begin = time.monotonic()
    foreign = machine.measured(stranger)["foreign_cpu"]
    assert foreign * machine.cores * (time.monotonic() - begin) > 0.4
    ours = machine.ours_s()
    strays[0].wait()
    assert machine.ours_s() - ours >= 0.45  # the system counts in ticks


def test_a_failed_run_is_named() -> None:
    assert "- kafka: exit 1" in markdown({**results(), "failures": ["kafka: exit 1"]})


def test_a_sample_that_was_thrown_away_is_named() -> None:
    assert "- in     kafka 1 msg/s" in markdown({**results(), "retaken": ["in     kafka 1 msg/s"]})


def test_the_runs_move_what_they_say(new_gateway: StartGateway) -> None:
    """The harness itself, on a real gateway: in, out of the backlog, both; each leaves its queue empty for the next."""
    address = new_gateway("embedded").address
    case = Case(size=100, in_flight=100, count=2_000)
    assert move_in(address, "q", case)["accepted"] == 2_000
    assert move_out(address, "q", case)["distinct"] == 2_000
    both = move_both(address, "q", case)
    assert (both["in"]["accepted"], both["out"]["distinct"]) == (2_000, 2_000)
    paced = move_in(address, "q", case, rate=4_000)
    assert paced["seconds"] > 0.45, "2,000 at 4,000 a second"


def test_the_decisions_that_are_measured_are_those_that_links_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for a run of dispositions, and one for each cell that the messages of a run meet."""
    calls: list[tuple[type, tuple[Any, ...]]] = []
    for kind in (ConsumingLink, PublishingLink):

        def decide(link: Any, *facts: Any, real: Any = kind.decide) -> Any:
            calls.append((type(link), facts))
            return real(link, *facts)

        monkeypatch.setattr(kind, "decide", decide)
    peer = Conversation(build_gateway(load_tables(), ScriptedRealm()))
    peer.say(frames.attach_sender("q"), frames.attach_receiver("q"), frames.flow(1, 3))
    calls.clear()  # a link asks for what mostly comes when it is attached
    seen = peer.say(*(frames.transfer(at, frames.message(), settled=at == 2) for at in range(3)))
    events = [("event", "no", 0)] * 2 + [("event", "no", 1)]
    assert calls == [(PublishingLink, facts) for facts in events]
    calls.clear()
    given = [frame.field(1) for frame in seen if frame.name == "transfer"]
    peer.say(frames.disposition(given[0], given[-1], frames.state("accepted")))
    assert calls == [(ConsumingLink, ("accepted",)), (ConsumingLink, ("accepted", "last"))], "for all three"
    calls.clear()
    decisions(1)
    assert {*calls} == {(ConsumingLink, ("accepted",)), (PublishingLink, ("event", "no", 0))}


def test_decisions_are_measured_and_judged() -> None:
    """What is allocated is exact; the times are looked at by the one who measures, on a quiet machine."""
    figures = decisions(1_000)
    assert figures["allocated_bytes"] == 0
    assert min(figures[name] for name in ("settle_us", "publish_us", "look_up_us", "check_s")) > 0
    page = markdown({**results(), "decisions": {**figures, "settle_us": 0.02, "check_s": 0.5}})
    assert "Decision of a settled run: 0.020 us, required 0.1: met; 0 bytes allocated, required 0: met." in page
    assert "All shipped tables read and checked: 0.50 s, required 1: met." in page
    page = markdown({**results(), "decisions": {**figures, "settle_us": 0.2, "check_s": 1.5, "allocated_bytes": 32}})
    assert page.count("NOT met") == 3
    assert "Decision" not in markdown(results()), "earlier results have none"
