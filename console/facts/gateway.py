"""What is known of one gateway: its last answers, when they came, and what they have changed. A poller feeds it.

A gateway that does not answer keeps what it said last, with its age. Microseconds since 1970.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from console.facts.levels import Levels
from console.facts.rises import MINUTE_US, Key, Rises, counters_of
from console.limits import HAPPENINGS
from gateway.verdict.answers import Row
from gateway.verdict.kinds import ELSEWHERE, GIVEN_UP, class_of, code_of
from gateway.verdict.limits import ERRORS
from gateway.verdict.samples import Samples
from gateway.verdict.standing import Standing


@dataclass(frozen=True, slots=True)
class Happening:
    """`letter` stands in charts."""

    at_us: int
    letter: str
    words: str


class Gateway(Standing):
    """See the module's docstring. `name` is unique in a console."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.connections: list[Row] = []
        self.links_left_out = False
        self.rises = Rises()
        self.levels = Levels()
        self.happened: deque[Happening] = deque(maxlen=HAPPENINGS)
        self.tried_us = 0
        self.slow_s = 0.0  # what the last round took

    def answered(self, at_us: int, health: Row, samples: Samples, errors: list[Row], slow_s: float) -> None:
        """A round came to its end. `errors`: those since the last one; of another run, all that it keeps."""
        self.levels.take(at_us, samples)
        is_new_run = health["run"] != self.run
        self._note(at_us, health)
        if is_new_run:
            self.errors.clear()
        self.health, self.samples, self.slow_s = health, samples, slow_s
        self._add(errors)
        self.answered_us, self.failed_us, self.problem, self.tried_us = at_us, 0, "", at_us
        began_us = int((samples.one("process_start_time_seconds") or 0) * 1e6)
        self.rises.take(self.run, at_us, counters_of(samples), self._seeds(), began_us)

    @property
    def errors_since_us(self) -> int:
        """Entries from here on are new, or have happened again."""
        return max((int(row["at_us"] or 0) for row in self.errors), default=0)

    def _add(self, errors: list[Row]) -> None:
        """An entry that happened again comes again, with its later time."""
        again = {row["id"]: row for row in errors}
        kept = [again.pop(row["id"], row) for row in self.errors]
        self.errors = deque([*kept, *again.values()], maxlen=ERRORS)

    def _note(self, at_us: int, health: Row) -> None:
        old = self.health
        if self.failed_us and old:
            self._happened(at_us, "A", "answers again")
        if not old:
            return
        if old["run"] != health["run"]:
            self._happened(at_us, "S", f"started anew, run {health['run']}")
        if old["digest"] and health["digest"] and old["digest"] != health["digest"]:
            self._happened(at_us, "T", f"tables loaded: {old['digest'][:8]} to {health['digest'][:8]}")
        if old["state"] != health["state"]:
            self._happened(at_us, "P", f"state {old['state']}, now {health['state']}")

    def failed(self, at_us: int, problem: str) -> None:
        """It could not be asked, or its answer cannot be used."""
        if not self.failed_us:
            self.failed_us = at_us
            if self.answered_us:
                self._happened(at_us, "G", f"does not answer: {problem}")
        self.problem, self.tried_us = problem, at_us

    def has_links(self, at_us: int, connections: list[Row], links: list[Row], is_cut: bool) -> None:
        self.connections, self.links, self.links_left_out, self.links_us = connections, links, is_cut, at_us

    def _happened(self, at_us: int, letter: str, words: str) -> None:
        self.happened.append(Happening(at_us, letter, words))

    def _seeds(self) -> Iterator[tuple[int, Key, int]]:
        """What the kept refusals say of the time before the first reading."""
        for row in self.errors:
            if row["what"] == GIVEN_UP:
                continue
            first_us, last_us, count = (int(row[name] or 0) for name in ("first_us", "at_us", "count"))
            border_us = last_us - last_us % MINUTE_US
            earlier = 0  # an entry stands for a minute at most: it lies in two of the clock's
            if first_us < border_us:
                earlier = round(count * (border_us - first_us) / max(1, last_us - first_us))
                yield border_us - 1, key_of(row), earlier
            yield last_us, key_of(row), count - earlier


def key_of(error: Row) -> Key:
    """The counter that an entry of /api/errors was counted under, as far as the entry says it."""
    if error["fault"] and error["fault"] not in ELSEWHERE:
        return "faults", error["fault"]
    return "errors", error["condition"] or "", code_of(error), class_of(error), error["rule"] or "", error["node"] or ""
