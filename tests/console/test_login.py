"""Who may look: users of the gateway's file, over a session that ends, slowed down when they guess."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest

from console.limits import LOGINS_WAITING, SESSION_S, SESSIONS
from console.web.login import next_page
from console.web.sessions import Busy, Sessions
from tests.console.scripted_admin import scripted_admin
from tests.kit.patience import until
from tests.kit.processes.certificates import Authority
from tests.kit.processes.console import ConsoleProcess, start_console
from tests.kit.realm.stopped_clock import StoppedClock
from tests.kit.wire.logins import PASSWORD, write_users


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.yaml"
    write_users(path, ann=["operators"], ben=[])
    return path


@pytest.fixture
def console(tmp_path: Path, users: Path) -> Iterator[ConsoleProcess]:
    with scripted_admin() as admin:
        console = start_console(tmp_path, "--gateway", admin.url, "--users", str(users), "--group", "operators")
        yield console
        assert console.stop() == 0, console.log()
        assert "Traceback" not in console.log() and PASSWORD not in console.log(), console.log()


def log_in(console: ConsoleProcess, user: str, password: str, following: str = "/") -> tuple[int, dict[str, str]]:
    body = urlencode({"user": user, "password": password, "next": following}).encode()
    status, headers, _ = console.get("/login", {"Origin": console.url}, body)
    return status, headers


def cookie_of(headers: dict[str, str]) -> dict[str, str]:
    return {"Cookie": headers["set-cookie"].partition(";")[0]}


def test_nothing_is_shown_without_a_login(console: ConsoleProcess) -> None:
    for path in ("/errors?window=5", "/reconciliation/report/x"):
        status, headers, _ = console.get(path)
        assert status == 303 and headers["location"].startswith("/login?next=%2F")
    for path in ("/errors.json", "/errors.csv", "/overview.json", "/stream?page=%2F"):
        assert console.get(path)[0] == 401
    assert console.get("/healthz")[0] == 200 and "Log in" in console.words("/login")


def test_a_session_begins_and_ends(console: ConsoleProcess) -> None:
    status, headers = log_in(console, "ann", PASSWORD, "/errors?window=5")
    assert (status, headers["location"]) == (303, "/errors?window=5")
    assert "HttpOnly" in headers["set-cookie"] and "SameSite=strict" in headers["set-cookie"]
    session = cookie_of(headers)
    assert console.json("/errors.json", session)["user"] == "ann"
    assert "ann" in console.get("/", session)[2]
    assert console.get("/logout", {**session, "Origin": console.url}, b"")[0] == 303
    assert console.get("/errors.json", session)[0] == 401


def test_a_refused_login_gives_no_reason(console: ConsoleProcess) -> None:
    answers = [console.get("/login", {"Origin": console.url}, urlencode(fields).encode()) for fields in (
        {"user": "ann", "password": "wrong"}, {"user": "no-such", "password": PASSWORD},
        {"user": "ben", "password": PASSWORD}, {"user": "ann"}, {},
    )]  # fmt: skip
    assert [status for status, _, _ in answers] == [403] * 5
    assert len({body for _, _, body in answers}) == 1
    assert not any("set-cookie" in headers for _, headers, _ in answers)


def test_another_site_cannot_log_in(console: ConsoleProcess) -> None:
    body = urlencode({"user": "ann", "password": PASSWORD}).encode()
    assert console.get("/login", {"Origin": "http://evil.example"}, body)[0] == 403
    assert console.get("/login", {}, body)[0] == 403
    assert console.get("/login", {"Origin": console.url}, b"x" * 20_000)[0] == 413


def test_a_user_who_leaves_the_file_is_out(console: ConsoleProcess, users: Path) -> None:
    session = cookie_of(log_in(console, "ann", PASSWORD)[1])
    assert console.get("/errors.json", session)[0] == 200
    other = users.with_suffix(".new")
    write_users(other, ben=["operators"])
    other.replace(users)
    until(lambda: console.get("/errors.json", session)[0] == 401, "the session to end")
    assert log_in(console, "ben", PASSWORD)[0] == 303


def test_over_tls_the_cookie_is_this_hosts_alone(tmp_path: Path, users: Path) -> None:
    pair = Authority(tmp_path / "ours").sign("server", "/CN=localhost", "IP:127.0.0.1")
    with scripted_admin() as admin:
        console = start_console(
            tmp_path, "--gateway", admin.url, "--users", str(users), "--tls-certificate", str(pair.certificate),
            "--tls-key", str(pair.key), listen="https://0.0.0.0:0",
        )  # fmt: skip
        console.url = console.url.replace("0.0.0.0", "127.0.0.1")
        try:
            status, headers = log_in(console, "ann", PASSWORD)
            assert status == 303 and "__Host-" in headers["set-cookie"] and "Secure" in headers["set-cookie"]
            assert console.get("/errors.json", cookie_of(headers))[0] == 200
        finally:
            assert console.stop() == 0, console.log()


async def _tokens(sessions: Sessions, count: int) -> list[str | None]:
    return [await sessions.log_in("ann", PASSWORD, "10.0.0.1") for _ in range(count)]


def test_sessions_are_few_and_end(users: Path) -> None:
    clock = StoppedClock()
    sessions = Sessions(users, (), clock)
    [first] = asyncio.run(_tokens(sessions, 1))
    assert first and sessions.user(first) == "ann" and sessions.user("") is None
    tokens = [sessions.begin("ann") for _ in range(SESSIONS)]
    assert sessions.user(first) is None and sessions.user(tokens[0]) == "ann", "the oldest went"
    clock.now_s += SESSION_S + 1
    assert sessions.user(tokens[-1]) is None


def test_who_guesses_waits(users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    clock = StoppedClock()

    def later(seconds: float, call: Callable[[], None]) -> asyncio.Handle:
        waited.append(seconds)
        clock.now_s += seconds + 1e-6
        return asyncio.get_running_loop().call_soon(call)

    monkeypatch.setattr("console.web.sessions.later", later)
    sessions = Sessions(users, (), clock)

    async def guess() -> None:
        for _ in range(5):
            assert await sessions.log_in("ann", "wrong", "10.0.0.1") is None
        assert await sessions.log_in("ann", PASSWORD, "10.0.0.2"), "another address"

    asyncio.run(guess())
    assert waited == pytest.approx([0.1, 0.2, 0.4, 0.8], abs=1e-3)


def test_logins_of_an_address_that_guesses_hold_no_other_address_up(
    users: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock stands still, so that the turn of the guesses does not come."""
    sessions = Sessions(users, (), StoppedClock())

    async def guess() -> None:
        assert await sessions.log_in("ann", "wrong", "10.0.0.1") is None
        guesses = [asyncio.create_task(sessions.log_in("ann", "wrong", "10.0.0.1")) for _ in range(LOGINS_WAITING * 2)]
        await asyncio.sleep(0)
        assert await sessions.log_in("ann", PASSWORD, "10.0.0.2")
        refused = [task for task in guesses if task.done()]
        assert len(refused) > LOGINS_WAITING
        assert all(isinstance(task.exception(), Busy) for task in refused)
        for task in guesses:
            task.cancel()
        await asyncio.gather(*guesses, return_exceptions=True)
        assert await sessions.log_in("ben", PASSWORD, "10.0.0.1"), "those that are gone hold no place"

    asyncio.run(guess())
    assert "login of 'ann' from 10.0.0.1 refused unheard: too many of its address wait, or failed" in caplog.text


