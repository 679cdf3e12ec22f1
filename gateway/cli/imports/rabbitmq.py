"""`realmgate import rabbitmq definitions.json`: queues, exchanges, bindings, policies, permissions of one virtual host.

Source: RabbitMQ's documentation (Definitions, Dead Letter Exchanges, Time-To-Live, Queue Length Limit, Quorum Queues,
Access Control), release 3.10. An export is one line, so a note says the name of the thing instead. Errors:
`ImportProblem`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gateway.cli.imports.definitions import Definition, Definitions
from gateway.cli.imports.imported import Imported, ImportedNode, ImportProblem
from gateway.cli.imports.wildcards import matches

_PERMISSIONS: Final = {"write": {"publish"}, "read": {"subscribe", "peek", "durable"}}


def import_rabbitmq(path: Path, vhost: str) -> Imported:
    definitions = Definitions(path, vhost)
    if not definitions.known:
        names = ", ".join(definitions.vhosts) or "none"
        raise ImportProblem(f"{path}: there is no virtual host {vhost}, there are {names}; name one with --vhost")
    draft = Imported("RabbitMQ")
    _queues(definitions, draft)
    _exchanges(definitions, draft)
    _permissions(definitions, draft)
    _others(definitions, draft)
    return draft


def _queues(definitions: Definitions, draft: Imported) -> None:
    policies = sorted(definitions.of("policies"), key=lambda rule: -rule.number("priority"))
    for queue in definitions.of("queues"):
        name = str(queue["name"])
        policy = next((rule for rule in policies if _holds(rule, name)), None)
        arguments = {key.removeprefix("x-"): value for key, value in queue.words("arguments").items()}
        of_policy = policy.words("definition") if policy is not None else {}
        node = draft.node(name, "queue")
        _properties(node, _merged(of_policy, arguments), draft)
        if queue.get("durable") is False:
            node.properties["type"] = "reliable"
        if queue.get("auto_delete"):
            draft.note(0, f"queue {name} is auto-delete", "a node stays until realmgate node delete")
    _dead_letter_nodes(definitions, draft)


def _holds(policy: Definition, queue: str) -> bool:
    if policy.get("apply-to") == "exchanges":
        return False
    try:
        return re.search(str(policy.get("pattern", "")), queue) is not None
    except re.error:
        return False


def _merged(of_policy: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Of a number that both say, the smaller counts; else the argument of the queue."""
    merged = of_policy | arguments
    for key in of_policy.keys() & arguments.keys():
        if isinstance(of_policy[key], int) and isinstance(arguments[key], int):
            merged[key] = min(of_policy[key], arguments[key])
    return merged


def _properties(node: ImportedNode, words: dict[str, Any], draft: Imported) -> None:
    simple = {
        "message-ttl": ("ttl", "ms"),
        "max-length": ("capacity-events", ""),
        "max-length-bytes": ("capacity-bytes", "B"),
    }
    for key, (word, unit) in simple.items():
        if isinstance(words.get(key), int):
            node.properties[word] = f"{words[key]}{unit}"
    bounded = "max-length" in words or "max-length-bytes" in words
    overflow = words.get("overflow", "drop-head")
    if bounded and overflow != "drop-head":
        node.properties["honour-capacity"] = "true"
    if bounded and overflow == "reject-publish-dlx":
        draft.note(
            0,
            f"overflow reject-publish-dlx of queue {node.name}",
            "what is refused is the publisher's, and no dead letter",
        )
    if bounded and overflow == "drop-head" and "dead-letter-exchange" in words:
        draft.note(
            0, f"overflow drop-head of queue {node.name}", "what a full node gives up is gone, and no dead letter"
        )
    if isinstance(words.get("delivery-limit"), int):
        node.properties["attempts"] = str(words["delivery-limit"] + 1)
    if isinstance(words.get("max-priority"), int):
        levels = min(int(words["max-priority"]) + 1, 10)
        node.properties["priority-levels"] = str(levels)
    if words.get("message-ttl") == 0:
        node.properties.pop("ttl", None)
        draft.note(
            0,
            f"message-ttl 0 of queue {node.name}: given at once, or not at all",
            "there is no such node; let consumers be there",
        )
    exchange = words.get("dead-letter-exchange")
    if exchange is not None:
        node.properties["dead-letter"] = f"{exchange}\0{words.get('dead-letter-routing-key', '')}"
    for key in sorted(words.keys() - _KNOWN):
        draft.note(
            0, f"{key} of queue {node.name}", _REMEDIES.get(key, "there is no counterpart here; look at what it did")
        )
    if words.get("queue-type") == "stream":
        node.kind = "channel"
        draft.note(
            0, f"queue {node.name} is a stream", "it is made as a channel: its consumers are durable subscribers"
        )


