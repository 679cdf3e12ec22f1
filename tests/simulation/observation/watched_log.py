"""The simulated log with a witness: which messages it has answered, which evidence it refused to store."""

from __future__ import annotations

from typing import Any

import orjson

from native_backend.log.port import Append, Appended, Completion, Failure
from native_backend.log.simulated.driver import SimulatedLog
from tests.simulation.observation.ledger import PREFIX
from tests.simulation.peers.bodies import marker_of


class Answers:
    """Of all runs."""

    def __init__(self) -> None:
        self.markers: set[str] = set()  # messages that were stored or refused, and the gateway knows
        self.refused_evidence: list[dict[str, Any]] = []


class WatchedLog(SimulatedLog):
    """Notes what goes by."""

    answers: Answers

    def _fail(self, batch: Append, start: int, end: int, failure: Failure) -> None:
        if batch.topic == f"{PREFIX}.outcomes":
            self.answers.refused_evidence += map(orjson.loads, batch.values[start:end])
        super()._fail(batch, start, end, failure)

    def poll(self) -> list[Completion]:
        completions = super().poll()
        for completion in completions:
            if isinstance(completion, Appended):
                self._note(completion)
        return completions

    def _note(self, appended: Appended) -> None:
        values = appended.batch.values[appended.first : appended.first + len(appended.offsets)]
        if appended.batch.topic.startswith(f"{PREFIX}.node."):
            self.answers.markers.update(map(marker_of, values))
