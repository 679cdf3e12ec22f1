"""The last refusals and faults, for operators: attaches that were refused, faults, failed logins, deliveries that got
another outcome than their peer asked for, what consumers gave up, links and subscriptions that were ended, requests
that were refused.

At most `KEPT` entries. What is the same within `SAME_S` is one entry, which says how many it stands for; containers and
links, of which a client may make new ones each time, are examples in it. A peer (user and address; before its login the
address alone) has `RULE_ENTRIES` at once for each rule and one more every `RULE_ENTRY_S`, `PEER_ENTRIES` altogether and
one more every `PEER_ENTRY_S`. What it has beyond is counted in its last entry of that rule, with the names of the first
`MORE_NODES` nodes, else in one of another (`more`). All peers together have `ENTRIES` at once and `ENTRIES_PER_S`. So
no flood pushes out what others did, or what the same peer did elsewhere.
One entry for a group of deliveries, never one for a message. Microseconds since 1970, counts.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.amqp.error_description import MOMENTS, describe_error
from gateway.evidence.kept_detail import kept_detail
from gateway.evidence.outcome_key import OutcomeKey
from mappings.compiler.errors import IN_FORCE
from native_backend.state.outcome_detail import OutcomeDetail

KEPT: Final = 2_000
SAME_S: Final = 60.0
RULE_ENTRIES, RULE_ENTRY_S = 20.0, 30.0
PEER_ENTRIES, PEER_ENTRY_S = 60.0, 10.0
ENTRIES, ENTRIES_PER_S = 400.0, 5.0
EXAMPLES: Final = 3
MORE_NODES, MORE_NODE_CHARACTERS = 30, 100
GIVEN_UP: Final = "given-up"
REASONS: Final = 3
"""Different errors of consumers that get an entry each, of one group of an outcome record."""
PEERS: Final = 1_000
"""Remembered; the one that was heard of least recently is forgotten."""
FIELDS: Final = (
    "what", "user", "container", "address", "node", "link", "direction", "durable", "condition", "class", "rule",
    "outcome", "answer", "native", "fault",
)  # fmt: skip
_EXAMPLE: Final = ("container", "link", "durable")
_SAME: Final = tuple(name for name in FIELDS if name not in _EXAMPLE)
"""Entries that agree in all of these are the same."""


_OF_RULES: Final = {
    "attach.refuse-an-unknown-node": "there is no node of this name",
    "attach.refuse-to-relay": "messages without the address of a node are not taken",
}


@dataclass(slots=True)
class RecentError:
    """`number` rises, from 1 on. `facts`: by `FIELDS`, those that are known of the first one. `delivery`: RUN:SEQ of
    the first one. `count`: how many times it happened; `more`: what else the peer did that has no entry, `more_nodes`:
    to which other nodes by the same rule. `examples`: container, link and durable of the last ones, where they differ.
    """

    number: int
    facts: Mapping[str, str]
    text: str
    delivery: str | None
    first_us: int
    at_us: int
    count: int
    more: int = 0
    more_nodes: dict[str, None] = field(default_factory=dict)
    examples: deque[dict[str, str | None]] = field(default_factory=lambda: deque(maxlen=EXAMPLES))


@dataclass(slots=True)
class _Allowance:
    """Entries that may be made now; it fills with time."""

    most: float
    per_s: float
    left: float
    filled_us: int

    def take(self, now_us: int) -> bool:
        self.left = min(self.most, self.left + self.per_s * max(0, now_us - self.filled_us) / 1e6)
        self.filled_us = now_us
        if self.left < 1:
            return False
        self.left -= 1
        return True


@dataclass(slots=True)
class _Peer:
    """`rules`: by what decided, of which the tables have so many: what it may still have, and its last entry."""

    allowance: _Allowance
    rules: dict[str, _Allowance] = field(default_factory=dict)
    last: dict[str, RecentError] = field(default_factory=dict)
    same: dict[tuple[str | None, ...], RecentError] = field(default_factory=dict)

    def take(self, rule: str, now_us: int) -> bool:
        allowance = self.rules.get(rule)
        if allowance is None:
            allowance = self.rules[rule] = _Allowance(RULE_ENTRIES, 1 / RULE_ENTRY_S, RULE_ENTRIES, now_us)
        return allowance.take(now_us) and self.allowance.take(now_us)


class RecentErrors:
    """One run's."""

    def __init__(self, run: str, epoch_us: Callable[[], int]) -> None:
        self.left_out = 0  # that no entry stands for
        self._run = run
        self._epoch_us = epoch_us
        self._entries: deque[RecentError] = deque(maxlen=KEPT)
        self._peers: OrderedDict[tuple[str, str], _Peer] = OrderedDict()
        self._allowance = _Allowance(ENTRIES, ENTRIES_PER_S, ENTRIES, 0)
        self._number = 0

    def above(self, number: int) -> Iterator[RecentError]:
        """Those that are kept, the oldest first."""
        return (entry for entry in [*self._entries] if entry.number > number)

    def delivery(self, key: OutcomeKey, seq: int, count: int, now_us: int) -> None:
        """So many deliveries got an outcome that differs from what was asked for; the first has that seq."""
        rule, link = key.deciding, key.link
        words = (key.answer, key.native) if key.answer and not key.fault else ()
        text = describe_error(link.node or "", rule, *words) if rule.then.get("condition") or words else rule.rule
        facts = {
            "what": "delivery", "user": link.user, "container": link.container, "address": link.address,
            "node": link.node, "link": link.name, "direction": link.direction, "durable": link.durable,
            "condition": key.condition, "class": key.klass, "rule": f"{rule.table}.{rule.rule}",
            "outcome": key.outcome, "answer": key.answer, "native": key.native, "fault": key.fault,
        }  # fmt: skip
        self.add(facts, text, count, f"{self._run}:{seq}", now_us)

    def given_up(
        self, key: OutcomeKey, seqs: Sequence[int], errors: Mapping[OutcomeDetail, Sequence[int]], now_us: int
    ) -> None:
        """A consumer gave deliveries up, with the errors that it stated."""
        link, rest = key.link, len(seqs)
        facts = {
            "what": GIVEN_UP, "user": link.user, "container": link.container, "address": link.address,
            "node": link.node, "link": link.name, "direction": link.direction, "durable": link.durable,
            "rule": f"{key.rule.table}.{key.rule.rule}", "outcome": key.outcome, "answer": key.operation,
        }  # fmt: skip
        for detail, some in [*errors.items()][:REASONS]:
            kept = kept_detail(detail)
            text = f"{kept.condition}: {kept.description}" if kept.description else kept.condition
            self.add({**facts, "condition": kept.condition}, text, len(some), f"{self._run}:{some[0]}", now_us)
            rest -= len(some)
        if rest > 0:
            self.add(facts, "the consumer said no reason", rest, f"{self._run}:{seqs[0]}", now_us)

    def decided(self, entry: Mapping[str, Any]) -> None:
        """What a table decided about something else than a delivery, as the outcome records have it."""
        side = "answer_" if "answer_rule" in entry else ""
        rule = f"{entry[f'{side}table']}.{entry[f'{side}rule']}" if f"{side}rule" in entry else None
        self.add(
            {**entry, "rule": rule}, str(entry.get("detail") or _sentence(entry, entry.get(f"{side}table", ""), rule))
        )

    def add(
        self, facts: Mapping[str, Any], text: str, count: int = 1, delivery: str | None = None, at_us: int | None = None
    ) -> None:
        """It has happened so often. `at_us`: None: now."""
        now_us = self._epoch_us() if at_us is None else at_us
        user = "" if facts["what"] == "login" else facts.get("user") or ""  # it says who it is, and is not
        peer = self._peer((user, facts.get("address") or ""), now_us)
        key = tuple(facts.get(name) or None for name in _SAME)
        rule = facts.get("rule") or facts.get("fault") or facts["what"]
        entry = peer.same.get(key)
        if entry is not None and now_us - entry.first_us < SAME_S * 1e6:
            entry.count += count
            entry.at_us = now_us
        elif peer.take(rule, now_us) and self._allowance.take(now_us):
            entry = self._entry(facts, str(text)[:400], delivery, now_us, count)
            peer.same = {kind: known for kind, known in peer.same.items() if now_us - known.first_us < SAME_S * 1e6}
            peer.same[key] = peer.last[rule] = entry
        else:
            self._beyond(peer, rule, facts, count)
            return
        example = {name: facts.get(name) or None for name in _EXAMPLE}
        if example not in entry.examples:
            entry.examples.append(example)

    def _beyond(self, peer: _Peer, rule: str, facts: Mapping[str, Any], count: int) -> None:
        """It has no entry of its own."""
        last = peer.last.get(rule)
        near = last or next(reversed(peer.last.values()), None)
        if near is None:
            self.left_out += count
            return
        near.more += count
        node = str(facts.get("node") or "")[:MORE_NODE_CHARACTERS]
        if last is not None and node not in ("", last.facts.get("node")) and len(last.more_nodes) < MORE_NODES:
            last.more_nodes[node] = None

    def _entry(self, facts: Mapping[str, Any], text: str, delivery: str | None, now_us: int, count: int) -> RecentError:
        known = {name: str(facts[name]) for name in FIELDS if facts.get(name)}
        self._number += 1
        made = RecentError(self._number, known, text, delivery, now_us, now_us, count)
        self._entries.append(made)
        return made

    def _peer(self, who: tuple[str, str], now_us: int) -> _Peer:
        peer = self._peers.get(who)
        if peer is None:
            peer = self._peers[who] = _Peer(_Allowance(PEER_ENTRIES, 1 / PEER_ENTRY_S, PEER_ENTRIES, now_us))
            if len(self._peers) > PEERS:
                self._peers.popitem(last=False)
        else:
            self._peers.move_to_end(who)
        return peer


def _sentence(entry: Mapping[str, Any], table: str, rule: str | None) -> str:
    """What the realm answered, or which rule refuses, for a person who knows neither word."""
    node = f"{entry['node']}: " if entry.get("node") else ""
    if entry.get("answer"):
        sentence = IN_FORCE.errors.say(entry["answer"], entry.get("native") or "", MOMENTS.get(table, ""))
        return f"{node}{sentence}"
    return f"{node}{_OF_RULES.get(rule or '') or (rule or '').partition('.')[2].replace('-', ' ')}"
