"""What an engine has written and what is not sent yet: the part of the fence that proton's output goes through.

Mostly it is what proton wrote. Events to a consumer go past proton, as far as they can: it writes the frames of a run
without payloads, and `_sends.c` puts those in between (every payload would be copied three times else).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cproton import ffi, lib

from gateway.amqp import _sends
from gateway.amqp.binding import at
from gateway.frames.attach_frame import AttachAnswer
from gateway.frames.frame_rewriter import AttachRewriter, changed, with_handle_max, with_link, without
from gateway.frames.frames import CLOSE
from transformers.codec import Described

_EMPTY_FRAME = b"\x00\x00\x00\x08\x02\x00\x00\x00"


class Output:
    """One connection's, in order."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._at = at(transport)
        self._pieces: list[bytes | bytearray] = []
        self.size = 0  # octets of them
        self.keeps = False  # proton was given messages that it may have to keep
        self.later: dict[Any, None] = {}  # links that tell where they stand when what is queued has gone out
        self.closed = False  # the connection has gone, and proton's part of it
        self._close = b""  # what proton wrote of its own accord to close the connection

    @property
    def frame_size_max(self) -> int:
        """Octets of one frame that the peer takes."""
        assert not self.closed, "its transport has gone"
        return int(lib.pn_transport_get_remote_max_frame(self._transport))

    def take(self) -> list[bytes | bytearray]:
        """Everything that is due now."""
        self.flush()
        for link in [*self.later]:
            link.tell_flow()
        pieces, self._pieces, self.size = self._pieces, [], 0
        return pieces

    def flush(self) -> None:
        """Have proton write down what was decided so far, ahead of what will be: it sends dispositions of one kind
        together, and would let another overtake them (W-9)."""
        assert not self.closed, "nothing can be sent on a connection that has gone"
        while True:
            count = lib.pn_transport_pending(self._transport)
            if count <= 0:
                break
            piece = bytearray(count)
            lib.pn_transport_peek(self._transport, ffi.from_buffer(piece), count)
            lib.pn_transport_pop(self._transport, count)
            self._pieces.append(piece)
            self.size += count

    def flush_begin(self, handle_max: int) -> None:
        """The BEGIN of a session that was opened since the last flush, with its handle-max: proton has one of its
        own."""
        self._keep(with_handle_max(self._written(), handle_max))

    def flush_attach(self, answer: AttachAnswer) -> AttachRewriter:
        """The ATTACH of a link that was opened since the last flush, with all of the answer but name, handle and role,
        as far as it fits."""
        frame_size_max = lib.pn_transport_get_remote_max_frame(self._transport)
        attach = AttachRewriter(self._written(), answer, frame_size_max)
        self._keep(attach.octets)
        attach.octets = b""  # a link lives long
        return attach

    def hold_close(self) -> None:
        """Proton closes the connection, with words of its own: they wait for `say_close`."""
        self._close = self._written()

    def say_close(self, error: Described | None) -> None:
        """Close it with that error; nothing where proton has not closed it."""

        def change(fields: list[Any]) -> bool:
            fields[:] = [] if error is None else [error]
            return True

        self._keep(changed(self._close, CLOSE, change))
        self._close = b""

    def flush_but(self, code: int) -> None:
        """The frames of that performative that proton has written since the last flush go nowhere."""
        self._keep(without(self._written(), code))

    def _keep(self, octets: bytes) -> None:
        if octets:
            self._pieces.append(octets)
            self.size += len(octets)

    def _written(self) -> bytes:
        """What was decided since the last flush; it does not go out by itself."""
        first = len(self._pieces)
        self.flush()
        written = b"".join(self._pieces[first:])
        del self._pieces[first:]
        self.size -= len(written)
        return written

    def beat(self) -> None:
        """A frame without a body."""
        self.flush()
        self._keep(_EMPTY_FRAME)

    def tell_flow(self, session: Any, link: Sequence[Any] = ()) -> None:
        """A FLOW, behind everything that was decided so far: proton writes the session's when its capacity is set, with
        the numbers that it counts by; `link` are the fields of a link that sends (`with_link`)."""
        self.flush()
        lib.pn_session_set_incoming_capacity(session, 0)  # as it is: nothing bounds it
        written = self._written()
        self._keep(with_link(written, link) if link else written)

    def send(
        self,
        link: int,
        tag_prefix: bytes,
        first_seq: int,
        eids: list[int],
        values: Sequence[bytes],
        unsettled: dict[int, tuple[int, int]] | None,
    ) -> None:
        """Transfer the events; `unsettled` learns of them, None for settled ones."""
        self.flush()
        run = _sends.send_run(self._at, link, tag_prefix, first_seq, eids, values, unsettled)
        if run is None:  # a message needs several frames, and the peer's session may have no room for all of them now
            _sends.send(self._at, link, tag_prefix, first_seq, eids, values, unsettled)
            self.keeps = True
            self.flush()  # it takes all of the window that it can: others are given no more than is left
        else:
            self._pieces.append(run)
            self.size += len(run)
