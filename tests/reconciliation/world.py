"""A small world of records, made through the log port: what a gateway would have left, exactly, without a gateway.

    world = World(open_embedded(path), "um")
    orders = world.queue("orders")
    run = world.run()
    eids = run.publish(orders, 5)
    run.settle(orders, eids[:3], "accepted")
    run.close()

Every outcome's rule and cell come from the shipped tables. What a test plants, it plants afterwards, in the realm.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from mappings import Decision, load_tables
from native_backend.events.copy_key import copy_key
from native_backend.log.port import Append, Appended, Completion, Log, TopicSpec, Transacted, Write
from native_backend.nodes.admin import create_node, delete_node
from native_backend.nodes.durable import Durable, channel_durable, durable_key, encode_durable, queue_durable
from native_backend.nodes.durable_terms import DurableTerms
from native_backend.nodes.group_offset import Position, projection
from native_backend.nodes.node import Node
from native_backend.nodes.properties import DEFAULT, Properties

_SOON_S = 0.02
START_US = 1_900_000_000_000_000
"""Behind the log's own time, which is the machine's: what the journal says of an event, it says later."""
TABLES = load_tables(profile="extended")
LISTED = {"rejected": "agreed", "released": "agreed"}  # by the publisher's source
_MODES = {"queue": "queue", "channel": "plain"}
LINK = {"link": 1, "name": "sender-1", "container": "app-1"}


class SteppingClock:
    """A second a step, so that times tell the order."""

    def __init__(self) -> None:
        self.now_us = START_US

    def monotonic_s(self) -> float:
        return self.now_us / 1e6

    def epoch_us(self) -> int:
        self.now_us += 1_000_000
        return self.now_us


@dataclass(slots=True)
class Sent:
    """One delivery that a run numbered: its seq and where its event is."""

    seq: int
    eid: int


@dataclass(slots=True)
class World:
    log: Log
    prefix: str
    clock: SteppingClock = field(default_factory=SteppingClock)
    runs: int = 0
    shard: str = ""
    committed_to: int = 0
    """Behind the last journal record that was committed here."""
    _ready: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        single = [f"{self.prefix}.{name}" for name in ("journal", "outcomes", "commands")]
        compacted = [f"{self.prefix}.{name}" for name in ("realm", "state", "tables")]
        specs = [TopicSpec(name) for name in single] + [TopicSpec(name, compacted=True) for name in compacted]
        self.log.control.create_topics(specs)
        self.shard = f"{self.prefix}.shard.0"
        self.log.control.claim(self.shard)
        document = {**TABLES.expanded(), "stored_us": self.clock.epoch_us()}
        self.log.control.put(f"{self.prefix}.tables", TABLES.digest.encode(), json.dumps(document).encode())

    def queue(self, name: str, properties: Properties = DEFAULT) -> Node:
        return create_node(self.log, self.prefix, name, "queue", self.clock, properties)

    def channel(self, name: str) -> Node:
        return create_node(self.log, self.prefix, name, "channel", self.clock)

    def durable(self, node: Node, name: str, start: int, journal: int = 0, selector: str = "") -> Durable:
        terms = DurableTerms(selector=selector)
        durable = replace(channel_durable(self.prefix, node, name, [start], journal), terms=terms)
        self.log.control.put(
            f"{self.prefix}.realm", durable_key(node.name, name), encode_durable(durable, self.clock.epoch_us())
        )
        return durable

    @property
    def journal_end(self) -> int:
        """Kafka shows where it is a little after the answer."""
        return max(self.committed_to, self.log.control.bounds(f"{self.prefix}.journal", 0)[1])

    def durable_again(self, node: Node, name: str, start: int) -> Durable:
        """As one that was deleted before: what the journal says by now is of another one."""
        return self.durable(node, name, start, self.journal_end)

    def project(self, node: Node, durable: Durable | None, low: int) -> None:
        self.show(node, durable, projection(low, low, self.journal_end))

    def show(self, node: Node, durable: Durable | None, position: Position) -> None:
        """Set the group's offset and metadata."""
        reader = durable or queue_durable(self.prefix, node, [0])
        self.log.control.project(reader.group, {(node.topic, 0): position})

    def command(self, id_: str, what: str, node: Node, eid: int = 0, durable: str = "queue") -> None:
        """An operator gave it."""
        value = {"v": 2, "at": self.clock.epoch_us(), "id": id_, "what": what, "node": node.name, "store": node.store,
                 "durable": durable, "until_us": 0, "eid": eid, "count": 0, "to": "", "where": "", "who": "ann",
                 "why": ""}  # fmt: skip
        self.log.control.put(f"{self.prefix}.commands", id_.encode(), json.dumps(value).encode())

    def snapshot(self, node: Node, durable: str, low: int, acked: list[list[int]], journal: int) -> None:
        value = {"v": 1, "node": node.name, "durable": durable, "store": node.store, "journal": journal, "low": low,
                 "acked": acked, "failed": [], "position": low}  # fmt: skip
        self.log.control.put(
            f"{self.prefix}.state", json.dumps([node.store, durable]).encode(), json.dumps(value).encode()
        )

    def run(self) -> GatewayRun:
        self.runs += 1
        run = GatewayRun(self, f"{START_US // 1000 + self.runs:x}-{self.runs:04x}")
        run.begin()
        return run

    def append(self, topic: str, keys: list[bytes], values: list[bytes]) -> list[int]:
        """Blocks until stored."""
        self._log_wakes()
        self.log.append(Append(topic, 0, keys, values))
        offsets: list[int] = []
        while len(offsets) < len(keys):
            for done in self._done():
                assert isinstance(done, Appended) and done.failure is None, done
                offsets += done.offsets
        return offsets

    def _log_wakes(self) -> None:
        """Whichever log it is by now: a loop that asks would take a core while the disk writes."""
        self.log.on_ready(self._ready.set)

    def _done(self) -> list[Completion]:
        self._ready.wait(_SOON_S)  # some logs say it only where they are asked
        self._ready.clear()
        return self.log.poll()

    def commit(self, run: str, value: dict[str, Any], copies: Sequence[Write] = ()) -> int:
        """One journal record in one transaction, behind events that it writes."""
        record = Write(f"{self.prefix}.journal", 0, run.encode(), json.dumps(value).encode())
        self._log_wakes()
        self.log.transact(self.shard, [*copies, record], None)
        while True:
            for done in self._done():
                assert isinstance(done, Transacted) and done.failure is None, done
                self.committed_to = done.offsets[-1] + 1
                return done.offsets[-1]


