"""A mistake of ours in one turn costs the connection that it concerns, and no other: the turn goes on behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.session.gateway import Gateway
from mappings import load_tables
from native_backend.nodes.node import Node
from tests.kit.wire.conversation import build_gateway
from tests.kit.wire.scripted_realm import ScriptedRealm

NODE = Node("orders", "queue", "", b"", 7)


@dataclass(eq=False)
class Wrong:
    """The owner of an answer, a consumer, a publisher: nothing that it does works."""

    node: Node = NODE
    tried: list[str] = field(default_factory=list)

    def answered(self, _: object) -> None:
        self._fail("answered")

    def pump(self) -> bool:
        return bool(self._fail("pumped"))

    @property
    def tables(self) -> Any:
        return self._fail("ended")

    def _fail(self, what: str) -> Any:
        self.tried.append(what)
        raise ValueError(what)


@dataclass
class Answer:
    owner: Wrong


def answers(gateway: Gateway, links: list[Wrong], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway.realm, "poll", lambda: [Answer(link) for link in links])


def events(gateway: Gateway, links: list[Wrong], _: pytest.MonkeyPatch) -> None:
    gateway.ready.update(dict.fromkeys(links))


def a_deleted_node(gateway: Gateway, links: list[Wrong], _: pytest.MonkeyPatch) -> None:
    for link in links:
        gateway.publishers.joined(link)
    gateway.publishers.hear(NODE)


@pytest.mark.parametrize(("bring", "tried"), [(answers, "answered"), (events, "pumped"), (a_deleted_node, "ended")])
def test_a_mistake_ends_the_connections_that_it_concerns(
    bring: Callable[[Gateway, list[Wrong], pytest.MonkeyPatch], None], tried: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = build_gateway(load_tables(), ScriptedRealm())
    ended: list[object] = []
    gateway.on_broken = ended.append
    links = [Wrong(), Wrong()]
    bring(gateway, links, monkeypatch)
    gateway.poll()
    assert [link.tried for link in links] == [[tried], [tried]], "the second one had its turn"
    assert set(map(id, ended)) == set(map(id, links))
    assert gateway.faults["assertion"] == 2
