"""What may go wrong on a simulated log: probabilities between 0 and 1, all 0 by default; times in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from native_backend.log.port import Cause


@dataclass(frozen=True, slots=True)
class Faults:
    """Each is rolled for once per batch, transaction, read or admin call."""

    gap: float = 0.0  # offsets are skipped before a run of records
    split: float = 0.0  # a batch is stored and completed in pieces
    delay: float = 0.0  # it is stored later, and its completion comes later still
    delay_ms_max: int = 50
    lag: float = 0.0  # it is stored, but the stable offset stays below it for a while
    lag_ms_max: int = 50
    refuse: float = 0.0  # it is certainly not stored
    refusals: tuple[Cause, ...] = ("unavailable", "refused", "unexpected")
    unknown_append: float = 0.0  # `indeterminate`, stored or not
    unknown_commit: float = 0.0  # `indeterminate`: applied, not applied, or left open until the shard is claimed
    fence: float = 0.0  # another process claims the shard just before the transaction
    stall: float = 0.0  # a read finds nothing, although something is there
    control: float = 0.0  # an admin call fails with `unavailable`


NONE = Faults()


def happens(probability: float, random: Random) -> bool:
    return probability > 0.0 and random.random() < probability
