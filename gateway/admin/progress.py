"""How far opening the realm is, for threads that answer while it opens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """`state`: opening or standby. `words`: what it waits for."""

    state: str = "opening"
    words: str = ""
