"""Address settings of Artemis onto the nodes: the settings of all matches of an address, the more specific one first.

Source: Artemis' user manual, "Address Settings"; its defaults. Sizes are binary, as Artemis reads them. Milliseconds.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.cli.imports.imported import Imported, ImportedNode
from gateway.cli.imports.plain_xml import Element
from gateway.cli.imports.wildcards import specific_first

_ATTEMPTS: Final = "10"
_DELAY_TIMES: Final = 10
_UNITS: Final = {"": 1, "B": 1, "K": 1 << 10, "KB": 1 << 10, "M": 1 << 20, "MB": 1 << 20, "G": 1 << 30, "GB": 1 << 30}
_CARRIED: Final = {
    "dead-letter-address",
    "expiry-address",
    "max-delivery-attempts",
    "redelivery-delay",
    "redelivery-delay-multiplier",
    "max-redelivery-delay",
    "expiry-delay",
    "max-size-bytes",
    "max-size-messages",
    "address-full-policy",
    "default-ring-size",
}
_NOT_NEEDED: Final = ("page-", "message-counter-", "management-", "max-read-page-", "prefetch-page-", "initial-queue-")
_REMEDIES: Final = {
    "auto-create-": "make nodes by realmgate node create, or on attach: nodes.create_on_attach in the configuration",
    "default-address-routing": "nodes.default_kind in the configuration says what a node made on attach is",
    "default-queue-routing": "nodes.default_kind in the configuration says what a node made on attach is",
    "auto-delete-": "a node stays until realmgate node delete; temporary ones end with their peer",
    "redelivery-collision-avoidance": "delays have no random part here",
    "max-expiry-delay": "set ttl of the node; a shorter time to live of a message counts",
    "min-expiry-delay": "a message's own time to live counts, however short it is",
    "no-expiry": "a message's own time to live counts",
    "last-value": "there are no last-value queues; a compacted topic of Kafka can be adopted",
    "default-last-value": "there are no last-value queues; a compacted topic of Kafka can be adopted",
    "default-exclusive": "start one consumer; order within a message group is kept for several",
    "default-max-consumers": "the number of consumers is not limited here",
    "default-non-destructive": "use a channel, whose subscribers each get everything, or browse",
    "default-purge-on-no": "give the node a time to live, or purge it by realmgate queue purge",
    "slow-consumer": "slow consumers are shown by realmgate links, and not cut off",
    "send-to-dla-on-no-route": "a message for a node that does not exist is refused (amqp:not-found)",
    "reject-threshold": "set capacity-bytes and honour-capacity of the node",
    "max-size-bytes-reject-threshold": "set capacity-bytes and honour-capacity of the node",
    "retroactive": "a channel keeps its events for durables only; a new subscriber begins at the end",
    "redistribution": "there is no cluster of brokers behind a gateway",
    "id-cache": "duplicates are not looked for here: an id of a producer is kept and not compared",
    "enable-metrics": "metrics are on for each node, see docs/how-to/watch-a-gateway.md",
    "enable-ingress-timestamp": "every event has the time at which it was stored",
}


Setting = tuple[str, Element]
"""One `address-setting`, with its match."""


def apply_settings(settings: list[Setting], draft: Imported) -> None:
    """Onto each node; then their dead-letter nodes are there, too."""
    for node in list(draft.nodes.values()):
        _apply(node, _Merged(settings, node.name), draft)
    for node in list(draft.nodes.values()):
        target = node.properties.get("dead-letter", "")
        if target and target not in draft.nodes:
            _apply(draft.node(target, "queue"), _Merged(settings, target), draft)
        if target and "dead-letter" in draft.nodes[target].properties:
            del draft.nodes[target].properties["dead-letter"]
    for match, element in settings:
        _notes(match, element, draft)


class _Merged:
    """What holds for one address."""

    def __init__(self, settings: list[Setting], address: str) -> None:
        order = specific_first([match for match, _ in settings], address)
        by_match = dict(settings)
        self._settings = [by_match[match] for match in order]

    def element(self, key: str) -> Element | None:
        return next((value for entry in self._settings if (value := entry.first(key)) is not None and value.text), None)

    def text(self, key: str, default: str) -> str:
        element = self.element(key)
        return default if element is None else element.text


def _apply(node: ImportedNode, merged: _Merged, draft: Imported) -> None:
    attempts = merged.text("max-delivery-attempts", _ATTEMPTS)
    if attempts.isdigit():
        node.properties["attempts"] = attempts
    _dead_letters(node, merged, draft)
    _delays(node, merged, draft)
    lives = merged.element("expiry-delay")
    if lives is not None and lives.text.isdigit():
        node.properties["ttl"] = f"{lives.text}ms"
        draft.note(lives.line, "expiry-delay is for messages without a time to live", _TTL)
    _capacity(node, merged, draft)


_TTL: Final = "it is ttl of the node, which holds for the same messages"


def _dead_letters(node: ImportedNode, merged: _Merged, draft: Imported) -> None:
    dead, expired = merged.element("dead-letter-address"), merged.element("expiry-address")
    target = dead or expired
    if target is None or target.text == node.name:
        return
    node.properties["dead-letter"] = target.text
    if dead is not None and expired is not None and dead.text != expired.text:
        both = f"expired messages go to {dead.text}, too, with the cause expired (docs/how-to/dead-letters.md)"
        draft.note(expired.line, f"expiry-address {expired.text} beside dead-letter-address {dead.text}", both)
    elif dead is None:
        draft.note(
            target.line, f"expiry-address {target.text} without a dead-letter-address", "what failed goes there, too"
        )
    elif expired is None:
        draft.note(dead.line, "no expiry-address: Artemis drops what expired", "it goes to the dead-letter node, too")


def _delays(node: ImportedNode, merged: _Merged, draft: Imported) -> None:
    delay = merged.text("redelivery-delay", "0")
    if not delay.isdigit() or int(delay) == 0:
        return
    node.properties["redelivery-delay"] = f"{delay}ms"
    factor = merged.element("redelivery-delay-multiplier")
    if factor is None or float(factor.text) == 1.0:
        return
    node.properties["redelivery"] = "exponential"
    longest = merged.text("max-redelivery-delay", str(int(delay) * _DELAY_TIMES))
    node.properties["redelivery-delay-max"] = f"{max(int(longest), int(delay))}ms"
    if float(factor.text) != 2.0:
        draft.note(
            factor.line, f"redelivery-delay-multiplier {factor.text}", "a delay doubles here, up to the longest one"
        )


def _capacity(node: ImportedNode, merged: _Merged, draft: Imported) -> None:
    policy = merged.text("address-full-policy", "PAGE").upper()
    octets, events = _size(merged.text("max-size-bytes", "-1")), _size(merged.text("max-size-messages", "-1"))
    ring = _size(merged.text("default-ring-size", "-1"))
    if ring > 0:
        node.properties.setdefault("capacity-events", str(ring))
    if policy == "PAGE" or (octets <= 0 and events <= 0):
        return  # a full memory is no limit of the address: it goes on with files
    if octets > 0:
        node.properties["capacity-bytes"] = f"{octets}B"
    if events > 0:
        node.properties["capacity-events"] = str(events)
    if policy in ("BLOCK", "FAIL"):
        node.properties["honour-capacity"] = "true"
        return
    line = element.line if (element := merged.element("address-full-policy")) is not None else 0
    draft.note(
        line, "address-full-policy DROP drops new messages", "a full node gives up its oldest; else set honour-capacity"
    )


def _size(text: str) -> int:
    """Octets; below 1: no limit, or no number."""
    match = re.fullmatch(r"(-?\d+)\s*([A-Za-z]*)", text)
    unit = None if match is None else _UNITS.get(match[2].upper().removesuffix("IB") or "")
    return -1 if match is None or unit is None else int(match[1]) * unit


def _notes(match: str, setting: Element, draft: Imported) -> None:
    """Once for each line, whether a node has it or not."""
    exact = match in draft.nodes
    if not exact and match not in ("#", "activemq.management#", "activemq.management.#"):
        what = f"the settings of {match} hold for addresses to come, too"
        draft.note(setting.line, what, "give them to each node of that name when it is made")
    for element in setting.children:
        if element.name in _CARRIED or element.name.startswith(_NOT_NEEDED):
            continue
        remedy = next((words for word, words in _REMEDIES.items() if element.name.startswith(word)), None)
        draft.note(element.line, element.name, remedy or "there is no counterpart here; look at what it did")
