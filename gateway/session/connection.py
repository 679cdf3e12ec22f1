"""A connection: one peer's facts, turned into submissions in the order they came; and the end of its links, however
they end.

One call of `receive` is one turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.amqp.engine import Engine
from gateway.amqp.facts import (
    Asked,
    Attached,
    Closed,
    Confirmed,
    Detached,
    Dispositions,
    Fact,
    Faulted,
    Flowed,
    NotTaken,
    Opened,
    Partial,
    SessionEnded,
    Transfers,
    Withdrawn,
    ends,
    speaks,
    unprocessed_deliveries,
)
from gateway.amqp.incoming_link import Incoming
from gateway.amqp.link_ends import Link, Outgoing
from gateway.amqp.link_owner import UNOWNED
from gateway.attach.admission import Admission
from gateway.attach.answer_sizes import see_that_it_fitted
from gateway.attach.leaving import LeavingLink
from gateway.attach.link_limits import link_limit_fault
from gateway.attach.link_names import LinkNames
from gateway.attach.node_lifetimes import NodeLifetimes, TemporaryNode
from gateway.attach.recalled_link import EndingLink, RecalledLink, given_up
from gateway.attach.undecided_attaches import UndecidedAttaches
from gateway.frames.frames import Frame
from gateway.links.connection_log import note_opened
from gateway.links.connection_record import ConnectionRecord
from gateway.links.consuming import ConsumingLink
from gateway.links.expiry_scopes import ExpiryScopes
from gateway.links.shared import Shared
from gateway.links.write_pressure import WritePressure
from gateway.quotas.shares import holder_of
from gateway.session.departures import Departures
from gateway.session.ends import ends_of_all, ends_of_cut, ends_of_session, links_left
from gateway.session.heartbeats import Heartbeats, Liveness
from gateway.session.memory import count_unfinished
from gateway.session.offered_capabilities import connection_capabilities
from gateway.session.sole_connections import FAILED, Properties, SoleConnections
from gateway.terminus.attach import attach_fault
from gateway.transactions.open_transactions import OpenTransactions
from native_backend.nodes.grants import ANONYMOUS


class Connection:
    """Sans-IO: `receive` takes bytes, `data_to_send` gives them. `touch` marks that there is something to send."""

    def __init__(
        self,
        gateway: Shared,
        lifetimes: NodeLifetimes,
        link_names: LinkNames,
        sole_connections: SoleConnections,
        heartbeats: Heartbeats[Connection],
        touched: dict[Connection, None],
        departures: Departures,
    ) -> None:
        """`touched`: those that have something to send."""
        self.gateway, limits = gateway, gateway.limits
        self.lifetimes, self.link_names = lifetimes, link_names
        self._sole_connections, self._heartbeats, self._touched = sole_connections, heartbeats, touched
        self._departures = departures
        self.engine = Engine(
            container=gateway.container,
            frame_size_max=limits.frame_size_bytes,
            message_size_max=limits.message_size_bytes,
            channel_max=limits.sessions_per_connection - 1,
            idle_timeout_ms=limits.idle_timeout_ms,
            late_max=limits.credit_per_link,
            handles_max=limits.links_per_session,
            capabilities=connection_capabilities(gateway.tables),
            opening=self._opening,
        )
        self.record = ConnectionRecord.begun(gateway.next_connection_number(), gateway.clock)
        self.container = self.holder = self.address = ""  # the address is its peer's
        self.subject = ANONYMOUS
        self.opened = self.closing = self.at_fault = False  # `at_fault`: it ends for what its peer did
        self.messages = self._held = 0  # received so far; octets that came while it waited
        self.consuming: dict[ConsumingLink, None] = {}  # in the order of attaching
        self.transactions, self.expiry_scopes = OpenTransactions(), ExpiryScopes()
        held, most = gateway.held.open_account(self), limits.write_buffer_bytes
        self.write_pressure = WritePressure(self.engine, most, held, self.consuming, self.transactions)
        self.undecided, self.liveness = UndecidedAttaches(gateway.attach_share), Liveness(gateway.clock)
        self.unprocessed: list[Fact] = []  # read and not carried out yet, the latest first
        self.waiting = self.is_busy = False  # it waits for the realm: nothing more is read; it carries facts out

    def receive(self, data: bytes | memoryview, effort_max: int = 0) -> bool:
        """One turn. False: there was no more in it than a heartbeat, or a part of something. With `effort_max` it may
        leave something unread: `engine.frame_reader`."""
        self.liveness.heard = True
        self.engine.receive(data, effort_max)
        self.write_pressure.notify()
        if self.waiting:
            size = max(0, len(data) - len(self.engine.frame_reader.unread))
            self._held += size
            self.gateway.waiting_bytes.count(self.holder, size)
        facts = self.engine.take_facts()
        self._carry_out(facts)
        count_unfinished(self)
        self.touch()
        return bool(facts)

    def _carry_out(self, facts: list[Fact]) -> None:
        on, self.is_busy = _ON, True
        self.unprocessed = unprocessed = facts[::-1] + self.unprocessed if self.waiting else facts[::-1]
        try:
            while unprocessed and not self.waiting:
                fact = unprocessed.pop()
                on[type(fact)](self, fact)
        finally:
            self.is_busy = False

    def wait(self) -> None:
        """Carry nothing more out until `resume`: what follows must not overtake what waits for the realm."""
        self.waiting = True

    def resume(self) -> None:
        if self.waiting and not self._departures.holds(self):
            self.waiting, held, self._held = False, self._held, 0
            self.gateway.waiting_bytes.release(self.holder, held)
            if not self.is_busy:  # else what waits is carried out there
                self._carry_out(self.unprocessed[::-1])
            self.touch()

    def tick(self, now_s: float) -> None:
        """Once in a while: the peer's silence, and transactions that take too long. Monotonic seconds."""
        self.liveness.heard |= self.waiting  # it is not silent: it is not read
        idle_s, silence_s = self.gateway.limits.idle_timeout_ms / 1000, self.liveness.silence_s(now_s)
        if self.opened and not self.closing and 0 < idle_s <= silence_s:
            self.fault("idle", f"silent for {silence_s:.1f} s")
            return
        self.transactions.expire(now_s - self.gateway.limits.transaction_timeout_ms / 1000)

    def beat(self, now_s: float) -> None:
        """A heartbeat is due. What the peer has not read yet waits there as well as that would."""
        self.liveness.told_s = now_s
        if not self.write_pressure.in_socket():
            self.engine.beat()

    def flush(self) -> None:
        """What is to be sent so far goes before what comes."""
        self.engine.flush()

    def touch(self) -> None:
        self._touched[self] = None

    def data_to_send(self) -> list[bytes | bytearray]:
        if pieces := self.engine.data_to_send():
            self.liveness.sent()
        self.write_pressure.notify()
        return pieces

    # -- facts

    def _opening(self, opened: Frame) -> Properties:
        self.container, self.holder = self.record.read(opened), holder_of(self)
        full = self.gateway.shares.connections.refusal(self.holder)
        return [(FAILED, True)] if full else self._sole_connections.claim(self, opened)

    def _on_opened(self, fact: Opened) -> None:
        self.engine.open()
        if refusal := self.gateway.shares.connections.refusal(self.holder):
            self.fault("too-many-connections", refusal)
            return
        self.opened = True
        note_opened(self)
        self._sole_connections.enforce(self)
        if not self.closing and (unkept := self._heartbeats.keep(self, fact.frame)):
            self.fault("idle-time-out-not-kept", unkept)

    def _on_attached(self, fact: Attached) -> None:
        if not fact.link.alive:  # what came with it has ended its session or connection: it is counted as gone already
            self.gateway.shares.links.take(self.holder)
            return
        if self.closing:  # it came with what the connection was closed for
            fact.link.forget()
            return
        wrong = link_limit_fault(self, fact.link) or attach_fault(fact.link.attach)
        if wrong is not None:
            self.fault(*wrong, fact.link)
            return
        admission = Admission(self, fact.link)
        if admission.terminus.wrong:
            self.fault("invalid-terminus", admission.terminus.wrong, fact.link)
        else:
            admission.begin()

    def _on_transfers(self, fact: Transfers) -> None:
        self.messages += len(fact.messages)
        if self._is_within_credit(fact.link):
            fact.link.owner.on_transfers(fact)
        else:
            self.transactions.mark_rollback_only(fact.link.session, [fact.transaction])

    def _on_withdrawn(self, fact: Withdrawn) -> None:
        if self._is_within_credit(fact.link):
            fact.link.owner.on_withdrawn(fact.count)

    def _is_within_credit(self, link: Incoming) -> bool:
        """False: it has gone, or goes now."""
        over = link.overdraft()
        if over > 0:
            self.fault("over-credit", f"{over} more than granted", link)
        return link.alive and over <= 0

    def _on_not_taken(self, fact: NotTaken) -> None:
        self.transactions.mark_rollback_only(fact.session, [fact.transaction])

    def _on_partial(self, fact: Partial) -> None:
        self.transactions.mark_rollback_only(fact.link.session, [fact.transaction], "torn")
        if fact.link.alive:
            fact.link.owner.on_partial(fact.presettled)

    def _on_confirmed(self, fact: Confirmed) -> None:
        if fact.link.alive:
            fact.link.owner.on_confirmed()

    def _on_dispositions(self, fact: Dispositions) -> None:
        if fact.link.alive:
            fact.link.owner.on_dispositions(fact)
        else:
            self.transactions.mark_rollback_only(fact.link.session, [fact.transaction])

    def _on_flowed(self, fact: Flowed) -> None:
        link = fact.link.owner
        if not isinstance(link, ConsumingLink) or ends(self.unprocessed, fact.link):
            return
        # Proton knows already what the peer says last of this link: a drain waits for what it said before.
        if speaks(self.unprocessed, fact.link) or link.pump():
            link.wake()  # there may be more

    def _on_asked(self, fact: Asked) -> None:
        if fact.link is None:
            self.engine.tell_session(fact.channel)
        elif not ends(self.unprocessed, fact.link):
            fact.link.tell_flow()

    def _on_detached(self, fact: Detached) -> None:
        link = fact.link
        if not link.alive:
            return
        if fact.closed and isinstance(link.owner, RecalledLink):
            link.owner.unsubscribe()
            return
        durable, consuming = given_up(self, link) if fact.closed else None, link.owner
        going = self.end_link(link, "lost", fact.closed)
        if going is not None:
            link.owner = leaving = LeavingLink(self, link, fact.closed)
            going.waiting.append(leaving.answer)
        elif durable is not None and isinstance(consuming, ConsumingLink):
            link.owner = EndingLink(self, link, durable)
            self.expiry_scopes.forget(consuming.subscription)
            self.gateway.realm.unsubscribe(durable, link.owner)
        elif fact.closed:
            link.close()
        else:
            link.detach()

    def finish(self, link: Link, condition: str | None, detail: str) -> None:
        """Answer the closing DETACH of a link that had something left to do."""
        self.end_link(link, "lost")
        link.close(condition, detail)
        self.touch()

    def _on_session_ended(self, fact: SessionEnded) -> None:
        """Its links go without a word; the END is answered behind those that were detached before it."""
        self._departures.end_session(self, fact.links, ends_of_session(self, fact))

    def _on_closed(self, fact: Closed) -> None:
        self._leave("lost", self.engine.close)

    def _on_faulted(self, fact: Faulted) -> None:
        fault, detail = fact.fault.fault, fact.fault.detail
        if fact.session in (None, self.engine.session(fact.fault.channel)):
            self.fault(fault, detail, fact.link, fact.fault.channel)
        else:  # its peer has ended it, and may have another
            self.gateway.note_fault(self, fault, detail, None)

    def fault(self, fault: str, detail: str, link: Link | None = None, channel: int | None = None) -> None:
        """The peer broke the protocol: the table says which scope closes, with what; where there is none such, the next
        larger one."""
        channel = channel if link is None else link.attach.channel
        then = self.gateway.note_fault(self, fault, detail, link)
        if then["scope"] == "message":
            return  # it was turned away by itself
        if then["scope"] == "link" and link is not None:
            self.close_link(link, then["condition"], detail)
        elif then["scope"] != "connection" and channel is not None:
            session = self.engine.session(channel)
            if link is None or link.session == session:  # else its peer has ended it, and may have another
                cut = [link for link in self.engine.links() if link.session == session]
                self._departures.end_session(self, cut, ends_of_cut(self, cut, channel, then["condition"], detail))
        else:
            self.at_fault = fault not in ("idle", "container-taken-over")
            self.close(then["condition"], detail, "cut-off" if fault == "idle" else "lost")
        self.touch()

    def close_link(self, link: Link, condition: str, detail: str) -> None:
        """Detach for good, with a reason. What the peer had not stated is lost to it."""
        if link.alive:
            self.end_link(link, "lost")
            if link.owner is UNOWNED or isinstance(link.owner, Admission):
                link.refuse(condition, detail)
                see_that_it_fitted(self, link)
            else:
                link.close(condition, detail)
            self.touch()

    def confirmed(self, link: Link) -> None:
        """A link has its owner, and its peer gets the answer."""
        see_that_it_fitted(self, link)
        self.touch()

    def end_link(self, link: Link, cause: str, closed: bool = True, *, counted: int = 1) -> TemporaryNode | None:
        """Gives the temporary node that is about to go with it. `counted`: 0 where it is none of the links yet."""
        if isinstance(link.owner, LeavingLink):
            return None
        self.gateway.shares.links.take(self.holder, -counted)
        self.link_names.leave(self, link)
        owner = link.owner
        if isinstance(link, Incoming) and link.unfinished is not None:  # it will never be whole
            self.transactions.mark_rollback_only(link.session, link.unfinished.named)
        if isinstance(link, Outgoing):  # what was read behind the end of the link is not heard any more
            link.unprocessed += unprocessed_deliveries(self.unprocessed, link)
        if isinstance(owner, ConsumingLink):
            self.consuming.pop(owner, None)
            self.gateway.ready.pop(owner, None)
            self.write_pressure.drop(owner)
        owner.ended(cause)
        return self.lifetimes.left(link) if closed else self.lifetimes.suspended(self, link)

    def close(self, condition: str | None, detail: str = "", cause: str = "lost") -> None:
        """Close the connection from our side."""
        if not self.closing:
            self._leave(cause, lambda: self.engine.close(condition, detail))

    def lost(self) -> None:
        """The socket has gone; links that are still there were not closed before."""
        self._leave("cut-off", self._free)
        self._touched.pop(self, None)

    def _free(self) -> None:
        self.write_pressure.close()
        self.engine.free()

    def _leave(self, cause: str, then: Callable[[], None]) -> None:
        """Every link goes with its connection."""
        self._departures.end_connection(self, links_left(self), ends_of_all(self, cause, then))
        self.closing = True

    def gone(self) -> None:
        """All links have ended."""
        self.expiry_scopes.end()
        self.lifetimes.end_connection(self)
        self._sole_connections.leave(self)
        self._heartbeats.leave(self)
        self.unprocessed = []


_ON: Any = {
    Transfers: Connection._on_transfers,
    Dispositions: Connection._on_dispositions,
    Flowed: Connection._on_flowed,
    Asked: Connection._on_asked,
    Partial: Connection._on_partial,
    NotTaken: Connection._on_not_taken,
    Confirmed: Connection._on_confirmed,
    Withdrawn: Connection._on_withdrawn,
    Opened: Connection._on_opened,
    Attached: Connection._on_attached,
    Detached: Connection._on_detached,
    SessionEnded: Connection._on_session_ended,
    Closed: Connection._on_closed,
    Faulted: Connection._on_faulted,
}
