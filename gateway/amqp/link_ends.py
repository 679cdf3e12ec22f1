"""The ends of links inside the fence: the only place, with `engine.py`, that holds pointers into proton.

A delivery is a pointer here and a *seq* everywhere else. When a link is freed its pointers are forgotten first, so
that a completion which comes afterwards finds nothing (a freed delivery pointer would bring down every connection of
the process). Between Python and `_deliveries.c`, which does what every message needs, a pointer is an int.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import cproton
from cproton import ffi, lib

from gateway.amqp import _deliveries, _sends
from gateway.amqp.binding import at
from gateway.amqp.delivery_detail import tell_back
from gateway.amqp.error_description import ErrorDescription, Info, shortened
from gateway.amqp.link_owner import UNOWNED, LinkOwner
from gateway.amqp.output import Output
from gateway.frames.attach_frame import AttachAnswer
from gateway.frames.endpoints import Session
from gateway.frames.frame_rewriter import flow_of_receiver
from gateway.frames.frames import DISPOSITION, Frame
from gateway.terminus.attach import receiver_settle_mode, sender_settle_mode
from gateway.terminus.attach_answers import refusing_answer
from gateway.terminus.termini import answered
from native_backend.state.outcome_detail import OutcomeDetail
from transformers.codec import Symbol, UInt, ULong

STATES: Final = {"accepted": 0x24, "rejected": 0x25, "released": 0x26, "modified": 0x27}
_COUNT_MAX: Final = 0xFFFFFFFF
_ATTACH_NAME, _ATTACH_HANDLE, _ATTACH_SIZE_MAX = 0, 1, 10
_TRANSFER_HEAD_MAX: Final = 128  # of a frame, with room for what the header of a message says of earlier attempts


def delivery(number: int) -> Any:
    """The pointer to a delivery that was an int."""
    return ffi.cast("pn_delivery_t *", number)


def set_condition(condition: Any, name: str, description: str) -> None:
    """Fill a proton condition; descriptions are cut (`shortened`). A complaint brings its info map."""
    lib.pn_condition_clear(condition)
    cproton.pn_condition_set_name(condition, name)
    if description:
        cproton.pn_condition_set_description(condition, shortened(description))
    if isinstance(description, ErrorDescription) and description.info:
        _set_info(lib.pn_condition_info(condition), description.info)


def _set_info(data: Any, info: Info) -> None:
    lib.pn_data_clear(data)
    lib.pn_data_put_map(data)
    lib.pn_data_enter(data)
    for key, value in info:
        cproton.pn_data_put_symbol(data, key)
        if isinstance(value, bool):
            lib.pn_data_put_bool(data, value)
        elif isinstance(value, int):
            lib.pn_data_put_uint(data, value)
        elif isinstance(value, bytes):
            lib.pn_data_put_binary(data, cproton.py2bytes(value))
        elif isinstance(value, Symbol):
            cproton.pn_data_put_symbol(data, value)
        else:
            cproton.pn_data_put_string(data, value)
    lib.pn_data_exit(data)


class Written(NamedTuple):
    """Of the ATTACH that has answered a peer's: see `gateway.frames.frame_rewriter.AttachRewriter`."""

    handle: int | None
    extent: str


