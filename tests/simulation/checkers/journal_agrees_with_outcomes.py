"""Two writers, two topics: what the gateway says it did, and what the realm did."""

from __future__ import annotations

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.evidence import Told
from tests.simulation.observation.witness import QUEUES


class JournalAgreesWithOutcomes(Checker):
    """Every operation that an outcome calls done is in the journal, under the same run, seq, operation and cause, and
    the other way round, but for copies that go back to a plain subscriber. Journal numbers have no hole and are not
    used twice. Every event bears the run and seq of the outcome that names it."""

    def at_end(self) -> None:
        self.require(not self.ledger.doubled, f"used twice: {self.ledger.doubled}")
        for run, numbers in self.ledger.numbers().items():
            self.require(sorted(numbers) == [*range(1, len(numbers) + 1)], f"journal numbers {numbers} of run {run}")
        outcomes = self.world.evidence.by_seq()
        self._outcomes(outcomes)
        self._journal(outcomes)
        self._events(outcomes)

    def _outcomes(self, outcomes: dict[tuple[str, int], Told]) -> None:
        journal = {
            (entry.run, entry.seq): (store, durable, eid, entry)
            for (store, durable, eid), entries in self.ledger.all_entries().items()
            for entry in entries
        }
        for (run, seq), outcome in outcomes.items():
            group = outcome.group
            if group["direction"] == "publish" or group["answer"] != "done":
                continue
            record = journal.get((run, seq))
            if group["operation"] == "return" and not group["durable"] and group["node"] not in QUEUES:
                self.require(record is None, f"seq {seq} of run {run} is a copy that goes back to its link: {record}")
                continue
            if record is None:
                self.fail(f"seq {seq} of run {run} was done, says {outcome}; the journal does not have it")
                return
            store, durable, eid, entry = record
            known = (store, durable or None, eid, entry.operation, entry.cause)
            report = (group["store"], group["durable"] or "queue", outcome.eid, group["operation"], group["cause"])
            self.require(known == report, f"seq {seq} of run {run}: the journal has {known}, the outcome says {report}")

    def _journal(self, outcomes: dict[tuple[str, int], Told]) -> None:
        for (_, durable, eid), entries in self.ledger.all_entries().items():
            seqs = [(entry.run, entry.seq) for entry in entries]
            self.require(len(set(seqs)) == len(seqs), f"event {eid} of {durable!r} was ended twice: {entries}")
            for entry in entries:
                if self.world.evidence.complete(entry.run):
                    outcome = outcomes.get((entry.run, entry.seq))
                    done = outcome is not None and outcome.group["answer"] in ("done", "indeterminate", "unexpected")
                    self.require(done, f"{entry} of event {eid} of {durable!r} has no outcome: {outcome}")

    def _events(self, outcomes: dict[tuple[str, int], Told]) -> None:
        for (run, seq), outcome in outcomes.items():
            group = outcome.group
            if group["direction"] == "publish" and group["answer"] == "stored":
                event = self.ledger.event(group["node"], outcome.eid)
                key = event.key if event is not None and event.key is not None else b""
                written = f"1;basic;{run};{seq};".encode()
                self.require(key.startswith(written), f"{outcome} was stored; event {outcome.eid} has the key {key!r}")
