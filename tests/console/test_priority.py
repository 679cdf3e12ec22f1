"""A console gives way to a gateway on its machine; what users have changed does not."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from console.poll.commands import Commands
from console.poll.fetch import NoAnswer
from console.poll.priority import Foreground
from tests.kit.patience import until
from tests.kit.processes.console import start_console
from tests.kit.wire.logins import write_users

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
        if policy == os.SCHED_OTHER:
            assert console.get("/healthz")[0] == 200, "it serves: it would have given way by now"
        until(lambda: _priorities(console.process.pid) == {policy}, f"policy {policy}")
    finally:
        console.process.kill()  # one that gives way may take long to end
        console.process.wait()


def test_one_gateway_of_its_machine_is_enough(tmp_path: Path) -> None:
    console = start_console(tmp_path, "--gateway", ELSEWHERE, "--gateway", "http://127.0.0.1:1", gives_way=True)
    try:
        until(lambda: _priorities(console.process.pid) == {os.SCHED_IDLE}, "to give way")
    finally:
        console.process.kill()  # one that gives way may take long to end
        console.process.wait()


def test_one_thread_of_a_console_with_actions_does_not_give_way(tmp_path: Path) -> None:
    write_users(tmp_path / "users.yaml", ann=["operators"])
    config = tmp_path / "realmgate.yaml"
    config.write_text("realm: {kind: embedded, path: realm}\nsecurity: {users: users.yaml, sasl: [SCRAM-SHA-256]}\n")
    both = {os.SCHED_IDLE, os.SCHED_OTHER}
    words = ("--gateway", "http://127.0.0.1:1", "--config", str(config), "--actions")
    console = start_console(tmp_path, *words, gives_way=True)
    try:
        until(lambda: _priorities(console.process.pid) == both, "one thread that does not give way")
    finally:
        console.process.kill()  # one that gives way may take long to end
        console.process.wait()


@pytest.mark.parametrize("acts", [True, False])
def test_a_command_of_a_user_is_started_by_that_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acts: bool
) -> None:
    """What only reads for a page is not."""

    async def start(*_: object, **__: object) -> None:
        raise NoAnswer(f"started by {threading.get_ident()}")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    reads = Commands(tmp_path / "realmgate.yaml", Foreground() if acts else None)
    with pytest.raises(NoAnswer) as started:
        asyncio.run(reads.run("purge"))
    assert (str(started.value) != f"started by {threading.get_ident()}") is acts
