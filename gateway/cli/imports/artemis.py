"""`realmgate import artemis broker.xml`: addresses, queues, address settings, security settings.

Source: the user manual of Apache Artemis (Address Model, Address Settings, Undelivered Messages, Message Expiry,
Security), release 2.55. What has no counterpart is a note. Errors: `ImportProblem`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from gateway.cli.imports.artemis_security import grant_all
from gateway.cli.imports.artemis_settings import Setting, apply_settings
from gateway.cli.imports.imported import Imported, ImportedNode, ImportProblem
from gateway.cli.imports.plain_xml import Element, read_xml

_MANAGEMENT: Final = "activemq."
_OWN_MATTERS: Final = (
    "journal-",
    "paging-",
    "page-",
    "bindings-",
    "large-messages-",
    "disk-",
    "max-disk-",
    "create-",
    "node-manager-",
    "global-max-",
    "critical-analyzer",
    "memory-",
    "thread-pool-",
    "scheduled-thread-",
    "message-counter-",
    "persist-",
    "id-cache-",
    "connection-ttl",
    "configuration-file-",
    "jmx-",
    "management-",
    "log-",
    "server-dump-",
    "max-redelivery-records",
    "persistence-",
    "transaction-",
    "name",
    "async-connection-",
    "graceful-",
    "resource-",
    "file-deploy-",
    "network-check-",
    "read-whole-",
    "perf-",
    "wildcard-routing-",
    "connectors",
    "security-invalid",
    "authentication-cache",
    "authorization-cache",
    "populate-",
    "purge-",
    "suppress-",
    "message-expiry-",
    "address-queue-scan",
)
"""How Artemis stores, pages and schedules: nothing for a realm to take over."""
_REMEDIES: Final = {
    "divert": "have the producer send to both nodes, or a consumer send on",
    "bridge": "use realmgate drain, or let the other broker fetch over AMQP 1.0",
    "cluster-connection": "a second gateway is a standby, see docs/how-to/run-two-gateways.md",
    "ha-policy": "a second gateway is a standby, see docs/how-to/run-two-gateways.md",
    "broker-connection": "let the other broker fetch from the gateway over AMQP 1.0",
    "federation": "let the other broker fetch from the gateway over AMQP 1.0",
    "broker-plugin": "nothing of a plugin runs in a gateway; look at what it did",
    "grouping-handler": "message groups need no handler here",
    "connection-router": "name all gateways in the failover URL of the clients",
    "wildcard-addresses": "subscribe to each channel; a gateway knows no wildcards in addresses",
    "broadcast-group": "name all gateways in the failover URL of the clients",
    "discovery-group": "name all gateways in the failover URL of the clients",
    "metrics": "set admin in the configuration, see docs/how-to/watch-a-gateway.md",
    "resource-limit-settings": "see limits in docs/configuration.md",
}


def import_artemis(path: Path) -> Imported:
    root = read_xml(path)
    core = root if root.name == "core" else root.first("core")
    if core is None:
        raise ImportProblem(f"{path}:{root.line}: there is no <core>: it is no broker.xml of Artemis")
    draft = Imported("Artemis")
    for element in core.children:
        if element.name == "addresses":
            _addresses(element, draft)
    draft.nodes = {name: node for name, node in draft.nodes.items() if not name.startswith(_MANAGEMENT)}
    settings = _settings(core)
    apply_settings(settings, draft)
    grant_all(core, draft)
    for element in core.children:
        _others(element, draft)
    return draft


def _settings(core: Element) -> list[Setting]:
    return [
        (setting.attributes.get("match", "#"), setting)
        for settings in core.all("address-settings")
        for setting in settings.all("address-setting")
    ]


def _addresses(addresses: Element, draft: Imported) -> None:
    for address in addresses.all("address"):
        name = address.attributes.get("name", "")
        anycast, multicast = address.first("anycast"), address.first("multicast")
        if anycast is not None and multicast is not None:
            draft.note(
                multicast.line,
                f"address {name} is anycast and multicast",
                "it is made as a queue; make a channel of another name for its subscribers",
            )
        if anycast is not None:
            _queues(draft.node(name, "queue"), anycast, draft)
        elif multicast is not None:
            _subscriptions(draft.node(name, "channel"), multicast, draft)
        else:
            draft.node(name, "queue")
            draft.note(
                address.line, f"address {name} has no routing type", "it is made as a queue; correct kind if not"
            )


def _queues(node: ImportedNode, anycast: Element, draft: Imported) -> None:
    queues = list(anycast.all("queue"))
    for queue in queues:
        name = queue.attributes.get("name", "")
        if name != node.name:
            draft.note(
                queue.line,
                f"queue {name} of address {node.name} has a name of its own",
                f"its consumers must name {node.name}" if len(queues) == 1 else _several(node.name),
            )
        _attributes(node, queue, draft)


def _several(address: str) -> str:
    return f"the queues of {address} become one, which its consumers share"


def _subscriptions(node: ImportedNode, multicast: Element, draft: Imported) -> None:
    for queue in multicast.all("queue"):
        name = queue.attributes.get("name", "")
        draft.note(
            queue.line,
            f"subscription {name} of {node.name} is not made: a durable begins when its subscriber attaches",
            "start each subscriber once at the gateway before the producers change, and drain "
            f"{node.name}::{name} to a queue if it holds messages",
        )
        _attributes(node, queue, draft)


def _attributes(node: ImportedNode, queue: Element, draft: Imported) -> None:
    """Of a queue. What it says in its elements, older releases say in attributes, too."""
    words = queue.attributes | {
        child.name: child.text or child.attributes.get("string", "") for child in queue.children
    }
    ring = words.get("ring-size", "-1")
    if ring.isdigit() and int(ring):
        node.properties["capacity-events"] = ring
    if words.get("durable", "true") == "false":
        node.properties["type"] = "reliable"
    for word, (default, remedy) in _QUEUE_WORDS.items():
        if words.get(word, default) not in (default, ""):
            line = next((child.line for child in queue.children if child.name == word), queue.line)
            draft.note(line, f"{word} of queue {queue.attributes.get('name', '')}", remedy)


_QUEUE_WORDS: Final = {
    "filter": ("", "give the selector to the consumers, see docs/selectors.md"),
    "max-consumers": ("-1", "the number of consumers is not limited here"),
    "exclusive": ("false", "start one consumer; order within a message group is kept for several"),
    "last-value": ("false", "there are no last-value queues; a compacted topic of Kafka can be adopted"),
    "last-value-key": ("", "there are no last-value queues; a compacted topic of Kafka can be adopted"),
    "non-destructive": ("false", "use a channel, whose subscribers each get everything, or browse"),
    "purge-on-no-consumers": ("false", "give the node a time to live, or purge it by realmgate queue purge"),
    "enabled": ("true", "take the grants away, or do not make the node"),
    "consumers-before-dispatch": ("0", "messages are given as soon as one consumer is there"),
    "delay-before-dispatch": ("-1", "messages are given as soon as one consumer is there"),
    "group-buckets": ("-1", "message groups need no buckets here"),
    "group-rebalance": ("false", "message groups stay with their consumer while it is there"),
    "group-first-key": ("", "message groups are those of AMQP's group-id"),
    "user": ("", "grant what that user needs: realmgate acl grant"),
}


def _others(element: Element, draft: Imported) -> None:
    name = element.name
    if name == "acceptors":
        for acceptor in element.all("acceptor"):
            _acceptor(acceptor, draft)
    elif name in ("addresses", "address-settings", "security-settings", "security-enabled"):
        return
    elif name.startswith(_OWN_MATTERS):
        draft.note(element.line, "Artemis' own storage, threads and limits", "nothing to do here")
    else:
        singular = next((word for word in _REMEDIES if name.startswith(word)), "")
        inner = [child for child in element.children if singular and child.name.startswith(singular)] or [element]
        for tag in inner:
            label = f"{tag.name} {tag.attributes.get('name', '')}".strip()
            draft.note(tag.line, label, _REMEDIES.get(singular, "there is no counterpart here; look at what it did"))


def _acceptor(acceptor: Element, draft: Imported) -> None:
    address = urlsplit(acceptor.text)
    options = parse_qs(address.query.replace(";", "&"))
    protocols = [word.upper() for word in ",".join(options.get("protocols", ["AMQP"])).split(",")]
    name = f"acceptor {acceptor.attributes.get('name', '')}"
    others = [protocol for protocol in protocols if protocol != "AMQP"]
    if others:
        remedy = "clients of these need one for AMQP 1.0, for JMS org.apache.qpid:qpid-jms-client"
        draft.note(acceptor.line, f"{name} speaks {', '.join(others)}", remedy)
    if "AMQP" in protocols:
        scheme = "amqps" if options.get("sslEnabled") == ["true"] else "amqp"
        words = f'write into the configuration: listen: ["{scheme}://{address.netloc}"]'
        more = " and tls, see docs/how-to/tls.md" if scheme == "amqps" else ""
        draft.note(acceptor.line, f"{name} is no matter of the realm", words + more)
