"""Section `console` of a configuration: what `realmgate console --config FILE` goes by, so that it needs no further
arguments. The gateway itself uses none of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gateway.config.field import Field
from gateway.config.shapes import boolean, sequence, text

LISTEN: Final = "http://127.0.0.1:9465"
_HOST: Final = r"(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]@]+)"
_URL: Final = re.compile(rf"https?://{_HOST}:([0-9]{{1,5}})/?")
_PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """`gateways`: none: the one of this configuration. `without_login`, `without_tls`: what is open is meant to be.
    `keep_priority`: it does not give way to a gateway on its machine."""

    listen: str = LISTEN
    gateways: tuple[str, ...] = ()
    reports: tuple[Path, ...] = ()
    users: Path | None = None
    groups: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    actions: bool = False
    without_login: bool = False
    without_tls: bool = False
    keep_priority: bool = False


def _listen(written: str) -> str | None:
    match = _URL.fullmatch(written)
    is_port = match is not None and int(match[1]) <= _PORT_MAX
    return None if is_port else "is no http://HOST:PORT or https://HOST:PORT"


def _gateway(written: str) -> str | None:
    match = _URL.fullmatch(written)
    is_ours = match is not None and 0 < int(match[1]) <= _PORT_MAX and written.startswith("http://")
    return None if is_ours else "is no http://HOST:PORT"


_PATH: Final = text("a path", "users.yaml")
CONSOLE_FIELDS: Final = (
    Field(
        "console.listen",
        text("an address", f'"{LISTEN}"', _listen, "^https?://[^\\s]+:[0-9]+/?$"),
        LISTEN,
        "where `realmgate console` listens ([how to](how-to/use-the-console.md)); `https://` with TLS. The gateway "
        "uses no key of `console`; arguments of the command count before them",
    ),
    Field(
        "console.gateways",
        sequence(
            text("an address", '"http://gw-a:9464"', _gateway, "^http://[^\\s]+:[0-9]+/?$"),
            "a list of addresses",
            '["http://gw-a:9464"]',
        ),
        (),
        "admin addresses of the gateways that it shows, at most 32; none: `admin.listen`",
    ),
    Field(
        "console.reports",
        sequence(text("a path", "report"), "a list of paths", "[report]"),
        (),
        "what `realmgate reconcile --out` wrote, or directories with a folder for each reconciliation; relative to "
        "this file",
    ),
    Field("console.users", _PATH, None, "who may log in, relative to this file; none: `security.users`, where it asks"),
    Field(
        "console.groups",
        sequence(text("a group", "operators"), "a list of groups", "[operators]"),
        (),
        "only their members may log in; none: every user",
    ),
    Field("console.certificate", text("a path", "console.pem"), None, "PEM, for `https://`; none: that of `tls`"),
    Field("console.key", text("a path", "console.key"), None, "its private key, PEM, without a password"),
    Field(
        "console.actions",
        boolean(True),
        False,
        "users may close connections, resend, move and purge messages, as the grants allow them; needs a login",
    ),
    Field("console.without_login", boolean(True), False, "let in every client that can connect from elsewhere"),
    Field("console.without_tls", boolean(True), False, "allow `http://` beyond loopback, behind a proxy that has TLS"),
    Field(
        "console.keep_priority",
        boolean(True),
        False,
        "compete with a gateway on the same machine for its cores; otherwise pages wait until a core is free",
    ),
)


def read_console(values: Mapping[str, Any], base: Path) -> ConsoleSettings:
    """Paths are relative to `base`."""
    given = {field.name: values[field.key] for field in CONSOLE_FIELDS}
    for name in ("users", "certificate", "key"):
        given[name] = None if given[name] is None else base / given[name]
    given["reports"] = [base / path for path in given["reports"]]
    for name in ("gateways", "reports", "groups"):
        given[name] = tuple(given[name])
    return ConsoleSettings(**given)
