"""SASL before AMQP: real exchanges, split anywhere, and everything that is none."""

from __future__ import annotations

import itertools
from typing import Any

import proton
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.auth.mechanisms import MECHANISMS
from gateway.auth.sasl import AMQP_HEADER, FRAME_SIZE_MAX, ROUNDS_MAX, SASL_HEADER, SaslServer, State
from gateway.auth.step import Denied, Granted, Step
from gateway.auth.users import Users
from native_backend.nodes.grants import Subject
from tests.gateway.auth.sasl_frames import bodies, frame, init
from tests.kit.wire.fields import SASL, fields_of, wrong_values
from transformers.codec import Array, Described, Symbol

MECHANISMS_FRAME = Described(0x40, [Array(0xA3, [Symbol("ANONYMOUS")])])


def converse(server: SaslServer, chunks: list[bytes]) -> tuple[bytes, bytes, State]:
    """What was sent in all, what is left for AMQP, and how it ended; what comes behind a verdict goes to AMQP."""
    sent, rest, state = b"", b"", "negotiating"
    for chunk in chunks:
        if state == "authenticated":
            rest += chunk
            continue
        to_send, left, state = server.receive(chunk)
        sent += to_send
        rest += left
    return sent, rest, state  # type: ignore[return-value]


def split(octets: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(octets), *(cut % (len(octets) + 1) for cut in cuts)})
    return [octets[a:b] for a, b in itertools.pairwise(places)]


def test_anonymous() -> None:
    server = SaslServer(("ANONYMOUS",), False)
    to_send, rest, state = server.receive(SASL_HEADER)
    assert (to_send[:8], rest, state) == (SASL_HEADER, b"", "negotiating")
    assert bodies(to_send[8:]) == [MECHANISMS_FRAME]
    to_send, rest, state = server.receive(init() + AMQP_HEADER + b"open")
    assert bodies(to_send) == [Described(0x44, [0])]
    assert (rest, state) == (AMQP_HEADER + b"open", "authenticated")


cuts = st.lists(st.integers(0, 200), max_size=8)


@settings(max_examples=200, deadline=None)
@given(cuts, st.booleans(), st.none() | st.binary(max_size=20))
def test_split_anywhere_it_is_the_same(places: list[int], bare: bool, response: bytes | None) -> None:
    octets = SASL_HEADER + init(response=response) + AMQP_HEADER + b"more"
    sent, rest, state = converse(SaslServer(("ANONYMOUS",), bare), split(octets, places))
    assert (rest, state) == (AMQP_HEADER + b"more", "authenticated")
    assert sent[:8] == SASL_HEADER
    assert bodies(sent[8:]) == [MECHANISMS_FRAME, Described(0x44, [0])]


@settings(max_examples=100, deadline=None)
@given(cuts, st.booleans())
def test_bare_amqp(places: list[int], bare: bool) -> None:
    sent, rest, state = converse(SaslServer(("ANONYMOUS",), bare), split(AMQP_HEADER + b"open", places))
    if bare:
        assert (sent, rest, state) == (b"", AMQP_HEADER + b"open", "authenticated")
    else:
        assert (sent, rest, state) == (SASL_HEADER, b"", "refused")


@pytest.mark.parametrize(
    "wrong", [b"GET / HTTP/1.1\r\n", b"AMQP\x00\x00\x09\x01", b"AMQP\x02\x01\x00\x00", b"\x16\x03\x01"]
)
def test_a_wrong_header_is_answered_with_the_right_one(wrong: bytes) -> None:
    for size in (len(wrong), 1):
        chunks = [wrong[i : i + size] for i in range(0, len(wrong), size)]
        for bare in (True, False):
            assert converse(SaslServer(("ANONYMOUS",), bare), chunks) == (SASL_HEADER, b"", "refused")
        assert converse(SaslServer((), True), chunks) == (AMQP_HEADER, b"", "refused")


