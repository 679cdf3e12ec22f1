"""Admission: what becomes of an ATTACH. Read the terminus, look the node up in the realm's metadata (read to its
end, so that a node made a moment ago is found and a deleted one is not), ask the tables, subscribe, and confirm or
refuse.

The link hears nothing until it is decided. Source: seed 000 rows S-A3, S-R1; seed 004 2.3.1 (O-1).
"""

from __future__ import annotations

from dataclasses import replace

from gateway.amqp.error_description import describe_error
from gateway.amqp.incoming_link import Incoming
from gateway.amqp.link_ends import Outgoing
from gateway.amqp.link_owner import LinkOwner
from gateway.attach.anonymous_relay import RelayLink
from gateway.attach.attaching_peer import AttachingPeer
from gateway.attach.link_limits import refuses_store, subscription_limit_fault
from gateway.attach.recalled_link import RecalledLink
from gateway.attach.refusal_words import BY_NATIVE, NAME_IN_USE, OWNED
from gateway.attach.refused_attaches import tell_ended, tell_refused
from gateway.config.node_names import may_be_created_on_attach
from gateway.evidence.outcome_key import LinkIdentity
from gateway.links.consuming import ConsumingLink
from gateway.links.link_identity import link_identity
from gateway.links.publishing import PublishingLink
from gateway.terminus.attach_answers import (
    consumer_answer,
    coordinator_answer,
    publisher_answer,
    recalled_answer,
    relay_answer,
)
from gateway.terminus.durable_names import durable_name, recalled_names, subscriber
from gateway.terminus.durable_source import DurableSource, asked_terms, durable_source
from gateway.terminus.dynamic_nodes import DynamicNode
from gateway.terminus.selections import asked_selection
from gateway.terminus.termini import read_terminus
from gateway.transactions.coordinator import CoordinatorLink, offered_capabilities
from gateway.transactions.posting import poster
from gateway.transactions.retirement import retirer
from mappings import DEFAULT_CLASS, Decision, NodeTables
from native_backend.nodes.answers import Answer, DurablesFound, NodeFound, NodeSized
from native_backend.nodes.durable import DurableName
from native_backend.nodes.durable_terms import EXCLUSIVE
from native_backend.nodes.grants import SUBSCRIBING
from native_backend.nodes.node import Node
from native_backend.subscriptions.subscription import Mode, Subscribe, Subscribed, Subscription, SubscriptionLost
from transformers.selector.grammar import SelectorError

_NAMED = ("durable", "shared", "volatile")  # subscriptions that are durables of the realm
_NOT_PUBLISHED_TO = {"access-denied": "not-granted", "not-found": "deleted"}  # answers that refuse a publisher's attach


