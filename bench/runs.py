"""One run of one system: in, out (from a backlog), both at once, paced. Each leaves its queue empty.

Rates are the load client's own: from when its link is open to when the last outcome was read (in) or the last message
was accepted (out). Errors: `RunFailed`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tests.kit.processes.load_client import load_client

RUN_TIMEOUT_S = 180


class RunFailed(RuntimeError):
    """A client did not do all it was asked to; the message holds its report."""


@dataclass(frozen=True, slots=True)
class Case:
    """Messages of `size` bytes, `in_flight` of them unsettled at most."""

    size: int
    in_flight: int
    count: int

    def due_s(self, rate: float) -> float:
        return self.count / rate if rate else 0.0


def move_in(address: str, queue: str, case: Case, rate: float = 0.0) -> dict[str, Any]:
    """Fill the queue with `count` messages, as fast as it goes or at a rate."""
    return report_of(_start("send", address, queue, case, rate=rate), case.due_s(rate))


def move_out(address: str, queue: str, case: Case) -> dict[str, Any]:
    """Empty the queue of `count` messages."""
    report = report_of(_start("receive", address, queue, case))
    if report["distinct"] != case.count:
        raise RunFailed(f"not the messages that were sent: {report}")
    return report


def move_both(address: str, queue: str, case: Case, rate: float = 0.0) -> dict[str, Any]:
    """`count` messages in and out at once; the rate is that of the whole, until the later of both is done."""
    receiver = _start("receive", address, queue, case)
    sender = _start("send", address, queue, case, rate=rate)
    try:
        sent, got = report_of(sender, case.due_s(rate)), report_of(receiver)
    finally:
        receiver.kill()
        receiver.wait()
    seconds = max(sent["seconds"], got["seconds"])
    return {"rate": case.count / seconds, "seconds": seconds, "in": sent, "out": got}


def send_kept(address: str, channel: str, case: Case) -> dict[str, Any]:
    """`count` events of a channel, which keeps them."""
    return report_of(_start("send", address, channel, case, capability="topic"))


def receive_kept(address: str, channel: str, case: Case, durable: str | None) -> dict[str, Any]:
    """All of them, from the first, by a plain subscription or a durable one of that name."""
    more = ["--first", *(["--durable", durable, "--container", "durable"] if durable else [])]
    report = report_of(_start("receive", address, channel, case, *more, capability="topic"))
    if report["distinct"] != case.count:
        raise RunFailed(f"not the events that were sent: {report}")
    return report


def produce(bootstrap: str, topic: str, case: Case) -> dict[str, Any]:
    """The bare producer's run."""
    command = [sys.executable, "-m", "bench.producer", bootstrap, topic, str(case.count), str(case.size)]
    return report_of(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))


def _start(
    mode: str, address: str, queue: str, case: Case, *more: str, capability: str = "queue", rate: float = 0.0
) -> subprocess.Popen[str]:
    command = [str(load_client()), mode, "--address", address, "--node", queue, "--capability", capability]
    command += ["--count", str(case.count), "--size", str(case.size), "--in-flight", str(case.in_flight), *more]
    command += ["--rate", str(rate)] if rate else []
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def report_of(process: subprocess.Popen[str], due_s: float = 0.0) -> dict[str, Any]:
    """What a client printed at its end. `due_s`: it is to take so long in any case."""
    limit_s = RUN_TIMEOUT_S + due_s
    try:
        out, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise RunFailed(f"no end within {limit_s:.0f} s: {process.args!r}") from None
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        raise RunFailed(f"exit {process.returncode}: {out.strip()}")
    report = json.loads(out)
    assert isinstance(report, dict)
    return report
