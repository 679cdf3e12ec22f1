"""What all connections of a gateway share, and what their links count together.

`Gateway` adds the connections themselves and the turn. Octets, counts. Source: ADR 0087.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol

from gateway.amqp.link_ends import Link
from gateway.config.settings import Settings
from gateway.evidence.counters import FATAL
from gateway.evidence.notices import Notices, PeerIdentity, key_of, peer_of
from gateway.evidence.outcomes import Outcomes
from gateway.links.credit import CreditPool
from gateway.links.event_to_message import EventToMessage
from gateway.links.message_to_event import MessageToEvent, conversion
from gateway.links.publishers import Publishers
from gateway.quotas.arrivals import Arrivals
from gateway.quotas.attach_share import AttachShare
from gateway.quotas.durable_share import DurableShare
from gateway.quotas.held_bytes import HeldBytes
from gateway.quotas.shares import Shares
from gateway.quotas.store_share import StoreShare
from gateway.quotas.waiting_bytes import WaitingBytes
from gateway.terminus.no_local import NoLocalContainers, origin_of
from mappings import TableSet
from native_backend.clock import Clock
from native_backend.interface import NativeRealm
from native_backend.state.durations import Durations

TRANSACTION_ID_BYTES = 32  # W-19


class Pumped(Protocol):
    """A link that may have something to send."""

    def pump(self) -> bool: ...


class Shared:
    """One gateway's, for its whole life."""

    def __init__(self, settings: Settings, realm: NativeRealm, tables: TableSet, clock: Clock) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.users = settings.security.users  # as their file was read last
        self.realm = realm
        self.tables = tables
        self.clock = clock
        self.since_us = self.tables_since_us = clock.epoch_us()  # when the run began, when its tables became active
        self.container = f"realmgate-{realm.run}"
        self.shares = Shares(self.limits, self._is_alone)
        self.credit = CreditPool(
            self.limits.in_flight, self.limits.credit_per_link, self.limits.links, lambda: self.shares.percent()
        )
        held = self.limits.held_bytes, self.limits.held_bytes_per_connection
        self.held = HeldBytes(*held, self.limits.connections, self.limits.message_size_bytes)
        self.outcomes = Outcomes(
            realm.run,
            tables.origin,
            lambda key, value: realm.append_evidence("outcomes", key, value),
            clock.epoch_us,
        )
        self.restoring = EventToMessage()
        self.no_local = NoLocalContainers(realm.durables)
        self.notices = Notices(clock)
        self.waiting_bytes = WaitingBytes(self.shares.in_flight_bytes, self.notices)
        self.arrivals = Arrivals(self.limits, clock, self.notices)
        self.attach_share: AttachShare[Any] = AttachShare()
        self.durable_share = DurableShare(self.shares.durables, realm.durables, clock)
        self.store_share = StoreShare(self.shares.stores_read)
        self.publishers: Publishers[Any] = Publishers()
        self.ready: dict[Pumped, None] = {}  # may get something in the next turn; all others are not visited
        self.transactions_ended: Counter[str] = Counter()  # by `transaction.ENDS`
        self.accept_seconds = Durations()  # of messages, from the turn that read the transfer to the realm's answer
        self.settle_seconds = Durations()  # of deliveries, from the turn that read the disposition to its being stored
        self.commit_seconds = Durations()  # of transactions, from the turn that read their discharge to the answer
        self.faults: Counter[str] = Counter()
        self.on_opened: Callable[[Any], None] = lambda _: None  # that connection's peer has said who it is
        self.on_origin: Callable[[str], None] = lambda _: None  # that container's messages bear its mark from now on
        self._connection_numbers = self._link_numbers = 0
        self._transaction_numbers = 0

    def _is_alone(self) -> bool:
        """There is one user, and no peer comes in without a login."""
        security = self.settings.security
        return len(self.users) == 1 and not security.bare_amqp and "ANONYMOUS" not in security.sasl

    @property
    def opened(self) -> int:
        """Connections whose peers have said who they are."""
        return self.shares.connections.used

    @property
    def links(self) -> int:
        return self.shares.links.used

    @property
    def transactions(self) -> int:
        """Open ones."""
        return self.shares.transactions.used

    @property
    def in_flight_bytes(self) -> int:
        """Of messages that wait for the realm."""
        return self.shares.in_flight_bytes.used

    @property
    def transaction_bytes(self) -> int:
        """Of messages that they hold."""
        return self.shares.transactions_bytes.used

    def next_connection_number(self) -> int:
        self._connection_numbers += 1
        return self._connection_numbers

    def next_link_number(self) -> int:
        self._link_numbers += 1
        return self._link_numbers

    @property
    def numbered(self) -> tuple[int, int]:
        """Connections and links that there have been in this run."""
        return self._connection_numbers, self._link_numbers

    def next_transaction_id(self) -> bytes:
        """At most 32 octets (W-19); no other run ever gives the same one (NF-2)."""
        self._transaction_numbers += 1
        return f"{self.realm.run}:{self._transaction_numbers:x}".encode()[:TRANSACTION_ID_BYTES]

    def count_fault(self, fault: str, detail: str, who: Hashable = "", **facts: Any) -> bool:
        """Count it, and name it in the log: a peer must not be able to fill the disk, nor to hide behind another. True:
        it has a line of its own there. `facts`: for programs that read the log."""
        self.faults[fault] += 1
        return self.notices.tell(f"peer fault {fault}", who, detail, facts)

    def turn_away(self, what: str, fault: str, detail: str, who: Hashable, user: str, address: str) -> None:
        """A peer that has no connection yet: a login that failed (`login`), or a `fault`."""
        self.count_fault(fault, detail, who, user=user, address=address)
        self.outcomes.counters.turned_away(what, fault)
        facts = {"what": what, "fault": fault, "user": user, "address": address, "class": FATAL, "rule": what}
        self.outcomes.recent.add(facts, detail)

    def note_fault(self, peer: PeerIdentity, fault: str, detail: str, link: Link | None) -> Mapping[str, Any]:
        """What a peer did is counted, named in the log and recorded; what table `fault` says of it."""
        decision = self.tables["fault"].decide(fault=fault)
        name, node = (link.name, link.owner.node_name) if link is not None else ("", "")
        condition, rule = decision.then["condition"] or "", f"{decision.table}.{decision.rule}"
        facts = {
            "user": peer.subject.user, "container": peer.container[:200], "address": peer.address, "node": node[:200],
            "link": name[:200], "condition": condition, "rule": rule,
        }  # fmt: skip
        where = f"; node {node!a:.200}, link {name!a:.200}" if link is not None else ""
        words = f"{detail:.200}{where}: {rule}: {condition}; {peer_of(peer)}"
        has_line = self.count_fault(fault, words, key_of(peer), **facts)
        columns = {"fault": fault, "link": name, "node": node, "detail": detail}
        known = node if node and self.realm.node(node) is not None else ""
        self.outcomes.counters.error(decision, fault, node=known)
        self.outcomes.decisions.refused(has_line, "fault", decision, peer, **columns)
        return decision.then

    def conversion(self, node: str, tables: TableSet, container: str) -> MessageToEvent:
        """What makes events of that container's messages for that node."""
        name = tables.classify(node).transformer or self.settings.transformer
        made = conversion(name, self.realm.run, node)
        return made.marked(origin_of(container)) if container in self.no_local else made

    def mark_origin(self, container: str) -> bool:
        """What it publishes bears its mark from now on. False: there are too many such containers."""
        known = container in self.no_local
        if not known and len(self.no_local) >= self.limits.no_local_containers:
            return False
        self.no_local.add(container)
        if not known:
            self.on_origin(container)
        return True