class Admission(LinkOwner):
    """One ATTACH on its way."""

    def __init__(self, connection: AttachingPeer, link: Incoming | Outgoing) -> None:
        self.connection = connection
        self.link = link
        self._gateway = connection.gateway
        self.terminus = read_terminus(link.attach, self._gateway.settings.nodes.addresses)
        self.node_name = self.terminus.node
        self._created = False
        self._node: Node | None = None
        self._made: DynamicNode | None = None  # the dynamic node
        self._held: DurableSource | None = None
        self._request: Subscribe | None = None
        self._ends_on_close = self._owned = False  # as table `attach` says of a durable
        self._recalled: list[DurableName] = []  # to be looked for
        name_bytes = len(self.terminus.node.encode()) if self.terminus.address == "node" else 0
        self._names_node = 0 < name_bytes <= self._gateway.limits.node_name_bytes
        link.owner = self

    @property
    def _recalls(self) -> bool:
        """It names no source: whatever durable has its name. It takes no name over: what is in use is not found."""
        return self.terminus.direction == "subscribe" and self.terminus.address == "none"

    def begin(self) -> None:
        """Look the node up; what names no node is decided at once."""
        if not self._recalls and self.connection.link_names.held_durable(self.connection, self.link):
            self._refuse(self._attached("already-subscribed", "attach"), "already-subscribed", "")
            return
        nodes, is_dynamic = self._gateway.shares.temporary_nodes, self.terminus.address == "dynamic"
        if self._names_node:
            self._gateway.realm.find_node(self.terminus.node, self)
        elif is_dynamic and (full := nodes.refusal(self.connection.holder)):
            self.connection.fault("too-many-nodes", full, self.link)
        else:
            self._decide(None)
        if (self._names_node or self._recalls or is_dynamic) and self.link.owner is self and self.link.alive:
            self.connection.undecided.add(self)

    def answered(self, answer: Answer) -> None:
        """The realm has answered; the link may have gone meanwhile."""
        is_decided = True  # also where we are wrong, and its connection ends
        try:
            self._hear(answer)
            is_decided = self.link.owner is not self or not self.link.alive
        finally:
            if is_decided:
                self.connection.undecided.discard(self)

    def _hear(self, answer: Answer) -> None:
        if isinstance(answer, NodeFound) and self._made is not None:
            self._on_made(answer)
        elif isinstance(answer, NodeFound):
            self._on_node(answer)
        elif isinstance(answer, NodeSized):
            self._on_sized(answer.node, answer.bytes_max)
        elif isinstance(answer, DurablesFound):
            self._on_durables(answer)
        elif isinstance(answer, Subscribed):
            self._on_subscribed(answer)
        elif isinstance(answer, SubscriptionLost):
            self._on_lost(answer)

    def _on_node(self, reply: NodeFound) -> None:
        if not self.link.alive:
            return
        if reply.answer not in ("ready", "not-found"):
            self._refuse(self._attached(reply.answer, "attach"), reply.answer, reply.native, cause=reply.words)
        elif reply.node is None and not self._created and self._may_create():
            self._created = True
            if not self._gateway.realm.authorizer.may_create(self.connection.subject):
                self._refuse(self._attached("access-denied", "attach"), "access-denied", "not-granted")
                return
            self._gateway.realm.create_node(self.terminus.node, self.terminus.wanted_kind, self)
        else:
            self._decide(reply.node)

    def _may_create(self) -> bool:
        return may_be_created_on_attach(self.terminus.node, self._gateway.settings.nodes.create_on_attach)

    def _decide(self, node: Node | None) -> None:
        terminus = self.terminus
        if node is not None and terminus.kind not in (None, node.kind):
            node = None  # there is no queue of a channel's name, and no channel of a queue's
        known = terminus.address == "node" and node is not None
        self._node = node
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
        self._owned = then["belongs_to"] == "user"
        if then["native"] == "coordinate":
            if not self.connection.undecided.must_wait(self):
                self.coordinate()
        elif then["native"] == "create":
            self._make()
        elif then["native"] == "relay":
            self._relay()
        elif then["native"] == "recall":
            self._recalled = recalled_names(self.connection.container, self.link.name, terminus.all_containers)
            self._recall()
        elif then["attach"] == "refuse" or node is None:
            self._refuse(decision, "", "")
        elif then["native"] == "subscribe":
            self._ends_on_close = then["on_close"] == "end"
            self._subscribe(node, then["subscription"])
        else:
            self._on_published_to(node)

    def coordinate(self) -> None:
        """Confirm a control link: every attach before it is decided."""
        if not self.link.alive or not self._takes_its_name():
            return
        assert isinstance(self.link, Incoming)
        offered = offered_capabilities(self._gateway.tables)
        self.link.confirm(coordinator_answer(self.link.attach, offered, self._gateway.limits.message_size_bytes))
        self.link.owner = CoordinatorLink(self.connection, self.link)
        self.connection.confirmed(self.link)

    def _relay(self) -> None:
        if not self._takes_its_name():
            return
        assert isinstance(self.link, Incoming)
        self.link.confirm(relay_answer(self.link.attach, self._gateway.limits.message_size_bytes))
        self.link.owner = RelayLink(self.connection, self.link)
        self.connection.confirmed(self.link)

    def _make(self) -> None:
        """A dynamic node."""
        gateway, terminus = self._gateway, self.terminus
        if not gateway.realm.authorizer.may_create_temporary(self.connection.subject):
            self._refuse(self._attached("access-denied", "attach"), "access-denied", "not-granted")
        else:
            gateway.shares.temporary_nodes.take(self.connection.holder)
            name = self.connection.lifetimes.generated_name(self.connection.container, self.link.name)
            self._made = DynamicNode(name, terminus.lifetime, terminus.wanted_kind)
            gateway.realm.temporary.create(name, terminus.wanted_kind, self.connection.subject, self)

    def _on_made(self, reply: NodeFound) -> None:
        """It goes with this link, unless its lifetime says otherwise; also where the link is refused after all."""
        made, holder = self._made, self.connection.holder
        if reply.node is not None and made is not None:
            owner = self.connection if self.terminus.temporary else None
            self.connection.lifetimes.made(reply.node, made.lifetime, self.link, owner, holder)
        else:
            self._gateway.shares.temporary_nodes.give_back(holder)
        if not self.link.alive:
            return
        if reply.node is None:
            answer = "unexpected" if reply.answer == "ready" else reply.answer
            self._refuse(self._attached(answer, "attach"), answer, reply.native, cause=reply.words)
            return
        name = reply.node.name
        self.terminus, self._names_node = replace(self.terminus, address="node", asked=name, node=name), True
        self._decide(reply.node)

    def _subscribe(self, node: Node, subscription: str) -> None:
        names, terms = None, EXCLUSIVE
        mode: Mode = "durable" if subscription in _NAMED else subscription  # type: ignore[assignment]
        longest = self._gateway.limits.selector_characters
        try:
            selection = asked_selection(self.terminus.filters, self.connection.container, longest)
        except SelectorError as error:
            self._refuse(self._attached("selector-invalid", "attach"), "selector-invalid", "", str(error))
            return
        words = self._locked(mode, node)
        if words:
            self._refuse(self._attached("in-use", "attach"), "in-use", "", words)
            return
        if mode == "durable":
            terms = asked_terms(self.terminus, subscription)
            all_containers = self.terminus.all_containers and terms.shared
            sharing = self.terminus.sharing == "shared", all_containers
            names = durable_name(subscriber(self.connection.container, self.link.name, *sharing), terms.volatile)
            self._held = durable_source(self.terminus.asked, terms, all_containers)
        full = subscription_limit_fault(self.connection, self.terminus, node, names, self._owned)
        if full is not None:
            self.connection.fault(*full, self.link)
            return
        self._request = Subscribe(
            node,
            mode,
            names.name if names is not None else None,
            self.link,
            self.connection.subject,
            terms,
            selection,
            self.terminus.filters.start,
            only_here=mode == "durable" and self.terminus.kind == "channel",  # a topic: as JMS moves it
            names=names,
            owned=self._owned,
        )
        self._gateway.realm.subscribe(self._request, self)

    def _locked(self, mode: Mode, node: Node) -> str:
        """Why the node or the link name is another peer's; empty: it is not. Empty without the right to subscribe: that
        refusal comes first."""
        if not self._gateway.realm.authorizer.allows(self.connection.subject, SUBSCRIBING[mode], node):
            return ""
        if self.connection.lifetimes.is_locked(node.name, self.connection):
            return OWNED
        return NAME_IN_USE if self.connection.link_names.is_of_another_user(self.connection, self.link) else ""

    def _takes_its_name(self) -> bool:
        """The link is admitted, so the name is its own from now on. False: another user's link has it."""
        if self.connection.link_names.is_of_another_user(self.connection, self.link):
            self._refuse(self._attached("in-use", "attach"), "in-use", "", NAME_IN_USE)
        else:
            self.connection.link_names.take_over(self.connection, self.link)
        return self.link.alive

    def _frees_its_durable(self, answer: Subscribed) -> bool:
        """It is in use by the link whose name this one takes over: that one goes, and the realm is asked again."""
        request, names = self._request, self.connection.link_names
        if answer.answer != "in-use" or request is None or request.names is None:
            return False
        if not names.frees(self.connection, self.link, request.names):
            return False
        names.take_over(self.connection, self.link)
        self._gateway.realm.subscribe(request, self)
        return True

    def _recall(self) -> None:
        """Look for what it may mean, the likeliest first."""
        self._gateway.realm.find_durables(self._recalled.pop(0), self.connection.subject, self, self._owned)

    def _on_durables(self, reply: DurablesFound) -> None:
        if not self.link.alive:
            return
        if reply.answer == "not-found" and self._recalled:
            self._recall()
            return
        decision = self._attached(reply.answer, "attach")
        if decision.then["attach"] != "confirm":
            self._refuse(decision, reply.answer, reply.native)
            return
        durable = reply.durables[0]
        assert isinstance(self.link, Outgoing)
        held = durable_source(durable.node, durable.terms, self.terminus.all_containers)
        self.link.confirm(recalled_answer(self.link.attach, held))
        self.link.owner = RecalledLink(self.connection, self.link, reply.durables)
        self.connection.confirmed(self.link)

    def _on_published_to(self, node: Node) -> None:
        answer = self._gateway.realm.may_publish(node, self.connection.subject)
        native = _NOT_PUBLISHED_TO.get(answer, "")
        answer = answer if native else "ready"
        decision = self._attached(answer, "attach")
        if decision.then["attach"] != "confirm":
            self._refuse(decision, answer, native)
            return
        bytes_max = self._gateway.realm.event_sizes.known(node)
        if bytes_max is None:
            self._gateway.realm.event_sizes.ask(node, self)
        else:
            self._on_sized(node, bytes_max)

    def _on_sized(self, node: Node, bytes_max: int) -> None:
        """A message may be as large as the gateway and the node's topic take it."""
        if not self.link.alive or not self._takes_its_name():
            return
        assert isinstance(self.link, Incoming)
        size_max = min(self._gateway.limits.message_size_bytes, bytes_max)
        self.link.confirm(publisher_answer(self.link.attach, self.terminus, node, size_max, self._made))
        self.connection.lifetimes.joined(node.name, self.link, self.connection)
        keep = poster(self.connection)
        self.link.owner = publishing = PublishingLink(self.connection, self.link, node, self._facts(node), keep)
        self._gateway.publishers.joined(publishing)
        self.connection.confirmed(self.link)

    def _on_subscribed(self, answer: Subscribed) -> None:
        if not self.link.alive:
            self._give_back(answer.subscription)
            return
        if self._frees_its_durable(answer):
            return
        decision = self._attached(answer.answer, "attach")
        if answer.subscription is None or decision.then["attach"] != "confirm":
            self._give_back(answer.subscription)
            self._refuse(decision, answer.answer, answer.native)
            return
        assert isinstance(self.link, Outgoing) and self._node is not None
        if refuses_store(self.connection, self.link, self._node) or not self._takes_its_name():
            self._give_back(answer.subscription)
            return
        mode = "move" if answer.subscription.mode == "queue" else "copy"
        holds = consumer_answer(self.link.attach, self.terminus, self._node, mode, self._held, self._made)
        self.link.confirm(holds)
        self.connection.lifetimes.joined(self._node.name, self.link, self.connection)
        facts = self._facts(self._node, answer.subscription.durable)
        keep = retirer(self.connection)
        consuming = ConsumingLink(self.connection, self.link, self.terminus, answer.subscription, facts, keep)
        self.link.owner, consuming.ends_on_close = consuming, self._ends_on_close
        self.connection.consuming[consuming] = None
        consuming.wake()
        self.connection.confirmed(self.link)

    def _give_back(self, subscription: Subscription | None) -> None:
        """There will be no such link."""
        if subscription is not None:
            subscription.close()
            subscription.release()
        if self.terminus.filters.no_local:
            self._gateway.no_local.release(self.connection.container)

    def _on_lost(self, answer: SubscriptionLost) -> None:
        consuming = self.link.owner
        if not self.link.alive or not isinstance(consuming, ConsumingLink):
            return
        decision = self._attached(answer.answer, "later")
        consuming.failed_later(decision, answer.answer, answer.native)
        node = consuming.facts.node or ""
        tell_ended("subscription", self.connection, decision, node, answer.answer, answer.native)
        detail = describe_error(self.terminus.node, decision, answer.answer, answer.native)
        self.connection.close_link(self.link, decision.then["condition"], detail)

    def _attached(self, answer: str, moment: str) -> Decision:
        return self._tables()["attached"].decide(direction=self.terminus.direction, answer=answer, moment=moment)

    def _tables(self) -> NodeTables:
        """The active ones, as they are for the node that is named."""
        tables = self._gateway.tables
        return tables.for_node(self.terminus.node) if self._names_node else tables.for_class(DEFAULT_CLASS)

    def _refuse(self, decision: Decision, answer: str, native: str, words: str = "", cause: str = "") -> None:
        """`words` are for the peer, `cause` for the operator. `answer`: empty where the realm was not asked."""
        words, condition = words or BY_NATIVE.get(native, ""), decision.then["condition"] or "amqp:internal-error"
        node = self._node.name if self._node is not None else ""
        decided = decision, condition, answer, native, cause
        tell_refused(self.connection, self.terminus, self.link.name, node, *decided)
        detail = describe_error(self.terminus.node or self.terminus.direction, decision, answer or None, native, words)
        self.connection.close_link(self.link, condition, detail)

    def _facts(self, node: Node, durable: str | None = None) -> LinkIdentity:
        return link_identity(self.connection, self.terminus.direction, self.link.name, node, durable)
