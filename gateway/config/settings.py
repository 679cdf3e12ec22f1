"""A gateway's configuration: read once, checked whole, never changed.

    settings = load_settings(Path("realmgate.yaml"))       # or SettingsProblems: all of them, each FILE:LINE: ...

Paths in it are relative to the file. Errors: `SettingsProblems`. Keys, defaults, shapes: `gateway.config.fields`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from pathlib import Path
from typing import Any, Final

from gateway.auth.users import ASKS_WHO, BY_CERTIFICATE, IN_THE_CLEAR, NO_USERS, Users, load_users
from gateway.config.addresses import SHIPPED, Addresses
from gateway.config.console import ConsoleSettings, read_console
from gateway.config.field import REQUIRED, Field
from gateway.config.fields import FIELDS, RESERVED_CLIENT_KEYS, SECURE, parts
from gateway.config.limits import Limits
from gateway.config.proxied_listener import Network, ProxiedListener
from gateway.config.tls import TlsSettings, read_tls
from mappings.language.yaml_lines import Node, Problem, load_document, refuse_unknown_keys
from native_backend.log.client_settings import ClientSettings, read_client
from native_backend.log.open import wrong_kafka_settings

EMBEDDED_PREFIX = "um"
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen, and what is spoken there; port 0 picks a free one."""

    host: str
    port: int
    scheme: str = "amqp"
    proxies: tuple[Network, ...] = ()
    """Where not empty: connections come from there, and begin with the PROXY protocol."""
    place: tuple[str, int] = attribute(default=("", 0), compare=False)
    """File and line of the configuration where it is written."""

    def problem(self, words: str, remedy: str) -> Problem:
        """About this address."""
        file, line = self.place
        return Problem(file, line, f"{self.url}: {words}", remedy)

    @property
    def url(self) -> str:
        """As it was written, but for a default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def local_url(self) -> str:
        """As a client on this machine names it."""
        return replace(self, host=_ANYWHERE.get(self.host, self.host)).url

    @property
    def secure(self) -> bool:
        return self.scheme in SECURE

    @property
    def web(self) -> bool:
        return self.scheme in ("ws", "wss")


@dataclass(frozen=True, slots=True)
class EmbeddedRealm:
    """A realm in one directory; its prefix is EMBEDDED_PREFIX."""

    path: Path
    prefix: str = EMBEDDED_PREFIX

    @property
    def place(self) -> str:
        """Which realm that is, for an operator."""
        return f"the embedded realm in {self.path}"


@dataclass(frozen=True, slots=True)
class KafkaRealm:
    """A realm on a Kafka cluster, under a prefix."""

    bootstrap: str
    prefix: str
    client: ClientSettings

    @property
    def place(self) -> str:
        """Which realm that is, for an operator."""
        return f"the realm on Kafka at {self.bootstrap}"


@dataclass(frozen=True, slots=True)
class MappingSettings:
    """Which tables decide; no directory: the shipped ones."""

    profile: str
    directory: Path | None


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Patterns of nodes that an attach creates (fnmatchcase, whole name), and how addresses are read."""

    create_on_attach: tuple[str, ...]
    addresses: Addresses = SHIPPED


@dataclass(frozen=True, slots=True)
class Security:
    """SASL mechanisms, whether a peer may come without SASL, who is known, and whether Kafka's lists
    count."""

    sasl: tuple[str, ...]
    bare_amqp: bool
    users: Users = NO_USERS
    kafka_acls: bool = False
    users_file: Path | None = None
    plain_without_tls: bool = False
    websocket_origins: tuple[str, ...] = ()

    def offered(self, secure: bool) -> tuple[str, ...]:
        """The mechanisms for a peer on such a listener; EXTERNAL besides needs a certificate of its own."""
        if secure:
            return self.sasl
        hidden = BY_CERTIFICATE if self.plain_without_tls else BY_CERTIFICATE | IN_THE_CLEAR
        return tuple(name for name in self.sasl if name not in hidden)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a configuration file says, defaults filled in."""

    listen: tuple[Listen, ...]
    realm: EmbeddedRealm | KafkaRealm
    mappings: MappingSettings
    nodes: NodeSettings
    security: Security
    limits: Limits
    transformer: str
    admin: Listen | None = None  # where health and metrics are served
    admin_commands: str = "loopback"  # who may give commands there: none, loopback, all
    admin_guarded: bool = False  # others are kept away from there
    log_format: str = "text"  # text, json
    tls: TlsSettings | None = None
    console: ConsoleSettings = attribute(default_factory=ConsoleSettings)


class SettingsProblems(Exception):
    """A configuration that is refused, with everything that is wrong with it."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def load_settings(path: Path) -> Settings:
    """Read a configuration file."""
    document, problems = load_document(path)
    root = document.root
    if not root.is_mapping:
        problems.append(root.problem(f"the file is a {root.kind}", "write a mapping: listen, realm, ..."))
    if not root.is_mapping or (problems and not root.content):
        raise SettingsProblems(problems)  # could not be read: what is missing in it would be noise
    values = _read(root, problems)
    client = _client(root, path.parent, problems)
    _directory(values, path.parent, root, problems)
    settings = None if problems else _settings(values, path.parent, root, problems, client)
    if settings is None or problems:
        raise SettingsProblems(sorted(problems, key=lambda problem: problem.line))
    return settings


