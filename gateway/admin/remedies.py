"""What an operator can do about a refusal or a fault: by fault, else by the realm's answer, else by condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from gateway.evidence.recent_errors import GIVEN_UP

CLIENT: Final = (
    "the client breaks the protocol: look for a newer version of its library, and report this line to its maker"
)
_LOOK: Final = "run realmgate doctor; /health names what is wrong with the realm"
_NO_NODE: Final = (
    "there is no node {node}: correct the address in the application, or create it: realmgate node create {node}"
)
_MISSPELT: Final = (
    "there is no node {node}; did you mean {near}? Correct the address in the application, or create it:"
    " realmgate node create {node}"
)
_NO_TOPIC: Final = (
    "node {node} is there again, or its topic is gone: realmgate problems says which; then let the application attach"
    " again"
)
_NO_ROOM: Final = "the log has no room for it, {node} itself is not full: make room on the disk of the realm"
_NEAR: Final = 0.75  # difflib's ratio: one letter of four may differ
_GRANT: Final = "if {user} may do this: realmgate acl grant user:{user} {right} --node {node}"
_DISCHARGE: Final = (
    "let the application discharge its transactions sooner, or raise limits.transactions; limits.share_percent says how"
    " much of it one user or address may have"
)
_SMALLER: Final = (
    "send smaller messages, or raise limits.message_size_bytes; on Kafka also max.message.bytes of the node's topic"
)
_FULL: Final = "take messages from {node}, or raise its capacity: realmgate node set {node} capacity-events=N"

OF_FAULTS: Final[Mapping[str, str]] = {
    "failed-login": "correct the password in the application, or in the file of users (realmgate user hash)",
    "sasl": "the client and the gateway have no login in common: compare security.sasl with what the client is set to",
    "message-too-large": _SMALLER,
    "too-large-for-the-consumer": "let the consumer take larger messages (its max-message-size), or move them away:"
    " realmgate queue move {node}",
    "idle": "the client or the network hangs; if it only pauses, let it ask for a longer idle time-out",
    "idle-time-out-not-kept": "let the client ask for a longer idle time-out",
    "half-open": "a scanner, a port check, or an attack from {address}: it connects and does not say who it is;"
    " limits.half_open_per_address says how many of one address are safe from others",
    "connection-rate": "{address} connects and fails, or connects for each message: look for a loop in the application"
    " there; behind a load balancer let it send the PROXY protocol, else raise limits.connections_per_s",
    "proxy-header": "{address} connects to a listener with proxy_protocol: let the proxy send version 2 (HAProxy:"
    " send-proxy-v2), write its network in proxies, or let clients connect elsewhere",
    "too-many-connections": "let the application close connections that it does not use, or raise limits.connections;"
    " limits.share_percent says how much of it one user or address may have",
    "too-many-links": "let the application close links that it does not use, or raise the limit that text names;"
    " limits.share_percent says how much of limits.links one user or address may have",
    "too-many-nodes": "let the application delete temporary queues that it does not use, or raise"
    " limits.temporary_nodes; limits.share_percent says how much of it one user or address may have",
    "too-many-durables": "let the application unsubscribe durables that it does not use (realmgate durable list,"
    " durable delete), or raise limits.durables; limits.share_percent says how much of it one user may have",
    "too-many-stores": "let the application consume from fewer nodes, or raise limits.stores_read and the limits of"
    " threads and files; limits.share_percent says how much of it one user or address may have",
    "too-much-unfinished": "let the application send fewer large messages at a time, or raise limits.held_bytes and"
    " limits.held_bytes_per_connection",
    "too-much-held": "let the application read and settle what it is given, or raise limits.held_bytes",
    "too-many-containers": "let fewer containers use no-local filters, or raise limits.no_local_containers",
    "container-in-use": "two clients have one container-id (JMS: client id): give each its own",
    "container-taken-over": "two clients have one container-id (JMS: client id): give each its own",
    "link-name-in-use": "two links of one container have one name: give each its own",
    "invalid-terminus": "the address, or a capability of the attach, is none of those in docs/queues.md and"
    " docs/durables.md",
    "over-credit": CLIENT,
    "answer-too-large": "let the client take frames of at least 4 KiB, or use shorter names",
    "message-malformed": "the application, or its library, sends octets that are no AMQP message",
}
"""Other faults are mistakes of a client's library."""

