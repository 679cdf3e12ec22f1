"""A peer that contradicts itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import Given

if TYPE_CHECKING:
    from tests.simulation.world import World


class FaultsCloseTheirScope(Checker):
    """A link whose peer gives a waiting delivery a second, different outcome is closed at once."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._contradicted: list[Given] = []

    def contradicted(self, given: Given) -> None:
        self._contradicted.append(given)

    def flushed(self) -> None:
        contradicted, self._contradicted = self._contradicted, []
        for given in contradicted:
            self.require(given.link.gone, f"{given.link} goes on after a contradiction about event {given.eid}")
