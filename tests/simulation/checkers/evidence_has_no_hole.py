"""The evidence is complete, or says where it ends."""

from __future__ import annotations

from tests.simulation.observation.checker import Checker


class EvidenceHasNoHole(Checker):
    """`n` of a run's records counts from 1 without holes; `low` is the lowest seq without an outcome, every seq
    below it has one; a run that ended in order has all, and says so."""

    def at_end(self) -> None:
        evidence = self.world.evidence
        for run, records in evidence.by_run().items():
            numbers = [record["n"] for record in records]
            self.require(numbers == [*range(1, len(numbers) + 1)], f"records {numbers} of run {run}")
            seqs: set[int] = set()
            low = 1
            for record in records:
                for group in record["groups"]:
                    self.require(len(group["seq"]) == len(group["eid"]), f"columns of unequal length, run {run}")
                    seqs.update(group["seq"])
                while low in seqs:
                    low += 1
                self.require(record["low"] == low, f"record {record['n']} of run {run}: low {record['low']}, not {low}")
            closed = [record["n"] for record in records if record["closed"]]
            self.require(closed in ([], numbers[-1:]), f"records {closed} of run {run} are marked as the last")
            if closed:
                self.require(low > max(seqs, default=0), f"run {run} is closed, and seqs from {low} have no outcome")
        last = self.world.process.run
        self.require(evidence.complete(last), f"the last run, {last}, ended in order and does not say so")
