"""The realm, as the gateway calls it.

One thread calls it. Nothing blocks but `open` and `close`: work that blocks goes to a `Worker` (a thread in production,
the caller's own in the simulation), and every answer comes out of `poll`, with the `owner` that the question named.
`native_backend/realm.py` is the realm, written once over the log port (`native_backend/log/port.py`).

A node (`native_backend/nodes/node.py`) of several stores (`node.partitions` above 1) has them as `node.parts`. Each is
a `Node` that can be published to; `node` itself is the first. A subscription to it
(`native_backend/subscriptions/partitioned.py`) gives events of one store at a time (`DeliveryBatch.partition`), and
names events by `packed_eid(partition, eid)`; all events of one call are of one store.

Properties (`native_backend/nodes/properties.py`) change while a node lives: `NativeRealm.node` gives the node as it is
now, a `Node` that an attach kept is as it was then; `on_changed` reports the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from native_backend.access.authorizer import Authorizer
from native_backend.journal.lease import Standby
from native_backend.journal.settlement import Settlement
from native_backend.log.columns import Strings
from native_backend.metrics import RealmMetrics
from native_backend.nodes.answers import Answer
from native_backend.nodes.commands import Command
from native_backend.nodes.durable import Durable, DurableName
from native_backend.nodes.grants import Subject
from native_backend.nodes.node import Node
from native_backend.nodes.words import EvidenceTopic, NodeKind, PostAnswer
from native_backend.publish.commit import Posting
from native_backend.publish.event_sizes import EventSizes
from native_backend.publish.history_topic import HistoryTopic
from native_backend.state.mistakes import Mistakes
from native_backend.subscriptions.subscription import Subscribe
from native_backend.temporary.nodes import TemporaryNodes


class NativeRealm(Protocol):
    """One process's part of a realm."""

    run: str
    """The run of this process, as evidence and keys of events name it."""
    kind: str
    """The log's: `kafka`, `embedded` or `simulated`."""
    poll_interval_s: float
    """The log's: call `poll` at least this often while the realm is busy. 0: call it when woken."""
    descriptor: int
    """Becomes readable when `poll` has something to do; -1: there is none."""
    authorizer: Authorizer
    """What subjects may do, and whom to tell when that changes."""
    event_sizes: EventSizes
    """How many octets an event of a node may have: `known` from memory, else `ask`, answered by `NodeSized`."""
    history: HistoryTopic
    """Records of what was counted in each minute: `append`, answered by `HistoryStored`; `read`, by `HistoryFound`."""
    metrics: RealmMetrics
    """What metrics and health show."""
    mistakes: Mistakes
    """Exceptions that are mistakes of ours, counted and shown; what one did not end goes on."""
    temporary: TemporaryNodes
    """Nodes that end with the peer that created them."""
    on_deleted: list[Callable[[Node], None]]
    """Called out of `poll` when a node was deleted, after its subscriptions were lost."""

    def open(self, standby: Standby | None = None) -> None:
        """Create the realm's topics, get the lease, read metadata, claim the shard, recover. Blocks; raises LogError,
        after which it may be called again.

        While another process owns the realm it waits and calls `standby` with the owner; without a `standby` it raises
        `fenced` at once."""

    @property
    def lost(self) -> bool:
        """Another process owns the realm now: what this one had open is closed, and only publishing goes on."""

    def node(self, name: str) -> Node | None:
        """From memory, at once."""

    def find_node(self, name: str, owner: object) -> None:
        """Answered by `NodeFound`, after metadata was read to its end."""

    def create_node(self, name: str, kind: NodeKind, owner: object) -> None:
        """Answered by `NodeFound`. Idempotent."""

    def on_changed(self, listener: Callable[[Node | None], None]) -> None:
        """`listener` is called out of `poll` with every node whose properties changed; with None when the realm's own
        grants changed."""

    def execute(self, command: Command, owner: object) -> None:
        """Answered by `Commanded`: an operator's purge, seek, move, resend or deletion. The realm executes commands
        that others wrote to the log without a call."""

    def publish(self, node: Node, keys: Strings, values: Strings, owner: object) -> None:
        """Answered by one or several `Published`."""

    def refuse(self, node: Node, keys: Strings, values: Strings, owner: object) -> None:
        """`publish` for a subject without the right: answered by one `Published`, `access-denied`."""

    def may_publish(self, node: Node, subject: Subject) -> PostAnswer:
        """What publishing to that node would be answered now, as far as memory tells. At once."""

    def commit(self, settlements: list[Settlement], postings: Sequence[Posting], owner: object) -> None:
        """Retirements and new events, all or none; answered by `Committed`. Unless the answer is `done`, the
        transaction still holds the events."""

    def append_evidence(self, topic: EvidenceTopic, key: bytes, value: bytes) -> None:
        """Not answered. Failures are counted (`evidence_failed`) and logged."""

    @property
    def evidence_failed(self) -> int:
        """Records of evidence that were not stored."""

    def subscribe(self, request: Subscribe, owner: object) -> None:
        """Answered by `Subscribed`."""

    def durables(self) -> list[Durable]:
        """Those that are known now."""

    def find_durables(self, name: DurableName, subject: Subject, owner: object, owned: bool = False) -> None:
        """Answered by `DurablesFound`, after metadata was read to its end: the durables of that name, on any node, if
        the subject may end them; where they are `owned`, those of other users are not meant."""

    def unsubscribe(self, durable: Durable, owner: object) -> None:
        """Answered by `Commanded`: the durable is deleted. `in-use` while it has links, or where its owner has changed
        since it was found."""

    def poll(self) -> list[Answer]:
        """What was answered since the last call, in order. Also moves windows, group commit and timers on."""

    def on_ready(self, wake: Callable[[], None]) -> None:
        """`wake` may be called from any thread when `poll` has something to do."""

    @property
    def busy(self) -> bool:
        """Anything in flight, or a subscription open: call `poll` every `poll_interval_s`."""

    def close(self, deadline_s: float) -> None:
        """After the last settlement: waits for journal and evidence, writes snapshots and group offsets, closes the
        log. Blocks."""
