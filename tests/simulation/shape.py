"""What a seed decides before anything happens: how many clients, how narrow the limits, what the disk does wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from gateway.config.limits import Limits
from native_backend.limits import RealmLimits
from native_backend.log.port import Cause
from native_backend.log.simulated.faults import NONE, Faults

_WHOLE_REFUSALS: tuple[Cause, ...] = ("unavailable",)


@dataclass(frozen=True, slots=True)
class Shape:
    """Of one world."""

    clients: int
    steps: int
    frame_bytes: int
    congestion_bytes: int
    limits: Limits
    realm: RealmLimits
    weather: str
    transactions: bool = False  # clients declare some
    nowhere: Path = Path("nowhere")


WEATHERS: dict[str, Faults] = {
    "calm": NONE,
    "gaps": Faults(gap=0.4, split=0.3),
    "late": Faults(split=0.3, delay=0.6, delay_ms_max=30, lag=0.3, lag_ms_max=15, stall=0.2),
    "rough": Faults(gap=0.3, split=0.3, delay=0.4, delay_ms_max=20, lag=0.2, lag_ms_max=10, stall=0.2, refuse=0.05),
    "unsure": Faults(gap=0.2, delay=0.3, delay_ms_max=15, unknown_append=0.05, unknown_commit=0.15, control=0.05),
    "hostile": Faults(
        gap=0.2, split=0.3, delay=0.4, delay_ms_max=20, lag=0.2, lag_ms_max=10, refuse=0.04, unknown_append=0.04,
        unknown_commit=0.06, fence=0.01, stall=0.1, control=0.03,
    ),
    "busy": Faults(refuse=0.2, refusals=_WHOLE_REFUSALS, delay=0.5, delay_ms_max=10, gap=0.2),
}  # fmt: skip


PLAIN = Shape(1, 0, 32_768, 1 << 20, Limits(), RealmLimits(), "calm")
"""Default limits, and nothing goes wrong."""


def shape_of(random: Random) -> Shape:
    limits = Limits(
        message_size_bytes=20_000,
        frame_size_bytes=random.choice((512, 65_536)),
        credit_per_link=random.choice((2, 8, 30)),
        in_flight=random.choice((3, 20, 60)),
        unsettled_per_link=random.choice((3, 10, 50)),
        take_bytes=random.choice((1500, 1_000_000)),
        idle_timeout_ms=0,
    )
    realm = RealmLimits(
        window_bytes=random.choice((1500, 1 << 20)),
        chunk_bytes=random.choice((600, 1 << 20)),
        read_count=random.choice((3, 1000)),
        readers=2,
        reader_turn_s=0.01,
        returned_scan=random.choice((2, 64)),
        journal_runs=random.choice((3, 8000)),
        snapshot_records=random.choice((4, 10_000)),
        projection_interval_s=0.03,
        metadata_interval_s=0.05,
        retry_interval_s=0.005,
        lease_look_s=0.05,
    )
    return Shape(
        clients=random.randint(1, 4),
        steps=random.randint(120, 260),
        frame_bytes=random.choice((512, 32_768)),
        congestion_bytes=random.choice((2000, 1 << 20)),
        limits=limits,
        realm=realm,
        weather=random.choice(list(WEATHERS)),
    )


def transacting(shape: Shape, random: Random) -> Shape:
    """Its clients declare transactions, some of which grow too large or too old."""
    limits = replace(
        shape.limits,
        transaction_bytes=random.choice((2_500, 1 << 20)),
        transaction_deliveries=random.choice((6, 1_000)),
        transaction_timeout_ms=random.choice((100, 60_000)),
    )
    return replace(shape, transactions=True, limits=limits)