def test_no_mechanism_offered_means_bare_amqp_only() -> None:
    assert SaslServer((), True).receive(SASL_HEADER) == (AMQP_HEADER, b"", "refused")
    assert SaslServer((), True).receive(AMQP_HEADER) == (b"", AMQP_HEADER, "authenticated")


def test_a_mechanism_that_was_not_offered() -> None:
    server = SaslServer(("ANONYMOUS",), True)
    server.receive(SASL_HEADER)
    to_send, rest, state = server.receive(init("PLAIN") + AMQP_HEADER)
    assert (bodies(to_send), rest, state) == ([Described(0x44, [1])], b"", "refused")
    assert server.receive(AMQP_HEADER) == (b"", b"", "refused")


LAWFUL: dict[str, list[Any]] = {"sasl-init": [Symbol("PLAIN"), b"", "host"], "sasl-response": [b"\0ann\0wrong"]}
WRONG = [
    pytest.param(code, [*fields[: field.at], value, *fields[field.at + 1 :]], id=f"{name}.{field.name}-{what}")
    for (code, name) in SASL
    for fields in [LAWFUL[name]]
    for field in fields_of(name)
    for what, value in wrong_values(name, field)
]


@pytest.mark.parametrize(("code", "fields"), WRONG)
def test_a_field_of_another_type_is_refused_without_an_outcome(code: int, fields: list[Any]) -> None:
    """Nothing of it is looked at, and no mechanism hears it."""
    server = SaslServer(("PLAIN",), True)
    server.receive(SASL_HEADER)
    if code == 0x43:
        to_send, _, state = server.receive(frame(Described(0x41, LAWFUL["sasl-init"])))
        assert ([body.descriptor for body in bodies(to_send)], state) == ([0x42], "negotiating")
    assert server.receive(frame(Described(code, fields))) == (b"", b"", "refused")
    assert not server.entered


OUT_OF_PROTOCOL = [
    frame(Described(0x41, [Symbol("ANONYMOUS")]), kind=0),
    frame(Described(0x41, [])),
    frame(Described(0x41, ["ANONYMOUS"])),
    frame(Described(0x41, [Symbol("ANONYMOUS"), "text"])),
    frame(Described(0x41, [Symbol("ANONYMOUS"), None, b"host"])),
    frame(Described(0x41, [Symbol("ANONYMOUS"), None, Symbol("host")])),
    frame(Described(0x41, [Symbol("ANONYMOUS"), None, "host", None])),
    frame(Described(0x42, [b""])),
    frame(Described(0x43, [b""])),
    frame(Described(0x44, [0])),
    frame(Described(0x41, {"a": 1})),
    frame([Symbol("ANONYMOUS")]),
    frame(Described(0x41, [Symbol("ANONYMOUS")]))[:4] + b"\x01" + frame(Described(0x41, [Symbol("ANONYMOUS")]))[5:],
    b"\0\0\0\x08\x02\x01\0\0",
    b"\0\0\0\x07\x02\x01\0\0",
    (FRAME_SIZE_MAX + 1).to_bytes(4, "big") + b"\x02\x01\0\0",
    b"\xff\xff\xff\xff\x02\x01\0\0",
    b"\0\0\0\x0a\x02\x01\0\0\x00\x53",
    b"\0\0\0\x0a\x03\x01\0\0\x00\x53",
    AMQP_HEADER,
]


@pytest.mark.parametrize("octets", OUT_OF_PROTOCOL, ids=[octets.hex()[:32] for octets in OUT_OF_PROTOCOL])
def test_what_is_no_sasl_is_refused_without_an_outcome(octets: bytes) -> None:
    server = SaslServer(("ANONYMOUS",), True)
    server.receive(SASL_HEADER)
    assert server.receive(octets) == (b"", b"", "refused")


def test_the_largest_frame_and_an_extended_header() -> None:
    server = SaslServer(("ANONYMOUS",), True)
    server.receive(SASL_HEADER)
    largest = init(response=b"x" * (FRAME_SIZE_MAX - len(init(response=b"x" * 300)) + 300))
    assert len(largest) == FRAME_SIZE_MAX
    assert server.receive(largest)[2] == "authenticated"
    server = SaslServer(("ANONYMOUS",), True)
    server.receive(SASL_HEADER)
    assert server.receive(frame(Described(0x41, [Symbol("ANONYMOUS")]), data_offset=4))[2] == "authenticated"