class GatewayRun:
    """One life of a gateway. `turn` writes the outcome record of what was told since the last one."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.next_seq, self.records, self.commits = 1, 0, 0
        self.groups: list[dict[str, Any]] = []
        self.told: set[int] = set()
        self.latest: dict[str, Any] = {}

    def number(self, count: int) -> list[int]:
        first, self.next_seq = self.next_seq, self.next_seq + count
        return list(range(first, first + count))

    def begin(self) -> None:
        """Claimed, and the first outcome record."""
        self.commit([])
        self.turn()

    def commit(self, entries: list[dict[str, Any]], copies: Sequence[Write] = ()) -> None:
        self.commits += 1
        at = self.world.clock.epoch_us()
        self.latest = {"v": 1, "run": self.name, "n": self.commits, "at": at, "entries": entries}
        self.world.commit(self.name, self.latest, copies)

    def commit_again(self) -> None:
        """The latest journal record: the result of its transaction was not known."""
        self.world.commit(self.name, self.latest)

    def entry(self, node: Node, durable: str, operation: str, cause: str, runs: list[list[int]]) -> dict[str, Any]:
        return {"node": node.name, "durable": durable, "store": node.store, "operation": operation, "failed": 0,
                "cause": cause, "runs": runs}  # fmt: skip

    def attest(self) -> None:
        """The journal notes how many outcome records there are."""
        note = {"node": "", "durable": "", "store": 0, "operation": "recorded", "failed": 0, "cause": "outcomes"}
        self.commit([{**note, "runs": [[1, self.records, 0, 1]]}])

    def truncated(self, node: Node, durable: str, first: int, last: int) -> None:
        """The store is known to have become shorter: it ends at `first`."""
        self.note(node, durable, "truncated", first, last, "truncation")

    def note(self, node: Node, durable: str, operation: str, first: int, last: int, cause: str = "command 1") -> None:
        """By the realm itself, for no delivery."""
        self.commit([self.entry(node, durable, operation, cause, [[first, last, 0, first]])])

    def delete(self, node: Node) -> None:
        """By command: recorded, noted, then gone."""
        self.world.command("1", "delete-node", node)
        self.commit([self.entry(node, "", "delete", "command 1", [[0, 0, 0, 0]])])
        delete_node(self.world.log, self.world.prefix, node.name)

    def unsubscribe(self, node: Node, name: str) -> None:
        """Its consumer ends the durable: noted, then its record goes."""
        self.commit([self.entry(node, name, "delete", "unsubscribed", [[0, 0, 0, 0]])])
        self.world.log.control.put(f"{self.world.prefix}.realm", durable_key(node.name, name), None)

    def settle_and_unsubscribe(self, node: Node, sent: Sent, name: str) -> None:
        """In one turn: one record has both."""
        [seq] = self.settle(node, [sent], "accepted", name, journal=False)
        end = self.entry(node, name, "acknowledge", "disposition", [[sent.eid, sent.eid, seq, sent.eid]])
        self.commit([end, self.entry(node, name, "delete", "unsubscribed", [[0, 0, 0, 0]])])
        self.world.log.control.put(f"{self.world.prefix}.realm", durable_key(node.name, name), None)

    # -- publishing

    def store(self, node: Node, seqs: Sequence[int], ttl: str = "") -> list[int]:
        """Events in the store, no one told."""
        keys = [f"1;basic;{self.name};{seq};1;4;{ttl};0;;0".encode() for seq in seqs]
        return self.world.append(node.topic, keys, [b"body %d" % seq for seq in seqs])

    def publish(self, node: Node, count: int, *, presettled: bool = False, ttl: str = "") -> list[Sent]:
        seqs = self.number(count)
        eids = self.store(node, seqs, ttl)
        self.tell_publish(node, seqs, eids, "stored", presettled=presettled)
        return [Sent(seq, eid) for seq, eid in zip(seqs, eids, strict=True)]

    def tell_publish(
        self, node: Node, seqs: list[int], eids: list[int], answer: str, *, presettled: bool = False
    ) -> dict[str, Any]:
        mode = "mixed" if presettled else "unsettled"
        settled = "yes" if presettled else "no"
        rule = TABLES["publish"].decide(
            framing="whole",
            transformed="event",
            transactional="no",
            sender_settle_mode=mode,
            presettled=settled,
            **LISTED,
        )
        answered = TABLES["published"].decide(answer=answer, sender_settle_mode=mode, presettled=settled, **LISTED)
        return self._tell(
            node,
            None,
            "publish",
            rule,
            answered,
            answered.then,
            answer,
            seqs,
            eids,
            cause="transfer",
            presettled=presettled,
        )

    # -- consuming

    def settle(
        self, node: Node, sent: Sequence[Sent], state: str, durable: str | None = None, *, tell: bool = True,
        answer: str = "done", journal: bool = True, cause: str = "disposition", to: Node | None = None,
        subscription: str = "",
    ) -> list[int]:  # fmt: skip
        """Dispatch these events, and settle them: journal first, then the outcome. Returns the seqs. `subscription`:
        `plain` for one without a durable."""
        seqs, eids = self.number(len(sent)), [event.eid for event in sent]
        rule = TABLES["settle"].decide(
            state=state, already_settled="no",
            subscription=subscription or ("durable" if durable else _MODES[node.kind]),
            source_durability="unsettled-state" if durable else "none", receiver_settle_mode="first",
            attempts="below",
        )  # fmt: skip
        if journal:
            self.journal(
                node, durable or "queue", rule.then["native"], eids, seqs, bool(rule.then["failed"]), cause, to
            )
        answered = TABLES["settled"].decide(operation=rule.then["native"], answer=answer, peer_settled="no")
        then = {**answered.then}
        if then["outcome"] == "asked":
            then["outcome"] = rule.then["outcome"]
        if tell:
            self._tell(
                node, durable, "subscribe", rule, answered, then, answer, seqs, eids, cause=cause,
                presettled=cause == "sent-settled",
            )  # fmt: skip
        return seqs

    def journal(
        self, node: Node, durable: str, operation: str, eids: list[int], seqs: list[int], failed: bool, cause: str,
        to: Node | None = None,
    ) -> None:  # fmt: skip
        """`to`: where the events are copied in the same transaction. Seqs are 0 for what the realm does by itself."""
        runs = [[eid, eid, seq, eid] for eid, seq in zip(eids, seqs, strict=True)]
        copies = []
        entry = {**self.entry(node, durable, operation, cause, runs), "failed": int(failed)}
        if to is not None:
            entry["to"] = to.store
            key = f"1;basic;{self.name};1;1;4;;0;;0".encode()  # of the original: the one who published it
            copies = [Write(to.topic, 0, copy_key(node.store, eid, "rejected", key), b"a letter") for eid in eids]
        self.commit([entry], copies)

    def sweep(self, node: Node, operation: str, first: int, last: int) -> None:
        """The realm by itself, for all durables of a store: evicted or trimmed."""
        self.commit([self.entry(node, "", operation, "capacity", [[first, last, 0, first]])])
        self.world.log.control.trim(node.topic, 0, last + 1)

    # -- evidence

    def _tell(
        self, node: Node, durable: str | None, direction: str, rule: Decision, answered: Decision | None, then: Any,
        answer: str | None, seqs: list[int], eids: list[int], *, cause: str, presettled: bool,
    ) -> dict[str, Any]:  # fmt: skip
        group = {
            **LINK, "direction": direction, "node": node.name, "store": node.store, "durable": durable,
            "table": rule.table, "cell": rule.cell, "rule": rule.rule,
            "answer_table": answered.table if answered else None, "answer_cell": answered.cell if answered else None,
            "answer_rule": answered.rule if answered else None, "operation": rule.then["native"], "cause": cause,
            "answer": answer, "native": None, "outcome": then["outcome"], "condition": then["condition"],
            "class": then["class"], "presettled": int(presettled), "seq": seqs, "eid": eids,
        }  # fmt: skip
        self.groups.append(group)
        self.told.update(seqs)
        return group

    @property
    def low(self) -> int:
        return next(seq for seq in range(1, self.next_seq + 1) if seq not in self.told)

    def turn(self, *, closed: bool = False, decisions: Sequence[dict[str, Any]] = ()) -> None:
        self.records += 1
        record = {
            "v": 1, "run": self.name, "n": self.records, "at": self.world.clock.epoch_us(), "low": self.low,
            "next": self.next_seq,
            "digest": TABLES.digest, "profile": "extended", "closed": int(closed), "groups": self.groups,
        }  # fmt: skip
        if decisions:
            record["decisions"] = [*decisions]
        self.groups = []
        self.world.append(f"{self.world.prefix}.outcomes", [self.name.encode()], [json.dumps(record).encode()])

    def close(self) -> None:
        self.turn(closed=True)
