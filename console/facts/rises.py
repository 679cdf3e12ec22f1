"""What counters rose by, by minute, for the last `MINUTES`: what `/metrics` counts since a run began becomes what
happened when. It is this console's own observation, to the second; what the gateways have written down of longer times
is `console.facts.history` (ADR 0110).

A gateway is read only while a page is looked at. What its counters rose by between two readings that are minutes apart
is spread evenly over these minutes, and they are marked as not watched. Microseconds since 1970.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from console.limits import KEYS, MINUTES
from gateway.verdict.samples import Samples

Key = tuple[str, ...]
"""A short name of the counter, then its label values."""
MINUTE_US: Final = 60_000_000
COUNTED: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "errors": ("realmgate_errors_total", ("condition", "code", "class", "rule", "node")),
    "faults": ("realmgate_peer_faults_total", ("fault",)),
    "deliveries": ("realmgate_deliveries_total", ("direction", "node", "outcome")),
    "rules": ("realmgate_rule_decisions_total", ("table", "rule")),
    "letters": ("realmgate_dead_letters_total", ("node", "cause")),
    "transactions": ("realmgate_transactions_ended_total", ("end",)),
    "retries": ("realmgate_control_retries_total", ("code",)),
    "given_up": ("realmgate_control_retries_given_up_total", ("code",)),
}


def counters_of(samples: Samples) -> dict[Key, float]:
    """At most `KEYS`."""
    counters: dict[Key, float] = {}
    for short, (name, labels) in COUNTED.items():
        for values, number in samples.all(name):
            if len(counters) >= KEYS:
                return counters
            counters[short, *(values.get(label, "") for label in labels)] = number
    return counters


class Rises:
    """Of one gateway, over its runs."""

    def __init__(self) -> None:
        self.totals: dict[Key, float] = {}  # since its run began
        self.known_us = 0  # counters are known from here on; errors of before, as far as entries are kept
        self._run = ""
        self._read_us = 0
        self._minutes: dict[int, Counter[Key]] = {}
        self._watched: set[int] = set()

    def take(
        self,
        run: str,
        at_us: int,
        counters: Mapping[Key, float],
        seeds: Iterable[tuple[int, Key, int]] = (),
        began_us: int = 0,
    ) -> None:
        """A reading. At the first one `seeds` are what else is known of the time before: when, of which counter, how
        often; and of a run that began within the hour everything has happened since."""
        if not self._read_us:
            self._begin(at_us, counters, seeds, began_us)
        else:
            before = self.totals if run == self._run else {}
            self._spread(at_us, {key: number - before.get(key, 0) for key, number in counters.items()})
        self._run, self._read_us, self.totals = run, at_us, dict(counters)
        self._forget(at_us)

    def _begin(
        self, at_us: int, counters: Mapping[Key, float], seeds: Iterable[tuple[int, Key, int]], began_us: int
    ) -> None:
        placed: Counter[Key] = Counter()
        for when_us, key, count in seeds:
            counted = key if key in counters else (*key[:-1], "")  # a name that is no node's is not counted by name
            if when_us <= at_us and key[0] in ("errors", "faults"):
                self._minutes.setdefault(when_us // MINUTE_US, Counter())[counted] += count
                placed[counted] += count
        self.known_us = at_us
        if at_us - MINUTES * MINUTE_US < began_us <= at_us:
            self.known_us = self._read_us = began_us
            self._spread(at_us, {key: number - placed[key] for key, number in counters.items()})
            self._watched.clear()

    def _spread(self, at_us: int, risen: Mapping[Key, float]) -> None:
        first, last = self._read_us // MINUTE_US, at_us // MINUTE_US
        first = max(min(first, last), last - MINUTES + 1)
        minutes = range(first, last + 1) if last - first > 1 else range(last, last + 1)
        if len(minutes) == 1:
            self._watched.add(last)
        for key, number in risen.items():
            whole = max(0, round(number))
            if not whole:
                continue
            share, more = divmod(whole, len(minutes))
            for at, minute in enumerate(minutes):
                if count := share + (at < more):
                    self._minutes.setdefault(minute, Counter())[key] += count

    def _forget(self, at_us: int) -> None:
        oldest = at_us // MINUTE_US - MINUTES
        for minute in [slot for slot in self._minutes if slot <= oldest]:
            del self._minutes[minute]
        self._watched = {slot for slot in self._watched if slot > oldest}

    def counts(self, now_us: int, minutes: int, before: int = 0) -> Counter[Key]:
        """Of so many minutes that end `before` minutes ago."""
        last = now_us // MINUTE_US - before
        sums: Counter[Key] = Counter()
        for minute in range(last - minutes + 1, last + 1):
            sums.update(self._minutes.get(minute, {}))
        return sums

    def counted(self, short: str, now_us: int, minutes: int) -> dict[Key, int]:
        """The same of one counter, by its label values."""
        return {key[1:]: count for key, count in self.counts(now_us, minutes).items() if key[0] == short}

    def series(self, now_us: int, minutes: int, wanted: Callable[[Key], bool]) -> list[int]:
        """Each minute's sum, the oldest first."""
        last = now_us // MINUTE_US
        nothing: Counter[Key] = Counter()
        shown = [self._minutes.get(minute, nothing) for minute in range(last - minutes + 1, last + 1)]
        return [sum(count for key, count in counts.items() if wanted(key)) for counts in shown]

    def last_us(self, wanted: Callable[[Key], bool]) -> int:
        """The end of the last minute in which it rose; 0: it did not."""
        minutes = [minute for minute, counts in self._minutes.items() if any(wanted(key) for key in counts)]
        return (max(minutes) + 1) * MINUTE_US if minutes else 0

    def watched(self, now_us: int, minutes: int) -> list[bool]:
        last = now_us // MINUTE_US
        return [minute in self._watched for minute in range(last - minutes + 1, last + 1)]
