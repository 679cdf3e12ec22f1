"""A realm in memory that answers what it is told to: it has the interface of `native_backend.realm.Realm`, and it
really keeps events, so that what a rule does to them is seen when they are given out again.

    realm = ScriptedRealm()
    realm.answers["publish"] = "access-denied"       # find, subscribe, publish, settle, post, commit
    realm.holds.add("settle")                        # not answered until `release`
"""

from __future__ import annotations

from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any

from native_backend.clock import SystemClock
from native_backend.events.batch import DeliveryBatch
from native_backend.journal.settlement import SettlementRequest
from native_backend.nodes.answers import (
    Answer,
    Commanded,
    Committed,
    DurablesFound,
    HistoryStored,
    NodeFound,
    NodeSized,
    Published,
    Settled,
)
from native_backend.nodes.durable import Durable, DurableName
from native_backend.nodes.grants import Subject
from native_backend.nodes.node import Node
from native_backend.nodes.words import NodeKind, PostAnswer
from native_backend.publish.commit import Posting
from native_backend.state.durations import Durations
from native_backend.state.mistakes import Mistakes
from native_backend.subscriptions.subscription import Subscribe, Subscribed, SubscriptionLost


class ScriptedStore:
    """One node's events."""

    def __init__(self) -> None:
        self.values: dict[int, bytes] = {}
        self.available: list[int] = []  # of a queue or a durable
        self.failed: dict[int, int] = defaultdict(int)
        self.given: set[int] = set()
        self.not_to: dict[int, object] = {}  # EID -> the link that will not have it


class _Sizes:
    def __init__(self, realm: ScriptedRealm) -> None:
        self._realm = realm

    def known(self, _: Node) -> int | None:
        return None if "size" in self._realm.holds else self._realm.event_bytes

    def ask(self, node: Node, owner: object) -> None:
        self._realm.answer("size", NodeSized(owner, node, self._realm.event_bytes))


class _Metrics:
    """Nothing is counted."""

    def __init__(self) -> None:
        self.dead_letters: Counter[tuple[str, str]] = Counter()
        self.alarms: Counter[str] = Counter()
        self.journal_seconds = self.publish_seconds = Durations()
        self.journal_records = self.evidence_failed = 0