_KNOWN: Final = {
    "message-ttl",
    "max-length",
    "max-length-bytes",
    "overflow",
    "delivery-limit",
    "max-priority",
    "dead-letter-exchange",
    "dead-letter-routing-key",
    "queue-type",
    "queue-mode",
    "queue-version",
}
_REMEDIES: Final = {
    "expires": "a node stays until realmgate node delete",
    "single-active-consumer": "start one consumer; order within a message group is kept for several",
    "ha-mode": "copies are Kafka's: the replication of the topics",
    "ha-params": "copies are Kafka's: the replication of the topics",
    "ha-sync-mode": "copies are Kafka's: the replication of the topics",
    "ha-promote-on-shutdown": "copies are Kafka's: the replication of the topics",
    "ha-promote-on-failure": "copies are Kafka's: the replication of the topics",
    "queue-master-locator": "copies are Kafka's: the replication of the topics",
    "quorum-initial-group-size": "copies are Kafka's: the replication of the topics",
    "dead-letter-strategy": "a dead letter and the end of its original are one transaction here",
    "federation-upstream": "let the other broker send to the gateway by its shovel",
    "federation-upstream-set": "let the other broker send to the gateway by its shovel",
    "alternate-exchange": "a message for a node that does not exist is refused (amqp:not-found)",
}


def _dead_letter_nodes(definitions: Definitions, draft: Imported) -> None:
    """Where a dead letter goes is an exchange there, and a node here."""
    for queue in definitions.of("queues"):
        node = draft.nodes[str(queue["name"])]
        where = node.properties.pop("dead-letter", None)
        if where is None:
            continue
        exchange, _, key = where.partition("\0")
        targets = _routed(definitions, exchange, key or node.name)
        if len(targets) == 1 and targets[0] != node.name:
            node.properties["dead-letter"] = targets[0]
        else:
            to = ", ".join(targets) if targets else "no queue"
            what = f"dead letters of queue {node.name} go to exchange {exchange or '(default)'}, from there to {to}"
            draft.note(0, what, f"name one node: realmgate node set {node.name} dead-letter=NODE")
    for node in [*draft.nodes.values()]:
        if (target := draft.nodes.get(node.properties.get("dead-letter", ""))) and target.properties.pop(
            "dead-letter", None
        ):
            what = f"queue {target.name} gets dead letters and gives up its own to another node"
            draft.note(0, what, "a dead letter that is given up again is discarded here")


def _routed(definitions: Definitions, exchange: str, key: str) -> list[str]:
    """The queues that a message of that routing key reaches, through one exchange."""
    queues = {str(queue["name"]) for queue in definitions.of("queues")}
    if not exchange:
        return [key] if key in queues else []
    kind = next((str(entry["type"]) for entry in definitions.of("exchanges") if entry["name"] == exchange), "")
    bound = [
        binding
        for binding in definitions.of("bindings")
        if binding["source"] == exchange and binding["destination_type"] == "queue"
    ]
    reached = [str(binding["destination"]) for binding in bound if _reaches(kind, str(binding["routing_key"]), key)]
    return list(dict.fromkeys(queue for queue in reached if queue in queues))


def _reaches(kind: str, binding: str, key: str) -> bool:
    if kind == "direct":
        return binding == key
    if kind == "topic":
        return matches(binding, key)
    return kind == "fanout"


