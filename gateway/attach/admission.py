"""Admission: what becomes of an ATTACH. Read the terminus, look the node up in the realm's metadata (read to its
end, so that a node made a moment ago is found and a deleted one is not), ask the tables, subscribe, and confirm or
refuse.

The link hears nothing until it is decided. Source: seed 000 rows S-A3, S-R1; seed 004 2.3.1 (O-1).
May import: `gateway`, `mappings`, `native_backend`, `transformers`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gateway.complaint import complaint
from gateway.consuming import ConsumingLink
from gateway.coordinator import CoordinatorLink, offered_capabilities
from gateway.dynamic_nodes import MadeNode
from gateway.engine_incoming import Incoming
from gateway.engine_links import Outgoing
from gateway.linking import consuming_link, publishing_link
from gateway.node_names import is_made_when_named
from gateway.origins import NO_LOCAL, origin_of
from gateway.outcomes import LinkFacts
from gateway.recall import RecalledLink
from gateway.relay import RelayLink
from gateway.sources import HeldSource, asked_terms, durable_name, held_source, recalled_name
from gateway.termini import read_terminus
from mappings import DEFAULT_CLASS, Decision, NodeTables
from native_backend.answers import Answer, DurablesFound, NodeFound, Subscribed, SubscriptionLost
from native_backend.selection import Selection
from native_backend.subscription import Subscribe, Subscription
from native_backend.terms import EXCLUSIVE
from transformers.selector import SelectorError, selector

if TYPE_CHECKING:
    from gateway.connection import Connection
    from native_backend.nodes import Node


class Admission:
    """One ATTACH on its way."""

    def __init__(self, connection: Connection, link: Incoming | Outgoing) -> None:
        self.connection = connection
        self.link = link
        self._house = connection.gateway
        self.terminus = read_terminus(link.attach, self._house.settings.nodes.addresses)
        self._created = False
        self._node: Node | None = None
        self._made: MadeNode | None = None  # the dynamic node
        self._held: HeldSource | None = None
        name_bytes = len(self.terminus.node.encode()) if self.terminus.address == "node" else 0
        self._names_node = 0 < name_bytes <= self._house.limits.node_name_bytes
        link.owner = self

    @property
    def recalls(self) -> bool:
        """It names no source: whatever durable has its name."""
        return self.terminus.direction == "subscribe" and self.terminus.address == "none"

    def begin(self) -> None:
        """Look the node up; what names no node is decided at once."""
        self.connection.undecided.add(self)
        if self._names_node:
            self._house.realm.find_node(self.terminus.node, self)
            return
        if self.terminus.address == "dynamic" and self._house.lifetimes.full:
            self.connection.fault("too-many-nodes", f"at most {self._house.limits.temporary_nodes} in all", self.link)
        else:
            self._decide(None)
        self._note_decided()

    def answered(self, answer: Answer) -> None:
        """The realm has answered; the link may have gone meanwhile."""
        self._hear(answer)
        self._note_decided()

    def _note_decided(self) -> None:
        if self.link.owner is not self or not self.link.alive:
            self.connection.undecided.discard(self)

    def _hear(self, answer: Answer) -> None:
        if isinstance(answer, NodeFound) and self._made is not None:
            self._on_made(answer)
        elif isinstance(answer, NodeFound):
            self._on_node(answer)
        elif isinstance(answer, DurablesFound):
            self._on_durables(answer)
        elif isinstance(answer, Subscribed):
            self._on_subscribed(answer)
        elif isinstance(answer, SubscriptionLost):
            self._on_lost(answer)

    def _on_node(self, found: NodeFound) -> None:
        if not self.link.alive:
            return
        if found.answer not in ("ready", "not-found"):
            self._refuse(self._attached(found.answer, "attach"), found.answer, found.native)
        elif found.node is None and not self._created and self._may_create():
            self._created = True
            if not self._house.realm.access.may_create(self.connection.subject):
                self._refuse(self._attached("access-denied", "attach"), "access-denied", "not-granted")
                return
            self._house.realm.create_node(self.terminus.node, self.terminus.wanted_kind, self)
        else:
            self._decide(found.node)

    def _may_create(self) -> bool:
        return is_made_when_named(self.terminus.node, self._house.settings.nodes.create_on_attach)

    def _decide(self, node: Node | None) -> None:
        terminus = self.terminus
        if node is not None and terminus.kind not in (None, node.kind):
            node = None  # there is no queue of a channel's name, and no channel of a queue's
        known = terminus.address == "node" and node is not None
        decision = self._tables()["attach"].decide(
            direction=terminus.direction,
            address=terminus.address,
            node_kind=node.kind if known and node else "unknown",
            distribution_mode=terminus.distribution_mode,
            source_durability=terminus.source_durability,
            filter=terminus.filter,
            sharing=terminus.sharing,
        )
        then = decision.then
        if then["native"] == "coordinate":
            if not self.connection.undecided.must_wait(self):
                self.coordinate()
        elif then["native"] == "create":
            self._make()
        elif then["native"] == "relay":
            self._relay()
        elif then["native"] == "recall":
            name = recalled_name(self.connection.container, self.link.name, terminus.everybody)
            self._house.realm.find_durables(name, self.connection.subject, self)
        elif then["attach"] == "refuse" or node is None:
            condition = then["condition"] or "amqp:internal-error"
            self._house.outcomes.tally.error(condition, "", "")
            self.connection.close_link(self.link, condition, self._reason(decision))
        elif then["native"] == "subscribe":
            self._subscribe(node, then["subscription"])
        else:
            self._on_published_to(node)

    def coordinate(self) -> None:
        """Confirm a control link: every attach before it is decided."""
        if not self.link.alive:
            return
        assert isinstance(self.link, Incoming)
        self.link.confirm(offered_capabilities(self._house.tables))
        self.link.owner = CoordinatorLink(self.connection, self.link)
        self.connection.confirmed(self.link)

    def _relay(self) -> None:
        assert isinstance(self.link, Incoming)
        self.link.set_message_size_max(self._house.limits.message_size_bytes)
        self.link.confirm()
        self.link.owner = RelayLink(self.connection, self.link)
        self.connection.confirmed(self.link)

    def _make(self) -> None:
        """A dynamic node."""
        house, terminus = self._house, self.terminus
        if not house.realm.access.may_create_temporary(self.connection.subject):
            self._refuse(self._attached("access-denied", "attach"), "access-denied", "not-granted")
        else:
            house.lifetimes.making += 1
            name = house.lifetimes.generated_name(self.connection.container, self.link.name)
            self._made = MadeNode(name, terminus.lifetime, terminus.wanted_kind)
            house.realm.temporary.create(name, terminus.wanted_kind, self.connection.subject, self)

    def _on_made(self, found: NodeFound) -> None:
        """It goes with this link, unless its lifetime says otherwise; also where the link is refused after all."""
        lifetimes, made = self._house.lifetimes, self._made
        lifetimes.making -= 1
        if found.node is not None and made is not None:
            lifetimes.made(found.node, made.lifetime, self.link)
        if not self.link.alive:
            return
        if found.node is None:
            answer = "unexpected" if found.answer == "ready" else found.answer
            self._refuse(self._attached(answer, "attach"), answer, found.native)
            return
        name = found.node.name
        self.terminus, self._names_node = replace(self.terminus, address="node", asked=name, node=name), True
        self._decide(found.node)

    def _reason(self, decision: Decision) -> str:
        return complaint(self.terminus.node or self.terminus.direction, decision)

    def _subscribe(self, node: Node, subscription: str) -> None:
        self._node = node
        name, mode, terms = None, subscription, EXCLUSIVE
        try:
            selection = self._selection()
        except SelectorError as error:
            self._refuse(self._attached("selector-invalid", "attach"), "selector-invalid", "", str(error))
            return
        if self.terminus.filters.no_local and not self._house.mark_origin(self.connection.container):
            detail = f"at most {self._house.limits.no_local_containers} containers want none of their own messages"
            self.connection.close_link(self.link, "amqp:resource-limit-exceeded", detail)
            return
        if subscription in ("durable", "shared", "volatile"):
            mode, terms = "durable", asked_terms(self.terminus, subscription)
            name = durable_name(self.connection.container, self.link.name, terms, self.terminus.everybody)
            self._held = held_source(self.terminus.asked, name, terms)
        request = Subscribe(
            node,
            mode,  # type: ignore[arg-type]
            name,
            self.link,
            self.connection.subject,
            terms,
            selection,
            self.terminus.filters.start,
            only_here=mode == "durable" and self.terminus.kind == "channel",  # a topic: as JMS moves it
        )
        self._house.realm.subscribe(request, self)

    def _on_durables(self, found: DurablesFound) -> None:
        if not self.link.alive:
            return
        decision = self._attached(found.answer, "attach")
        if decision.then["attach"] != "confirm":
            self._refuse(decision, found.answer, found.native)
            return
        durable = found.durables[0]
        assert isinstance(self.link, Outgoing)
        self.link.confirm(held=held_source(durable.node, durable.name, durable.terms))
        self.link.owner = RecalledLink(self.connection, self.link, found.durables)
        self.connection.confirmed(self.link)

    def refuse_again(self) -> None:
        """This connection holds that durable already (S-R1e)."""
        self._refuse(self._attached("already-subscribed", "attach"), "already-subscribed", "")

    def _selection(self) -> Selection | None:
        filters, container = self.terminus.filters, self.connection.container
        text = filters.selector or ""
        if not text and not filters.no_local:
            return None
        if len(text) > (longest := self._house.limits.selector_characters):
            raise SelectorError(longest, f"longer than {longest} characters")
        select = selector(text).select if text else _all
        if not filters.no_local:
            return Selection(text, select)
        return Selection(f"{NO_LOCAL}{container}; {text}", select, origin_of(container))

    def _on_published_to(self, node: Node) -> None:
        denied = self._house.realm.may_publish(node, self.connection.subject) == "access-denied"
        answer, native = ("access-denied", "not-granted") if denied else ("ready", "")
        decision = self._attached(answer, "attach")
        if decision.then["attach"] != "confirm":
            self._refuse(decision, answer, native)
            return
        assert isinstance(self.link, Incoming)
        self.link.set_message_size_max(self._house.limits.message_size_bytes)
        self.link.confirm(made=self._made)
        self._house.lifetimes.joined(node.name, self.link)
        self.link.owner = publishing_link(self.connection, self.link, node, self._facts(node))
        self.connection.confirmed(self.link)

    def _on_subscribed(self, answer: Subscribed) -> None:
        if not self.link.alive:
            self._give_back(answer.subscription)
            return
        decision = self._attached(answer.answer, "attach")
        if answer.subscription is None or decision.then["attach"] != "confirm":
            self._give_back(answer.subscription)
            self._refuse(decision, answer.answer, answer.native)
            return
        mode = "move" if answer.subscription.mode == "queue" else "copy"
        self.link.confirm(held=self._held, mode=mode, made=self._made)
        assert isinstance(self.link, Outgoing) and self._node is not None
        self._house.lifetimes.joined(self._node.name, self.link)
        facts = self._facts(self._node, answer.subscription.durable)
        self.link.owner = consuming_link(self.connection, self.link, self.terminus, answer.subscription, facts)
        self.connection.consuming[self.link.owner] = None
        self.link.owner.wake()
        self.connection.confirmed(self.link)

    def _give_back(self, subscription: Subscription | None) -> None:
        """There will be no such link."""
        if subscription is not None:
            subscription.close()
            subscription.release()
        if self.terminus.filters.no_local:
            self._house.origins.release(self.connection.container)

    def _on_lost(self, answer: SubscriptionLost) -> None:
        consuming = self.link.owner
        if not self.link.alive or not isinstance(consuming, ConsumingLink):
            return
        decision = self._attached(answer.answer, "later")
        consuming.failed_later(decision, answer.answer, answer.native)
        self._house.outcomes.tally.error(str(decision.then["condition"]), answer.native, answer.answer)
        detail = complaint(self.terminus.node, decision, answer.answer, answer.native)
        self.connection.close_link(self.link, decision.then["condition"], detail)

    def _attached(self, answer: str, moment: str) -> Decision:
        return self._tables()["attached"].decide(direction=self.terminus.direction, answer=answer, moment=moment)

    def _tables(self) -> NodeTables:
        """Those in force now, as they are for the node that is named."""
        tables = self._house.tables
        return tables.for_node(self.terminus.node) if self._names_node else tables.for_class(DEFAULT_CLASS)

    def _refuse(self, decision: Decision, answer: str, native: str, words: str = "") -> None:
        if answer == "access-denied":
            self._house.count_fault(answer, f"{self.connection.subject.user!a} at {self.terminus.node!a}: {native}")
        self._house.outcomes.tally.error(str(decision.then["condition"]), native, answer)
        detail = complaint(self.terminus.node, decision, answer, native, words)
        self.connection.close_link(self.link, decision.then["condition"], detail)

    def _facts(self, node: Node, durable: str | None = None) -> LinkFacts:
        return LinkFacts(
            number=self._house.next_link_number(),
            direction=self.terminus.direction,
            name=self.link.name,
            container=self.connection.container,
            node=node.name,
            store=node.store,
            durable=durable if self.terminus.direction == "subscribe" else None,
        )

    def on_transfers(self, _: Any) -> None:
        """Sent before the link was confirmed: there was no credit."""
        self.connection.fault("over-credit", "sent before credit was given", self.link)

    def on_partial(self, _: int) -> None:
        self.on_transfers(None)

    def ended(self, cause: str) -> None:
        """The peer did not wait."""


def _all(values: list[bytes]) -> list[bool]:
    return [True] * len(values)
