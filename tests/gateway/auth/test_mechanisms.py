"""PLAIN and SCRAM: real exchanges with scramp's client, wrong ones, noise; waits; what a peer can learn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramClient, ScramException

from gateway.auth.authenticator import Authenticator
from gateway.auth.login_throttle import (
    DELAY_MAX_S,
    FIRST_DELAY_S,
    FORGET_S,
    FREE_FOR_ADDRESS,
    WAIT_MAX_S,
    LoginThrottle,
    network,
)
from gateway.auth.mechanisms import MECHANISMS, Check, Denied, Granted, Step
from gateway.auth.passwords import hash_password
from gateway.auth.sasl import AHEAD_MAX, AMQP_HEADER, SASL_HEADER, SaslServer
from gateway.auth.users import SCRAM, User, Users, read_users
from mappings.language.yaml_lines import Problem, parse_document
from native_backend.nodes.grants import Subject
from tests.gateway.auth.sasl_frames import bodies, frame, init
from tests.kit.realm.virtual_clock import VirtualClock
from transformers.codec import Described

PASSWORD = "päss,wörd=1"


def make_users() -> Users:
    entries = "\n".join(f'      - "{hash_password(PASSWORD, name, 4096)}"' for name in SCRAM)
    problems: list[Problem] = []
    text = f'users:\n  "al,i=ce":\n    groups: [ops]\n    scram:\n{entries}\n'
    users = read_users(*parse_document(text, "users.yaml"), problems)
    assert not problems
    return users


USERS = make_users()
NAME = "al,i=ce"


def ask(step: Step) -> Step:
    return step.job() if isinstance(step, Check) else step


def scram(mechanism: str, name: str, password: str) -> Step:
    client = ScramClient([mechanism], name, password)
    server = MECHANISMS[mechanism](USERS)
    first = server.step(client.get_client_first().encode())
    assert isinstance(first, bytes) and server.user == name
    client.set_server_first(first.decode())
    last = server.step(client.get_client_final().encode())
    if isinstance(last, Granted):
        assert last.last_word is not None
        client.set_server_final(last.last_word.decode())  # raises unless the server knows the password, too
    return last


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_proves_both_sides(mechanism: str) -> None:
    granted = scram(mechanism, NAME, PASSWORD)
    assert isinstance(granted, Granted)
    assert granted.subject == Subject(NAME, frozenset({"ops"}))
    assert scram(mechanism, NAME, "wrong") == Denied()
    assert scram(mechanism, "unknown", PASSWORD) == Denied()


def test_scram_with_an_empty_first_response_is_asked_once() -> None:
    server = MECHANISMS["SCRAM-SHA-256"](USERS)
    assert server.step(b"") == b""
    assert server.step(b"") == Denied()


PLAIN = [
    (f"\0{NAME}\0{PASSWORD}", True),
    (f"{NAME}\0{NAME}\0{PASSWORD}", True),
    (f"another\0{NAME}\0{PASSWORD}", False),
    (f"\0{NAME}\0{PASSWORD}x", False),
    (f"\0{NAME}\0", False),
    (f"\0\0{PASSWORD}", False),
    (f"\0nobody\0{PASSWORD}", False),
    (f"{NAME}\0{PASSWORD}", False),
    (f"\0{NAME}\0{PASSWORD}\0", False),
    ("\0" + "x" * 256 + "\0x", False),
]


@pytest.mark.parametrize(("message", "granted"), PLAIN)
def test_plain(message: str, granted: bool) -> None:
    said = ask(MECHANISMS["PLAIN"](USERS).step(message.encode()))
    assert isinstance(said, Granted) is granted
    assert isinstance(said, Granted | Denied)


def test_plain_without_an_initial_response_is_asked_for_it() -> None:
    server = MECHANISMS["PLAIN"](USERS)
    assert server.step(b"") == b""
    assert isinstance(ask(server.step(f"\0{NAME}\0{PASSWORD}".encode())), Granted)


_PIECES = [b"n,,", b"y,,", b"p=tls-unique,,", b"n=", b"al=2Ci=3Dce", b",r=", b"c=biws", b",p=", b"abc", b"\0"]
pieces = st.sampled_from(_PIECES)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(SCRAM)), st.lists(st.binary(max_size=60) | st.lists(pieces).map(b"".join), max_size=4))
def test_noise_is_never_let_in_and_raises_nothing(mechanism: str, responses: list[bytes]) -> None:
    server = MECHANISMS[mechanism](USERS)
    for response in responses:
        said = ask(server.step(response))
        assert not isinstance(said, Granted)
        if isinstance(said, Denied):
            return


# -- in frames


def plain(password: str, name: str = NAME) -> bytes:
    return init("PLAIN", f"\0{name}\0{password}".encode())


def served(authenticator: Authenticator, address: str = "192.0.2.1") -> SaslServer:
    server = SaslServer(("SCRAM-SHA-256", "PLAIN"), False, authenticator.login_policy(address))
    server.receive(SASL_HEADER)
    return server


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def told() -> list[tuple[str, str, object]]:
    """Fault, words and key of what an operator is told."""
    return []


@pytest.fixture
def authenticator(clock: VirtualClock, told: list[tuple[str, str, object]]) -> Authenticator:
    return Authenticator(USERS, 1000, clock, lambda fault, words, key, *_: told.append((fault, words, key)))


def attempt(
    authenticator: Authenticator, password: str, address: str = "192.0.2.1", name: str = NAME
) -> tuple[float, str]:
    """One login by PLAIN: how long it was made to wait, and how it ended."""
    server = served(authenticator, address)
    _, _, state = server.receive(plain(password, name))
    if server.pending is None:
        return 0.0, state
    delay_s = server.pending.delay_s
    assert server.pending.job is not None and isinstance(authenticator.clock, VirtualClock)
    authenticator.clock.advance(math.ceil(delay_s * 1000))
    return delay_s, server.proceed(server.pending.job())[2]


def test_plain_in_frames_waits_for_the_check_and_keeps_what_came_meanwhile(authenticator: Authenticator) -> None:
    server = served(authenticator)
    assert server.receive(plain(PASSWORD)) == (b"", b"", "held")
    assert server.receive(AMQP_HEADER) == (b"", b"", "held")
    assert server.pending is not None and server.pending.job is not None and server.pending.delay_s == 0
    to_send, rest, state = server.proceed(server.pending.job())
    assert (bodies(to_send), rest, state) == ([Described(0x44, [0])], AMQP_HEADER, "authenticated")
    assert server.subject.user == NAME


def test_who_floods_while_it_is_held_is_refused(authenticator: Authenticator) -> None:
    server = served(authenticator)
    server.receive(plain(PASSWORD))
    assert server.receive(b"x" * AHEAD_MAX)[2] == "held"
    assert server.receive(b"x") == (b"", b"", "refused")
    assert server.pending is None


def test_scram_in_frames(authenticator: Authenticator) -> None:
    client = ScramClient(["SCRAM-SHA-256"], NAME, PASSWORD)
    server = served(authenticator)
    challenge, _, _ = server.receive(init("SCRAM-SHA-256", client.get_client_first().encode()))
    [asked] = bodies(challenge)
    client.set_server_first(asked.value[0].decode())
    outcome, rest, state = server.receive(frame(Described(0x43, [client.get_client_final().encode()])) + AMQP_HEADER)
    [told] = bodies(outcome)
    assert (told.value[0], rest, state) == (0, AMQP_HEADER, "authenticated")
    client.set_server_final(told.value[1].decode())
    with pytest.raises(ScramException):
        client.set_server_final(told.value[1].decode())


# -- waits


def test_failures_make_the_next_attempt_wait_and_a_success_forgives(authenticator: Authenticator) -> None:
    waits = []
    for _ in range(9):
        delay_s, state = attempt(authenticator, "wrong")
        assert state == "refused"
        waits.append(delay_s)
    assert waits[:3] == pytest.approx([0, FIRST_DELAY_S, 2 * FIRST_DELAY_S], abs=0.002)
    assert waits[-1] == pytest.approx(DELAY_MAX_S, abs=0.002)
    delay_s, state = attempt(authenticator, PASSWORD)
    assert (round(delay_s), state) == (DELAY_MAX_S, "authenticated")  # right or wrong: it waits
    assert attempt(authenticator, PASSWORD) == (0.0, "authenticated")


def test_many_attempts_at_once_take_turns_and_the_rest_is_refused_unheard(authenticator: Authenticator) -> None:
    for _ in range(10):
        authenticator.throttle.failed("192.0.2.1", NAME, authenticator.clock.monotonic_s())
    waits = [authenticator.throttle.wait_s("192.0.2.1", NAME, authenticator.clock.monotonic_s()) for _ in range(1000)]
    heard = [wait for wait in waits if wait is not None]
    assert heard == pytest.approx([DELAY_MAX_S])
    assert max(heard) <= WAIT_MAX_S
    assert attempt(authenticator, PASSWORD) == (0.0, "refused")
    assert attempt(authenticator, PASSWORD, address="192.0.2.2") == (0.0, "authenticated")  # the user is not locked out


def test_many_users_tried_from_one_address_make_the_address_wait(
    authenticator: Authenticator, clock: VirtualClock
) -> None:
    for number in range(FREE_FOR_ADDRESS + 3):
        attempt(authenticator, "wrong", name=f"user-{number}")
    assert attempt(authenticator, PASSWORD)[0] > 0
    clock.advance(int((FORGET_S + 10) * 1000))
    assert attempt(authenticator, PASSWORD) == (0.0, "authenticated")


def test_one_client_with_a_wrong_password_slows_no_other_client(
    authenticator: Authenticator, clock: VirtualClock
) -> None:
    for _ in range(10 * FREE_FOR_ADDRESS):
        attempt(authenticator, "wrong", name="misled")
        clock.advance(6_000)
    assert attempt(authenticator, PASSWORD) == (0.0, "authenticated")


def test_what_is_remembered_is_bounded() -> None:
    throttle = LoginThrottle(100)
    for number in range(10_000):
        throttle.failed(f"192.0.2.{number % 256}", f"user-{number}", float(number))
    assert len(throttle) == 100


def test_an_address_of_ipv6_is_its_network() -> None:
    assert network("2001:db8:1:2:3::4") == network("2001:db8:1:2:ffff::1") != network("2001:db8:1:3::4")
    assert network("::ffff:192.0.2.1") == network("192.0.2.1")
    assert network("fe80::1%eth0") == network("fe80::2")
    assert network("not an address") == "not an address"


def test_failed_logins_are_told_with_who_and_whence_and_without_passwords(
    authenticator: Authenticator, clock: VirtualClock, told: list[tuple[str, str, object]]
) -> None:
    for _ in range(10):
        attempt(authenticator, "a secret that was mistyped")
        clock.advance(6_000)
    assert {fault for fault, _, _ in told} == {"failed-login"}
    assert len(told) == 10
    assert told[0][1].startswith(f"user {NAME!a} from 192.0.2.1: ")
    assert told[9][1].endswith("failed logins so far: 10")
    assert {key for _, _, key in told} == {(NAME, network("192.0.2.1"))}
    assert not any("mistyped" in words for _, words, _ in told)


def test_a_user_shows_no_keys() -> None:
    assert "keys" not in repr(User("a", frozenset(), {"SCRAM-SHA-256": USERS.keys(NAME, "SCRAM-SHA-256")}))
