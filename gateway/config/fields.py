"""The keys of a configuration file: one table that drives reading, defaults and docs/configuration.md.

Nothing is guessed: a wrong value is refused with what to write instead (`gateway.config.shapes`).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from gateway.auth.users import MECHANISMS
from gateway.config.addresses import QUEUE_PREFIXES, SHIPPED, TOPIC_PREFIXES
from gateway.config.console import CONSOLE_FIELDS
from gateway.config.field import REQUIRED, Field
from gateway.config.limits import limit_fields
from gateway.config.proxied_listener import listener
from gateway.config.shapes import Shape, boolean, choice, integer, sequence, text, wrong
from gateway.config.tls import VERSIONS as TLS_VERSIONS
from mappings.language.vocabulary import DEFAULT_PROFILE, PROFILES
from mappings.language.yaml_lines import Node, Problem
from native_backend.log.client_settings import SECRETS
from native_backend.nodes.node import KINDS
from transformers import TRANSFORMERS, TransformerError, event_transformer

PORT_DEFAULT = 5672
PORTS: Final = {"amqp": PORT_DEFAULT, "amqps": 5671, "ws": 80, "wss": 443}  # each scheme with its port
SECURE: Final = frozenset({"amqps", "wss"})

# Client settings that the realm's guarantees rest on: the driver sets them.
RESERVED_CLIENT_KEYS = frozenset(
    {
        "acks",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.idempotence",
        "group.id",
        "isolation.level",
        "transactional.id",
    }
)
_HOST = r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<name>[^\s:/\[\]@]+))"
_ADDRESS = re.compile(rf"(?P<scheme>{'|'.join(PORTS)})://{_HOST}(?::(?P<port>[0-9]+))?/?")
_ADMIN = re.compile(rf"(?P<scheme>http)://{_HOST}:(?P<port>[0-9]+)/?")
_BROKER = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[^\s:/,\[\]@]+):([0-9]+)")


def _transformer(key: str, node: Node, problems: list[Problem]) -> str | None:
    name = node.value
    if node.kind != "text":
        problems.append(wrong(key, node, TRANSFORMER))
        return None
    if name not in TRANSFORMERS:
        try:
            event_transformer(name)
        except TransformerError as error:
            words, _, remedy = str(error).partition(": ")
            problems.append(node.problem(f"{key}: {words}", remedy))
            return None
    return str(name)


TRANSFORMER = Shape("none, basic, complete or the name of an entry point", "basic", _transformer, {"type": "string"})


def _client(key: str, node: Node, problems: list[Problem]) -> Node | None:
    """Left as it was written: where values come from elsewhere, `native_backend.log.client_settings` gets them."""
    if not node.is_mapping:
        problems.append(wrong(key, node, CLIENT))
        return None
    reserved = [name for name, _ in node.items() if name in RESERVED_CLIENT_KEYS]
    for name in reserved:
        where = Problem(node.file, node.key_line(name), f"{key}.{name} is the gateway's to set", "remove it")
        problems.append(where)
    return None if reserved else node


def _address(written: str) -> str | None:
    match = _ADDRESS.fullmatch(written)
    return "is no amqp://, amqps://, ws:// or wss:// address" if match is None else _port(match["port"])


def _admin(written: str) -> str | None:
    match = _ADMIN.fullmatch(written)
    return "is no http://HOST:PORT" if match is None else _port(match["port"])


def _bootstrap(written: str) -> str | None:
    for broker in written.split(","):
        match = _BROKER.fullmatch(broker.strip())
        if match is None:
            return "is no list of HOST:PORT"
        if (wrong_port := _port(match[1], least=1)) is not None:
            return wrong_port
    return None


def _port(digits: str | None, least: int = 0) -> str | None:
    if digits is None or least <= int(digits) <= 65_535:
        return None
    return f"has port {digits}, ports go from {least} to 65535"


def _prefix(written: str) -> str | None:
    if re.fullmatch(r"[a-zA-Z0-9._-]{1,60}", written) and written not in (".", ".."):
        return None
    return "is no prefix: 1 to 60 of a-z A-Z 0-9 . _ -"


def parts(address: str) -> tuple[str, int, str]:
    """Host, port and scheme of an address that was read as legal."""
    match = _ADDRESS.fullmatch(address) or _ADMIN.fullmatch(address)
    assert match is not None
    scheme = match["scheme"]
    return match["v6"] or match["name"], int(match["port"] or PORTS[scheme]), scheme


def _password(key: str, node: Node, problems: list[Problem]) -> Node | None:
    """Left as it was written: `native_backend.log.client_settings` gets it."""
    if node.is_mapping:
        return node
    problems.append(node.problem(f"{key} is a secret and stands in the configuration", f"write {PASSWORD.example}"))
    return None


_ELSEWHERE: Final = {
    "type": "object",
    "properties": {name: {"type": "string", "minLength": 1} for name in ("file", "env")},
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}
_CLIENT: Final = {
    "type": "object",
    "propertyNames": {"not": {"enum": sorted(RESERVED_CLIENT_KEYS)}},
    "properties": dict.fromkeys(sorted(SECRETS), _ELSEWHERE),
    "additionalProperties": {"anyOf": [{"type": ["string", "integer", "boolean"]}, _ELSEWHERE]},
}
PASSWORD = Shape("`{file: PATH}` or `{env: NAME}`", "{file: PATH}", _password, _ELSEWHERE)
CLIENT = Shape("a mapping", '{"security.protocol": SSL}', _client, _CLIENT)
LISTEN = f"amqp://127.0.0.1:{PORT_DEFAULT}"

FIELDS: tuple[Field, ...] = (
    Field(
        "listen",
        sequence(
            listener(text("an address", f'"{LISTEN}"', _address, f"^({'|'.join(PORTS)})://[^\\s]+$")),
            "a list of addresses",
            f'["{LISTEN}"]',
            least=1,
        ),
        (LISTEN,),
        "where to listen: `amqp://HOST:PORT`, `amqps://HOST:PORT` (needs `tls`), `ws://` or `wss://` for "
        "WebSocket; port 0 picks a free one, without one it is 5672, 5671, 80, 443. Behind a proxy that sends the "
        "PROXY protocol: `{address: ADDRESS, proxy_protocol: true, proxies: [NETWORK]}` ([how to](how-to/security.md))",
    ),
    Field(
        "admin.listen",
        text("an address", '"http://127.0.0.1:9464"', _admin, "^http://[^\\s]+:[0-9]+/?$"),
        None,
        "where `/health`, `/metrics` and `/api` are served ([how to watch](how-to/watch-a-gateway.md)); port 0 picks a "
        "free one. Without this key there is no admin server. There is no password: every client that can connect can "
        "read them",
    ),
    Field(
        "admin.commands",
        choice(("none", "loopback", "all")),
        "loopback",
        "who may give commands there (`realmgate connection close`): no client, clients on the gateway's own machine, "
        "or every client that can connect",
    ),
    Field(
        "admin.guarded",
        boolean(True),
        False,
        "a firewall or a network policy keeps others away from `admin.listen`: no warning that other machines reach it",
    ),
    Field(
        "log.format",
        choice(("text", "json")),
        "text",
        "the log on stderr: lines of text, or a JSON object in each line; times are UTC",
    ),
    Field("transformer", TRANSFORMER, "basic", "what makes native events of messages, where tables name no other"),
    Field("realm.kind", choice(("embedded", "kafka")), REQUIRED, "where the realm is kept"),
    Field("realm.path", text("a path", "var/realm"), "var/realm", "its directory, relative to this file", "embedded"),
    Field(
        "realm.bootstrap",
        text("a list of brokers", '"127.0.0.1:9092"', _bootstrap),
        REQUIRED,
        "brokers to begin with: `HOST:PORT`, several with commas",
        "kafka",
    ),
    Field("realm.prefix", text("a prefix", "um", _prefix), "um", "what the realm's topics begin with", "kafka"),
    Field(
        "realm.client",
        CLIENT,
        None,
        "more settings for the Kafka client, by librdkafka's names; secrets as `{file: PATH}` or `{env: NAME}`",
        "kafka",
    ),
    Field("mappings.profile", choice(PROFILES), DEFAULT_PROFILE, "which profile of the tables decides"),
    Field(
        "mappings.dir",
        text("a path", "tables-of-ours"),
        None,
        "a directory with tables/, and errors.yaml for native errors of its own, relative to this file; without it the"
        " shipped ones",
    ),
    Field(
        "nodes.create_on_attach",
        sequence(text("a pattern", '"orders.*"'), "a list of patterns", '["orders.*"]'),
        (),
        "whole-name patterns (`*`, `?`, `[...]`, case counts) of nodes that an attach creates, or a message on a link "
        "without a target; others must exist",
    ),
    Field(
        "nodes.default_kind",
        choice(KINDS),
        SHIPPED.default_kind,
        "what such a node is where neither a prefix nor a capability says it",
    ),
    Field(
        "nodes.queue_prefixes",
        sequence(text("a prefix", '"jms.queue."'), "a list of prefixes", '["jms.queue."]'),
        QUEUE_PREFIXES,
        "prefixes of addresses of queues; what follows is the node's name",
    ),
    Field(
        "nodes.topic_prefixes",
        sequence(text("a prefix", '"jms.topic."'), "a list of prefixes", '["jms.topic."]'),
        TOPIC_PREFIXES,
        "the same for channels",
    ),
    Field(
        "security.sasl",
        sequence(choice(MECHANISMS), "a list of mechanisms", "[ANONYMOUS]"),
        ("ANONYMOUS",),
        "SASL mechanisms that are offered",
    ),
    Field(
        "security.bare_amqp",
        boolean(True),
        None,
        "take a peer that sends the AMQP header without SASL; not written: where ANONYMOUS or no mechanism is offered",
    ),
    Field(
        "security.users",
        text("a path", "users.yaml"),
        None,
        "the users file, relative to this one: [how to write it](how-to/security.md)",
    ),
    Field(
        "security.kafka_acls",
        boolean(True),
        False,
        "Kafka's own access lists must allow the AMQP user, too: Write on a node's topic to publish, Read to consume",
    ),
    Field(
        "security.plain_without_tls",
        boolean(True),
        False,
        "offer PLAIN also on connections without TLS, where the password is sent in clear text",
    ),
    Field(
        "security.websocket_origins",
        sequence(text("an origin", '"https://app.example"'), "a list of origins", '["https://app.example"]'),
        (),
        "pages of which other sites may connect by WebSocket, from a browser; a page of the host asked always may",
    ),
    Field(
        "tls.certificate",
        text("a path", "server.pem"),
        None,
        "the gateway's certificate and those between it and the root, PEM ([how to](how-to/tls.md)); this and "
        "the other files are relative to this one, and read anew when they change",
    ),
    Field("tls.key", text("a path", "server.key"), None, "its private key, PEM"),
    Field("tls.key_password", PASSWORD, None, "the key's password, where it has one; read at the start"),
    Field(
        "tls.client_ca",
        text("a path", "clients.pem"),
        None,
        "whose certificates clients may show, PEM; without it none is asked for",
    ),
    Field(
        "tls.require_client_certificate",
        boolean(True),
        False,
        "a client needs a certificate that `client_ca` signed. With false, it may also authenticate by another "
        "mechanism than EXTERNAL",
    ),
    Field(
        "tls.minimum_version", choice(tuple(TLS_VERSIONS)), "1.2", "the oldest version of TLS that a client may speak"
    ),
    *CONSOLE_FIELDS,
    *(
        Field(
            f"limits.{limit.name}",
            integer(limit.metadata["low"], limit.metadata["high"], limit.default),
            limit.default,
            limit.metadata["about"],
        )
        for limit in limit_fields()
        if isinstance(limit.default, int)
    ),
)


def configuration_table() -> str:
    """The table of docs/configuration.md."""
    rows = ["| key | value | default | |", "|---|---|---|---|"]
    for field in FIELDS:
        about = f"{field.about} (kind {field.only})" if field.only else field.about
        rows.append(f"| `{field.key}` | {field.shape.what} | {_default(field.default)} | {about} |")
    return "\n".join(rows) + "\n"


def _default(default: Any) -> str:
    if default is REQUIRED:
        return "none: required"
    return "none" if default is None else f"`{json.dumps(default)}`"
