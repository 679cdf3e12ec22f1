"""Cases bred from others: what was recorded, changed where it hurts.

Frames are known as such: they are dropped, doubled, swapped, spliced from another session, sent on another channel or
handle; their fields get other values, of other types; sizes lie; streams are cut anywhere, peers stall, go away, and
come in between each other. Some octets are changed whatever they mean. One `Random`, so one seed is one case.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from gateway.auth.sasl import SASL_HEADER
from tests.fuzz import attacks, shapes
from tests.fuzz.case_gateway import GATEWAYS
from tests.fuzz.cutting import Frames, build, cut, read
from tests.fuzz.steps import Case, Step
from tests.fuzz.web import framed
from tests.kit.wire import frames
from transformers.codec import DecodeError, Described, UInt, UShort, decode

CHANGES_MAX = 6
STEP_OCTETS_MAX = 200_000
HANDLE_AT = {frames.ATTACH: 1, frames.FLOW: 4, frames.TRANSFER: 0, frames.DETACH: 0}
Change = Callable[[Random, Frames, "Breeder"], None]


class Breeder:
    """`corpus`: what is bred from."""

    def __init__(self, corpus: list[Case]) -> None:
        self._corpus = corpus
        self.pool = [frame for case in corpus for step in case.steps for frame in cut(step.data) if len(frame) > 8]

    def breed(self, random: Random) -> Case:
        case = Case(random.choice(tuple(GATEWAYS)))
        for number in range(random.choice((1, 1, 1, 2, 3))):
            other = random.choice(self._corpus)
            case.steps += [Step(number * 4 + step.connection, *_rest(step)) for step in other.steps]
        if random.random() < 0.15:
            random.shuffle(case.steps)
        for _ in range(random.randint(1, CHANGES_MAX)):
            self._change(random, case)
        if random.random() < 0.08:
            case.steps = random.choice((attacks.twin, attacks.starve))(random, case.steps)
        if case.gateway == "web":
            case.steps = framed(random, case.steps)
        if random.random() < 0.3:
            case.steps = [piece for step in case.steps for piece in _split(random, step)]
        return case

    def _change(self, random: Random, case: Case) -> None:
        sends = [at for at, step in enumerate(case.steps) if step.verb == "send" and step.data]
        if not sends:
            return
        at = random.choice(sends)
        if random.random() < 0.15:
            case.steps.insert(at + random.randrange(2), _event(random, case.steps[at].connection))
            return
        octets_max = max(STEP_OCTETS_MAX, len(case.steps[at].data))
        if random.random() < 0.12:
            data = _raw(random, case.steps[at].data)
        else:
            cutted = cut(case.steps[at].data)
            [change] = random.choices(CHANGES, WEIGHTS)
            change(random, cutted, self)
            data = b"".join(cutted)
            octets_max = max(octets_max, attacks.GREAT_OCTETS if change in attacks.GREAT else 0)
        case.steps[at] = Step(case.steps[at].connection, "send", data[:octets_max])


def _rest(step: Step) -> tuple[str, bytes, int]:
    return step.verb, step.data, step.seconds


def _event(random: Random, connection: int) -> Step:
    kind = random.randrange(5)
    if kind == 0:
        return Step(connection, "lose")
    if kind == 1:
        return Step(connection, "pass", seconds=random.choice((1, 5, 61, 130)))
    return Step(connection, "stall" if kind < 4 else "read")


def _split(random: Random, step: Step) -> list[Step]:
    if step.verb != "send" or len(step.data) < 2:
        return [step]
    places = sorted(random.randrange(1, len(step.data)) for _ in range(random.choice((1, 1, 3, 8))))
    ends = zip([0, *places], [*places, len(step.data)], strict=True)
    return [Step(step.connection, "send", step.data[start:end]) for start, end in ends]


def _raw(random: Random, data: bytes) -> bytes:
    """Octets, whatever they mean."""
    octets, at = bytearray(data), random.randrange(len(data))
    kind = random.randrange(5)
    if kind == 0:
        octets[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        octets[at] = random.choice((0, 1, 0x40, 0x45, 0x7F, 0x80, 0xC0, 0xFF))
    elif kind == 2:
        octets[at:at] = random.randbytes(random.choice((1, 4, 40)))
    elif kind == 3:
        del octets[at : at + random.choice((1, 2, 8, 100))]
    else:
        octets[at : at + 4] = struct.pack(">I", shapes.number(random))
    return bytes(octets)


# -- changes of frames


def _place(random: Random, cutted: Frames) -> int | None:
    places = [at for at, frame in enumerate(cutted) if len(frame) > 8]
    return random.choice(places) if places else None


def drop(random: Random, cutted: Frames, _: Breeder) -> None:
    del cutted[random.randrange(len(cutted))]


def double(random: Random, cutted: Frames, _: Breeder) -> None:
    at = random.randrange(len(cutted))
    cutted[at:at] = [cutted[at]] * (random.choice((1, 1, 1, 3, 20, 300)) if len(cutted[at]) < 5_000 else 1)


def swap(random: Random, cutted: Frames, _: Breeder) -> None:
    at, other = random.randrange(len(cutted)), random.randrange(len(cutted))
    cutted[at], cutted[other] = cutted[other], cutted[at]


def splice(random: Random, cutted: Frames, breeder: Breeder) -> None:
    """Frames of other sessions."""
    at = random.randrange(len(cutted) + 1)
    cutted[at:at] = [random.choice(breeder.pool) for _ in range(random.choice((1, 1, 2, 5)))]


def another_channel(random: Random, cutted: Frames, _: Breeder) -> None:
    at = _place(random, cutted)
    if at is not None:
        channel = random.choice((0, 1, 1, 2, 3, 63, 64, 65_535))
        every = random.random() < 0.3
        for place in range(len(cutted)) if every else [at]:
            if len(cutted[place]) > 8:
                cutted[place] = cutted[place][:6] + struct.pack(">H", channel) + cutted[place][8:]


def lie_about_size(random: Random, cutted: Frames, _: Breeder) -> None:
    at = _place(random, cutted)
    if at is not None:
        size = len(cutted[at])
        size = random.choice((size - 1, size + 1, size + 8, shapes.number(random)))
        head = random.choice((b"\x02\x00", b"\x02\x00", b"\x03\x00", b"\x02\x01", b"\x00\x00", b"\xff\x00"))
        cutted[at] = struct.pack(">I", size & 0xFFFFFFFF) + head + cutted[at][6:]


def extend_header(random: Random, cutted: Frames, _: Breeder) -> None:
    """An extended header is lawful, and passed over."""
    at = _place(random, cutted)
    if at is not None:
        words = random.choice((1, 2, 10, 100))
        size = struct.pack(">IB", len(cutted[at]) + 4 * words, 2 + words)
        cutted[at] = size + cutted[at][5:8] + random.randbytes(4 * words) + cutted[at][8:]


def change_field(random: Random, cutted: Frames, _: Breeder) -> None:
    at = _place(random, cutted)
    parts = read(cutted[at]) if at is not None else None
    if at is None or parts is None:
        return
    channel, code, fields, payload = parts
    for _turn in range(random.choice((1, 1, 2))):
        if random.random() < 0.15:
            fields = fields[: random.randrange(len(fields) + 1)]
        elif random.random() < 0.3 and HANDLE_AT.get(code, 99) < len(fields):
            fields[HANDLE_AT[code]] = _small_uint(random)
        elif random.random() < 0.35:
            fields = _deeper(random, fields)
        elif fields:
            fields[random.randrange(len(fields))] = shapes.value(random)
        if random.random() < 0.1:
            fields += [b"\x40"] * random.randrange(8) + [shapes.value(random)]
    if random.random() < 0.05:
        code = random.choice(shapes.DESCRIPTORS)
    if random.random() < 0.1:
        payload = random.choice((b"", payload[:-1], shapes.value(random), random.randbytes(20), payload[:5_000] * 40))
    cutted[at] = build(channel, code, fields, payload)


def _small_uint(random: Random) -> bytes:
    handle = random.choice((0, 0, 1, 1, 2, 7, 8, 255))
    forms = (bytes((0x52, handle)), struct.pack(">BI", 0x70, handle), b"\x43" if handle == 0 else bytes((0x52, handle)))
    return random.choice(forms)


def _deeper(random: Random, fields: list[bytes]) -> list[bytes]:
    """Change a field of a described list that is a field: a terminus, a state."""
    inside = [at for at, octets in enumerate(fields) if octets[:1] == b"\0"]
    if inside:
        at = random.choice(inside)
        try:
            value, _ = decode(fields[at])
        except DecodeError:
            return fields
        if isinstance(value, Described) and isinstance(value.value, list) and isinstance(value.descriptor, int):
            items = [shapes.anything(item) for item in value.value] + [b"\x40"] * random.choice((0, 0, 3, 11))
            if items:
                items[random.randrange(len(items))] = shapes.value(random)
            fields[at] = shapes.described(value.descriptor, items)
    return fields


def made_up(random: Random, cutted: Frames, _: Breeder) -> None:
    """A performative with any fields, or no performative at all."""
    code = random.choice(range(0x10, 0x19)) if random.random() < 0.9 else random.choice(shapes.DESCRIPTORS)
    fields = [random.choice((_small_uint, shapes.value, shapes.value))(random) for _ in range(random.randrange(15))]
    frame = build(random.choice((0, 0, 0, 1)), code, fields, random.randbytes(random.choice((0, 0, 10))))
    if random.random() < 0.1:
        body = shapes.value(random)
        frame = struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body
    cutted.insert(random.randrange(len(cutted) + 1), frame)


def publish(random: Random, cutted: Frames, _: Breeder) -> None:
    """Transfers with payloads of any kind: runs, parts, sizes about the limits, sections that are none."""
    handle, first = random.choice((0, 0, 0, 7, 8)), random.choice((0, 0, 1, 5, 2**32 - 2))
    size = random.choice((0, 100, 1_999, 2_001, 70_000))
    payload = random.choice((frames.message(), shapes.value(random), _sections(random), bytes(size)))
    transfers = [
        frames.transfer((first + at) % 2**32, payload, handle, random.random() < 0.3, random.random() < 0.2)
        for at in range(random.choice((1, 2, 5, 30)))
    ]
    cutted.insert(random.randrange(len(cutted) + 1), b"".join(transfers))


def _sections(random: Random) -> bytes:
    codes = [random.choice(range(0x70, 0x79)) for _ in range(random.randrange(1, 6))]
    codes = sorted(codes) if random.random() < 0.7 else codes
    return b"".join(b"\0" + bytes((0x53, code)) + _content(random, code) for code in codes)


def _content(random: Random, code: int) -> bytes:
    if random.random() < 0.3:
        return shapes.value(random)
    if code in (0x71, 0x72, 0x74, 0x78):
        return shapes.compound(0xC1, [b"\xa3\x01a", shapes.value(random)])
    if code in (0x70, 0x73):
        return shapes.compound(0xC0, [shapes.value(random) for _ in range(random.randrange(14))])
    return shapes.value(random, shapes.DEPTH) if code != 0x75 else b"\xa0\x03abc"


def consume(random: Random, cutted: Frames, _: Breeder) -> None:
    """Credit, drains, dispositions of ranges that may be."""
    handle, low = random.choice((0, 1, 1)), random.choice((0, 0, 1, shapes.number(random)))
    high = random.choice((low, low + 3, shapes.number(random)))
    outcome = random.choice((None, *map(frames.state, ("accepted", "rejected", "released", "modified", "received"))))
    pieces = [
        frames.flow(handle, shapes.number(random), shapes.number(random), random.random() < 0.3,
                    window=shapes.number(random)),
        frames.session_window(shapes.number(random), shapes.number(random)),
        frames.disposition(low % 2**32, high % 2**32, outcome, random.random() < 0.6),
    ]  # fmt: skip
    cutted.insert(random.randrange(len(cutted) + 1), random.choice(pieces))


def login(random: Random, cutted: Frames, _: Breeder) -> None:
    """SASL first, of a kind."""
    mechanism = random.choice((b"PLAIN", b"ANONYMOUS", b"SCRAM-SHA-256", b"UNKNOWN"))
    words = (b"", b"\0u\0p", b"n,,n=u,r=abc", b"c=biws,r=abc,p=AAAA", b"p=x", b"n,,", b"\xff", b"n,,n==2C,r=\xc3\xa9")
    pieces = [SASL_HEADER]
    fields = [b"\xa3" + bytes((len(mechanism),)) + mechanism, _vbin(random.choice(words)), b"\x40"]
    pieces.append(_sasl(0x41, fields if random.random() < 0.8 else [shapes.value(random)]))
    for _again in range(random.randrange(3)):
        answer = _vbin(random.choice(words)) if random.random() < 0.8 else shapes.value(random)
        pieces += [_sasl(0x43, [answer])]
    if random.random() < 0.1:
        body = shapes.value(random)
        pieces.append(struct.pack(">IBBH", len(body) + 8, 2, 1, 0) + body)
    cutted.insert(0, b"".join(pieces))


def _vbin(octets: bytes) -> bytes:
    return bytes((0xA0, len(octets))) + octets


def _sasl(code: int, fields: list[bytes]) -> bytes:
    body = shapes.described(code, fields)
    return struct.pack(">IBBH", len(body) + 8, 2, 1, 0) + body


def small_peer(random: Random, cutted: Frames, _: Breeder) -> None:
    """It reads small frames, few channels or few handles, or has a small window."""
    for at, frame in enumerate(cutted):
        if frame[8:11] == b"\x00\x53\x10":
            size, channels = random.choice((512, 512, 600, 100, 0)), random.choice((65_535, 0, 1))
            cutted[at] = frames.frame(frames.OPEN, ["peer", "host", UInt(size), UShort(channels), UInt(30_000)])
        elif frame[8:11] == b"\x00\x53\x11" and random.random() < 0.5:
            windows = [UInt(random.choice((0, 1, 2, 100))), UInt(random.choice((0, 1, 100)))]
            handles = UInt(random.choice((0, 1, 255)))
            cutted[at] = frames.frame(frames.BEGIN, [None, UInt(0), *windows, handles], b"", frame[7])


CHANGES: list[Change] = [
    drop, double, swap, splice, another_channel, lie_about_size, extend_header, change_field, made_up, publish,
    consume, login, small_peer, attacks.great_field, attacks.great_message, attacks.in_pieces, attacks.transact,
    attacks.disguised, attacks.giant,
]  # fmt: skip
WEIGHTS = [2, 3, 2, 5, 3, 2, 1, 14, 4, 5, 5, 1, 3, 2, 1, 4, 4, 2, 1]
