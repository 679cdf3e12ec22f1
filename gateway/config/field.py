"""One key of a configuration file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from gateway.config.shapes import Shape

REQUIRED: Final = object()
"""The default of a key that must be written."""


@dataclass(frozen=True, slots=True)
class Field:
    """`only` is the realm kind that it belongs to; empty for all."""

    key: str
    shape: Shape
    default: Any
    about: str
    only: str = ""

    @property
    def section(self) -> str:
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition(".")[2]