def test_symbolic_descriptors() -> None:
    server = SaslServer(("ANONYMOUS",), True)
    server.receive(SASL_HEADER)
    assert server.receive(frame(Described(Symbol("amqp:sasl-init:list"), [Symbol("ANONYMOUS")])))[2] == "authenticated"


class TwoSteps:
    """A mechanism with a challenge."""

    user = None

    def __init__(self, _: Users) -> None:
        self.responses: list[bytes] = []

    def step(self, response: bytes) -> Step:
        self.responses.append(response)
        if response == b"for ever":
            return b"again"
        if len(self.responses) == 1:
            return b"who?"
        return Granted(Subject("me")) if response == b"me" else Denied()


@pytest.mark.parametrize(("answer", "code", "state"), [(b"me", 0, "authenticated"), (b"you", 1, "refused")])
def test_a_mechanism_may_challenge(monkeypatch: pytest.MonkeyPatch, answer: bytes, code: int, state: State) -> None:
    monkeypatch.setitem(MECHANISMS, "TWO-STEPS", TwoSteps)
    server = SaslServer(("ANONYMOUS", "TWO-STEPS"), False)
    assert bodies(server.receive(SASL_HEADER)[0][8:])[0].value[0].items == ["ANONYMOUS", "TWO-STEPS"]
    to_send, _, now = server.receive(init("TWO-STEPS", None))
    assert (bodies(to_send), now) == ([Described(0x42, [b"who?"])], "negotiating")
    to_send, _, now = server.receive(frame(Described(0x43, [answer])))
    assert (bodies(to_send), now) == ([Described(0x44, [code])], state)


def test_challenges_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, "TWO-STEPS", TwoSteps)
    server = SaslServer(("TWO-STEPS",), False)
    server.receive(SASL_HEADER)
    states = [server.receive(init("TWO-STEPS", b"for ever"))[2]]
    states += [server.receive(frame(Described(0x43, [b"for ever"])))[2] for _ in range(ROUNDS_MAX)]
    assert states == ["negotiating"] * ROUNDS_MAX + ["refused"]


def test_a_second_init_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, "TWO-STEPS", TwoSteps)
    server = SaslServer(("TWO-STEPS",), False)
    server.receive(SASL_HEADER)
    server.receive(init("TWO-STEPS"))
    assert server.receive(init("TWO-STEPS")) == (b"", b"", "refused")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80) | st.binary(max_size=60).map(lambda noise: SASL_HEADER + noise), cuts)
def test_noise_raises_nothing_and_keeps_nothing(octets: bytes, places: list[int]) -> None:
    server = SaslServer(("ANONYMOUS",), True)
    sent, rest, state = converse(server, split(octets, places))
    if state == "negotiating":
        assert len(octets) < 8 or octets.startswith(SASL_HEADER)
    if state == "refused":
        assert rest == b""
    assert sent == b"" or sent.startswith(SASL_HEADER)


@settings(max_examples=30, deadline=None)
@given(cuts)
def test_protons_client_is_let_in(places: list[int]) -> None:
    client = proton.Transport(proton.Transport.CLIENT)
    client.sasl().allowed_mechs("ANONYMOUS")
    connection = proton.Connection()
    client.bind(connection)
    connection.open()
    server, state, rest = SaslServer(("ANONYMOUS",), False), "negotiating", b""
    for _ in range(10):
        pending = client.pending()
        octets = bytes(client.peek(pending) or b"") if pending > 0 else b""
        if octets:
            client.pop(len(octets))
        sent, left, state = converse(server, split(octets, places)) if state == "negotiating" else (b"", octets, state)
        rest += left
        if sent:
            client.push(sent)
    assert state == "authenticated"
    assert client.sasl().outcome == proton.SASL.OK
    assert rest.startswith(AMQP_HEADER)
