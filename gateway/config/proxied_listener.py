"""An address to listen at, as it is written: a text, or a mapping where proxies say who their clients are.

- amqp://127.0.0.1:5672
- {address: "amqps://0.0.0.0:5671", proxy_protocol: true, proxies: [10.0.0.0/24]}
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from gateway.config.shapes import Shape, boolean, sequence, text, wrong
from mappings.language.yaml_lines import Node, Problem, refuse_unknown_keys

Network = IPv4Network | IPv6Network
PROXIED: Final = '{address: "amqp://0.0.0.0:5672", proxy_protocol: true, proxies: [10.0.0.0/24]}'
_KEYS: Final = ("address", "proxy_protocol", "proxies")


@dataclass(frozen=True, slots=True)
class ProxiedListener:
    """Each connection there comes from one of `proxies`, and begins with the PROXY protocol."""

    address: str
    proxies: tuple[Network, ...]


def listener(address: Shape) -> Shape:
    """`address`: what a text is. Gives a text, or a `ProxiedListener`."""

    def read(key: str, node: Node, problems: list[Problem]) -> str | ProxiedListener | None:
        if node.kind == "text":
            return address.read(key, node, problems)  # type: ignore[no-any-return]
        if not node.is_mapping:
            problems.append(wrong(key, node, shape))
            return None
        return _read_mapping(key, node, address, problems)

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"address": address.schema, "proxy_protocol": {"const": True}, "proxies": _PROXIES.schema},
        "required": list(_KEYS),
        "additionalProperties": False,
    }
    shape = Shape(f"{address.what} or a mapping", address.example, read, {"anyOf": [address.schema, schema]})
    return shape


def _read_mapping(key: str, node: Node, address: Shape, problems: list[Problem]) -> ProxiedListener | None:
    count = len(problems)
    refuse_unknown_keys(node, _KEYS, problems)
    values: dict[str, Any] = {}
    for name, shape in (("address", address), ("proxy_protocol", boolean(True)), ("proxies", _PROXIES)):
        given = node.get(name)
        if given is None:
            problems.append(node.problem(f"{key}: {name} is missing", f"write {PROXIED}"))
        else:
            values[name] = shape.read(f"{key}.{name}", given, problems)
    if values.get("proxy_protocol") is False:
        message = f"{key}: proxy_protocol is false, so nothing else is needed beside the address"
        problems.append(node.problem(message, f"write {address.example}"))
    if len(problems) > count:
        return None
    return ProxiedListener(values["address"], tuple(map(ip_network, values["proxies"])))


def _network(written: str) -> str | None:
    try:
        ip_network(written)
    except ValueError as error:
        return f"is no network: {error}"
    return None


_PROXIES: Final = sequence(
    text("a network", "10.0.0.0/24", _network), "a list of networks", "[10.0.0.0/24, 192.0.2.7]", least=1
)
