"""Where `send` and `receive` connect to, and as whom.

The password is in no text that is made of it. Errors: `AddressProblem`, in words for an operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from gateway.cli.client.client_problem import ClientProblem
from gateway.config.fields import PORTS
from gateway.config.settings import Listen, Settings

USER, PASSWORD = "REALMGATE_USER", "REALMGATE_PASSWORD"
_SCHEMES: Final = ("amqp", "amqps")


class AddressProblem(ClientProblem):
    """No address to connect to; says what to write."""


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """`url` has neither user nor password. `user` None: without a login. `ca`: whose certificates count."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: Path | None = None
    variables: tuple[str, str] = (USER, PASSWORD)
    """Where the environment may name user and password."""
    ca_word: str = "--ca"
    """What the command line calls `ca`."""


def from_url(
    url: str,
    environment: Mapping[str, str],
    ca: Path | None,
    word: str = "--url",
    variables: tuple[str, str] = (USER, PASSWORD),
) -> PeerAddress:
    """User and password of the URL, or of the environment. `word`: what the command line calls it. Raises
    AddressProblem."""
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in _SCHEMES or not host:
        raise AddressProblem(f"{word} is no address of AMQP: write amqp://HOST:PORT or amqps://HOST:PORT")
    plain = Listen(host, port or PORTS[scheme], scheme).url
    if parts.username is None:
        return _login(plain, environment, ca, variables)
    return PeerAddress(plain, unquote(parts.username), unquote(parts.password or ""), ca, variables)


def from_settings(settings: Settings, environment: Mapping[str, str], ca: Path | None) -> PeerAddress:
    """The first address that AMQP is spoken at without WebSocket and without a proxy. Raises AddressProblem."""
    listen = next((address for address in settings.listen if not address.web and not address.proxies), None)
    if listen is None:
        what = "WebSocket and for proxies" if any(address.proxies for address in settings.listen) else "WebSocket"
        raise AddressProblem(f"the configuration listens for {what} only, which this client does not speak")
    if listen.port == 0:
        raise AddressProblem("listen has port 0, a free one: name it with --url amqp://HOST:PORT")
    return _login(listen.local_url, environment, ca)


def _login(
    url: str, environment: Mapping[str, str], ca: Path | None, variables: tuple[str, str] = (USER, PASSWORD)
) -> PeerAddress:
    user = environment.get(variables[0])
    return PeerAddress(url, user, environment.get(variables[1], "") if user is not None else None, ca, variables)
