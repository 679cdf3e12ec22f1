"""Where variants of corruption are planted: one realm with one honest run, which all of them share, and nodes of their
own. What a variant does wrong it writes through the log port, as a gateway or another program would that lies: so it is
the same on every log.

    shared = SharedRealm(world)
    expected = {variant.name: variant.plant(shared, variant.name) for variant in VARIANTS}
    shared.close()
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from native_backend.events.copy_key import copy_key
from native_backend.log.port import Write
from native_backend.nodes.node import Node
from tests.reconciliation.world import TABLES, GatewayRun, Sent, World

HOUR_MS = 3_600_000
KEY = b"1;basic;%s;%d;1;4;;0;;0"


@dataclass(slots=True)
class Expected:
    """What is to be found: by class, the tags that are named (an empty one: the finding names no event), and words of
    each detail. `runs`: where a finding of the realm as a whole names this run."""

    classes: dict[str, list[str]]
    words: str = ""
    run: str = ""


Plant = Callable[["SharedRealm", str], Expected]


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    plant: Plant


@dataclass(slots=True)
class SharedRealm:
    """`run` is honest but for what variants have it do; it closes in order."""

    world: World
    run: GatewayRun = field(init=False)
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """Once the run has closed: group offsets, trims."""

    def __post_init__(self) -> None:
        self.run = self.world.run()
        self.run.attest()

    def close(self) -> None:
        self.run.close()
        for step in self.at_end:
            step()
        last = self.world.run()
        last.close()

    def queue(self, name: str, count: int = 4) -> tuple[Node, list[Sent]]:
        """A queue with so many events, published and told."""
        node = self.world.queue(name)
        return node, self.run.publish(node, count) if count else []

    def told(self, group: dict[str, Any], **changed: object) -> None:
        """The record says something else than what was."""
        group.update(changed)

    @property
    def last_group(self) -> dict[str, Any]:
        return self.run.groups[-1]

    def letters(self, node: Node, to: Node | None, eids: Sequence[int], copied: Sequence[int],
                operation: str = "dead-letter", cause: str = "disposition") -> None:  # fmt: skip
        """The journal says that `eids` were kept in `to`, or nowhere; `copied` are."""
        run = self.run
        seqs = run.number(len(eids)) if operation == "dead-letter" else [0] * len(eids)
        if operation == "dead-letter" and eids:
            group = self.settled(node, eids, seqs, "rejected")
            assert group["operation"] == operation
        key = KEY % (run.name.encode(), 1)
        runs = [[eid, eid, seq, eid] for eid, seq in zip(eids, seqs, strict=True)]
        entry, topic = run.entry(node, "queue", operation, cause, runs), ""
        if to is not None:
            entry["to"], topic = to.store, to.topic
        run.commit(
            [entry], [Write(topic, 0, copy_key(node.store, eid, "rejected", key), b"a letter") for eid in copied]
        )

    def settled(self, node: Node, eids: Sequence[int], seqs: Sequence[int], state: str) -> dict[str, Any]:
        """A consumer of the queue was told so. Nothing is in the journal."""
        rule = TABLES["settle"].decide(
            state=state, already_settled="no", subscription="queue", source_durability="none",
            receiver_settle_mode="first", attempts="below",
        )  # fmt: skip
        answered = TABLES["settled"].decide(operation=rule.then["native"], answer="done", peer_settled="no")
        then = {**answered.then}
        if then["outcome"] == "asked":
            then["outcome"] = rule.then["outcome"]
        return self.run._tell(
            node, None, "subscribe", rule, answered, then, "done", list(seqs), list(eids), cause="disposition",
            presettled=False,
        )  # fmt: skip

    def returned(self, node: Node, sent: Sent, state: str, *, failed: int | None) -> int:
        """Told as that state asks; in the journal with `failed` (None: not there). Its seq."""
        [seq] = self.run.number(1)
        self.settled(node, [sent.eid], [seq], state)
        if failed is not None:
            self.run.journal(node, "queue", "return", [sent.eid], [seq], bool(failed), "disposition")
        return seq

    def noted(self, node: Node, operation: str, sent: Sent, seq: int, *, failed: bool = False) -> None:
        """In the journal alone."""
        self.run.journal(node, "queue", operation, [sent.eid], [seq], failed, "disposition")

    def covering(self, node: Node, eid: int, seq: int, cover: int) -> None:
        """The journal says that there is no event between `cover` and what was acknowledged."""
        self.run.commit([self.run.entry(node, "queue", "acknowledge", "disposition", [[eid, eid, seq, cover]])])

    def put(self, kind: str, key: bytes, value: object) -> None:
        octets = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.world.log.control.put(f"{self.world.prefix}.{kind}", key, octets)


def tag(node: Node, eid: int) -> str:
    return f"{node.store}:{eid}"
