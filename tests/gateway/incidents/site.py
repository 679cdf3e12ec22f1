"""A gateway, and a console that looks at it: what the command and the page say of an incident."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.console import ConsoleProcess, start_console
from tests.kit.processes.gateway import GatewayProcess, make_gateway, realmgate
from tests.kit.wire.logins import write_users

SIZE_MAX = 20_000
PAGE = "/"


@dataclass(frozen=True, slots=True)
class Named:
    """What must stand together: in one problem of the command, in one row of the page. `who`: user or container."""

    node: str
    who: str
    rule: str
    remedy: str

    def is_in(self, text: str) -> bool:
        squeezed = _squeezed(text)
        return all(_squeezed(part) in squeezed for part in (self.node, self.who, self.rule, self.remedy))


@dataclass(slots=True)
class Site:
    """See the module's docstring."""

    gateway: GatewayProcess
    console: ConsoleProcess
    url: str

    @property
    def port(self) -> int:
        return self.gateway.port

    def command(self) -> list[str]:
        """Each problem that `realmgate problems` prints."""
        _, out, complaints = realmgate("problems", "--all", "--gateway", self.url)
        assert not complaints, complaints
        return re.split(r"\n(?=\S)", out)

    def page(self) -> list[str]:
        """Each row of the console's overview."""
        status, _, body = self.console.get(PAGE)
        assert status == 200, body
        return [unescape(re.sub(r"<[^>]+>", "", row)) for row in body.split("<tr")]


def _squeezed(text: str) -> str:
    return "".join(text.split())


@contextmanager
def opened_site(
    directory: Path, realm: dict[str, Any], environment: dict[str, str] | None = None, **settings: Any
) -> Iterator[Site]:
    """Up; stopped in order at the end."""
    directory.mkdir(parents=True, exist_ok=True)
    write_users(directory / "users.yaml", ann=[], ben=[])
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    limits = {"message_size_bytes": SIZE_MAX, "idle_timeout_ms": 0}  # peers say nothing while commands look
    gateway = make_gateway(
        directory, realm, security=security, admin={"listen": "http://127.0.0.1:0"}, nodes={}, limits=limits, **settings
    )
    gateway.environment = environment or {}
    gateway.start()
    try:
        url = Watch.of(gateway).url
        console = start_console(directory, "--gateway", url)
        try:
            yield Site(gateway, console, url)
        finally:
            assert console.stop() == 0, console.log()
    finally:
        assert gateway.stop() == 0, gateway.log()
    assert "Traceback" not in gateway.log() + console.log(), gateway.log()
