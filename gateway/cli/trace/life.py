"""The life of one message: its event, all copies of it, what the journal did with them and how peers were answered.

The journal leads from an event to its copies, their keys lead back. What no record says is listed as not recorded.
Times are microseconds since 1970. Blocks; raises LogError.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.cli.trace.events import Place, StoredEvent, copies, read_event
from gateway.cli.trace.outcomes import Delivery, Outcome, began_ms, of_events
from gateway.cli.trace.records import Searched, iso, values
from native_backend.journal.journal import journal_topic
from native_backend.log import event_key
from native_backend.log.port import Log, LogError
from native_backend.nodes.commands import commands_topic
from native_backend.nodes.metadata import Metadata
from native_backend.shard.state_reader import StoredState, observe

_COMMAND_MS = 3_600_000  # at most from a command to what it does
WHOLE_STORE = ("evicted", "trimmed", "truncated")
KINDS = {
    "acknowledge": "settled",
    "discard": "discarded",
    "dead-letter": "dead-lettered",
    "return": "returned",
    "expired": "expired",
    "filtered": "filtered",
    "purge": "purged",
    "move": "moved",
    "seek": "sought",
    "delete": "durable-deleted",
    "lost": "lost",
    "evicted": "evicted",
    "trimmed": "trimmed",
    "truncated": "truncated",
}
"""What a journal's operation is called in a life; what is not here has its own name."""
ENDS = ("acknowledge", "discard", "dead-letter", "expired", "filtered", "purge", "move")
Entry = tuple[dict[str, Any], dict[str, Any], Place, int]
"""Of the journal: record, entry, the place of one of the events, and its seq there (0: none)."""


@dataclass(slots=True)
class Step:
    """Something that happened to the message. `at_us` None: when is not recorded; it is shown before the next step
    whose time, `before_us`, is known."""

    what: str
    at_us: int | None
    before_us: int
    place: Place | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None


