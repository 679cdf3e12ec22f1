"""A gateway on a scripted realm, its peers, and what the scenarios have in common."""

from __future__ import annotations

from typing import Any

from mappings import TableSet
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.scripted_realm import ScriptedRealm

Facts = dict[str, str]

MODES = ("unsettled", "settled", "mixed")
RCV = ("first", "second")
MESSAGE = frames.message(b"event", frames.header(first=True))


class Environment:
    """A gateway on a scripted realm, and the one who talks to it."""

    def __init__(self, tables: TableSet, **limits: int) -> None:
        self.tables = tables
        self.realm = ScriptedRealm()
        self.gateway = build_gateway(tables, self.realm, **limits)
        self.gateway.lifetimes.random = lambda: "random"
        self.peers: list[Conversation] = []

    def peer(self, container: str) -> Conversation:
        self.peers.append(Conversation(self.gateway, container))
        return self.peers[-1]

    def store(self, node: str, count: int = 1) -> None:
        """Events that are there already."""
        store = self.realm.store(node)
        for eid in range(1, count + 1):
            store.values[eid] = MESSAGE
            store.available.append(eid)
        self.realm.next_eid = count + 1

    def show(self, node: str = "q", durable: int = 0) -> list[Any]:
        """Another consumer takes what it gets; then everything that was said to anybody."""
        for peer in self.peers:
            peer.listen()
        if not self.gateway.stopping:
            name = f"show-{node}"
            self.peer("witness").say(frames.attach_receiver(frames.source(node, durable), name=name), frames.flow(1, 5))
        for peer in self.peers:
            peer.listen()
        return [frame for peer in self.peers for frame in peer.comparable()]
