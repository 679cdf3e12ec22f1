"""The checkers: what must hold in every world. One class a file."""

from __future__ import annotations

from tests.simulation.checker import Checker

CHECKERS: tuple[type[Checker], ...] = ()
