"""Gateways are asked while a page is open, within bounds; a wrong answer is shown and harms nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from console.facts.gateway import Gateway
from console.limits import ANSWER_BYTES, ASK_TIMEOUT_S, HEAD_BYTES, LOOKED_S
from console.poll.fetch import fetch
from console.poll.poller import Watch
from native_backend.clock import Clock, SystemClock
from tests.console.fixed import RUN, error, page
from tests.console.scripted_admin import http, scripted_admin, well
from tests.kit.patience import HANG_S


def watching(urls: list[str], look: Callable[[Watch], Awaitable[Any]], clock: Clock | None = None) -> list[Gateway]:
    """With the pollers running; the gateways as they are when `look` has come to its end."""

    async def run() -> list[Gateway]:
        watch = Watch([Gateway(url) for url in urls], clock or SystemClock())
        watch.start()
        try:
            async with asyncio.timeout(HANG_S):
                await look(watch)
        finally:
            await watch.stop()
        return [*watch.gateways]

    return asyncio.run(run())


class _Ahead(SystemClock):
    """Whose intervals a test moves forward."""

    ahead_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s


async def failing(watch: Watch) -> None:
    await watch.look(links=True)
    while not watch.gateways[0].failed_us:
        await watch.changed.wait()


def test_a_look_waits_for_the_first_answers() -> None:
    with scripted_admin() as admin:
        [gateway] = watching([admin.url], lambda watch: watch.look(links=True))
        assert (gateway.state, gateway.run, len(gateway.errors), len(gateway.links)) == ("ready", RUN, 3, 2)
        assert admin.asked[:3] == ["/health", "/metrics", "/api/errors?since=0&limit=500"]


def test_a_page_that_stays_open_is_enough_to_ask() -> None:
    """It may come back from the background, and no page is made then."""

    async def stay(watch: Watch) -> None:
        await asyncio.sleep(0)  # the pollers have begun to wait
        with watch.viewer(links=False):
            while not watch.version:
                await watch.changed.wait()

    with scripted_admin() as admin:
        [gateway] = watching([admin.url], stay)
        assert gateway.state == "ready"


def test_links_are_asked_for_where_a_page_shows_them() -> None:
    with scripted_admin() as admin:
        [gateway] = watching([admin.url], lambda watch: watch.look(links=False))
        assert not gateway.links and not [path for path in admin.asked if path.startswith("/api/links")]


def test_no_gateway_is_asked_while_no_page_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pause between two rounds, one that should not come would come beside what is asked here."""
    monkeypatch.setattr("console.poll.poller.POLL_S", 0.0)
    clock = _Ahead()

    async def look(watch: Watch) -> None:
        await watch.look(links=False)
        assert watch.is_looked_at
        clock.ahead_s += LOOKED_S + 1
        assert not watch.is_looked_at
        watch.streams = 1
        assert watch.is_looked_at
        watch.streams = 0
        requests = len(admin.asked)
        for _ in range(20):
            await fetch(other.url, "/health")
        assert len(admin.asked) <= requests + 3, "one round may have been under way"
        requests = len(admin.asked)
        clock.ahead_s += LOOKED_S
        await watch.look(links=False)
        assert len(admin.asked) > requests

    with scripted_admin() as admin, scripted_admin() as other:
        watching([admin.url], look, clock)


def test_entries_of_many_pages_are_read() -> None:
    def paged(path: str) -> bytes:
        if not path.startswith("/api/errors"):
            return well(path)
        first = 1 if "after=" not in path else 501
        rows = [error(at, "fault", 100, fault="idle") for at in range(first, first + (500 if first == 1 else 7))]
        return http(page("errors", rows, next=f"{RUN}.500" if first == 1 else None))

    with scripted_admin(paged) as admin:
        [gateway] = watching([admin.url], lambda watch: watch.look(links=False))
    assert len(gateway.errors) == 507


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda _: b"", "the connection was closed"),
        (lambda _: b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "does not speak HTTP"),
        (lambda _: http(b"<html>a proxy</html>"), "/health is no JSON"),
        (lambda _: http(b'{"status": "ok"}'), "is this a gateway's admin address?"),
        (lambda _: http(b"{", length=100), "the answer is cut short"),
        (lambda _: http(b"{}", length=ANSWER_BYTES + 1), "is larger than"),
        (lambda _: b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (ANSWER_BYTES + 1), "is larger than"),
        (lambda _: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "no gateway's admin address"),
        (lambda _: b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * HEAD_BYTES, "has no end"),
        (lambda path: http(b"up 1 2 3\n") if path == "/metrics" else well(path), "cannot be read"),
        (lambda path: http(b"[]") if path.startswith("/api/") else well(path), "/api/errors is no JSON object"),
        (lambda path: None if path == "/metrics" else well(path), f"/metrics within {ASK_TIMEOUT_S:.0f} s"),
    ],
    ids=["closed", "ssh", "html", "other", "cut", "large", "endless", "chunked", "head", "metrics", "rows", "hung"],
)  # fmt: skip
def test_an_answer_that_is_wrong_is_shown(answer: Callable[[str], bytes | None], words: str) -> None:
    with scripted_admin(answer) as admin:
        [gateway] = watching([admin.url], failing)
    assert words in gateway.problem
    assert not gateway.answers and gateway.state == "unknown"


def test_a_gateway_that_is_hung_delays_no_other_and_no_page() -> None:
    async def look(watch: Watch) -> None:
        await watch.look(links=False)
        assert not watch.gateways[0].answered_us
        while not watch.gateways[1].answers:
            await watch.changed.wait()

    with scripted_admin(lambda _: None) as hung, scripted_admin() as well_one:
        watching([hung.url, well_one.url], look)


def test_what_was_known_stays_when_a_gateway_goes_and_comes() -> None:
    answers: list[Callable[[str], bytes]] = [well]

    async def look(watch: Watch) -> None:
        await watch.look(links=True)
        [gateway] = watch.gateways
        answers[0] = lambda _: b""
        while not gateway.failed_us:
            await watch.changed.wait()
            await watch.look(links=False)
        assert gateway.rises.totals and gateway.errors and gateway.links
        answers[0] = well
        while gateway.failed_us:
            await watch.changed.wait()
            watch._looked_s = watch.clock.monotonic_s()
        assert [happening.letter for happening in gateway.happened] == ["G", "A"]

    with scripted_admin(lambda path: answers[0](path)) as admin:
        watching([admin.url], look)