def test_a_login_that_is_not_heard_is_answered_so(console: ConsoleProcess) -> None:
    statuses = Counter[int]()
    with ThreadPoolExecutor(30) as pool:
        statuses.update(pool.map(lambda _: log_in(console, "ann", "wrong")[0], range(30)))
    assert {*statuses} == {403, 503}, "what would wait for more than 8 seconds is refused at once"


def test_a_file_that_is_wrong_leaves_the_users_as_they_were(users: Path) -> None:
    clock = StoppedClock()
    sessions = Sessions(users, (), clock)
    token = sessions.begin("ann")
    other = users.with_suffix(".new")
    other.write_text("users: [")
    other.replace(users)
    clock.now_s += 2
    assert sessions.user(token) == "ann" and sessions.problem


def test_a_file_that_goes_is_named_until_it_is_back(users: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = StoppedClock()
    sessions = Sessions(users, (), clock)
    token = sessions.begin("ann")
    away = users.rename(users.with_suffix(".away"))
    clock.now_s += 2
    assert sessions.user(token) == "ann" and "No such file" in sessions.problem and "No such file" in caplog.text
    away.rename(users)  # as it was, with its times
    clock.now_s += 2
    assert sessions.user(token) == "ann" and not sessions.problem


def test_a_file_of_the_same_time_and_size_is_read(users: Path) -> None:
    clock = StoppedClock()
    sessions = Sessions(users, (), clock)
    token, status = sessions.begin("ann"), users.stat()
    users.write_text(users.read_text().replace("ann:", "eve:"))
    os.utime(users, ns=(status.st_atime_ns, status.st_mtime_ns))
    clock.now_s += 2
    assert sessions.user(token) is None


@pytest.mark.parametrize(
    ("written", "leads_to"),
    [
        ("/errors?q=a", "/errors?q=a"), ("https://evil.example/", "/"), ("//evil.example", "/"),
        ("/\\evil.example", "/"), ("", "/"), ("javascript:alert(1)", "/"), ("/a\r\nSet-Cookie: x", "/"),
        ("/a\\..\\b", "/"),
    ],
)  # fmt: skip
def test_a_login_leads_to_a_page_of_its_own(written: str, leads_to: str) -> None:
    assert next_page(written) == leads_to
