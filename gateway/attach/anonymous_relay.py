"""The anonymous relay: a link whose messages say themselves, in the property `to`, where they go.

Each address that is in use is a `PublishingLink` of its own, on the relay's link and credit: with its node's
transformer, tables, rights and evidence. A node that is known is found at once; for another one realm metadata is read
to its end, and where there is none `nodes.create_on_attach` may have it made. Until then nothing more of the connection
is carried out, so that messages stay in order and a discharge comes behind what it discharges. What cannot be published
is rejected, and the link goes on; it is closed where no outcome can be sent: the message came settled, or the source
does not list `rejected`.
Source: semantics.md M-10, M-11, 3.7; AMQP anonymous terminus for message routing 1.0, section 2.2.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from gateway.amqp.incoming_link import Incoming
from gateway.amqp.link_owner import LinkOwner, TransferRun
from gateway.config.addresses import Address
from gateway.config.limits import RELAY_ADDRESSES
from gateway.config.node_names import may_be_created_on_attach
from gateway.evidence.outcome_key import LinkIdentity
from gateway.links.batches import PublishedBatch
from gateway.links.credit import CreditAccount
from gateway.links.link_identity import link_identity
from gateway.links.publishing import PublishingLink
from gateway.links.without_credit import WithoutCredit
from gateway.transactions.open_transactions import TransactingPeer
from gateway.transactions.posting import poster
from mappings import TableSet
from native_backend.nodes.answers import NodeFound, Published
from native_backend.nodes.node import Node
from native_backend.nodes.words import NodeKind, PostAnswer, PublishAnswer
from native_backend.subscriptions.registry import NOT_GRANTED
from transformers.message.routing import address_of, jms_destination_of

_NO_STORE = 0  # those of nodes begin at 1
_ANSWERS: Final[dict[str, PublishAnswer]] = {
    "ready": "not-found",  # metadata has been read to its end
    "not-found": "not-found",
    "access-denied": "access-denied",
    "unexpected": "unexpected",
}
_DESTINATIONS: Final[dict[int | None, NodeKind]] = {0: "queue", 1: "channel"}
_TEMPORARY: Final = (2, 3)


@dataclass(slots=True, eq=False)
class _Lookup:
    """The realm is asked for the node of an address; and to make it, at most once."""

    relay: RelayLink
    address: Address
    made: bool = False

    @property
    def connection(self) -> TransactingPeer:
        return self.relay.connection

    def answered(self, reply: NodeFound) -> None:
        if reply.node is None and reply.answer in ("ready", "not-found") and not self.made:
            self.made = self.relay.make(self.address, self)
            if self.made:
                return
        self.relay.found(self.address, reply)


class RelayLink(LinkOwner):
    """The session's side of such a link."""

    def __init__(self, connection: TransactingPeer, link: Incoming) -> None:
        self.connection = connection
        self.link = link
        gateway = connection.gateway
        self._gateway = gateway
        self.account: CreditAccount = gateway.credit.open_account(connection.holder, self)
        self.without_credit = WithoutCredit(gateway.clock)
        self.counts: Counter[str] = Counter()  # deliveries by outcome, to whatever address
        link.names_messages = True
        self._post = poster(connection)
        self._places: OrderedDict[str, PublishingLink] = OrderedDict()  # by address, the longest unused first
        self._doubtful: set[str] = set()  # refused a moment ago: what is known of their nodes may be out of date
        self._runs: deque[tuple[str, TransferRun]] = deque()  # that wait for the node of the first one
        self.top_up()

    def use(self, tables: TableSet) -> None:
        """Decide by these tables from the next transfer on."""
        for place in self._places.values():
            place.use(tables)

    def access_changed(self) -> None:
        for place in self._places.values():
            place.access_changed()

    # -- transfers

    def on_transfers(self, transfers: TransferRun) -> None:
        """One run of messages, in runs to the same address."""
        start = 0
        for to, run in groupby(map(address_of, transfers.messages)):
            end = start + sum(1 for _ in run)
            messages, presettled = transfers.messages[start:end], transfers.presettled[start:end]
            self._runs.append((to or "", TransferRun(messages, presettled, transfers.transaction)))
            start = end
        self._resume()

    def _resume(self) -> None:
        while self._runs and self.link.alive:
            to = self._runs[0][0]
            place = self._place(to)
            if place is None:
                self.connection.wait()
                self._gateway.realm.find_node(self._address(to).node, _Lookup(self, self._address(to)))
                return
            _, run = self._runs.popleft()
            place.on_transfers(run)

    def _place(self, to: str) -> PublishingLink | None:
        """Where messages to that address are published; None: the realm has to be asked."""
        place = self._places.get(to)
        if place is not None and self._is_current(place.node):
            self._places.move_to_end(to)
            return place
        address = self._address(to)
        if not 0 < len(address.node.encode()) <= self._gateway.limits.node_name_bytes:
            return self._nowhere(address, "not-found")
        if to in self._doubtful:
            return None
        node = self._gateway.realm.node(address.node)
        return self._open(to, address, node) if node is not None else None

    def make(self, address: Address, lookup: _Lookup) -> bool:
        """Have the node made that the first message names, as an attach would. False: there will be none."""
        gateway = self._gateway
        if not (self.link.alive and self._runs):
            return False  # no message waits for it any more
        destination = jms_destination_of(self._runs[0][1].messages[0])
        if destination in _TEMPORARY or not may_be_created_on_attach(
            address.node, gateway.settings.nodes.create_on_attach
        ):
            return False
        if gateway.realm.authorizer.may_create(self.connection.subject):
            kind = address.kind or _DESTINATIONS.get(destination, gateway.settings.nodes.addresses.default_kind)
            gateway.realm.create_node(address.node, kind, lookup)
        else:
            self.found(address, NodeFound(lookup, None, "access-denied", NOT_GRANTED))
        return True

    def found(self, address: Address, reply: NodeFound) -> None:
        """The realm's answer for the first run that waits."""
        if self.link.alive and self._runs:
            to, run = self._runs.popleft()
            self._doubtful.discard(to)
            if reply.node is not None:
                self._open(to, address, reply.node).on_transfers(run)
            else:
                answer = _ANSWERS.get(reply.answer, "unavailable")
                self._nowhere(address, answer, reply.native).on_transfers(run)
            self._resume()
        if not self._runs or not self.link.alive:
            self.connection.resume()

    def _open(self, to: str, address: Address, node: Node) -> PublishingLink:
        if address.kind not in (None, node.kind):
            return self._nowhere(address, "not-found")
        place = PublishingLink(self.connection, self.link, node, self._facts(node), self._post, self)
        place.access_changed()
        self._places[to] = place
        if len(self._places) > RELAY_ADDRESSES:
            idle = next((old for old, other in self._places.items() if other.idle and old != to), None)
            if idle is not None:
                del self._places[idle]
        return place

    def _nowhere(self, address: Address, answer: PublishAnswer, native: str = "") -> PublishingLink:
        name = address.node[: self._gateway.limits.node_name_bytes]
        node = Node(name, address.kind or "queue", "", b"", _NO_STORE)
        return _NowhereLink(self.connection, self.link, node, self._facts(node), self, answer, native)

    def _address(self, to: str) -> Address:
        return self._gateway.settings.nodes.addresses.read(to)

    def _is_current(self, node: Node) -> bool:
        """Neither deleted nor made anew, nor wider than it was."""
        now = self._gateway.realm.node(node.name)
        return now is not None and (now.topic_id, now.partitions) == (node.topic_id, node.partitions)

    def _facts(self, node: Node) -> LinkIdentity:
        return link_identity(self.connection, "publish", self.link.name, node, counts=self.counts)

    def forget(self, place: PublishingLink) -> None:
        """Its node is looked for anew."""
        for to in [to for to, known in self._places.items() if known is place]:
            del self._places[to]
            self._doubtful.add(to)
        if len(self._doubtful) > RELAY_ADDRESSES:
            self._doubtful.pop()

    def on_confirmed(self) -> None:
        """As of a link with a target."""
        self.account.confirm(self.link.unconfirmed)
        self.top_up()

    def on_withdrawn(self, count: int) -> None:
        """As of a link with a target."""
        self.account.complete(count)
        self.top_up()

    def top_up(self) -> None:
        if count := self.account.top_up(self.link.unconfirmed):
            self.link.grant(count)
            self.without_credit.end()

    def ended(self, cause: str) -> None:
        """The link has gone. What is in flight completes unheard, and leaves its records; what waits for its node is
        not taken, and its transactions can only be rolled back (W-5)."""
        self._gateway.credit.close_account(self.account)
        self.connection.transactions.mark_rollback_only(self.link.session, [run.transaction for _, run in self._runs])
        self._runs.clear()
        self._places.clear()


class _NowhereLink(PublishingLink):
    """Where there is no node: every message has the same answer."""

    def __init__(
        self,
        connection: TransactingPeer,
        link: Incoming,
        node: Node,
        facts: LinkIdentity,
        relay: RelayLink,
        answer: PublishAnswer,
        native: str,
    ) -> None:
        super().__init__(connection, link, node, facts, poster(connection), relay)
        self._answer: PublishAnswer = answer
        self._native = native
        self._submit = self._refuse

    def _refuse(self, node: Node, keys: Sequence[bytes], values: Sequence[bytes], owner: object) -> None:
        assert isinstance(owner, PublishedBatch)
        owner.answered(Published(owner, 0, [-1] * len(keys), self._answer, self._native))

    def may_publish(self) -> PostAnswer:
        if self._answer == "not-found" or self._answer == "access-denied":
            return self._answer
        return "unexpected"