class Life:
    """Of the message that is, or was, at a place; with all that became of it."""

    def __init__(self, log: Log, prefix: str, metadata: Metadata, searched: Searched) -> None:
        self._log, self._prefix, self._metadata, self._searched = log, prefix, metadata, searched
        self.events: dict[Place, StoredEvent | str] = {}
        self.steps: list[Step] = []
        self.not_recorded: list[str] = []
        self._since_ms = 0
        self._copied_us: dict[Place, int] = {}  # when the journal noted that it would be stored
        self._of_stores: set[bytes] = set()  # how a record speaks of them
        self._commands: dict[str, dict[str, Any]] | None = None

    def trace(self, place: Place) -> None:
        self._ancestors(place)
        self._since_ms = self._beginning()
        journalled = self._journal()
        outcomes = self._outcomes(self._end(journalled))
        self._stored(outcomes)
        self._settled(journalled, outcomes)
        self._now(journalled)
        self.steps.sort(key=lambda step: step.before_us)

    # -- where it is

    def _ancestors(self, place: Place) -> None:
        """From a copy to what it is a copy of, as far as that is kept; the first one first."""
        chain: list[Place] = []
        before: Place | None = place
        while before is not None and before not in chain:
            chain.insert(0, before)
            event = self.events[before] = read_event(self._log, self._metadata, before)
            before = event_key.copied_from(event.key) if isinstance(event, StoredEvent) else None
        self.events = {ancestor: self.events[ancestor] for ancestor in chain}
        self._of_stores |= {b'"store":%d,' % store for store, _ in chain}

    @property
    def published(self) -> Delivery | None:
        """None: by a plain producer, or it is not recorded."""
        for event in self.events.values():
            if isinstance(event, StoredEvent):
                return event_key.published_as(event.key)
        return None

    def _beginning(self) -> int:
        """No record about it is older. A plain producer writes any time: then there is no such bound."""
        first = next(iter(self.events.values()))
        if isinstance(first, StoredEvent) and event_key.published_as(first.key) is not None:
            return first.at_ms
        return began_ms(self.published[0]) if self.published is not None else 0

    # -- what the journal did

    def _journal(self) -> list[Entry]:
        """All that concerned it. Copies are found on the way."""
        entries = []
        newest: dict[str, int] = {}
        trimmed: set[Place] = set()
        topic, times_ms = journal_topic(self._prefix), (self._since_ms, 0)
        for value in values(self._log, topic, times_ms, self._searched, self._of_stores):
            record = orjson.loads(value)
            if record["n"] <= newest.get(record["run"], 0):
                continue  # submitted again after an unknown result
            newest[record["run"]] = record["n"]
            for entry in record["entries"]:
                for place, seq in [*self._concerned(entry)]:
                    if entry["operation"] == "trimmed" and place in trimmed:
                        continue
                    if entry["operation"] == "trimmed":
                        trimmed.add(place)
                    entries.append((record, entry, place, seq))
                    if entry.get("to"):
                        self._copied(entry["to"], place, record["at"])
        return entries

    def _concerned(self, entry: dict[str, Any]) -> Iterator[tuple[Place, int]]:
        """Which of our events an entry speaks of, and by which seq."""
        for store, eid in [event for event in self.events if event[0] == entry["store"]]:
            if entry["operation"] in ("seek", "delete"):
                yield (store, eid), 0
                continue
            for first, last, seq, _ in entry["runs"]:
                if entry["operation"] == "truncated":
                    inside = eid >= first
                else:
                    inside = eid <= last and (entry["operation"] in WHOLE_STORE or eid >= first)
                if inside:
                    yield (store, eid), seq and seq + eid - first
                    break

    def _copied(self, store: int, place: Place, at_us: int) -> None:
        node = self._metadata.stores.get(store)
        for copy in copies(self._log, node, place, at_us // 1000) if node is not None else ():
            self._copied_us.setdefault(copy, at_us)
            if copy not in self.events:
                self._of_stores.add(b'"store":%d,' % store)
                self.events[copy] = read_event(self._log, self._metadata, copy)

    # -- how peers were answered

    def _end(self, journalled: list[Entry]) -> int:
        """No outcome comes later: it has ended in every queue that it was in. 0: that is not so. A channel's
        subscribers may have no durable, and the journal does not know them."""
        ends = {place: record["at"] // 1000 for record, entry, place, _ in journalled if entry["operation"] in ENDS}
        known = [event for event in self.events.values() if isinstance(event, StoredEvent)]
        if len(known) < len(self.events) or any(event.node.kind != "queue" for event in known):
            return 0
        again = any(entry["operation"] == "seek" for _, entry, _, _ in journalled)
        return 0 if again or ends.keys() != self.events.keys() else max(ends.values())

    def _outcomes(self, until_ms: int) -> dict[Delivery, Outcome]:
        deliveries = [self.published] if self.published is not None else []
        topic = f"{self._prefix}.outcomes"
        rows = of_events(self._log, topic, self.events.keys(), deliveries, (self._since_ms, until_ms), self._searched)
        return {answer.delivery: answer for answer in rows}

    def _stored(self, outcomes: dict[Delivery, Outcome]) -> None:
        """How each event came to be; what cannot be read of it is not recorded."""
        first = next(iter(self.events))
        for place, event in self.events.items():
            if isinstance(event, str):
                self.not_recorded.append(f"the event {place[0]}:{place[1]}: {event}")
                continue
            at_us = event.at_ms * 1000
            fields = {"octets": len(event.value), "topic": event.node.topic, "partition": event.node.partition}
            # The log keeps milliseconds: the beginning of one may lie before what led to the copy.
            before_us = max(at_us, self._copied_us.get(place, 0) + 1)
            self.steps.append(Step("stored", at_us, before_us, place, fields))
        published, event = self.published, self.events[first]
        stored_us = event.at_ms * 1000 if isinstance(event, StoredEvent) else None
        if published is None:
            if isinstance(event, StoredEvent):
                self.not_recorded.append("who published it: a plain producer did, no gateway")
            else:
                self.not_recorded.append("who published it")
            return
        answer = outcomes.pop(published, None)
        run, seq = published
        before_us = stored_us if stored_us is not None else answer.at_us if answer is not None else 0
        self.steps.insert(0, Step("published", stored_us, before_us, first, {"run": run, "seq": seq}, answer))
        if answer is None:
            self.not_recorded.append(
                f"who published it, and how that peer was answered: no outcome record has {run}:{seq}"
            )
            return
        self.steps.append(Step("answered", answer.at_us, answer.at_us, first, {"run": run, "seq": seq}, answer))

    def _settled(self, journalled: list[Entry], outcomes: dict[Delivery, Outcome]) -> None:
        for record, entry, place, seq in journalled:
            at_us, delivery = record["at"], (record["run"], seq)
            answer = outcomes.pop(delivery, None) if seq else None
            if seq:
                fields = {"run": record["run"], "seq": seq, "durable": entry["durable"]}
                self.steps.append(Step("given", None, at_us, place, fields, answer))
                if answer is None:
                    self.not_recorded.append(
                        f"to which link {delivery[0]}:{seq} was given, and how that peer was answered"
                    )
            self.steps.append(
                Step(_kind(entry), at_us, at_us, place, self._of_entry(record, entry, place, seq), answer)
            )
        # The others have no entry in the journal: of a subscriber without a durable, or refused.
        for answer in outcomes.values():
            fields = {"run": answer.run, "seq": answer.seq, "durable": answer.group["durable"]}
            if answer.group["direction"] == "subscribe":
                self.steps.append(Step("given", None, answer.at_us, answer.place, fields, answer))
                fields = {**fields, "operation": answer.group["operation"], "cause": answer.group["cause"]}
                self.steps.append(Step("ended", answer.at_us, answer.at_us, answer.place, fields, answer))

    def _of_entry(self, record: dict[str, Any], entry: dict[str, Any], place: Place, seq: int) -> dict[str, Any]:
        fields = {key: entry[key] for key in ("durable", "operation", "cause")}
        if seq:
            fields |= {"run": record["run"], "seq": seq}
        if entry.get("not_before"):
            fields["not_before"] = iso(entry["not_before"] * 1000)
        if entry["operation"] == "seek":
            [[to, *_], *_] = entry["runs"]
            fields |= {"to_eid": to, "given_again": place[1] >= to}
        if entry.get("to"):
            to = self._metadata.stores.get(entry["to"])
            fields["to_node"] = to.name if to is not None else None
            fields["to"] = [f"{copy[0]}:{copy[1]}" for copy in self._copies_in(entry["to"], place)]
        cause = str(entry["cause"])
        if cause.startswith("command "):
            command = self._command(cause.removeprefix("command "), record["at"])
            who = command.get("who") if command is not None else None  # an earlier release did not say
            if command is not None:
                origin = {"who": who, "why": command["why"]} if who else {}
                fields["command"] = {"what": command["what"], "at": iso(command["at"]), **origin}
            if not who:
                self.not_recorded.append(f"by whom the command {cause.removeprefix('command ')} was given")
        return fields

    def _copies_in(self, store: int, original: Place) -> list[Place]:
        return [
            place
            for place, event in self.events.items()
            if place[0] == store and isinstance(event, StoredEvent) and event_key.copied_from(event.key) == original
        ]

    def _command(self, command: str, at_us: int) -> dict[str, Any] | None:
        if self._commands is None:
            self._commands = {}
            topic, since_ms = commands_topic(self._prefix), max(0, at_us // 1000 - _COMMAND_MS)
            for value in values(self._log, topic, (since_ms, 0), self._searched, (b'"id":',)):
                record = orjson.loads(value)
                self._commands[record["id"]] = record
        return self._commands.get(command)

    # -- how it stands now

    def _now(self, journalled: list[Entry]) -> None:
        """Of each event that is kept, in each durable whose it is: does it wait?"""
        ended = {(place, entry["durable"]) for _, entry, place, _ in journalled if entry["operation"] != "return"}
        for node in dict.fromkeys(event.node for event in self.events.values() if isinstance(event, StoredEvent)):
            try:
                durables = observe(self._log, self._prefix, self._metadata, node)
            except LogError as error:
                self.not_recorded.append(f"how it stands now in {node.name}: {error}")
                continue
            for durable in durables:
                for place, event in self.events.items():
                    if place[0] == durable.durable.store and isinstance(event, StoredEvent) and durable.broken is None:
                        self._stands(durable, place, (place, durable.durable.name) in ended)

    def _stands(self, store: StoredState, place: Place, in_journal: bool) -> None:
        eid, state = place[1], store.state
        if eid < store.durable.start:
            return
        if eid < state.low or eid in state.acked:
            if not in_journal:
                name = f"{store.node.name}/{store.durable.name}"
                self.not_recorded.append(f"when and how it ended in {name}: the journal does not have it any more")
            return
        fields: dict[str, Any] = {"durable": store.durable.name, "failed": state.failed.get(eid, 0)}
        fields["given"] = eid < state.position
        times = [at_ms for at_ms, first, last in state.delayed if first <= eid <= last]
        if times:
            fields["not_before"] = iso(max(times) * 1000)
        self.steps.append(Step("waits", None, 1 << 62, place, fields))


def _kind(entry: dict[str, Any]) -> str:
    if entry["operation"] == "return" and entry["failed"]:
        return "failed"
    if entry["operation"] == "dead-letter" and not entry.get("to"):
        return "discarded"  # the node names no dead-letter node
    operation: str = entry["operation"]
    return KINDS.get(operation, operation)