class Link:
    """What both directions share. `attach` is the peer's ATTACH as the tap decoded it; `session` identifies the
    peer's session."""

    def __init__(self, pointer: Any, attach: Frame, session: int, output: Output) -> None:
        self._pointer = pointer
        self._output = output
        self.at = at(pointer)
        self.attach = attach
        self.written: Written | None = None  # of the answer, once there is one
        self.session = session
        self.ordinal = 0  # among the links of its connection, from 1 on, by when they were attached
        self.name: str = str(attach.field(_ATTACH_NAME))
        self.alive = True
        self.left = False  # its peer has detached or closed it
        self.settles_second = False  # agreed: the sender settles a delivery, and only then does the receiver
        self.owner: LinkOwner = UNOWNED
        self._by_seq: dict[int, int] = {}  # pointers, of what is still to be settled by us

    @property
    def _deliveries(self) -> dict[int, int]:
        """Seq -> pointer, all that is still to be settled by us."""
        return self._by_seq

    @property
    def sends(self) -> bool:
        """Our side is the sender."""
        return bool(lib.pn_link_is_sender(self._pointer))

    @property
    def sender_settle_mode(self) -> str:
        return sender_settle_mode(self.attach)

    @property
    def receiver_settle_mode(self) -> str:
        return receiver_settle_mode(self.attach)

    @property
    def unsettled_seqs(self) -> Collection[int]:
        """Of deliveries that have been transferred and are not settled, as far as their receiver has to say something:
        the gateway of what is published, the peer of what it consumes."""
        return self._deliveries.keys()

    @property
    def unsettled_count(self) -> int:
        return len(self._deliveries)

    def confirm(self, answer: AttachAnswer) -> None:
        """Answer the ATTACH."""
        self.settles_second = answer.settles_second
        self._open(answer)

    def refuse(self, condition: str, description: str) -> None:
        """Answer the ATTACH with a null terminus of ours, then a closing DETACH that says why (O-1)."""
        if self._open(refusing_answer(self.attach, self.sends)).extent != "none":
            self.close(condition, description)
        else:
            self.forget()  # the peer does not know of it

    def _open(self, answer: AttachAnswer) -> Written:
        """What both sides have said is forgotten then, but for what the link goes by."""
        self._output.flush()
        lib.pn_link_open(self._pointer)
        written = self._output.flush_attach(answer)
        self.written = Written(written.handle, written.extent)
        self.attach = answered(self.attach)
        return self.written

    def close(self, condition: str | None = None, description: str = "") -> None:
        """Close for good; what was not settled is forgotten. A second close does nothing."""
        if self.alive:
            self.alive = False
            self._deliveries.clear()
            if condition:
                set_condition(lib.pn_link_condition(self._pointer), condition, description)
            lib.pn_link_close(self._pointer)

    def detach(self) -> None:
        """Answer a detach that was not for good."""
        if self.alive:
            self.alive = False
            self._deliveries.clear()
            lib.pn_link_detach(self._pointer)

    def forget(self) -> None:
        """The session or connection has gone: nothing may be touched any more."""
        self.alive = False
        self._deliveries.clear()

    def free(self) -> None:
        """Both ends are closed: give the engine's memory back. Proton settles what was not settled, and would write
        dispositions for it (2.8.3); earlier frames go out first."""
        self.forget()
        self.owner = UNOWNED
        if not lib.pn_link_unsettled(self._pointer):
            lib.pn_link_free(self._pointer)
            return
        self._output.flush()
        lib.pn_link_free(self._pointer)
        self._output.flush_but(DISPOSITION)

    def settle(
        self,
        seqs: Sequence[int],
        outcome: str,
        condition: str | None = None,
        description: str = "",
        settle: bool = True,
    ) -> None:
        """Give each delivery its outcome (`none` for no state) and settle it. Unknown seqs are passed over: their
        link has gone."""
        if condition:
            for seq in seqs:
                if (pointer := self._deliveries.get(seq)) is not None:
                    local = lib.pn_delivery_local(delivery(pointer))
                    set_condition(lib.pn_disposition_condition(local), condition, self.about(seq, description))
        _deliveries.settle(self._deliveries, seqs, STATES.get(outcome, 0), settle)

    def about(self, seq: int, description: str) -> str:
        """The description of an error that concerns the delivery with that seq."""
        return description


