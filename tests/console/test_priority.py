"""A console gives way to a gateway on its machine; what users have changed does not."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest

from console.poll import commands
from console.poll.priority import Foreground, give_way
from tests.kit.processes.console import start_console
from tests.kit.wire.logins import write_users

SHOWS_ITS_PRIORITY = "#!{python}\nimport os\nprint(os.sched_getscheduler(0))\n"
ELSEWHERE = "http://192.0.2.1:9464"


def _priorities(pid: int) -> set[int]:
    """Of its threads."""
    return {os.sched_getscheduler(int(thread.name)) for thread in Path(f"/proc/{pid}/task").iterdir()}


@pytest.mark.parametrize(
    ("gateway", "keeps", "policy"),
    [
        ("http://127.0.0.1:1", False, os.SCHED_IDLE),
        ("http://localhost:1", False, os.SCHED_IDLE),
        ("http://[::1]:1", False, os.SCHED_IDLE),
        ("http://127.0.0.1:1", True, os.SCHED_OTHER),
        (ELSEWHERE, False, os.SCHED_OTHER),
    ],
)
def test_it_gives_way_to_a_gateway_of_its_machine(tmp_path: Path, gateway: str, keeps: bool, policy: int) -> None:
    console = start_console(tmp_path, "--gateway", gateway, gives_way=not keeps)
    try:
        assert console.get("/healthz")[0] == 200
        assert _priorities(console.process.pid) == {policy}
    finally:
        console.stop()


def test_one_gateway_of_its_machine_is_enough(tmp_path: Path) -> None:
    console = start_console(tmp_path, "--gateway", ELSEWHERE, "--gateway", "http://127.0.0.1:1", gives_way=True)
    try:
        assert _priorities(console.process.pid) == {os.SCHED_IDLE}
    finally:
        console.stop()


def test_one_thread_of_a_console_with_actions_does_not_give_way(tmp_path: Path) -> None:
    write_users(tmp_path / "users.yaml", ann=["operators"])
    config = tmp_path / "realmgate.yaml"
    config.write_text("realm: {kind: embedded, path: realm}\nsecurity: {users: users.yaml, sasl: [SCRAM-SHA-256]}\n")
    words = ("--gateway", "http://127.0.0.1:1", "--config", str(config), "--actions")
    console = start_console(tmp_path, *words, gives_way=True)
    try:
        assert _priorities(console.process.pid) == {os.SCHED_IDLE, os.SCHED_OTHER}
    finally:
        console.stop()


@pytest.mark.parametrize(("acts", "policy"), [(True, os.SCHED_OTHER), (False, os.SCHED_IDLE)])
def test_a_command_of_a_user_keeps_its_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acts: bool, policy: int
) -> None:
    """What only reads for a page gives way as the page does."""
    script = tmp_path / "python"
    script.write_text(SHOWS_ITS_PRIORITY.format(python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    printed: list[bytes] = []

    def console() -> None:
        foreground = Foreground() if acts else None
        assert give_way()
        printed.append(asyncio.run(commands.Commands(tmp_path / "realmgate.yaml", foreground).run("purge")))

    thread = threading.Thread(target=console)
    thread.start()
    thread.join()
    assert [int(output) for output in printed] == [policy]
