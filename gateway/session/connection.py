"""A connection: one peer's facts, turned into submissions in the order they came; and the end of its links, however
they end.

One call of `receive` is one turn. May import: `gateway`, `mappings`, `native_backend.access`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gateway.admission import Admission
from gateway.attach_faults import attach_fault
from gateway.consuming import ConsumingLink
from gateway.engine import Engine
from gateway.engine_incoming import Incoming
from gateway.engine_links import Link, Outgoing
from gateway.facts import (
    Asked,
    Attached,
    Closed,
    Confirmed,
    Detached,
    Dispositions,
    Fact,
    Faulted,
    Flowed,
    Opened,
    Partial,
    SessionEnded,
    Transfers,
)
from gateway.frames import Frame
from gateway.lifetimes import LeavingLink, Temporary
from gateway.offers import connection_capabilities
from gateway.recall import RecalledLink
from gateway.scopes import Scopes
from gateway.sole_connections import REFUSED, REPLACED, Properties
from gateway.undecided import Undecided
from gateway.unread import Unread
from native_backend.access import ANONYMOUS

if TYPE_CHECKING:
    from gateway.gateway import Gateway, LinkName
    from gateway.transaction import Transaction

_CONTAINER, _BEGIN_CHANNEL_MAX = 0, 65535


class Connection:
    """Sans-IO: `receive` takes bytes, `data_to_send` gives them. `touch` marks that there is something to send."""

    def __init__(self, gateway: Gateway) -> None:
        limits = gateway.limits
        self.gateway = gateway
        self.engine = Engine(
            container=gateway.container,
            frame_size_max=limits.frame_size_bytes,
            message_size_max=limits.message_size_bytes,
            channel_max=limits.sessions_per_connection - 1,
            idle_timeout_ms=limits.idle_timeout_ms,
            late_max=limits.credit_per_link,
            handles_max=2 * limits.links_per_session,
            capabilities=connection_capabilities(gateway.tables),
            opening=self._opening,
        )
        self._replaced: Connection | None = None  # by this one; itself, where it is refused
        self.container = ""
        self.subject = ANONYMOUS
        self.opened = False
        self.messages = 0  # received so far
        self._heard = True  # since the last tick
        self._heard_s = 0.0
        self.closing = False
        self.unread = Unread(self.engine, limits.write_buffer_bytes)
        self.consuming: dict[ConsumingLink, None] = {}  # in the order of attaching
        self.transactions: dict[int, Transaction] = {}  # by session: the open one (W-20)
        self.scopes = Scopes()
        self.undecided = Undecided()
        self._unheard: list[Fact] = []  # read and not carried out yet, the latest first
        self._waiting = False  # for the realm, before the next fact is carried out
        self._held = 0  # octets that came meanwhile
        self._beat_ms = 0.0  # when the engine is asked next for a heartbeat

    def receive(self, data: bytes | memoryview) -> bool:
        """One turn. False: there was no more in it than a heartbeat, or a part of something."""
        self._heard = True
        self.engine.receive(data)
        self.unread.stir()
        if self._waiting:
            self._held += len(data)
            self.gateway.hold_bytes(len(data))
        facts = self.engine.take_facts()
        self._carry_out(facts)
        self.touch()
        return bool(facts)

    def _carry_out(self, facts: list[Fact]) -> None:
        on: Any = _ON
        self._unheard = unheard = facts[::-1] + self._unheard if self._waiting else facts[::-1]
        while unheard and not self._waiting:
            fact = unheard.pop()
            on[type(fact)](self, fact)

    def wait(self) -> None:
        """Carry nothing more out until `go_on`: what follows must not overtake what waits for the realm."""
        self._waiting = True

    def go_on(self) -> None:
        if self._waiting:
            self._waiting = False
            self.gateway.release_bytes(self._held)
            self._held = 0
            unheard, self._unheard = self._unheard, []
            self._carry_out(unheard[::-1])
            self.touch()

    def tick(self, now_s: float) -> None:
        """Once in a while: heartbeats, and the peer's silence. Monotonic seconds."""
        idle_s = self.gateway.limits.idle_timeout_ms / 1000
        if self._heard:
            self._heard, self._heard_s = False, now_s
        elif self.opened and not self.closing and 0 < idle_s <= now_s - self._heard_s:
            self.fault("idle", f"silent for {now_s - self._heard_s:.1f} s")
            return
        for transaction in self.transactions.values():
            if now_s - transaction.began_s >= self.gateway.limits.transaction_timeout_ms / 1000:
                transaction.doom("expired")
        if now_s * 1000 >= self._beat_ms:
            self._beat_ms = now_s * 1000 + self.engine.tick(int(now_s * 1000) + 1)
            self.touch()

    def touch(self) -> None:
        self.gateway.touched[self] = None

    def data_to_send(self) -> list[bytes | bytearray]:
        pieces = self.engine.data_to_send()
        self.unread.stir()
        return pieces

    # -- facts

    def _opening(self, opened: Frame) -> Properties:
        self.container = str(opened.field(_CONTAINER) or "")
        properties, self._replaced = self.gateway.sole_connections.claim(self, opened)
        return properties

    def _on_opened(self, fact: Opened) -> None:
        self.opened = True
        self.gateway.opened += 1
        self._beat_ms = 0.0
        self.engine.open()
        older, self._replaced = self._replaced, None
        if older is self:
            self.fault("container-in-use", REFUSED)
        elif older is not None:
            older.fault("container-taken-over", REPLACED)

    def _on_attached(self, fact: Attached) -> None:
        limits, gateway = self.gateway.limits, self.gateway
        if not fact.link.alive:  # what came with it has ended its session or connection: it is counted as gone already
            gateway.links += 1
            return
        if self.closing:  # it came with what the connection was closed for
            fact.link.forget()
            return
        gateway.links += 1
        if self.engine.links_on(fact.link.session) > limits.links_per_session or gateway.links > limits.links:
            self.fault("too-many-links", f"at most {limits.links_per_session} a session", fact.link)
            return
        wrong = attach_fault(fact.link.attach)
        if wrong is not None:
            self.fault(*wrong, fact.link)
            return
        admission = Admission(self, fact.link)
        if admission.terminus.wrong:
            self.fault("invalid-terminus", admission.terminus.wrong, fact.link)
        elif admission.recalls:
            admission.begin()  # it takes no name over: a durable that is in use is not found
        elif self._holds(fact.link):
            admission.refuse_again()
        else:
            self._name(fact.link)
            admission.begin()

    def _name(self, link: Link) -> None:
        """A link's name is its peer's own: where it is in use, the older link goes (O-6)."""
        older = self.gateway.link_names.get(self._link_name(link)) if self.container else None
        if older is not None:
            connection, stolen = older
            connection.fault("link-name-in-use", f"{self.container!r} has attached {link.name[:200]!r} anew", stolen)
        self.gateway.link_names[self._link_name(link)] = (self, link)

    def _holds(self, link: Link) -> bool:
        """A link of that name of this very connection has a durable: it is there, nothing was lost."""
        connection, older = self.gateway.link_names.get(self._link_name(link), (None, None))
        owner = older.owner if connection is self and older is not None else None
        return isinstance(owner, ConsumingLink) and owner.subscription.mode == "durable"

    def _link_name(self, link: Link) -> LinkName:
        return (self.container, link.name, type(link))

    def _on_transfers(self, fact: Transfers) -> None:
        self.messages += len(fact.messages)
        if fact.link.alive:
            fact.link.owner.on_transfers(fact)

    def transaction(self, link: Link, identity: bytes | None) -> Transaction | None:
        """The open transaction of that link's session, if that is its id."""
        transaction = self.transactions.get(link.session)
        return transaction if transaction is not None and transaction.id == identity else None

    def unfinished(self, link: Link, identity: bytes) -> bool:
        """Whether a message is here in part only, on that link's session and in that transaction."""
        here = [each for each in self.engine.links() if isinstance(each, Incoming) and each.session == link.session]
        return any(each.unfinished == identity for each in here)

    def _on_partial(self, fact: Partial) -> None:
        transaction = self.transaction(fact.link, fact.transaction) if fact.transaction is not None else None
        if transaction is not None:
            transaction.doom("torn")
        if fact.link.alive:
            fact.link.owner.on_partial(fact.presettled)

    def _on_confirmed(self, fact: Confirmed) -> None:
        if fact.link.alive:
            fact.link.owner.on_confirmed(fact.count)

    def _on_dispositions(self, fact: Dispositions) -> None:
        if fact.link.alive:
            fact.link.owner.on_dispositions(fact)

    def _on_flowed(self, fact: Flowed) -> None:
        link = fact.link.owner
        if isinstance(link, ConsumingLink) and not self._ends(fact.link) and link.pump():
            link.wake()  # there may be more

    def _on_asked(self, fact: Asked) -> None:
        if fact.link is None:
            self.engine.tell_session(fact.channel)
        elif not self._ends(fact.link):
            fact.link.tell_flow()

    def _ends(self, link: Link) -> bool:
        """The end of the link is read already. An event given now would leave settled, its record saying otherwise."""
        return any(
            isinstance(fact, Closed)
            or (isinstance(fact, Detached | Faulted) and fact.link is link)
            or (isinstance(fact, Faulted) and fact.link is None)  # of its session, or of all: proton may be silent
            for fact in self._unheard
        )

    def _on_detached(self, fact: Detached) -> None:
        link = fact.link
        if not link.alive:
            return
        if fact.closed and isinstance(link.owner, RecalledLink):
            link.owner.unsubscribe()
            return
        going = self._end_link(link, "lost")
        if going is not None:
            link.owner = LeavingLink(self, link, fact.closed)
            going.told.append(link.owner.answer)
        elif fact.closed:
            link.close()
        else:
            link.detach()

    def finish(self, link: Link, condition: str | None, detail: str) -> None:
        """Answer the closing DETACH of a link that had something left to do."""
        self._end_link(link, "lost")
        link.close(condition, detail)
        self.touch()

    def _on_session_ended(self, fact: SessionEnded) -> None:
        self.scopes.end_session(fact.session)

    def _on_closed(self, fact: Closed) -> None:
        self.lose("lost")
        self.closing = True
        self.engine.close()

    def _on_faulted(self, fact: Faulted) -> None:
        self.fault(fact.fault.fault, fact.fault.detail, fact.link, fact.fault.channel)

    # -- ends

    def fault(self, fault: str, detail: str, link: Link | None = None, channel: int | None = None) -> None:
        """The peer broke the protocol: the table says which scope closes, with what; where there is none such, the next
        larger one."""
        if link is not None:
            channel = link.attach.channel
        then = self.gateway.tables["fault"].decide(fault=fault).then
        self.gateway.count_fault(fault, detail)
        if then["scope"] == "message":
            return  # it was turned away by itself
        if then["scope"] == "link" and link is not None:
            self.close_link(link, then["condition"], detail)
        elif then["scope"] != "connection" and channel is not None:
            for gone in self.engine.end_session(channel, then["condition"], detail):
                self._end_link(gone, "lost")
                gone.forget()
            self.scopes.end_session(self.engine.session(channel))
        else:
            self.close(then["condition"], detail, "cut-off" if fault == "idle" else "lost")
        self.touch()

    def close_link(self, link: Link, condition: str, detail: str) -> None:
        """Detach for good, with a reason. What the peer had not stated is lost to it."""
        if link.alive:
            self._end_link(link, "lost")
            if link.owner is None or isinstance(link.owner, Admission):
                link.refuse(condition, detail)
                self._see_that_it_fitted(link)
            else:
                link.close(condition, detail)
            self.touch()

    def confirmed(self, link: Link) -> None:
        """A link has its owner, and its peer is told."""
        self._see_that_it_fitted(link)
        self.touch()

    def _see_that_it_fitted(self, link: Link) -> None:
        """What does not fit the peer's frames cannot be said: the link ends, or its session where not even the name of
        the link does."""
        extent = link.written.extent if link.written is not None else "whole"
        if extent == "none":
            self.fault("answer-too-large", "the link's name", channel=link.attach.channel)
        elif extent == "bare" and link.alive:
            self.fault("answer-too-large", "the answer to the attach", link)

    def _end_link(self, link: Link, cause: str) -> Temporary | None:
        """Gives the temporary node that is about to go with it."""
        if isinstance(link.owner, LeavingLink):
            return None
        self.gateway.links -= 1
        if self.gateway.link_names.get(self._link_name(link)) == (self, link):
            del self.gateway.link_names[self._link_name(link)]
        owner = link.owner
        if isinstance(link, Outgoing):  # what was read behind the end of the link is not heard any more
            for fact in self._unheard:
                if isinstance(fact, Dispositions) and fact.link is link and not fact.repeated:
                    link.unheard += zip(fact.seqs, fact.eids, strict=True)
        if owner is not None:
            self.consuming.pop(owner, None)
            self.gateway.ready.pop(owner, None)
            self.unread.drop(owner)
            owner.ended(cause)
        return self.gateway.lifetimes.left(link)

    def lose(self, cause: str) -> None:
        """Every link has gone with its connection."""
        # With an END that waits to be carried out, the engine knows its links no more.
        ended = [fact.link for fact in self._unheard if isinstance(fact, Detached)]
        for link in dict.fromkeys([*self.engine.links(), *ended]):
            if link.alive:
                self._end_link(link, "lost" if cause == "cut-off" and self._ends(link) else cause)
                link.forget()
        self.scopes.end()
        self.gateway.sole_connections.leave(self)
        self._unheard = []
        self.go_on()

    def close(self, condition: str | None, detail: str = "", cause: str = "lost") -> None:
        """Close the connection from our side."""
        if not self.closing:
            self.lose(cause)
            self.closing = True
            self.engine.close(condition, detail)
            self.touch()

    def lost(self) -> None:
        """The socket has gone; links that are still there were not closed before."""
        self.lose("cut-off")
        self.closing = True
        self.gateway.touched.pop(self, None)
        self.unread.close()
        self.engine.free()


_ON = {
    Transfers: Connection._on_transfers,
    Dispositions: Connection._on_dispositions,
    Flowed: Connection._on_flowed,
    Asked: Connection._on_asked,
    Partial: Connection._on_partial,
    Confirmed: Connection._on_confirmed,
    Opened: Connection._on_opened,
    Attached: Connection._on_attached,
    Detached: Connection._on_detached,
    SessionEnded: Connection._on_session_ended,
    Closed: Connection._on_closed,
    Faulted: Connection._on_faulted,
}