class Outgoing(Link):
    """A link on which the peer consumes."""

    silence: str | None = None  # the state that a disposition with neither state nor settlement is taken for
    numbers: Session  # of which its deliveries take their ids

    def __init__(self, pointer: Any, attach: Frame, session: int, output: Output) -> None:
        super().__init__(pointer, attach, session, output)
        self._handed = 0  # to proton: its delivery-count, but for what is queued there
        self._last = 0  # pointer of the last delivery, where proton may have kept the end of it
        self._asked = False  # before it was confirmed
        self.unsettled: dict[int, tuple[int, int]] = {}  # pointer -> (seq, EID), until the peer says what became of it
        self.unprocessed: list[tuple[int, int]] = []  # (seq, EID) of what the peer stated too late
        # pointer -> (seq, state, transaction): stated but not settled by the peer, waits for us
        self.waiting: dict[int, tuple[int, str, bytes | None]] = {}

    def confirm(self, answer: AttachAnswer) -> None:
        super().confirm(answer)
        if self._asked:
            self.tell_flow()

    @property
    def credit(self) -> int:
        """What the peer will still take."""
        return int(lib.pn_link_credit(self._pointer)) if self.alive else 0

    @property
    def unsettled_seqs(self) -> Collection[int]:
        return [seq for seq, _ in self.unsettled.values()]

    @property
    def unsettled_count(self) -> int:
        return len(self.unsettled)

    @property
    def message_size_max(self) -> int:
        """Octets of one message that the peer takes; 0: of any size (2.7.3)."""
        size = self.attach.field(_ATTACH_SIZE_MAX)
        return int(size) if isinstance(size, ULong) else 0

    @property
    def window(self) -> int:
        """Transfers that the peer takes in this session now, behind those of a message that is half sent."""
        if not self.alive:
            return 0
        if self._output.keeps:
            self._output.flush()
        return _sends.window(self.at)

    @property
    def transfer_bytes(self) -> int:
        """Octets of a message that one transfer holds, at least."""
        size = self._output.frame_size_max
        return size - _TRANSFER_HEAD_MAX if size else _COUNT_MAX

    @property
    def draining(self) -> bool:
        return bool(self.alive and lib.pn_link_get_drain(self._pointer))

    def drained(self) -> None:
        """Nothing more is available: use the credit up and say so (U-4)."""
        self._handed += lib.pn_link_drained(self._pointer)

    def tell_flow(self) -> None:
        """Where this link stands, though nothing has changed. A drain is answered once the credit is used up, and all
        that took it has gone out. What the peer has taken the credit of cannot go out: it is not waited for."""
        self._output.later.pop(self, None)
        if self.written is None:
            self._asked = True
        if not self.alive or self.written is None or self.written.handle is None:
            return
        self._output.flush()
        queued = lib.pn_link_queued(self._pointer)
        on_wire = self.credit + queued
        if self.draining and on_wire > 0:
            if queued:
                self._output.later[self] = None
            return
        counts = UInt((self._handed - queued) & _COUNT_MAX), UInt(max(0, on_wire))
        state = (UInt(self.written.handle), *counts, None, self.draining)
        self._output.tell_flow(lib.pn_link_session(self._pointer), state)

    def send(self, tag_prefix: bytes, first_seq: int, eids: list[int], values: Sequence[bytes]) -> None:
        """Transfer the events unsettled, tagged `<storeid>:<eid>`; `tag_prefix` is `<storeid>:` (NF-1)."""
        self._count(len(eids))
        self._output.send(self.at, tag_prefix, first_seq, eids, values, self.unsettled)
        if self._output.keeps:
            self._last = next(reversed(self.unsettled))

    def send_as(
        self, tag_prefix: bytes, first_seq: int, eids: list[int], places: list[int], values: Sequence[bytes]
    ) -> None:
        """The same, where what was sent is known by its place from here on."""
        sent: dict[int, tuple[int, int]] = {}
        self._count(len(eids))
        self._output.send(self.at, tag_prefix, first_seq, eids, values, sent)
        self._last = next(reversed(sent))
        known = zip(sent.items(), places, strict=True)
        self.unsettled.update((pointer, (seq, place)) for (pointer, (seq, _)), place in known)

    def send_settled(self, tag_prefix: bytes, eids: list[int], values: Sequence[bytes]) -> None:
        """Transfer the events settled: the peer answers nothing."""
        self._count(len(eids))
        self._output.send(self.at, tag_prefix, 0, eids, values, None)

    def _count(self, deliveries: int) -> None:
        self._handed += deliveries
        self.numbers.given += deliveries

    def stated(self, pointer: int, seq: int, state: str, peer_settled: bool, within: bytes | None = None) -> None:
        """The peer has given this delivery a state, in that transaction if in any. Unless it has settled too, it waits
        for us now."""
        del self.unsettled[pointer]
        if peer_settled:
            lib.pn_delivery_settle(delivery(pointer))
        else:
            self._deliveries[seq] = pointer
            self.waiting[pointer] = (seq, state, within)

    def unstate(self, seqs: list[int], eids: list[int]) -> list[int]:
        """Forget the states that the peer sent inside a transaction. Gives the positions of those that it
        has settled meanwhile: they get no more dispositions."""
        settled = []
        for place, (seq, eid) in enumerate(zip(seqs, eids, strict=True)):
            number = self._deliveries.pop(seq, None)
            if number is None:
                settled.append(place)
                continue
            del self.waiting[number]
            if lib.pn_delivery_settled(delivery(number)):
                lib.pn_delivery_settle(delivery(number))
                settled.append(place)
            else:
                self.unsettled[number] = (seq, eid)
        return settled

    def settle(
        self,
        seqs: Sequence[int],
        outcome: str,
        condition: str | None = None,
        description: str = "",
        settle: bool = True,
    ) -> None:
        if self.waiting:
            for seq in seqs:
                self.waiting.pop(self._deliveries.get(seq, 0), None)
        super().settle(seqs, outcome, condition, description, settle)

    def tell_back(self, seqs: Sequence[int], outcome: str, state: str, detail: OutcomeDetail | None) -> None:
        """What `settle` tells of these deliveries next has all that the peer has stated, if the outcome is the same."""
        pointers = [delivery(number) for seq in seqs if (number := self._deliveries.get(seq)) is not None]
        if pointers and outcome == state.partition("-")[0]:  # none: the transport may be gone, too
            tell_back(pointers, state, detail, self._output.frame_size_max)

    def forget(self) -> None:
        super().forget()
        self.waiting = {}

    def close(self, condition: str | None = None, description: str = "") -> None:
        super().close(condition, description)
        self.waiting = {}

    def give_up(self) -> None:
        """It will be ended: of a message that is half sent and not settled nothing more goes out than its abortion,
        when the session has room for that. The rest would go ahead of the DETACH."""
        if self.alive and self._last in self.unsettled and self.is_half_sent:
            lib.pn_delivery_abort(delivery(self._last))

    @property
    def is_half_sent(self) -> bool:
        """Proton keeps the end of a message, for which the session has no room, and holds DETACH and END back for it.
        Where the peer has detached it does not."""
        return self._output.keeps and not self.left and lib.pn_link_queued(self._pointer) > 0

    def let_go(self) -> bytes:
        """Its session ends: the FLOW that has proton write the rest of the message, which is to go nowhere."""
        queued = lib.pn_link_queued(self._pointer)
        channel, handle = self.attach.channel, self.attach.field(_ATTACH_HANDLE)
        return flow_of_receiver(channel, handle, (self._handed - queued) & _COUNT_MAX, queued)

    def lose(self) -> tuple[list[int], list[int]]:
        """Seqs and EIDs of what the peer never stated, or not in time; the link knows them no more."""
        self.give_up()
        lost = sorted([*self.unsettled.values(), *self.unprocessed])
        self.unsettled, self.unprocessed = {}, []
        return [seq for seq, _ in lost], [eid for _, eid in lost]
