"""What the console was started with: its arguments, and what the gateway's configuration says where one is named.

    realmgate console [--config FILE] [--gateway URL]... [--reports DIR]... [--listen URL] ...

Section `console` of the configuration says what no argument does.

Errors: `SettingsError`, in lines for an operator; argparse ends by `SystemExit`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from console.limits import GATEWAYS
from gateway.config.console import LISTEN, ConsoleSettings
from gateway.config.exposure import reaches_beyond_loopback
from gateway.config.settings import Settings as GatewaySettings
from gateway.config.settings import SettingsProblems, load_settings
from gateway.config.tls import TlsSettings, context


class SettingsError(Exception):
    """What is wrong, and what to write."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`users` None: there is no login. `groups`: whose members may log in; none: every user. `mappings` None: the
    shipped tables.
    `config`: the configuration of the realm, for commands that read it. `actions`: users may
    have it changed, as the grants allow. `keep_priority`: it never gives way."""

    gateways: tuple[str, ...]
    reports: tuple[Path, ...]
    host: str
    port: int
    tls: TlsSettings | None
    users: Path | None
    groups: tuple[str, ...]
    mappings: Path | None
    realm: str
    config: Path | None = None
    actions: bool = False
    keep_priority: bool = False

    @property
    def gives_way(self) -> bool:
        """A gateway that it shows is on this machine."""
        return not self.keep_priority and any(_is_here(urlsplit(url).hostname or "") for url in self.gateways)

    @property
    def secure(self) -> bool:
        return self.tls is not None

    @property
    def is_local(self) -> bool:
        return not reaches_beyond_loopback(self.host)


def read_settings(argv: Sequence[str]) -> Settings:
    """Arguments count before section `console` of the configuration."""
    arguments = _parser().parse_args(argv)
    gateway = _configuration(arguments.config)
    _fill(arguments, gateway.console if gateway is not None else ConsoleSettings())
    parts = _listen(arguments.listen)
    users = arguments.users
    if users is None and gateway is not None and _asks_who(arguments, parts[1]):
        users = gateway.security.users_file
    settings = Settings(
        gateways=_gateways(arguments.gateways, gateway),
        reports=tuple(arguments.reports),
        host=parts[1],
        port=parts[2],
        tls=_tls(arguments, gateway) if parts[0] == "https" else None,
        users=None if arguments.without_login else users,
        groups=tuple(arguments.groups),
        mappings=arguments.mappings or (gateway.mappings.directory if gateway is not None else None),
        realm=gateway.realm.prefix if gateway is not None else "",
        config=arguments.config.absolute() if arguments.config is not None else None,
        actions=arguments.actions,
        keep_priority=arguments.keep_priority,
    )
    _check_actions(settings, gateway)
    _check_exposure(settings, arguments)
    return settings


def _fill(arguments: argparse.Namespace, console: ConsoleSettings) -> None:
    """What no argument says."""
    for field in fields(console):
        setattr(arguments, field.name, getattr(arguments, field.name) or getattr(console, field.name))


def _is_here(host: str) -> bool:
    """Names are not resolved: only `localhost` is known to be this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _asks_who(arguments: argparse.Namespace, host: str) -> bool:
    return bool(arguments.groups or arguments.actions or reaches_beyond_loopback(host))


def _check_exposure(settings: Settings, arguments: argparse.Namespace) -> None:
    """Other machines get in with a login and over TLS, unless the configuration allows both to be missing."""
    if settings.groups and settings.users is None:
        raise SettingsError("--group needs users: name their file with --users, or security.users in the configuration")
    if settings.is_local:
        return
    if settings.users is None and not arguments.without_login:
        raise SettingsError(
            f"--listen {arguments.listen} is open to other machines, and there are no users: write --users FILE or"
            " security.users in the configuration; --without-login lets everyone in"
        )
    if not settings.secure and not arguments.without_tls:
        raise SettingsError(
            f"--listen {arguments.listen} sends passwords and pages in clear text: write https://, with"
            " --tls-certificate and --tls-key; --without-tls allows it, behind a proxy that has TLS"
        )