class ScriptedRealm:
    """See the module's docstring. Nodes whose name begins with `c` are channels; `missing` is no node."""

    run = "19aa5b3c1f0-9c2e"
    kind = "scripted"
    poll_interval_s = 0.001
    descriptor = -1
    busy = True

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.holds: set[str] = set()
        self.event_bytes = 1 << 30  # that an event may have
        self.event_sizes = _Sizes(self)
        self.attempts_end = False  # every attempt is the last one
        self.stores: dict[str, ScriptedStore] = {}
        self.evidence: list[bytes] = []
        self.calls: list[str] = []  # what was asked of it, in order: `subscribe durable`, `publish 1`, `acknowledge 1`
        self.subscriptions: list[ScriptedSubscription] = []
        self.released: list[str | None] = []  # durables of which one link's scope has ended
        self.authorizer = SimpleNamespace(on_changed=[], may_create_temporary=lambda _: True, allows=lambda *_: True)
        self.on_deleted: list[Any] = []
        self.temporary = ScriptedTemporaryNodes(self)
        self.durables: Any = list
        self.history = SimpleNamespace(
            append=lambda _key, _value, owner: self.answer("history", HistoryStored(owner, True))
        )
        self.metrics = _Metrics()
        self.mistakes = Mistakes(SystemClock())
        self.next_eid = 1
        self._said: list[Answer] = []
        self._held: list[Answer] = []

    def node(self, name: str) -> Node:
        kind: NodeKind = "channel" if name.startswith("c") else "queue"
        return Node(name, kind, f"um.node.{name}", b"\x07" * 16, 4711)

    def find_node(self, name: str, owner: object) -> None:
        answer = self.answers.get("find", "ready")
        node = None if name.startswith("missing") or answer != "ready" else self.node(name)
        self.answer("find", NodeFound(owner, node, answer, "" if answer == "ready" else "SCRIPTED"))

    def create_node(self, name: str, kind: NodeKind, owner: object) -> None:
        self.answer("find", NodeFound(owner, None, "not-found"))

    def publish(self, node: Node, keys: list[bytes], values: list[bytes], owner: object) -> None:
        self.calls.append(f"publish {len(values)}")
        answer = self.answers.get("publish", "stored")
        eids = self.keep(node, values) if answer == "stored" else [-1] * len(values)
        self.answer("publish", Published(owner, 0, eids, answer, "" if answer == "stored" else "SCRIPTED"))

    def keep(self, node: Node, values: list[bytes]) -> list[int]:
        eids = list(range(self.next_eid, self.next_eid + len(values)))
        self.next_eid += len(values)
        store = self.store(node.name)
        store.values.update(zip(eids, values, strict=True))
        store.available += eids
        return eids

    def commit(self, settlements: list[ScriptedSettlement], postings: list[Posting], owner: object) -> None:
        self.calls.append(f"commit {len(settlements)} {len(postings)}")
        answer = self.answers.get("commit", "done")
        eids: list[int] = []
        for settlement in settlements:
            settlement.carry_out(done=answer == "done")
        for posting in postings:
            count = len(posting.values)
            eids += self.keep(posting.node, posting.values) if answer == "done" else [-1] * count
        self.answer("commit", Committed(owner, answer, eids, "" if answer == "done" else "SCRIPTED"))

    def subscribe(self, request: Subscribe, owner: object) -> None:
        self.calls.append(f"subscribe {request.mode}")
        answer = self.answers.get("subscribe", "ready")
        subscription = ScriptedSubscription(self, request, owner) if answer == "ready" else None
        if subscription is not None:
            self.subscriptions.append(subscription)
        native = "" if answer == "ready" else "SCRIPTED"
        self.answer("subscribe", Subscribed(owner, subscription, answer, native))  # type: ignore[arg-type]

    def find_durables(self, name: DurableName, subject: Subject, owner: object, owned: bool = False) -> None:
        """There is one of whatever name, on channel `c`."""
        answer = self.answers.get("recall", "ready")
        named = name.earlier if name.stays else name.name
        durable = Durable("c", named, 4711, f"um.durable.c.{named}", 0)
        durables = [durable] if answer == "ready" else []
        self.answer("recall", DurablesFound(owner, durables, answer, "" if answer == "ready" else "SCRIPTED"))

    def unsubscribe(self, durable: Durable, owner: object) -> None:
        self.calls.append(f"unsubscribe {durable.name}")
        self.answer("unsubscribe", Commanded(owner, self.answers.get("unsubscribe", "done"), 0, ""))

    def may_publish(self, node: Node, subject: Subject) -> PostAnswer:
        answer: PostAnswer = self.answers.get("post", "ready")
        return answer

    def append_evidence(self, topic: str, key: bytes, value: bytes) -> None:
        self.evidence.append(value)

    def on_ready(self, wake: object) -> None:
        """It is polled every millisecond."""

    def poll(self) -> list[Answer]:
        answers, self._said = self._said, []
        return answers

    # -- the script

    def answer(self, what: str, answer: Answer) -> None:
        if answer.owner is None:
            return  # no one asked
        (self._held if what in self.holds else self._said).append(answer)

    def release(self) -> None:
        """What was held back is answered now."""
        self.holds.clear()
        self._said += self._held
        self._held = []

    def lose_subscriptions(self, answer: Any) -> None:
        for subscription in self.subscriptions:
            subscription.lost = True
            loss = SubscriptionLost(subscription.owner, subscription, answer, "SCRIPTED")  # type: ignore[arg-type]
            self.answer("lost", loss)

    def delete(self, name: str) -> None:
        for tell in self.on_deleted:
            tell(self.node(name))

    def store(self, name: str) -> ScriptedStore:
        return self.stores.setdefault(name, ScriptedStore())


class ScriptedTemporaryNodes:
    """All are made and deleted."""

    def __init__(self, realm: ScriptedRealm) -> None:
        self._realm = realm

    def create(self, name: str, kind: NodeKind, subject: Subject, owner: object) -> None:
        self._realm.calls.append(f"create {kind}")
        answer = self._realm.answers.get("create", "ready")
        node = Node(name, kind, "um.temporary.1", b"\x08" * 16, 4712, temporary=True) if answer == "ready" else None
        self._realm.answer("create", NodeFound(owner, node, answer, "" if answer == "ready" else "SCRIPTED"))

    def delete(self, node: Node, owner: object) -> None:
        self._realm.calls.append("delete")
        self._realm.answer("delete", NodeFound(owner, None, "ready"))

    def delete_empty(self, node: Node, owner: object) -> None:
        if self._realm.store(node.name).values:
            self._realm.answer("delete", NodeFound(owner, node, "ready"))
        else:
            self.delete(node, owner)