def _exchanges(definitions: Definitions, draft: Imported) -> None:
    """An exchange without a counterpart is routing; a fanout is what a channel does."""
    for exchange in definitions.of("exchanges"):
        name, kind = str(exchange["name"]), str(exchange["type"])
        bindings = [route for route in definitions.of("bindings") if route["source"] == name]
        to = ", ".join(sorted({str(route["destination"]) for route in bindings})) or "nothing"
        if kind == "fanout" and name not in draft.nodes:
            draft.node(name, "channel")
            remedy = "it is made as a channel: let each consumer be a durable subscriber of it, instead of a queue"
            draft.note(0, f"exchange {name} is a fanout to {to}", remedy)
        else:
            remedy = (
                "there is no routing in a realm: let producers name the queue, or consumers select (docs/selectors.md)"
            )
            draft.note(0, f"exchange {name} ({kind}) to {to}", remedy)
    for binding in definitions.of("bindings"):
        if binding["source"] == "" or _is_fanout(definitions, str(binding["source"])):
            continue
        key, to = str(binding["routing_key"]), binding["destination"]
        what = f"binding of {binding['source']} to {binding['destination_type']} {to} by {key or 'no key'}"
        draft.note(0, what, f"let producers of {key or 'it'} name {to}")


def _is_fanout(definitions: Definitions, name: str) -> bool:
    return any(exchange["name"] == name and exchange["type"] == "fanout" for exchange in definitions.of("exchanges"))


def _permissions(definitions: Definitions, draft: Imported) -> None:
    """A pattern of names becomes grants on the nodes of that name; `.*` one on the realm."""
    for permission in definitions.of("permissions"):
        user = f"user:{permission['user']}"
        for word, operations in _PERMISSIONS.items():
            for node in _permitted(str(permission.get(word, "")), draft):
                _allow(draft, node, user, operations)
        configure = str(permission.get("configure", ""))
        if configure == ".*":
            draft.realm.setdefault(user, set()).update({"manage", "temporary"})
        elif configure not in ("", "^$"):
            what = f"user {permission['user']} may configure {configure}"
            draft.note(0, what, "who may make nodes by attaching has manage on the realm: realmgate acl grant")
    for permission in definitions.of("topic_permissions"):
        what = f"topic permission of {permission.get('user')} on {permission.get('exchange')}"
        draft.note(0, what, "grant per node: realmgate acl grant WHO OPERATIONS --node NODE")


def _permitted(pattern: str, draft: Imported) -> Iterator[ImportedNode | None]:
    """None: the realm."""
    if pattern == ".*":
        yield None
        return
    try:
        expression = re.compile(pattern)
    except re.error:
        return
    for node in draft.nodes.values():
        if pattern not in ("", "^$") and expression.search(node.name):
            yield node


def _allow(draft: Imported, node: ImportedNode | None, who: str, operations: set[str]) -> None:
    acl = draft.realm if node is None else node.acl
    acl.setdefault(who, set()).update(operations)


def _others(definitions: Definitions, draft: Imported) -> None:
    for user in definitions.all("users"):
        tags = user.get("tags") or []
        groups = tags if isinstance(tags, list) else [tag for tag in str(tags).split(",") if tag]
        words = "".join(f" --group {group}" for group in groups)
        what = f"user {user['name']}: RabbitMQ's hash of the password is of no use for SCRAM"
        draft.note(0, what, f"make an entry: realmgate user hash {user['name']}{words}")
    for host, count in definitions.elsewhere().items():
        draft.note(
            0,
            f"{count} queues of the virtual host {host}",
            f"import them, too: --vhost {host}; their names must not meet",
        )
    for parameter in [*definitions.of("parameters"), *definitions.all("global_parameters")]:
        if parameter.get("component") == "shovel":
            remedy = "let it end there, or move its queue: realmgate drain"
            draft.note(0, f"shovel {parameter['name']}", remedy)
        elif parameter.get("name") not in ("internal_cluster_id", "cluster_name"):
            label = f"parameter {parameter.get('component', '')} {parameter.get('name')}"
            draft.note(0, label, "there is no counterpart here; look at what it did")
    for policy in definitions.of("policies"):
        if policy.get("apply-to") == "exchanges":
            draft.note(0, f"policy {policy['name']} of exchanges", "there are no exchanges in a realm")
