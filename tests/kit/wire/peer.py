"""A peer on a real socket that speaks in hand-made frames and reads what comes back. A condition that AMQP does not
define fails the test, whatever it is about."""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Self

from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from transformers.codec import Described

_CONTAINERS = itertools.count()
NEXT = 200  # a channel for what must come next
WAIT_S = 60.0  # for what will come, however busy the machine is; it ends when it has come


class Peer:
    """One TCP connection, opened with one session on channel 0 unless told otherwise; a container of its own."""

    def __init__(
        self,
        port: int,
        container: str | None = None,
        begin: bool = True,
        address: str = "127.0.0.1",
        preface: bytes = b"",
    ) -> None:
        """`address`: where it comes from. `preface`: what goes before AMQP."""
        self.container = container or f"peer-{next(_CONTAINERS)}"
        self.port = port
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S, source_address=(address, 0))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""
        self.raw = b""  # everything that came
        self.seen: list[Seen] = []
        self.eof = False
        self.delivered: dict[int, int] = {}  # handle -> deliveries that came on it
        self._deliveries = 0  # next delivery-id
        self.gateway_handles: dict[int, int] = {}  # our handle -> the gateway's for the same link
        self.send(preface)
        if begin:
            self.send(frames.AMQP_HEADER, frames.open_(self.container), frames.begin())
            self.expect("open")
            self.expect("begin")

    def send(self, *pieces: bytes) -> None:
        self._socket.sendall(b"".join(pieces))

    def expect(self, name: str, deadline_s: float = WAIT_S) -> Seen:
        """The next frame of that name; flows in between are passed over, anything else in between is an error."""
        end = time.monotonic() + deadline_s
        while True:
            for index, seen in enumerate(self.seen):
                if seen.name == name:
                    del self.seen[: index + 1]
                    return seen
                assert seen.name == "flow", f"expected {name}, got {seen}"
            if not self.read(end - time.monotonic()):
                raise AssertionError(f"no {name} within {deadline_s} s; ended: {self.eof}")

    def next_frame(self, name: str, predicate: Callable[[Seen], bool], deadline_s: float) -> Seen:
        """The next frame of that name of which it is true. Deliveries of other links, and what is said of others, stay
        where they are: no order holds between them. Flows are passed over, anything else in between is an error."""
        end = time.monotonic() + deadline_s
        at = 0
        while True:
            while at < len(self.seen):
                seen = self.seen[at]
                if seen.name == name and predicate(seen):
                    del self.seen[at]
                    return seen
                assert seen.name in ("flow", "transfer", "disposition"), f"expected {name}, got {seen}"
                if seen.name == "flow":
                    del self.seen[at]
                else:
                    at += 1
            if not self.read(end - time.monotonic()):
                raise AssertionError(f"no {name} within {deadline_s} s, but {self.seen}; ended: {self.eof}")

    def frames(self, count: int) -> list[Seen]:
        """The next so many frames, whatever they are."""
        while len(self.seen) < count:
            assert self.read(WAIT_S), f"only {self.seen} came; ended: {self.eof}"
        taken, self.seen = self.seen[:count], self.seen[count:]
        return taken

    def nothing(self) -> None:
        """Nothing but flows comes before what the realm is given now: another connection publishes a message, takes
        it and acknowledges it. The realm has then done all that it was given before, and the gateway has said so."""
        self.nothing_at_once()
        with Peer(self.port) as other:
            other.through(f"any.next.{self.container}")
        self.nothing_at_once()

    def nothing_at_once(self) -> None:
        """Nothing but flows comes before the gateway answers what is sent now: the begin and the end of a session.
        Three times: what came with the same octets is done in that turn, what they led to in the next."""
        for _ in range(3):
            self.send(frames.begin(NEXT), frames.end(NEXT))
            for name in ("begin", "end"):
                self._answered(name)

    def _answered(self, name: str) -> None:
        end = time.monotonic() + WAIT_S
        while True:
            for index, seen in enumerate(self.seen):
                if seen.name == name and (name == "end" or seen.field(0) == NEXT):
                    del self.seen[index]
                    return
                assert seen.name == "flow", f"nothing was expected, but {seen} came"
            assert self.read(end - time.monotonic()), f"no {name} within {WAIT_S} s; ended: {self.eof}"

    def through(self, address: str) -> None:
        """One message through a queue, which is made if need be: published, taken, acknowledged."""
        self.publisher(address)
        self.publish(frames.message())
        assert set(self.outcomes(1).values()) == {"accepted"}
        self.consumer(address, credit=1)
        self.settle([seen.field(1) for seen in self.receive(1)], frames.state("accepted"), settled=False)
        assert set(self.outcomes(1).values()) == {"accepted"}

    def closed(self, deadline_s: float = WAIT_S) -> bool:
        """True when the gateway closes the socket in time."""
        end = time.monotonic() + deadline_s
        while not self.eof and time.monotonic() < end:
            self.read(end - time.monotonic())
        return self.eof

    # -- publishing

    def publisher(self, address: str, kind: str = "queue", handle: int = 0, mode: int = 2, rcv: int = 0) -> int:
        """A confirmed link to a node, which is made if need be; the credit that came with it."""
        to = frames.target(address, capability={"queue": "queue", "channel": "topic"}[kind])
        self.send(frames.attach_sender(to, handle, f"to-{handle}-{address}", mode, rcv=rcv))
        attached = self.expect("attach")
        assert attached.field(6) is not None, attached
        self.gateway_handles[handle] = attached.field(1)
        return int(self.expect("flow").field(6))

    def publish(self, *payloads: bytes, handle: int = 0, settled: bool = False) -> list[int]:
        """Send messages; their delivery-ids."""
        first = self._deliveries
        self._deliveries += len(payloads)
        numbers = range(first, self._deliveries)
        self.send(*(frames.transfer(n, p, handle, settled) for n, p in zip(numbers, payloads, strict=True)))
        return list(numbers)

    def outcomes(self, count: int, deadline_s: float = WAIT_S) -> dict[int, str | None]:
        """What the gateway said of so many deliveries, by delivery-id; each was settled."""
        states: dict[int, str | None] = {}
        while len(states) < count:
            seen = self.next_frame("disposition", lambda _: True, deadline_s)
            assert seen.field(3) is True, seen
            last = seen.field(1) if seen.field(2) is None else seen.field(2)
            states.update(dict.fromkeys(range(seen.field(1), last + 1), seen.state))
        return states

    def dispositions(self, count: int) -> dict[int, tuple[str | None, bool]]:
        """The states of so many deliveries, and whether they were settled."""
        states: dict[int, tuple[str | None, bool]] = {}
        while len(states) < count:
            seen = self.expect("disposition")
            last = seen.field(1) if seen.field(2) is None else seen.field(2)
            states.update(dict.fromkeys(range(seen.field(1), last + 1), (seen.state, seen.field(3) is True)))
        return states

    def stored(self, address: str, *payloads: bytes, kind: str = "queue") -> None:
        """Publish by a connection for the purpose; all is accepted."""
        with Peer(self.port) as other:
            credit = other.publisher(address, kind)
            for at in range(0, len(payloads), credit):
                numbers = other.publish(*payloads[at : at + credit])
                assert set(other.outcomes(len(numbers)).values()) == {"accepted"}

    # -- consuming

    def consumer(
        self, where: str | Described, credit: int = 0, handle: int = 1, name: str = "sub", mode: int = 2, rcv: int = 0
    ) -> Seen:
        """A confirmed link from a node or a source; the gateway's ATTACH."""
        self.send(frames.attach_receiver(where, handle, name, mode, rcv))
        attached = self.expect("attach")
        assert attached.field(5) is not None, attached
        self.delivered[handle] = 0
        self.gateway_handles[handle] = attached.field(1)
        if credit:
            self.credit(credit, handle)
        return attached

    def credit(self, count: int, handle: int = 1, drain: bool = False) -> None:
        """So many deliveries more than have come so far."""
        self.send(frames.flow(handle, count, self.delivered[handle], drain))

    def receive(self, count: int, handle: int = 1, deadline_s: float = WAIT_S) -> list[Seen]:
        """The next messages of a link, whole: transfers of one delivery are joined."""
        link = self.gateway_handles.get(handle)
        messages: list[Seen] = []

        def transfer() -> Seen:
            return self.next_frame("transfer", lambda frame: link in (None, frame.field(0)), deadline_s)

        while len(messages) < count:
            seen = transfer()
            payload = seen.payload
            while seen.field(5) is True:
                seen = transfer()
                payload += seen.payload
            messages.append(Seen(seen.channel, seen.name, seen.fields, payload))
        self.delivered[handle] += count
        return messages

    def there(self, address: str, count: int) -> list[Seen]:
        """What another connection gets of a queue: exactly so much. It leaves in order, so that is uncounted."""
        with Peer(self.port) as other:
            other.consumer(address, credit=count)
            messages = other.receive(count)
            other.credit(5, drain=True)
            assert other.drained(), "nothing but the end of the credit"
            other.send(frames.close())
            other.closed()
            return messages

    def drained(self, handle: int = 1) -> bool:
        """Whether a drain is answered with nothing but the end of the credit: all that is stored was looked at."""
        flow = self.expect("flow")
        while flow.field(4) != self.gateway_handles[handle] or flow.field(6) != 0:
            flow = self.expect("flow")
        return flow.field(8) is True

    def settle(self, numbers: Sequence[int], state: Described | None, settled: bool = True) -> None:
        self.send(*(frames.disposition(number, number, state, settled) for number in numbers))

    def refused(self) -> str | None:
        """The condition of an ATTACH that was answered with a null terminus and a closing DETACH (O-1)."""
        attached, detached = self.expect("attach"), self.expect("detach")
        own = 5 if attached.field(2) is False else 6
        assert attached.field(own) is None and detached.field(1) is True, (attached, detached)
        return detached.condition

    def detached(self, handle: int | None = None) -> str | None:
        detached = self.expect("detach")
        assert detached.field(1) is True, detached
        assert handle is None or detached.field(0) == self.gateway_handles[handle], detached
        return detached.condition

    # -- the socket

    def read(self, seconds: float) -> bool:
        if seconds <= 0 or self.eof:
            return False
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(1 << 20)
        except TimeoutError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            self.eof = True
            return False
        self.raw += data
        new_frames, self._data = frames.read(self._data + data)
        undefined = [seen for seen in new_frames if seen.undefined_condition()]
        assert not undefined, f"AMQP defines no such condition: {undefined}"
        self.seen += new_frames
        return True

    def reset(self) -> None:
        """Go away without a word: RST, not FIN."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