def _read(root: Node, problems: list[Problem]) -> dict[str, Any]:
    """By key; what is wrong has the value None."""
    sections = {field.section for field in FIELDS} - {""}
    refuse_unknown_keys(root, [f.name for f in FIELDS if not f.section] + sorted(sections), problems)
    values = _read_section(root, [field for field in FIELDS if not field.section], problems)
    for section in sorted(sections):
        fields = [field for field in FIELDS if field.section == section]
        node = root.get(section)
        if node is not None and not node.is_mapping:
            problems.append(node.problem(f"{section} must be a mapping, not {node.kind}", f"write {_example(fields)}"))
        elif node is None and any(field.default is REQUIRED for field in fields):
            problems.append(root.problem(f"{section} is missing", f"write {_example(fields)}"))
        elif section == "realm" and node is not None:
            values |= _read_realm(node, fields, problems)
        else:
            node = node or Node(root.file, root.line, {})
            refuse_unknown_keys(node, [field.name for field in fields], problems)
            values |= _read_section(node, fields, problems)
    return values


def _read_realm(node: Node, fields: list[Field], problems: list[Problem]) -> dict[str, Any]:
    """The keys of a realm depend on its kind; of an unknown kind only the kind is judged, and what is no key of any."""
    refuse_unknown_keys(node, [field.name for field in fields], problems)
    values = _read_section(node, [field for field in fields if not field.only], problems)
    kind = values["realm.kind"]
    if kind is None:
        return values
    for field in fields:
        if field.only not in ("", kind) and field.name in node:
            message = f"{field.key} belongs to a realm of kind {field.only}"
            problems.append(Problem(node.file, node.key_line(field.name), message, "remove it, or change realm.kind"))
    return values | _read_section(node, [field for field in fields if field.only == kind], problems)


