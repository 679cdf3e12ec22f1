"""Whose turn it is to log in: waits after failures, attempts in parallel, addresses, what is remembered and told."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from gateway.auth import login_queue
from gateway.auth.authenticator import Authenticator
from gateway.auth.login_queue import Attempt
from gateway.auth.login_throttle import (
    DELAY_MAX_S,
    FIRST_DELAY_S,
    FORGET_S,
    FREE_FOR_ADDRESS,
    WAIT_MAX_S,
    LoginThrottle,
    network,
)
from gateway.auth.sasl import SASL_HEADER, SaslServer
from gateway.auth.users import Users, read_users
from mappings.language.yaml_lines import Problem, parse_document
from tests.gateway.auth.sasl_frames import init
from tests.gateway.auth.user_entry import ENTRY, PASSWORD
from tests.kit.realm.virtual_clock import VirtualClock
from tests.kit.realm.virtual_timers import VirtualTimers

NAME = "alice"


def make_users() -> Users:
    problems: list[Problem] = []
    users = read_users(*parse_document(f'users: {{{NAME}: {{scram: ["{ENTRY}"]}}}}', "users.yaml"), problems)
    assert not problems
    return users


@dataclass
class Guesser:
    """Attempts of one address at the queue alone: each is heard until `decide`."""

    authenticator: Authenticator
    address: str = "192.0.2.1"
    heard: list[Attempt] = field(default_factory=list)
    unheard: list[Attempt] = field(default_factory=list)

    def enter(self, user: str = NAME) -> Attempt:
        entered = Attempt(self.address, user, lambda: self.heard.append(entered), lambda: self.unheard.append(entered))
        if not self.authenticator.queue.enter(entered):
            self.unheard.append(entered)
        return entered

    def decide(self, attempt: Attempt, granted: bool = False) -> None:
        self.authenticator.login(self.address).decided(attempt.user, granted)
        self.authenticator.queue.leave(attempt)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def timers(clock: VirtualClock) -> VirtualTimers:
    return VirtualTimers(clock)


@pytest.fixture
def faults() -> list[tuple[str, str, object]]:
    """Fault, words and key of each line for an operator."""
    return []


@pytest.fixture
def authenticator(clock: VirtualClock, timers: VirtualTimers, faults: list[tuple[str, str, object]]) -> Authenticator:
    def tell(fault: str, words: str, key: object, *_: str) -> None:
        faults.append((fault, words, key))

    return Authenticator(make_users(), 1000, clock, tell, timers.later)


def attempt(
    authenticator: Authenticator, timers: VirtualTimers, password: str, address: str = "192.0.2.1", name: str = NAME
) -> tuple[float, str]:
    """One login by PLAIN, as `SaslHandshake` does it: how long it was made to wait, and how it ended."""
    login = authenticator.login(address)
    server = SaslServer(("PLAIN",), False, login)
    server.receive(SASL_HEADER)
    server.receive(init("PLAIN", f"\0{name}\0{password}".encode()))
    pending, since_s, ended = server.pending, authenticator.clock.monotonic_s(), list[str]()
    assert pending is not None

    def begin() -> None:
        ended.append(server.proceed(pending.job() if pending.job is not None else None)[2])
        login.leave()

    login.enter(pending.user, begin, lambda: ended.append(f"unheard, {server.turn_away()[2]}"))
    while not ended:
        assert timers.advance_to_next(), "it waits for nothing"
    return authenticator.clock.monotonic_s() - since_s, ended[0]


def test_attempts_in_parallel_are_heard_one_after_another(
    authenticator: Authenticator, timers: VirtualTimers, clock: VirtualClock
) -> None:
    guesser = Guesser(authenticator)
    attempts = [guesser.enter() for _ in range(50)]
    since_s, times = clock.monotonic_s(), list[float]()
    while len(guesser.heard) + len(guesser.unheard) < 50 or len(times) < len(guesser.heard):
        if len(times) < len(guesser.heard):
            times.append(clock.monotonic_s() - since_s)
            guesser.decide(guesser.heard[-1])
        else:
            assert timers.advance_to_next()
    assert guesser.heard == attempts[: len(guesser.heard)], "in the order in which they came"
    assert times == pytest.approx([0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3], abs=0.01)
    assert clock.monotonic_s() - since_s <= WAIT_MAX_S + 0.01, "the rest did not wait for ever"
    assert len(authenticator.queue) == 0


def test_users_tried_in_parallel_are_within_the_limit_of_their_address(
    authenticator: Authenticator, timers: VirtualTimers, clock: VirtualClock
) -> None:
    guesser, since_s = Guesser(authenticator), clock.monotonic_s()
    for number in range(300):
        guesser.enter(f"user-{number}")
    decided = 0
    while clock.monotonic_s() - since_s < 0.05:
        assert len(guesser.heard) <= decided + 1, "one at a time"
        if decided == len(guesser.heard):
            assert timers.advance_to_next()
        else:
            guesser.decide(guesser.heard[decided])
            decided += 1
    assert decided == FREE_FOR_ADDRESS + 1


def test_a_user_who_waits_holds_no_other_user_up(authenticator: Authenticator, timers: VirtualTimers) -> None:
    guesser = Guesser(authenticator)
    for _ in range(10):
        guesser.enter("mallory")
    guesser.decide(guesser.heard[0])
    assert len(guesser.heard) == 1
    innocent = guesser.enter("bob")
    assert guesser.heard[-1] is innocent
    guesser.decide(innocent, granted=True)
    assert attempt(authenticator, timers, PASSWORD) == (0.0, "authenticated")
    assert attempt(authenticator, timers, PASSWORD, address="192.0.2.2") == (0.0, "authenticated")


def test_attempts_that_end_at_once_are_heard_without_recursion(authenticator: Authenticator) -> None:
    queue, heard = authenticator.queue, 0

    def enter(user: str) -> None:
        def begin() -> None:
            nonlocal heard
            heard += 1
            queue.leave(entered)

        entered = Attempt("192.0.2.1", user, begin, lambda: None)
        assert queue.enter(entered)

    first = Guesser(authenticator).enter("first")
    for number in range(login_queue.WAITING_MAX):
        enter(f"user-{number}")
    queue.leave(first)
    assert heard == login_queue.WAITING_MAX
    assert len(queue) == 0


def test_a_queue_is_bounded_and_gives_places_back(authenticator: Authenticator) -> None:
    guesser = Guesser(authenticator)
    attempts = [guesser.enter(f"user-{number}") for number in range(login_queue.WAITING_MAX + 3)]
    assert guesser.unheard == attempts[-2:]
    for login in attempts[1:-2]:  # their peers hang up
        authenticator.queue.leave(login)
    assert len(guesser.unheard) == 2
    assert guesser.heard == attempts[:1]
    authenticator.queue.leave(attempts[0])
    authenticator.queue.leave(attempts[0])
    assert len(authenticator.queue) == 0


def test_an_attempt_that_would_wait_too_long_is_refused_at_once(
    authenticator: Authenticator, timers: VirtualTimers, faults: list[tuple[str, str, object]]
) -> None:
    for _ in range(10):
        authenticator.throttle.failed("192.0.2.1", NAME, authenticator.clock.monotonic_s())
    guesser = Guesser(authenticator)
    attempts = [guesser.enter() for _ in range(1000)]
    assert guesser.unheard == attempts[1:]
    assert attempt(authenticator, timers, PASSWORD) == (0.0, "unheard, refused")
    assert faults[-1][:1] == ("login-unheard",)
    assert attempt(authenticator, timers, PASSWORD, address="192.0.2.2") == (0.0, "authenticated")  # not locked out


def test_failures_make_the_next_attempt_wait_and_a_success_forgives(
    authenticator: Authenticator, timers: VirtualTimers
) -> None:
    waits = []
    for _ in range(9):
        delay_s, state = attempt(authenticator, timers, "wrong")
        assert state == "refused"
        waits.append(delay_s)
    assert waits[:3] == pytest.approx([0, FIRST_DELAY_S, 2 * FIRST_DELAY_S], abs=0.002)
    assert waits[-1] == pytest.approx(DELAY_MAX_S, abs=0.002)
    delay_s, state = attempt(authenticator, timers, PASSWORD)
    assert (round(delay_s), state) == (DELAY_MAX_S, "authenticated")  # right or wrong: it waits
    assert attempt(authenticator, timers, PASSWORD) == (0.0, "authenticated")


def test_many_users_tried_from_one_address_make_the_address_wait(
    authenticator: Authenticator, timers: VirtualTimers, clock: VirtualClock
) -> None:
    for number in range(FREE_FOR_ADDRESS + 3):
        attempt(authenticator, timers, "wrong", name=f"user-{number}")
    assert attempt(authenticator, timers, PASSWORD)[0] > 0
    clock.advance(int((FORGET_S + 10) * 1000))
    assert attempt(authenticator, timers, PASSWORD) == (0.0, "authenticated")


def test_one_client_with_a_wrong_password_slows_no_other_client(
    authenticator: Authenticator, timers: VirtualTimers, clock: VirtualClock
) -> None:
    for _ in range(10 * FREE_FOR_ADDRESS):
        attempt(authenticator, timers, "wrong", name="misled")
        clock.advance(6_000)
    assert attempt(authenticator, timers, PASSWORD) == (0.0, "authenticated")


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


def test_failed_logins_are_logged_with_user_and_address_and_without_passwords(
    authenticator: Authenticator, timers: VirtualTimers, clock: VirtualClock, faults: list[tuple[str, str, object]]
) -> None:
    for _ in range(10):
        attempt(authenticator, timers, "a secret that was mistyped")
        clock.advance(6_000)
    assert {fault for fault, _, _ in faults} == {"failed-login"}
    assert len(faults) == 10
    assert faults[0][1].startswith(f"user {NAME!a} from 192.0.2.1: ")
    assert faults[9][1].endswith("failed logins so far: 10")
    assert {key for _, _, key in faults} == {(NAME, network("192.0.2.1"))}
    assert not any("mistyped" in words for _, words, _ in faults)
