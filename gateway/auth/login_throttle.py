"""Slows down the guessing of passwords: after a failure the next attempts of the same address and user wait, each
for its turn, longer with every failure. One that would have to wait too long is refused unheard.

An attempt waits before its password is looked at, so that hanging up early gains nothing and a guess costs its time
whether it is right or wrong. A success forgets the user's failures. Many users tried from one address make the address
itself wait. Seconds of the monotonic clock. The number of remembered failures is bounded: the oldest goes.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

FIRST_DELAY_S = 0.1
DELAY_MAX_S = 5.0
WAIT_MAX_S = 8.0  # below limits.open_timeout_ms by default: such an attempt is refused, not cut off
FORGET_S = 600.0
FREE_FOR_ADDRESS = 20  # failures of one address, whatever the user names, before the address itself waits
_IPV6_NETWORK = 64  # bits that one customer has


@dataclass(slots=True)
class _Failures:
    count: int = 0
    last_s: float = 0.0
    turn_s: float = 0.0  # when the next attempt may be heard


class LoginThrottle:
    """One process's. Keys are (address, user), and (address, "") for the address itself."""

    def __init__(self, kept_max: int) -> None:
        self._kept_max = kept_max
        self._failures: OrderedDict[tuple[str, str], _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def due_s(self, where: str, user: str, now_s: float) -> float:
        """When the next attempt may be heard, at the earliest; not after `now_s`: now. `where`: see `network`."""
        return max((failures.turn_s for failures in self._waiting(where, user, now_s)), default=now_s)

    def delay_s(self, where: str, user: str) -> float:
        """From one failure of that user to the next attempt, as it stands."""
        failures = self._failures.get((where, user))
        return _delay_s(failures.count) if failures is not None else 0.0

    def _waiting(self, where: str, user: str, now_s: float) -> list[_Failures]:
        """What the attempt has to wait for."""
        waiting = []
        for key, free in (((where, user), 0), ((where, ""), FREE_FOR_ADDRESS)):
            failures = self._failures.get(key)
            if failures is not None and now_s - failures.last_s > FORGET_S:
                del self._failures[key]
            elif failures is not None and failures.count > free:
                waiting.append(failures)
        return waiting

    def failed(self, address: str, user: str, now_s: float) -> None:
        """The address counts users, not attempts: a client that tries one wrong password for ever delays no other user
        of that address."""
        who, where = (network(address), user), (network(address), "")
        for key, free in ((who, 0), (where, FREE_FOR_ADDRESS))[: 1 if who in self._failures else 2]:
            failures = self._failures.setdefault(key, _Failures())
            failures.count += 1
            failures.last_s = now_s
            if failures.count > free:
                failures.turn_s = max(failures.turn_s, now_s + _delay_s(failures.count - free))
            self._failures.move_to_end(key)
        while len(self._failures) > self._kept_max:
            self._failures.popitem(last=False)

    def succeeded(self, address: str, user: str) -> None:
        self._failures.pop((network(address), user), None)


def _delay_s(count: int) -> float:
    return min(DELAY_MAX_S, FIRST_DELAY_S * 2.0 ** min(count - 1, 30))


def network(address: str) -> str:
    """An address as it is counted: of IPv6 the network, for its owner has all the addresses in it."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(IPv6Address(int(known) >> (128 - _IPV6_NETWORK) << (128 - _IPV6_NETWORK)))
    return str(known)
