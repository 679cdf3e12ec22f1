"""A peer that contradicts itself."""

from __future__ import annotations

from tests.simulation.checker import Checker


class FaultsCloseTheirScope(Checker):
    """A link whose peer gave a waiting delivery a second, different outcome is closed."""

    def at_quiet(self) -> None:
        for link in self.world.links:
            if link.run == self.world.house.run:
                self.require(not link.conflict or link.gone, f"{link} goes on after a contradiction")
