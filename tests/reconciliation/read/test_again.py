"""What is read of a log that is trimmed meanwhile."""

from __future__ import annotations

import pytest

from reconciliation.model.errors import SourceError
from reconciliation.model.ranges import Extent, Range
from reconciliation.read.landing import TRIES, read_again


class Log:
    """It is trimmed `trims` times, each time after the reader has asked what there is."""

    def __init__(self, trims: int) -> None:
        self.trims, self.first, self.reads = trims, 0, 0

    def extent(self) -> Extent:
        return Extent((Range("orders", 0, self.first, 100),), ())

    def read(self, extent: Extent) -> int:
        self.reads += 1
        if self.trims:
            self.trims, self.first = self.trims - 1, self.first + 10
        if extent.ranges[0].first < self.first:
            raise SourceError(f"offsets are gone, try {self.reads}")
        return 100 - self.first


def test_a_trim_that_overtakes_a_read_is_read_behind() -> None:
    log = Log(1)
    assert (read_again(log.extent(), log.read, log.extent), log.reads) == (90, 2)


def test_trims_that_always_overtake_are_reported() -> None:
    log = Log(TRIES)
    with pytest.raises(SourceError, match=f"try {TRIES}"):
        read_again(log.extent(), log.read, log.extent)


def test_what_fails_the_same_way_twice_is_reported() -> None:
    log, empty = Log(0), Extent((Range("orders", 0, -1, 100),), ())

    def broken(extent: Extent) -> int:
        return log.read(empty)

    with pytest.raises(SourceError, match="try 1"):
        read_again(log.extent(), broken, log.extent)
