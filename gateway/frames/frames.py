"""A frame of the peer's, decoded, or what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)


@dataclass(frozen=True, slots=True)
class Frame:
    """A decoded performative; fields that were left out at the end read as None."""

    channel: int
    code: int
    fields: tuple[Any, ...]
    octets: bytes | None = None  # to be read in its place, where an engine would not understand it as it came
    invalid: str = ""  # of an ATTACH: why its link is refused, whatever else it says

    def field(self, index: int) -> Any:
        return self.fields[index] if index < len(self.fields) else None


@dataclass(frozen=True, slots=True)
class Fault:
    """What the peer broke, in the words of the mapping table `fault`, and where. With a `channel` it is one frame of
    that session, of which nothing more is read until its end; without, nothing that follows can be relied on."""

    fault: str
    detail: str
    channel: int | None = None
