"""Numbers of consecutive reconciliations as small bars."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

RUNS = 30
"""So many earlier reconciliations are shown."""
_HEIGHT, _BAR = 24, 6


def spark_line(counts: Sequence[int], subject: str) -> str:
    """The oldest first; the last is of this reconciliation. What is not 0 can be seen."""
    if len(counts) < 2:
        return '<span class="soft">none</span>'
    most = max(*counts, 1)
    bars = "".join(
        f'<rect class="{"now" if at == len(counts) - 1 else "then"}" x="{at * _BAR}" y="{_HEIGHT - height:.1f}" '
        f'width="{_BAR - 1}" height="{height:.1f}"><title>{count:,}</title></rect>'
        for at, count in enumerate(counts)
        if (height := max(count / most * _HEIGHT, 2.0 if count else 0.0))
    )
    label = escape(f"{subject}: {', '.join(f'{count:,}' for count in counts)}")
    width = len(counts) * _BAR
    return f'<svg class="line" width="{width}" height="{_HEIGHT}" role="img" aria-label="{label}">{bars}</svg>'
