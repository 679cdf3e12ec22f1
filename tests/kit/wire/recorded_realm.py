"""A real realm, of which is noted what was asked of it, and whose answers can be held back: the interface of
`scripted_realm` for scenarios, without a word of its own. What it answers, the log has brought about.

    realm = RecordedRealm(Realm(...))
    realm.holds.add("settle")                        # not answered until `release`
    realm.calls                                      # `subscribe durable`, `publish 1`, `acknowledge 1`, `commit 0 1`
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from native_backend.journal.settlement import SettlementRequest
from native_backend.nodes.answers import Answer, Commanded, Committed, Published, Settled
from native_backend.nodes.commands import Command
from native_backend.nodes.durable import Durable
from native_backend.nodes.node import Node
from native_backend.realm import Realm
from native_backend.subscriptions.subscription import Subscribe, Subscribed, SubscriptionLost

_WHAT: Final[dict[type, str]] = {
    Published: "publish",
    Subscribed: "subscribe",
    Settled: "settle",
    Committed: "commit",
    SubscriptionLost: "lost",  # a consumer settled before its gateway heard of it
}


class RecordedRealm:
    """See the module's docstring. What is not here is the realm's."""

    def __init__(self, realm: Realm) -> None:
        self.realm = realm
        self.calls: list[str] = []
        self.holds: set[str] = set()
        self.evidence: list[bytes] = []
        self._held: list[Answer] = []
        self._released: list[Answer] = []
        self._wake: Callable[[], None] = lambda: None
        self.on_deleted: list[Callable[[Node], None]] = []  # held back by `deleted`: a message was on its way then
        self._deleted: list[Node] = []
        realm.on_deleted.append(self._on_deleted)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.realm, name)

    @property
    def busy(self) -> bool:
        return bool(self._released) or self.realm.busy

    def on_ready(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.realm.on_ready(wake)

    def publish(self, node: Any, keys: Any, values: Any, owner: object) -> None:
        self.calls.append(f"publish {len(values)}")
        self.realm.publish(node, keys, values, owner)

    def refuse(self, node: Any, keys: Any, values: Any, owner: object) -> None:
        """What publishing is for those who may not."""
        self.calls.append(f"publish {len(values)}")
        self.realm.refuse(node, keys, values, owner)

    def commit(self, settlements: Any, postings: Any, owner: object) -> None:
        self.calls.append(f"commit {len(settlements)} {len(postings)}")
        self.realm.commit(settlements, postings, owner)

    def subscribe(self, request: Subscribe, owner: object) -> None:
        self.calls.append(f"subscribe {request.mode}")
        self.realm.subscribe(request, owner)

    def unsubscribe(self, durable: Any, owner: object) -> None:
        self.calls.append(f"unsubscribe {durable.name}")
        self.realm.unsubscribe(durable, owner)

    def delete_durable(self, durable: Durable) -> None:
        """By command, as an operator does; the answer is looked at by no one."""
        until_us = time.time_ns() // 1000 + 60_000_000
        command = Command(uuid.uuid4().hex, "delete", durable.node, durable.store, durable.name, until_us)
        self.realm.execute(command, self)

    def has_lost(self) -> bool:
        """A subscription has ended, and that is held back."""
        return any(isinstance(answer, SubscriptionLost) for answer in self._held)

    def append_evidence(self, topic: Any, key: bytes, value: bytes) -> None:
        self.evidence.append(value)
        self.realm.append_evidence(topic, key, value)

    def _on_deleted(self, node: Node) -> None:
        self._deleted.append(node)
        if "deleted" not in self.holds:
            self._tell_deleted()

    def _tell_deleted(self) -> None:
        deleted, self._deleted = self._deleted, []
        for node in deleted:
            for tell in self.on_deleted:
                tell(node)

    def poll(self) -> list[Answer]:
        answers, self._released = self._released, []
        for answer in self.realm.poll():
            if isinstance(answer, Commanded) and answer.owner is self:
                continue
            if isinstance(answer, Subscribed) and answer.subscription is not None:
                answer = replace(answer, subscription=_Recorded(answer.subscription, self.calls))  # type: ignore[arg-type]
            (self._held if _WHAT.get(type(answer)) in self.holds else answers).append(answer)
        return answers

    def release(self) -> None:
        """What was held back is answered now."""
        self.holds.clear()
        self._released += sorted(self._held, key=lambda answer: isinstance(answer, SubscriptionLost))
        self._held = []
        self._tell_deleted()
        self._wake()

    def forget(self) -> None:
        """For the next scenario."""
        self.release()
        self.calls.clear()
        self.evidence.clear()


class _Recorded:
    """A subscription whose settlements are noted."""

    def __init__(self, subscription: Any, calls: list[str]) -> None:
        self._subscription, self._calls = subscription, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._subscription, name)

    def settle(self, settling: SettlementRequest, eids: list[int], seqs: list[int], owner: object) -> None:
        self._calls.append(f"{settling.operation if self.journaled else 'give back'} {len(eids)}")
        self._subscription.settle(settling, eids, seqs, owner)
