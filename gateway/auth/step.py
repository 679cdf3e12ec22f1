"""One step of a SASL exchange, as the server answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from native_backend.nodes.grants import Subject


@dataclass(frozen=True, slots=True)
class Granted:
    """Authenticated; `last_word` goes with the outcome."""

    subject: Subject
    last_word: bytes | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """Not authenticated. The peer gets no reason."""


@dataclass(frozen=True, slots=True)
class Check:
    """Costs milliseconds of a processor: to be called on another thread."""

    job: Callable[[], Granted | Denied]


Step = bytes | Granted | Denied | Check


class Mechanism(Protocol):
    """One exchange. `step` is given the initial response (empty when there is none), then each response."""

    user: str | None

    def step(self, response: bytes) -> Step: ...
