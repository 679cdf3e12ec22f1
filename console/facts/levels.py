"""How full nodes were: one reading a minute, and when each is full if it goes on filling as it did."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Final

from console.facts.rises import MINUTE_US
from gateway.verdict.samples import Samples

TOGETHER: Final = ("other", "temporary")
"""What stands for several nodes: these have no capacity together."""
Level = tuple[float | None, float | None]
"""Messages and octets; None: unknown."""
SPAN_MIN_US: Final = MINUTE_US
"""Two readings that lie closer say nothing."""
SPAN_US: Final = 15 * MINUTE_US
"""The rate is that of so long, or of what is known."""
FULL_IN_MAX_S: Final = 30 * 86_400.0
"""What is later is no forecast."""


class Levels:
    """Of one gateway."""

    def __init__(self) -> None:
        self._readings: deque[tuple[int, Mapping[str, Level]]] = deque(maxlen=SPAN_US // MINUTE_US + 1)

    def take(self, at_us: int, samples: Samples) -> None:
        """A round has come to its end; the first one of each minute is kept."""
        if not self._readings or at_us - self._readings[-1][0] >= MINUTE_US:
            self._readings.append((at_us, levels_of(samples)))

    def full_in_s(self, node: str, now: Level | None, limits: Level, at_us: int) -> float | None:
        """By the limit that is reached first, 0 where one is. None: neither is, or there is no rate yet."""
        if now is None:
            return None
        pairs = [*zip(self._rates(node, now, at_us), now, limits, strict=True)]
        if any(limit and level is not None and level >= limit for _, level, limit in pairs):
            return 0.0
        left = [(limit - level) / rate for rate, level, limit in pairs if rate > 0 and limit and level is not None]
        return min((seconds for seconds in left if seconds <= FULL_IN_MAX_S), default=None)

    def _rates(self, node: str, now: Level, at_us: int) -> tuple[float, float]:
        """A second; 0: it does not rise, or is not known."""
        for then_us, levels in self._readings:
            if SPAN_MIN_US <= at_us - then_us <= SPAN_US and node in levels:
                seconds = (at_us - then_us) / 1e6
                events, octets = (
                    (after - before) / seconds if before is not None and after is not None else 0.0
                    for before, after in zip(levels[node], now, strict=True)
                )
                return events, octets
        return 0.0, 0.0


def levels_of(samples: Samples) -> dict[str, Level]:
    """By node, its partitions summed, where all of them are counted."""
    events, octets = (samples.sums(f"realmgate_node_{what}", "node") for what in ("events", "bytes"))
    counted, all_of = (_partitions(samples, f"realmgate_node_{what}") for what in ("events", "events_limit"))
    return {
        node: (count, octets.get(node))
        for node, count in events.items()
        if node not in TOGETHER and counted[node] == all_of[node]
    }


def _partitions(samples: Samples, name: str) -> Counter[str]:
    return Counter(labels.get("node", "") for labels, _ in samples.all(name))