OF_ANSWERS: Final[Mapping[str, str]] = {
    "access-denied": _GRANT,
    "capacity-reached": _FULL,
    "not-found": _NO_NODE,
    "too-large": _SMALLER,
    "invalid": "the log takes no such record: native has the log's own words",
    "selector-invalid": "correct the selector in the application; text says where it is wrong",
    "already-subscribed": "the subscription has a consumer: stop it, or let both share it (JMS 2.0: shared)",
    "in-use": "another consumer holds it: realmgate links --node {node} says who; stop it, or give each its own name",
    "kind-differs": "the subscription exists and is of another kind (shared or not): use another name, or delete it:"
    " realmgate durable delete",
    "unexpected": _LOOK,
    "indeterminate": f"the message may be stored or not: the publisher decides whether to send it again; {_LOOK}",
    "unavailable": _LOOK,
}

OF_CONDITIONS: Final[Mapping[str, str]] = {
    "amqp:not-found": _NO_NODE,
    "amqp:unauthorized-access": _GRANT,
    "amqp:link:message-size-exceeded": _SMALLER,
    "amqp:resource-limit-exceeded": _FULL,
    "amqp:resource-deleted": "the node was deleted while it was used: create it again, or stop the application",
    "amqp:resource-locked": "another link or connection holds it: realmgate links says which",
    "amqp:not-implemented": "the application asks for something that this gateway does not do",
    "amqp:not-allowed": "the application asks for something that the tables do not allow: the rule's reason says why",
    "amqp:precondition-failed": "what the application relied on does not hold any more: let it begin anew",
    "amqp:internal-error": _LOOK,
}
ASK_THE_RULE: Final = "the rule's reason says why: realmgate mappings explain"
_RIGHTS: Final = {"publish": "publish", "subscribe": "subscribe"}


_GIVEN_UP_KEPT: Final = (
    "see why {container} gives messages up, and mend that; they lie in {dead}: realmgate queue peek {dead}; afterwards:"
    " realmgate queue resend {dead} --to-origin"
)
_GIVEN_UP_FOR_GOOD: Final = (
    "see why {container} gives messages up, and mend that; nothing is kept of them: to keep what comes, name a node:"
    " realmgate node set {node} dead-letter=DEAD"
)


def remedy_for(facts: Mapping[str, str | None], node_names: Sequence[str] = (), dead: str = "") -> str:
    """One sentence, with the names of the node and the user, and the nearest of `node_names` for one that is not there.
    `facts`: of an entry (`RecentError.facts`). `dead`: the node of its dead letters; empty: it has none."""
    if facts.get("what") == GIVEN_UP:
        text = _GIVEN_UP_KEPT if dead and facts.get("answer") == "dead-letter" else _GIVEN_UP_FOR_GOOD
        who = facts.get("container") or facts.get("address") or "the consumer"
        return text.format(container=who, dead=dead, node=facts.get("node") or "NODE")
    fault, answer, condition = facts.get("fault"), facts.get("answer"), facts.get("condition")
    if facts.get("what") == "declare" and condition == "amqp:resource-limit-exceeded":
        text = _DISCHARGE
    elif fault:
        text = OF_FAULTS.get(fault, CLIENT)
    else:
        text = OF_ANSWERS.get(answer or "") or OF_CONDITIONS.get(condition or "") or ASK_THE_RULE
    right = _RIGHTS.get(facts.get("direction") or "", "RIGHT")
    if text is _FULL and facts.get("native") not in (None, answer):
        text = _NO_ROOM
    elif text is _NO_NODE and facts.get("node") in node_names:
        text = _NO_TOPIC
    elif text is _NO_NODE and (near := get_close_matches(facts.get("node") or "", node_names, 1, _NEAR)):
        text = _MISSPELT.replace("{near}", near[0].replace("{", "{{").replace("}", "}}"))
    names = {"node": facts.get("node") or "NODE", "address": facts.get("address") or "its address"}
    return text.format(user=facts.get("user") or "NAME", right=right, **names)