class ScriptedSettlement:
    """What `commit` is given."""

    def __init__(self, subscription: ScriptedSubscription, settling: SettlementRequest, eids: list[int]) -> None:
        self._subscription, self._settling, self._eids = subscription, settling, eids
        self.keeper = self

    def restore(self, _: object) -> None:
        self.carry_out(done=False)

    def carry_out(self, *, done: bool) -> None:
        self._subscription.committed(self._settling, self._eids, done)


class ScriptedSubscription:
    """Queue and durable share a store's one state; a plain one reads from where it began, a browsing one from the
    beginning; what a plain one gives back comes to it again."""

    def __init__(self, realm: ScriptedRealm, request: Subscribe, owner: object) -> None:
        self.node, self.mode, self.durable = request.node, request.mode, request.durable
        self.owner = owner
        self.terms = request.terms
        self.lost = self.closed = self.looking = False
        self._realm, self._link = realm, request.link
        self._store = realm.store(request.node.name)
        self.journaled = request.mode in ("queue", "durable")
        self._position = max(self._store.values, default=0) if request.mode == "plain" else 0
        self._back: list[int] = []
        self._outstanding: set[int] = set()
        self._held: set[int] = set()

    def take(self, count_max: int, bytes_max: int) -> DeliveryBatch | None:
        store = self._store
        if self.lost:
            return None
        if not self.journaled:
            back, self._back = sorted(self._back)[:count_max], sorted(self._back)[count_max:]
            new = [eid for eid in sorted(store.values) if eid > self._position][: count_max - len(back)]
            eids, again = back + new, [True] * len(back) + [False] * len(new)
            self._position = max(new, default=self._position)
        else:
            eids = [eid for eid in sorted(store.available) if store.not_to.get(eid) is not self._link][:count_max]
            again = [eid in store.given for eid in eids]
            store.available = [eid for eid in store.available if eid not in eids]
            store.given.update(eids)
            self._outstanding.update(eids)
        if not eids:
            return None
        failed = [store.failed[eid] for eid in eids]
        return DeliveryBatch(eids, [store.values[eid] for eid in eids], failed, again)

    def park(self, wake: object) -> bool:
        return False

    def is_searched(self) -> bool:
        return True

    def search_anew(self) -> None:
        """It knows at once."""

    def settle(self, settling: SettlementRequest, eids: list[int], seqs: list[int], owner: object) -> None:
        if not self.journaled:
            assert self.mode == "plain" and settling.operation == "return", "it has nothing to settle"
            self._realm.calls.append(f"give back {len(eids)}")
            self._back += eids
            for eid in eids:
                self._store.failed[eid] += settling.failed
            self._realm.answer("settle", Settled(owner, "done"))
            return
        place = self._held if settling.reserved else self._outstanding
        assert set(eids) <= place, f"{eids} are not outstanding"
        place.difference_update(eids)
        self._realm.calls.append(f"{settling.operation} {len(eids)}")
        answer = self._realm.answers.get("settle", "done")
        if answer == "done":
            self._carry_out(settling, eids)
        self._realm.answer("settle", Settled(owner, answer, "" if answer == "done" else "SCRIPTED"))

    def _carry_out(self, settling: SettlementRequest, eids: list[int]) -> None:
        if settling.operation != "return":
            return
        self._store.available += eids
        for eid in eids:
            self._store.failed[eid] += settling.failed
            if settling.undeliverable_here:
                self._store.not_to[eid] = self._link

    def forget(self, eids: list[int]) -> None:
        """It remembers nothing of what was dealt with."""

    def reserve(self, eids: list[int]) -> bool:
        assert self.journaled
        assert set(eids) <= self._outstanding, f"{eids} are not outstanding"
        self._outstanding.difference_update(eids)
        self._held.update(eids)
        return True

    def unreserve(self, eids: list[int]) -> None:
        assert set(eids) <= self._held, f"{eids} are not held"
        self._held.difference_update(eids)
        if self.closed:
            self._store.available += eids
        else:
            self._outstanding.update(eids)

    def retire(self, settling: SettlementRequest, eids: list[int], seqs: list[int]) -> ScriptedSettlement:
        assert settling.reserved, "a commit settles what is held"
        assert set(eids) <= self._held, f"{eids} are not held"
        self._held.difference_update(eids)
        return ScriptedSettlement(self, settling, eids)

    def committed(self, settling: SettlementRequest, eids: list[int], done: bool) -> None:
        if done:
            self._carry_out(settling, eids)
        else:
            self._held.update(eids)

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        return [True] * len(eids) if self._realm.attempts_end else None

    def release(self) -> None:
        self._realm.released.append(self.durable)

    def close(self) -> None:
        self.closed = True
        if not self.lost:
            self._store.available += sorted(self._outstanding)
        self._outstanding.clear()
