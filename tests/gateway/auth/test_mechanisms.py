"""PLAIN and SCRAM: real exchanges with scramp's client, wrong ones, noise; what a peer can learn."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramClient, ScramException

from gateway.auth import known_passwords
from gateway.auth.mechanisms import MECHANISMS
from gateway.auth.passwords import hash_password
from gateway.auth.sasl import AHEAD_MAX, AMQP_HEADER, SASL_HEADER, LoginPolicy, SaslServer
from gateway.auth.step import Check, Denied, Granted, Step
from gateway.auth.users import SCRAM, User, Users, read_users
from mappings.language.yaml_lines import Problem, parse_document
from native_backend.nodes.grants import Subject
from tests.gateway.auth.sasl_frames import bodies, frame, init
from tests.kit.patience import HANG_S
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
    (f"\0stranger\0{PASSWORD}", False),
    (f"{NAME}\0{PASSWORD}", False),
    (f"\0{NAME}\0{PASSWORD}\0", False),
    ("\0" + "x" * 256 + "\0x", False),
]


@pytest.mark.parametrize(("message", "granted"), PLAIN)
def test_plain(message: str, granted: bool) -> None:
    answer = ask(MECHANISMS["PLAIN"](USERS).step(message.encode()))
    assert isinstance(answer, Granted) is granted
    assert isinstance(answer, Granted | Denied)


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
        answer = ask(server.step(response))
        assert not isinstance(answer, Granted)
        if isinstance(answer, Denied):
            return


# -- in frames


def plain(password: str, name: str = NAME) -> bytes:
    return init("PLAIN", f"\0{name}\0{password}".encode())


def served() -> SaslServer:
    server = SaslServer(("SCRAM-SHA-256", "PLAIN"), False, LoginPolicy(make_users()))
    server.receive(SASL_HEADER)
    return server


def test_plain_in_frames_waits_for_the_check_and_keeps_what_came_meanwhile() -> None:
    server = served()
    assert server.receive(plain(PASSWORD)) == (b"", b"", "held")
    assert server.receive(AMQP_HEADER) == (b"", b"", "held")
    assert server.pending is not None and server.pending.job is not None and server.pending.user == NAME
    to_send, rest, state = server.proceed(server.pending.job())
    assert (bodies(to_send), rest, state) == ([Described(0x44, [0])], AMQP_HEADER, "authenticated")
    assert server.subject.user == NAME


def test_who_floods_while_it_is_held_is_refused() -> None:
    server = served()
    server.receive(plain(PASSWORD))
    assert server.receive(b"x" * AHEAD_MAX)[2] == "held"
    assert server.receive(b"x") == (b"", b"", "refused")
    assert server.pending is None


def test_scram_in_frames() -> None:
    client = ScramClient(["SCRAM-SHA-256"], NAME, PASSWORD)
    server = served()
    challenge, _, _ = server.receive(init("SCRAM-SHA-256", client.get_client_first().encode()))
    [server_first] = bodies(challenge)
    client.set_server_first(server_first.value[0].decode())
    last = frame(Described(0x43, [client.get_client_final().encode()])) + AMQP_HEADER
    assert server.receive(last) == (b"", b"", "held")  # for its user's turn, be it right or wrong
    outcome, rest, state = server.proceed(None)
    [sasl_outcome] = bodies(outcome)
    assert (sasl_outcome.value[0], rest, state) == (0, AMQP_HEADER, "authenticated")
    client.set_server_final(sasl_outcome.value[1].decode())
    with pytest.raises(ScramException):
        client.set_server_final(sasl_outcome.value[1].decode())


def test_a_password_that_was_right_needs_no_hashing_and_is_forgotten_with_its_users() -> None:
    users = make_users()
    plain = MECHANISMS["PLAIN"](users)
    assert isinstance(ask(plain.step(f"\0{NAME}\0{PASSWORD}".encode())), Granted)
    assert isinstance(MECHANISMS["PLAIN"](users).step(f"\0{NAME}\0{PASSWORD}".encode()), Granted)
    for name, password in ((NAME, "wrong"), ("bob", PASSWORD)):
        check = MECHANISMS["PLAIN"](users).step(f"\0{name}\0{password}".encode())
        assert isinstance(check, Check) and isinstance(check.job(), Denied)
    assert len(users.known_passwords) == 1
    assert isinstance(MECHANISMS["PLAIN"](make_users()).step(f"\0{NAME}\0{PASSWORD}".encode()), Check)


def test_the_passwords_that_are_known_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_passwords, "KNOWN_MAX", 2)
    known = known_passwords.KnownPasswords()
    for user in ("a", "b", "a", "c"):
        known.add(user, "password")
    assert [(user, "password") in known for user in ("a", "b", "c")] == [True, False, True]


def test_a_user_shows_no_keys() -> None:
    assert "keys" not in repr(User("a", frozenset(), {"SCRAM-SHA-256": USERS.keys(NAME, "SCRAM-SHA-256")}))


def test_what_passwords_need_is_there_before_the_first_login_and_only_where_they_are_offered() -> None:
    """In a process of its own: it is imported once."""
    looks = (
        "import sys; from gateway.auth import mechanisms; from gateway.serve import serve\n"
        "mechanisms.make_ready(['ANONYMOUS', 'EXTERNAL']); print('scramp' in sys.modules)\n"
        "mechanisms.make_ready(['PLAIN']); print('scramp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", looks], capture_output=True, text=True, timeout=HANG_S, check=True)
    assert done.stdout.split() == ["False", "True"]
