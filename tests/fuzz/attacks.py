"""What a random change seldom makes: a peer that knows the protocol and means harm.

Maps that nest too deep or are a megabyte large in every field that carries one; messages in pieces whose fields change
on the way; transactions with something missing; frames behind extended headers that look like others; frames that say
they have four gigabytes; one link's name on two connections; octets that come one by one, or not at all.
"""

from __future__ import annotations

import struct
from random import Random
from typing import TYPE_CHECKING

from tests.fuzz import shapes
from tests.fuzz.cutting import Frames, build, code_of, read
from tests.fuzz.steps import Step
from tests.kit.wire import frames
from tests.kit.wire.scripted_realm import ScriptedRealm
from transformers.codec import DecodeError, Described, UInt, decode, encode

if TYPE_CHECKING:
    from tests.fuzz.breeding import Breeder

GREAT_OCTETS = 1_500_000  # of a step that carries something great
TWIN = 40  # added to a connection's number
# A performative, the place of its field that is a map, or of a described list in which, at the third place, is one.
MAPS: tuple[tuple[int, int, tuple[int, int] | None], ...] = (
    (frames.OPEN, 9, None),
    (frames.BEGIN, 7, None),
    (frames.ATTACH, 13, None),
    (frames.ATTACH, 7, None),
    (frames.ATTACH, 5, (0x28, 5)),
    (frames.ATTACH, 5, (0x28, 7)),
    (frames.ATTACH, 6, (0x29, 5)),
    (frames.FLOW, 10, None),
    (frames.DISPOSITION, 4, (0x25, 0)),
    (frames.DISPOSITION, 4, (0x27, 2)),
    (frames.DETACH, 2, (0x1D, 2)),
    (frames.END, 0, (0x1D, 2)),
    (frames.CLOSE, 0, (0x1D, 2)),
)
_LAWFUL = {
    frames.OPEN: frames.open_(),
    frames.BEGIN: frames.begin(),
    frames.ATTACH: frames.attach_sender("q", 5, "great"),
    frames.FLOW: frames.flow(0, 10),
    frames.DISPOSITION: frames.disposition(0, 0, frames.state("modified")),
    frames.DETACH: frames.detach(0),
    frames.END: frames.end(),
    frames.CLOSE: frames.close(),
}
_SECTIONS = (0x70, 0x71, 0x72, 0x72, 0x73, 0x74, 0x74, 0x76, 0x77, 0x78)
_HEARTBEAT = b"\0\0\0\x08\x02\0\0\0"


def great_field(random: Random, cutted: Frames, _: Breeder) -> None:
    """A map that is hard to carry where a map may be."""
    code, at, inside = random.choice(MAPS)
    places = [place for place, piece in enumerate(cutted) if code_of(piece) == code]
    place = random.choice(places) if places else None
    parts = read(cutted[place] if place is not None else _LAWFUL[code])
    if parts is None:
        return
    channel, _code, fields, payload = parts
    great = shapes.great_map(random)
    _put(fields, at, great if inside is None else _inside(fields[at] if at < len(fields) else b"", *inside, great))
    frame = build(channel, code, fields, payload)
    if place is None:
        cutted.insert(random.randrange(len(cutted) + 1), frame)
    else:
        cutted[place] = frame


def _put(fields: list[bytes], at: int, octets: bytes) -> None:
    fields += [b"\x40"] * (at + 1 - len(fields))
    fields[at] = octets


def _inside(field: bytes, code: int, at: int, octets: bytes) -> bytes:
    """The described list that the field is, or one that it is now, with these octets at a place."""
    items: list[bytes] = []
    try:
        value = decode(field)[0] if field else None
    except DecodeError:
        value = None
    if isinstance(value, Described) and isinstance(value.value, list):
        items = [shapes.anything(item) for item in value.value]
    elif code == 0x1D:
        items = [shapes.symbol("amqp:internal-error")]
    _put(items, at, octets)
    return shapes.described(code, items)