def _read_section(node: Node, fields: list[Field], problems: list[Problem]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields:
        given = node.get(field.name)
        if given is not None:
            values[field.key] = field.shape.read(field.key, given, problems)
        elif field.default is REQUIRED:
            problems.append(node.problem(f"{field.key} is missing", f"write {field.name}: {field.shape.example}"))
            values[field.key] = None
        else:
            values[field.key] = field.default
    return values


def _example(fields: list[Field]) -> str:
    """A section in one line, with its first two keys."""
    keys = ", ".join(f"{field.name}: {field.shape.example}" for field in fields[:2])
    return f"{fields[0].section}: {{{keys}}}"


def _client(root: Node, base: Path, problems: list[Problem]) -> ClientSettings:
    """The settings of the Kafka client: all their problems are reported, also when the file has others."""
    realm = root.get("realm")
    node = realm.get("client") if realm is not None and realm.is_mapping else None
    if node is None or not node.is_mapping:
        return ClientSettings()
    client = read_client(node, base, problems)
    ours = {name: value for name, value in client.items() if name not in RESERVED_CLIENT_KEYS}
    if ours:
        for name, (wrong, remedy) in wrong_kafka_settings(ours).items():
            problems.append(Problem(node.file, node.key_line(name), f"realm.client.{name}: {wrong}", remedy))
    return client


def _directory(values: dict[str, Any], base: Path, root: Node, problems: list[Problem]) -> None:
    """That of the tables."""
    directory = values.get("mappings.dir")
    if directory is not None and not (base / directory / "tables").is_dir():
        node = root["mappings"]["dir"]
        problems.append(node.problem(f"{base / directory} holds no tables/", "name a directory that does"))


def _settings(
    values: dict[str, Any], base: Path, root: Node, problems: list[Problem], client: ClientSettings
) -> Settings:
    directory = base / values["mappings.dir"] if values["mappings.dir"] is not None else None
    limits = {key.removeprefix("limits."): value for key, value in values.items() if key.startswith("limits.")}
    listen = _addresses(values["listen"], root)
    tls = read_tls(values, base, root, problems)
    security = _security(values, base, root, problems)
    _entries(listen, tls, security, root, problems)
    return Settings(
        listen=listen,
        realm=_realm(values, base, client),
        mappings=MappingSettings(values["mappings.profile"], directory),
        nodes=_nodes(values, root, problems),
        security=security,
        limits=Limits(**limits),
        transformer=values["transformer"],
        admin=_admin(values["admin.listen"], root),
        admin_commands=values["admin.commands"],
        admin_guarded=values["admin.guarded"],
        log_format=values["log.format"],
        tls=tls,
        console=read_console(values, base),
    )


def _addresses(written: Sequence[str | ProxiedListener], root: Node) -> tuple[Listen, ...]:
    node = root.get("listen")
    lines = [item.line for item in node.sequence()] if node is not None else [root.line] * len(written)
    return tuple(_listen(address, (root.file, line)) for address, line in zip(written, lines, strict=True))


def _listen(written: str | ProxiedListener, place: tuple[str, int]) -> Listen:
    if isinstance(written, ProxiedListener):
        return Listen(*parts(written.address), written.proxies, place)
    return Listen(*parts(written), (), place)


def _admin(written: str | None, root: Node) -> Listen | None:
    return _listen(written, (root.file, root["admin"]["listen"].line)) if written else None


def _nodes(values: dict[str, Any], root: Node, problems: list[Problem]) -> NodeSettings:
    queues, topics = values["nodes.queue_prefixes"], values["nodes.topic_prefixes"]
    for prefix in set(queues) & set(topics):
        message = f"nodes: {prefix!r} is a prefix of queues and of topics"
        problems.append((root.get("nodes") or root).problem(message, "remove it from one of the two"))
    addresses = Addresses(tuple(queues), tuple(topics), values["nodes.default_kind"])
    return NodeSettings(tuple(values["nodes.create_on_attach"]), addresses)


def _entries(
    listen: tuple[Listen, ...], tls: TlsSettings | None, security: Security, root: Node, problems: list[Problem]
) -> None:
    """Whether a client can log in at each listener."""
    secure = [port for port in listen if port.secure]
    addresses, section = root.get("listen") or root, root.get("security") or root
    if secure and "tls" not in root:
        message = f"listen: {secure[0].scheme}:// needs a certificate"
        problems.append(addresses.problem(message, "write tls: {certificate: server.pem, key: server.key}"))
    if not secure and tls is not None:
        problems.append(root["tls"].problem("tls: no listener uses TLS", 'write listen: ["amqps://HOST:PORT"]'))
    if BY_CERTIFICATE.intersection(security.sasl) and (tls is None or tls.client_ca is None) and "tls" in root:
        problems.append(section.problem("security.sasl: EXTERNAL needs tls.client_ca", "write client_ca: PATH"))
    hidden = [name for name in security.sasl if not any(name in security.offered(port.secure) for port in listen)]
    if IN_THE_CLEAR.intersection(hidden):
        message = "security.sasl: PLAIN sends passwords in clear text over the network"
        remedy = "listen at amqps://, remove it, or write plain_without_tls: true where the wire is safe"
        problems.append(section.problem(message, remedy))
    elif hidden and not secure:
        problems.append(section.problem(f"security.sasl: {hidden[0]} needs TLS", "listen at amqps://, or remove it"))
    elif security.sasl and not all(security.offered(port.secure) or security.bare_amqp for port in listen):
        message = f"listen: no client can authenticate without TLS: {', '.join(security.sasl)} is offered with it only"
        problems.append(addresses.problem(message, "remove the address, or offer SCRAM-SHA-256, too"))


def _security(values: dict[str, Any], base: Path, root: Node, problems: list[Problem]) -> Security:
    sasl, bare_amqp, file = (values[f"security.{name}"] for name in ("sasl", "bare_amqp", "users"))
    section = root.get("security") or root
    if bare_amqp is None:
        bare_amqp = not sasl or "ANONYMOUS" in sasl
    if not sasl and not bare_amqp:
        message = "security lets no client in: there is no SASL mechanism, and AMQP without SASL is off"
        problems.append(section.problem(message, "write sasl: [ANONYMOUS]"))
    asking = [name for name in sasl if name in ASKS_WHO]
    if asking and file is None:
        problems.append(section.problem(f"security.sasl: {asking[0]} needs users", "write users: users.yaml"))
    if file is not None and not asking:
        problems.append(section.problem("security.users: no mechanism uses them", "write sasl: [SCRAM-SHA-256]"))
    if values["security.kafka_acls"] and values["realm.kind"] != "kafka":
        problems.append(section.problem("security.kafka_acls: this realm is not on Kafka", "remove it"))
    path = base / file if file is not None else None
    users = load_users(path, problems) if path is not None else NO_USERS
    in_the_clear = values["security.plain_without_tls"]
    origins = tuple(values["security.websocket_origins"])
    return Security(tuple(sasl), bare_amqp, users, values["security.kafka_acls"], path, in_the_clear, origins)


def _realm(values: dict[str, Any], base: Path, client: ClientSettings) -> EmbeddedRealm | KafkaRealm:
    if values["realm.kind"] == "embedded":
        return EmbeddedRealm(base / values["realm.path"])
    return KafkaRealm(values["realm.bootstrap"], values["realm.prefix"], client)
