"""The journal says how many outcome records of its run are stored: reconciliation sees when their end is missing.

A topic whose last records are gone looks like the topic of a gateway that was killed a little earlier. So each time
more outcome records are stored, the journal notes the highest `n`: at once when the realm closes, else at most every
`limits.attestation_interval_s`. Records: docs/records.md "Journal", operation `recorded`; ADR 0079.
"""

from __future__ import annotations

from native_backend.dispatch.context import RealmContext
from native_backend.journal.each_store import EachStore
from native_backend.publish.evidence import Evidence

OUTCOMES = "outcomes"


class Attestation:
    """See the module's docstring."""

    def __init__(self, context: RealmContext, evidence: Evidence) -> None:
        self._context, self._evidence = context, evidence
        self._noted = 0  # what the journal says
        self._asked = 0  # what it will say when the note under way is stored; 0: there is none
        self._interval_s = context.limits.attestation_interval_s
        self._next_s = 0.0  # no note before
        self._timer = context.timers.timer("attestation", self._note, ends=True)
        evidence.on_stored = self._record_stored

    @property
    def _stored(self) -> int:
        """The highest `n` of an outcome record that is stored."""
        return self._evidence.stored[f"{self._context.prefix}.{OUTCOMES}"]

    @property
    def owing(self) -> bool:
        """The journal needs a note of stored records, and can take one."""
        return not self._context.journal.fenced and (self._asked > 0 or self._stored > self._noted)

    def hurry(self) -> None:
        """The realm closes: nothing waits for its time any more."""
        self._interval_s = self._next_s = 0.0
        self._timer.soon()

    def _record_stored(self) -> None:
        self._timer.by(self._next_s)

    def _note(self) -> None:
        context = self._context
        if self._asked or not self.owing:
            return
        self._next_s = context.clock.monotonic_s() + self._interval_s
        self._asked = stored = self._stored
        note = {("", "", 0): (1, stored, 0, 1)}
        EachStore(context.journal, self._is_noted, self._is_refused).note("recorded", OUTCOMES, note)

    def _is_noted(self) -> None:
        self._noted, self._asked = self._asked, 0
        self._timer.by(self._next_s)

    def _is_refused(self) -> None:
        """The next note says it."""
        self._asked = 0
        self._timer.by(self._next_s)