def great_message(random: Random, cutted: Frames, _: Breeder) -> None:
    """Sections as great, in frames of some size."""
    payload = b""
    for code in sorted(random.choice(_SECTIONS) for _ in range(random.choice((1, 1, 2)))):
        great = shapes.great_map(random)
        payload += b"\0\x53" + bytes((code,)) + (great if random.random() < 0.7 else shapes.compound(0xC0, [great]))
    payload += frames.message() if random.random() < 0.7 else b""
    size, handle, delivery = random.choice((400, 60_000)), random.choice((0, 0, 7)), random.choice((0, 0, 1))
    size = max(size, len(payload) // 300)
    starts = range(0, len(payload), size)
    transfers = [
        frames.transfer(delivery, payload[start : start + size], handle, more=start + size < len(payload))
        for start in starts
    ]
    cutted.insert(random.randrange(len(cutted) + 1), b"".join(transfers))


def in_pieces(random: Random, cutted: Frames, _: Breeder) -> None:
    """A message in several frames, of which the later ones say something else than the first; others in between."""
    handle, delivery = random.choice((0, 0, 7)), random.choice((0, 0, 1, 5))
    pieces = [frames.attach_sender("q", handle, random.choice(("pieces", "pub")))] if random.random() < 0.4 else []
    count = random.choice((2, 2, 3, 6))
    for at in range(count):
        same = at == 0 or random.random() < 0.5
        fields = [
            encode(UInt(handle if random.random() < 0.95 else 1)),
            encode(UInt(delivery)) if same else random.choice((b"\x40", encode(UInt(delivery + 1)), b"\x52\xff")),
            b"\xa0\x01t" if same else random.choice((b"\x40", b"\xa0\x01u", b"\xa0\x00", b"\xa0\x21" + b"t" * 33)),
            random.choice((b"\x40", b"\x43", b"\x43", b"\x52\x01")),
            random.choice((b"\x40", b"\x40", b"\x41", b"\x42")),
            b"\x41" if (at < count - 1) == (random.random() < 0.85) else b"\x42",
            random.choice((b"\x40", b"\x40", b"\x40", b"\x50\x00", b"\x50\x01", b"\x50\x02")),
            random.choice((b"\x40", b"\x40", b"\x40", *_states(random))),
            b"\x41" if random.random() < 0.05 else b"\x40",
            b"\x41" if random.random() < 0.1 else b"\x40",
        ]  # fmt: skip
        payload = random.choice((b"", frames.message()[:5], frames.message()[5:], bytes(500)))
        pieces.append(build(0, frames.TRANSFER, fields[: random.choice((6, 6, 8, 10, 10))], payload))
        if random.random() < 0.3:
            pieces.append(random.choice(_between(handle)))
    cutted.insert(random.randrange(len(cutted) + 1), b"".join(pieces))


def _states(random: Random) -> list[bytes]:
    received = shapes.described(0x23, [b"\x43", encode(UInt(shapes.number(random)))])
    return [received, encode(frames.state("accepted")), encode(frames.in_transaction(_transaction(random)))]


def _between(handle: int) -> list[bytes]:
    other = frames.transfer(9, frames.message(), 8)
    flow, ack = frames.flow(handle, 0), frames.disposition(0, 3, frames.state("accepted"))
    return [_HEARTBEAT, flow, ack, other, frames.detach(handle), frames.aborted(handle), frames.begin(1), frames.end()]


def _transaction(random: Random) -> bytes:
    known = ScriptedRealm.run.encode()
    return random.choice((known + b":1", known + b":1", known + b":1", known + b":2", known + b":99", b"", b"x" * 33))


def transact(random: Random, cutted: Frames, _: Breeder) -> None:
    """A control link on a session of its own, from declare to discharge; something is missing, doubled or moved."""
    channel = random.choice((5, 5, 1))
    transaction, number = _transaction(random), iter(range(random.choice((0, 0, 2**32 - 3)), 2**33))
    state = frames.in_transaction(transaction)
    pieces = [
        frames.begin(channel),
        frames.attach_sender(frames.COORDINATOR, 9, random.choice(("control", "pub")), channel=channel),
        frames.attach_sender(random.choice(("q", "c", "any.q")), 7, "posts", channel=channel),
        frames.attach_receiver(random.choice(("q", "c")), 6, "retires", channel=channel),
        frames.flow(6, 4, channel=channel),
        _request(random, next(number) % 2**32, channel, declare=True, transaction=transaction),
    ]  # fmt: skip
    for _post in range(random.randrange(4)):
        payload = random.choice((frames.message(), b"", bytes(900)))
        settled, more = random.random() < 0.2, random.random() < 0.1
        pieces.append(frames.transfer(next(number) % 2**32, payload, 7, settled, more, state, channel))
    for first in range(random.randrange(3)):
        outcome = random.choice(
            (None, *map(frames.state, ("accepted", "released", "modified", "rejected", "received")))
        )
        stated = frames.in_transaction(_transaction(random) if random.random() < 0.2 else transaction, outcome)
        pieces.append(frames.disposition(first, first + random.randrange(3), stated, random.random() < 0.5, channel))
    again = range(random.choice((1, 1, 1, 2)))
    pieces += [_request(random, next(number) % 2**32, channel, declare=False, transaction=transaction) for _ in again]
    pieces = [piece for piece in pieces for _times in range(random.choice((0, 2)) if random.random() < 0.1 else 1)]
    if random.random() < 0.15:
        random.shuffle(pieces)
    if random.random() < 0.2:
        pieces.append(random.choice((frames.detach(9, channel=channel), frames.end(channel), frames.close())))
    cutted.insert(random.randrange(len(cutted) + 1), b"".join(pieces))


def _request(random: Random, number: int, channel: int, declare: bool, transaction: bytes) -> bytes:
    """A declare or a discharge; sometimes neither, in pieces, or with what does not belong there."""
    kind = random.randrange(12)
    if kind == 0:
        body = b"\0\x53\x77\0\x53" + bytes((random.choice((0x30, 0x31, 0x32, 0x33)),)) + shapes.value(random)
        return frames.transfer(number, body, 9, channel=channel)
    if kind == 1:
        return frames.transfer(number, shapes.value(random), 9, channel=channel)
    if declare:
        return frames.declare(number, 9, b"global" if kind == 2 else None, kind == 3, channel)
    if kind == 2:
        transaction = _transaction(random)
    whole = frames.discharge(number, transaction, random.random() < 0.4, 9, kind == 3, channel)
    payload = frames.parse(whole).__next__()[0].payload
    if kind > 4:
        return whole
    return frames.transfer(number, payload[:7], 9, more=True, channel=channel) + frames.transfer(
        number, payload[7:], 9, channel=channel
    )


def disguised(random: Random, cutted: Frames, _: Breeder) -> None:
    """Behind an honest posted transfer, anything behind extended headers that look like it."""
    doff, handle, number = random.choice((3, 4, 5, 5, 6)), random.choice((0, 0, 7)), random.choice((0, 0, 1, 5))
    posted = frames.transfer(number, frames.message(), handle, state=frames.in_transaction(_transaction(random)))
    pieces = [frames.attach_sender("q", handle, "posts")] if random.random() < 0.6 else []
    pieces.append(_extended(posted, doff if random.random() < 0.7 else 2, posted[8:]))
    for _hidden in range(random.choice((1, 2, 6))):
        hidden = random.choice((*cutted, *_between(handle), posted, frames.attach_sender("q", 5, "hidden")))
        pieces.append(_extended(hidden, doff, posted[8:] if random.random() < 0.8 else hidden[8:]))
    cutted.insert(random.randrange(len(cutted) + 1), b"".join(pieces))


def _extended(frame: bytes, doff: int, header: bytes) -> bytes:
    """The frame with so much of that between its header and its body."""
    octets = 4 * (doff - 2)
    size = struct.pack(">IB", len(frame) + octets, doff)
    return size + frame[5:8] + header[:octets].ljust(octets, b"\0") + frame[8:]


def giant(random: Random, cutted: Frames, _: Breeder) -> None:
    """A frame that says it has up to four gigabytes, and some of it."""
    size = random.choice((2**32 - 1, 2**31, 2**31 - 1, 2**24 + 1, 65_537))
    head = struct.pack(">IBBH", size, random.choice((2, 2, 255)), random.choice((0, 0, 1)), 0)
    cutted.insert(random.randrange(len(cutted) + 1), head + bytes(random.choice((0, 500, 150_000))))


GREAT = (great_field, great_message)


# -- what is done to all of a case


def twin(random: Random, steps: list[Step]) -> list[Step]:
    """What one connection says a second one says, too, with the same names; it comes in between."""
    number = random.choice(steps).connection
    others = [
        Step(step.connection + TWIN, step.verb, step.data, step.seconds) for step in steps if step.connection == number
    ]
    merged, rest = [], list(steps)
    while rest or others:
        merged.append((rest if rest and (not others or random.random() < 0.6) else others).pop(0))
    return merged


def starve(random: Random, steps: list[Step]) -> list[Step]:
    """One connection stops in the middle of something, its last octets come one by one, long after each other."""
    sends = [at for at, step in enumerate(steps) if step.verb == "send" and len(step.data) > 1]
    if not sends:
        return steps
    at = random.choice(sends)
    step = steps[at]
    end = random.randrange(1, len(step.data))
    slow = [Step(step.connection, "send", step.data[:end])]
    for position in range(end, min(len(step.data), end + random.choice((0, 1, 9)))):
        slow += [
            Step(step.connection, "pass", seconds=random.choice((1, 20, 59))),
            Step(step.connection, "send", step.data[position : position + 1]),
        ]
    rest = [later_step for later_step in steps[at + 1 :] if later_step.connection != step.connection]
    return [*steps[:at], *slow, *rest, Step(step.connection, "pass", seconds=random.choice((5, 61, 130)))]