def _check_actions(settings: Settings, gateway: GatewaySettings | None) -> None:
    """Who acts is a user whom the realm's grants know."""
    if not settings.actions:
        return
    if gateway is None:
        raise SettingsError("--actions needs --config FILE: the commands go to the realm that it names")
    if settings.users is None:
        raise SettingsError("--actions needs a login: name groups with --group, or users with --users")
    if settings.users.absolute() != (gateway.security.users_file or Path()).absolute():
        raise SettingsError("--actions needs the users of the gateway: the grants are asked for them; omit --users")


def _tls(arguments: argparse.Namespace, gateway: GatewaySettings | None) -> TlsSettings:
    """As it was named, or the gateway's, without its demand for certificates of clients."""
    if arguments.certificate and arguments.key:
        tls = TlsSettings(arguments.certificate, arguments.key)
    elif gateway is not None and gateway.tls is not None:
        tls = replace(gateway.tls, client_ca=None, require_client_certificate=False)
    else:
        raise SettingsError("--listen https:// needs --tls-certificate and --tls-key, or tls in the configuration")
    try:
        context(tls)
    except ValueError as error:
        raise SettingsError(f"--tls-certificate: {error}") from None
    return tls


def _configuration(path: Path | None) -> GatewaySettings | None:
    if path is None:
        return None
    try:
        return load_settings(path)
    except SettingsProblems as error:
        raise SettingsError(str(error)) from None


def _listen(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None or parts.path not in ("", "/"):
        raise SettingsError(f"--listen {url} is no address: write http://HOST:PORT or https://HOST:PORT")
    return parts.scheme, parts.hostname, port


def _gateways(urls: Sequence[str], gateway: GatewaySettings | None) -> tuple[str, ...]:
    """Where to ask: as they were named, or as the configuration says."""
    for url in urls:
        parts = urlsplit(url)
        try:
            wrong = parts.scheme != "http" or not parts.hostname or not parts.port or parts.path not in ("", "/")
        except ValueError:
            wrong = True
        if wrong:
            raise SettingsError(f"--gateway {url} is no admin address: write http://HOST:PORT")
    if len(urls) > GATEWAYS:
        raise SettingsError(f"--gateway: {len(urls)} are named; a console looks after {GATEWAYS} at most")
    if urls:
        return tuple(dict.fromkeys(url.rstrip("/") for url in urls))
    if gateway is None or gateway.admin is None or gateway.admin.port == 0:
        raise SettingsError(
            "no gateway is named: write --gateway http://HOST:PORT for each, or --config FILE with"
            ' admin: {listen: "http://127.0.0.1:9464"}'
        )
    return (gateway.admin.local_url,)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="realmgate console", description="Pages for operators over one or several gateways.", allow_abbrev=False
    )
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="a gateway's configuration: its admin address, users, tables"
    )
    address = "an admin address; may be repeated; default: admin.listen"
    parser.add_argument("--gateway", dest="gateways", metavar="URL", action="append", default=[], help=address)
    parser.add_argument(
        "--reports",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="what reconcile --out wrote; may be repeated",
    )
    parser.add_argument("--listen", metavar="URL", help=f"default: {LISTEN}; https:// with TLS")
    pem = "PEM; default: that of the configuration"
    parser.add_argument("--tls-certificate", dest="certificate", metavar="FILE", type=Path, help=pem)
    key = "PEM, without a password; default: as above"
    parser.add_argument("--tls-key", dest="key", metavar="FILE", type=Path, help=key)
    parser.add_argument("--users", metavar="FILE", type=Path, help="who may log in; default: security.users")
    members = "only its members may log in; may be repeated"
    parser.add_argument("--group", dest="groups", metavar="NAME", action="append", default=[], help=members)
    parser.add_argument(
        "--mappings", metavar="DIR", type=Path, help="tables; default: mappings.dir, or the shipped ones"
    )
    parser.add_argument(
        "--actions", action="store_true", help="let users close connections, resend, move and purge, as grants allow"
    )
    parser.add_argument("--without-login", action="store_true", help="let in everyone who can connect")
    parser.add_argument("--without-tls", action="store_true", help="allow http:// beyond loopback")
    parser.add_argument(
        "--keep-priority", action="store_true", help="do not give way to a gateway on the same machine when it is busy"
    )
    return parser
