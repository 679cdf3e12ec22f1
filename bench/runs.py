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


class RunFailed(Exception):
    """A client did not do all it was asked to; the message holds its report."""


@dataclass(frozen=True, slots=True)
class Case:
    """Messages of `size` bytes, `in_flight` of them unsettled at most."""

    size: int
    in_flight: int
    count: int


def move_in(address: str, queue: str, case: Case, rate: float = 0.0) -> dict[str, Any]:
    """Fill the queue with `count` messages."""
    pace = ["--rate", str(rate)] if rate else []
    return _report(_start("send", address, queue, case, *pace))


def move_out(address: str, queue: str, case: Case) -> dict[str, Any]:
    """Empty the queue of `count` messages."""
    report = _report(_start("receive", address, queue, case))
    if report["distinct"] != case.count:
        raise RunFailed(f"not the messages that were sent: {report}")
    return report


def move_both(address: str, queue: str, case: Case) -> dict[str, Any]:
    """`count` messages in and out at once; the rate is that of the whole, until the later of both is done."""
    receiver = _start("receive", address, queue, case)
    sender = _start("send", address, queue, case)
    sent, got = _report(sender), _report(receiver)
    seconds = max(sent["seconds"], got["seconds"])
    return {"rate": case.count / seconds, "seconds": seconds, "in": sent, "out": got}


def send_kept(address: str, channel: str, case: Case) -> dict[str, Any]:
    """`count` events of a channel, which keeps them."""
    return _report(_start("send", address, channel, case, capability="topic"))


def receive_kept(address: str, channel: str, case: Case, durable: str | None) -> dict[str, Any]:
    """All of them, from the first, by a plain subscription or a durable one of that name."""
    more = ["--first", *(["--durable", durable, "--container", "durable"] if durable else [])]
    report = _report(_start("receive", address, channel, case, *more, capability="topic"))
    if report["distinct"] != case.count:
        raise RunFailed(f"not the events that were sent: {report}")
    return report


def produce(bootstrap: str, topic: str, case: Case) -> dict[str, Any]:
    """The bare producer's run."""
    command = [sys.executable, "-m", "bench.producer", bootstrap, topic, str(case.count), str(case.size)]
    return _report(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))


def _start(
    mode: str, address: str, queue: str, case: Case, *more: str, capability: str = "queue"
) -> subprocess.Popen[str]:
    command = [str(load_client()), mode, "--address", address, "--node", queue, "--capability", capability]
    command += ["--count", str(case.count), "--size", str(case.size), "--in-flight", str(case.in_flight), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _report(process: subprocess.Popen[str]) -> dict[str, Any]:
    try:
        out, _ = process.communicate(timeout=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise RunFailed(f"no end within {RUN_TIMEOUT_S} s: {process.args!r}") from None
    if process.returncode != 0:
        raise RunFailed(f"exit {process.returncode}: {out.strip()}")
    report = json.loads(out)
    assert isinstance(report, dict)
    return report
