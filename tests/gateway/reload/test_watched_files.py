"""Files that are read again while serving: when they are, once how, and what is shown when they are refused."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from gateway.reload.watched_files import WatchedFiles, signature_of
from gateway.server.server import Server
from tests.gateway.admin.shown_problems import ADMIN, is_shown, is_well, problem
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import embedded_realm, start_gateway
from tests.kit.realm.stopped_clock import StoppedClock
from tests.kit.wire.logins import write_users

log = logging.getLogger("watched")


class Words(WatchedFiles):
    """Two files that must hold one word each. `used`: the words that are used."""

    kind = "words"
    kept = "these words are not used"

    def __init__(self, directory: Path, clock: StoppedClock) -> None:
        self.paths = [directory / "a", directory / "b"]
        super().__init__(log, clock, signature_of(self.paths))
        self.clock = clock
        self.used: list[str] = []
        self.reads = 0
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    def files(self) -> Iterable[Path]:
        return self.paths

    async def read(self) -> list[str]:
        self.reads += 1
        await self.goes_on.wait()
        words = [path.read_text() for path in self.paths]
        wrong = [
            f"{path.name}: {word!r} is no word" for path, word in zip(self.paths, words, strict=True) if " " in word
        ]
        if not wrong:
            self.used = words
        return wrong


async def settled(words: Words) -> None:
    while words._task is not None:
        await asyncio.sleep(0)


@pytest.fixture
def words(tmp_path: Path) -> Words:
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("two")
    return Words(tmp_path, StoppedClock())


def looks(words: Words, count: int) -> None:
    async def look() -> None:
        for _ in range(count):
            words.look()
            await settled(words)

    asyncio.run(look())


def test_files_are_read_when_two_looks_find_them_alike(words: Words) -> None:
    looks(words, 3)
    assert words.reads == 0, "nothing has changed"
    words.paths[0].write_text("three")
    looks(words, 1)
    words.paths[1].write_text("fourth")
    looks(words, 1)
    assert words.reads == 0, "they are still being written"
    looks(words, 3)
    assert (words.reads, words.done, words.used) == (1, 1, ["three", "fourth"])


def _other_time(path: Path) -> None:
    os.utime(path, ns=(0, 1))


def _other_rights(path: Path) -> None:
    path.chmod(0o400)


def _other_inode(path: Path) -> None:
    again = path.with_name("again")
    again.write_bytes(path.read_bytes())
    os.utime(again, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    again.replace(path)


@pytest.mark.parametrize("change", [_other_time, _other_rights, _other_inode, Path.unlink])
def test_what_a_look_can_tell_is_a_change(words: Words, change: Callable[[Path], None]) -> None:
    change(words.paths[1])
    looks(words, 3)
    assert words.reads == 1


def test_a_file_that_is_gone_changes_nothing_and_is_a_problem_until_it_is_back(words: Words) -> None:
    words.paths[0].write_text("eins")
    looks(words, 2)
    words.paths[0].unlink()
    looks(words, 2)
    assert (words.used, words.refused, len(words.problems)) == (["eins", "two"], 1, 1)
    assert "No such file" in words.problems[0]
    words.paths[0].write_text("back")
    looks(words, 2)
    assert (words.used, words.problems) == (["back", "two"], [])


def test_problems_are_logged_once_and_have_one_beginning(words: Words, caplog: pytest.LogCaptureFixture) -> None:
    for at, text in enumerate(("no word", "no word", "another no word")):
        words.clock.now_s += 1.0
        words.paths[0].write_text(text)
        os.utime(words.paths[0], ns=(0, at))
        looks(words, 2)
    assert [record.getMessage().splitlines() for record in caplog.records] == [
        ["these words are not used:", "  a: 'no word' is no word"],
        ["these words are not used:", "  a: 'another no word' is no word"],
    ]
    assert (words.refused, words.done, words.used) == (3, 0, [])
    assert words.tried_us - words.refused_us == 2_000_000, "they have been refused since the first of them"


def test_a_request_reads_at_once_and_one_that_comes_meanwhile_reads_once_more(words: Words) -> None:
    async def ask() -> None:
        words.goes_on.clear()
        words.request()
        await asyncio.sleep(0)
        assert words.reads == 1
        for _ in range(5):
            words.request()
        words.goes_on.set()
        await settled(words)

    asyncio.run(ask())
    assert (words.reads, words.done) == (2, 2)


def test_a_reader_that_fails_is_a_problem(words: Words) -> None:
    words.paths[0].write_bytes(b"\xff")
    looks(words, 2)
    assert words.problems[0].startswith("they could not be read: UnicodeDecodeError")


def test_a_hang_up_asks_all_of_them() -> None:
    class Asked:
        count = 0

        def request(self) -> None:
            self.count += 1

    server = Server.__new__(Server)
    server.watched = [Asked(), Asked(), Asked()]  # type: ignore[list-item]
    server._read_again()
    assert [watcher.count for watcher in server.watched] == [1, 1, 1]  # type: ignore[attr-defined]


def test_a_users_file_that_goes_is_shown_until_it_is_back_and_the_users_stay(tmp_path: Path) -> None:
    """A real gateway: `/health` and the metrics show it; a hang-up reads the file, too."""
    file = tmp_path / "users.yaml"
    write_users(file, ann=[])
    security = {"sasl": ["SCRAM-SHA-256"], "users": "users.yaml"}
    gateway = start_gateway(tmp_path, embedded_realm(tmp_path), admin=ADMIN, security=security)
    try:
        watch = Watch.of(gateway)
        watch.until(lambda: is_well(watch))
        kept = file.read_bytes()
        file.unlink()
        watch.until(lambda: is_shown(watch, "users-refused"))
        shown = problem(watch, "users-refused")
        assert shown is not None and "users.yaml" in shown["detail"]
        gateway.await_log("the previous one stays active")
        os.kill(gateway.pid, signal.SIGHUP)
        watch.until(lambda: watch.health()["status"] == 200)
        assert is_shown(watch, "users-refused"), "it is not there yet"
        file.write_bytes(kept)
        os.kill(gateway.pid, signal.SIGHUP)
        watch.until(lambda: is_well(watch))
        assert gateway.log().count("this users file is not used") == 1
    finally:
        gateway.stop()
