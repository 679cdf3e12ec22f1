"""Ten kinds of hostile peer, as octets. Each says, without a password, what AMQP allows, or nearly.

`KINDS[name](random)` is one of that kind; `random` chooses its sizes, so that two seeds are two storms.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from itertools import count, cycle
from random import Random
from typing import Final, NamedTuple

from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, Ping, Request

from tests.kit.wire import frames
from transformers.codec import Symbol

NODE: Final = "flooded"
LOGIN: Final = frames.AMQP_HEADER + frames.open_("hostile") + frames.begin()
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
EMPTY: Final = b"\x00\x00\x00\x08\x02\x00\x00\x00"
OUTSIDER: Final = b"\x00outsider\x00guessed"


class Kind(NamedTuple):
    """What each of its connections sends: `hello`, then `bursts`, one after another, as fast as they are taken or one
    in `pace_s`. Without bursts it waits for an answer, hangs up and comes again. `deliveries`: of each burst behind the
    first one, which attaches its link; a burst waits until that has credit for them. 0: it waits for none."""

    hello: bytes
    bursts: Callable[[], Iterator[bytes]] | None
    scheme: str = "amqp"
    pace_s: float = 0.0
    deliveries: int = 0


def again(burst: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: cycle([burst])


def attaches(random: Random) -> Kind:
    handles = range(random.randrange(20, 200))
    return Kind(LOGIN, again(b"".join(frames.attach_sender(NODE, h, f"l{h}") + frames.detach(h) for h in handles)))


def begins(random: Random) -> Kind:
    channels = range(1, random.randrange(10, 100))
    return Kind(LOGIN, again(b"".join(frames.begin(channel) + frames.end(channel) for channel in channels)))


def flows(random: Random) -> Kind:
    """Credit that goes up and down, with drain, echo and windows without a sense, for a link that consumes."""
    odd = [
        frames.flow(1, random.randrange(2**31), random.randrange(100), drain=random.random() < 0.3, echo=True)
        if random.random() < 0.7
        else frames.session_window(random.randrange(2**31), random.randrange(2**31), echo=True)
        for _ in range(500)
    ]
    return Kind(LOGIN + frames.attach_receiver(NODE), again(b"".join(odd)))


def annotated(random: Random) -> Kind:
    """Settled messages, each with hundreds of annotations that are to be read and kept. They keep to their credit, as
    a link that does not ends at once."""
    pairs = {f"x-opt-{number}": "x" * random.randrange(40) for number in range(random.randrange(100, 400))}
    message = frames.annotated(pairs)
    links = count()

    def bursts() -> Iterator[bytes]:
        yield frames.attach_sender(NODE, name=f"annotated-{next(links)}", mode=1)
        for first in range(0, 2**31, 10):
            yield b"".join(frames.transfer(first + at, message, settled=True) for at in range(10))

    return Kind(LOGIN, bursts, deliveries=10)


def pings(random: Random) -> Kind:
    hello = WSConnection(ConnectionType.CLIENT).send(Request(host="here", target="/", subprotocols=["amqp"]))
    return Kind(hello + _masked(BytesMessage(LOGIN)), again(_masked(Ping(random.randbytes(8))) * 500), "ws")


def _masked(event: BytesMessage | Ping) -> bytes:
    """A frame of a client with a mask of zeros."""
    kind, data = (0x82, event.data) if isinstance(event, BytesMessage) else (0x89, event.payload)
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
    return bytes([kind]) + size + bytes(4) + bytes(data)


def empty_frames(random: Random) -> Kind:
    return Kind(LOGIN, again(EMPTY * random.randrange(500, 5_000)))


def handshakes(_: Random) -> Kind:
    """The first flight of a client's TLS; the gateway signs an answer to each."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    sent = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
    except ssl.SSLWantReadError:
        return Kind(sent.read(), None, "amqps")
    raise RuntimeError("a handshake without an answer")


def logins(_: Random) -> Kind:
    return Kind(SASL_HEADER + frames.sasl_frame(0x41, Symbol("PLAIN"), OUTSIDER), None)


def transfers(random: Random) -> Kind:
    """Messages without an end: parts, until the link is ended for it, and another link."""
    part = random.randbytes(random.randrange(1, 60_000))
    parts = 3_000_000 // len(part) + 1

    def bursts() -> Iterator[bytes]:
        for number in range(2**31):
            yield frames.attach_sender(NODE, 0, f"endless-{number}")
            for _ in range(parts):
                yield frames.transfer(number, part, more=True)
            yield frames.detach(0)

    return Kind(LOGIN, bursts)


def slow_octets(random: Random) -> Kind:
    """A frame of 60,000 octets, one octet at a time."""
    head = (60_000).to_bytes(4, "big") + b"\x02\x00\x00\x00"
    return Kind(random.choice((frames.AMQP_HEADER, LOGIN)) + head, again(b"\x00"), pace_s=random.uniform(0.001, 0.02))


KINDS: Final[dict[str, Callable[[Random], Kind]]] = {
    "attach/detach": attaches,
    "begin/end": begins,
    "flow garbage": flows,
    "annotations": annotated,
    "pings": pings,
    "empty frames": empty_frames,
    "TLS handshakes": handshakes,
    "SASL attempts": logins,
    "endless transfers": transfers,
    "slow octets": slow_octets,
}
