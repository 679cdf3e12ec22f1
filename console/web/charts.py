"""Bars by minute as SVG, drawn here: no script, and the numbers stand in a sentence beside them.

Colours are classes of the style sheet. A bar of minutes that were not watched is pale. Where it is not known what
happened, the drawing is hatched from top to bottom, and has no bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

_WIDTH = 12  # of a bar, of 100 units of height: the drawing is stretched to its place


def bars(
    values: Sequence[int | None],
    klass: str,
    say: str,
    watched: Sequence[bool] = (),
    unknown: Sequence[Sequence[float]] = (),
    *,
    small: bool = False,
) -> Markup:
    """`say`: what it shows, in a sentence. `unknown`: from and to where, in bars. `small`: within a row."""
    most, width = max([*(value or 0 for value in values), 1]), _WIDTH * len(values)
    drawn = [hatch for begin, end in unknown for hatch in _hatched(begin * _WIDTH, end * _WIDTH)]
    for at, value in enumerate(values):
        if value:
            height = max(3.0, value / most * 96)
            pale = " pale" if watched and not watched[at] else ""
            drawn.append(
                f'<rect class="{klass}{pale}" x="{at * _WIDTH + 1}" y="{100 - height:.1f}" width="{_WIDTH - 2}"'
                f' height="{height:.1f}"/>'
            )
            if klass == "transient":
                drawn += [
                    f'<line class="stripe" x1="{at * _WIDTH + 1}" x2="{(at + 1) * _WIDTH - 1}" y1="{y + 6}" y2="{y}"/>'
                    for y in range(99, int(100 - height), -12)
                ]
    kind = "spark" if small else "bars"
    axis = f'<line class="axis" x1="0" x2="{width}" y1="99.5" y2="99.5"/>'
    head = f'<svg class="{kind}" viewBox="0 0 {width} 100" preserveAspectRatio="none" role="img"'
    return _drawing(f'{head} aria-label="{escape(say)}">{axis}{"".join(drawn)}</svg>')


def _hatched(begin: float, end: float) -> list[str]:
    lines = [
        f'<line class="hatch" x1="{x}" x2="{min(x + _WIDTH, end):.1f}" y1="100" y2="0"/>'
        for x in range(int(begin), int(end), _WIDTH)
    ]
    return [f'<rect class="gap" x="{begin:.1f}" width="{max(2.0, end - begin):.1f}" height="100"/>', *lines]


def _drawing(svg: str) -> Markup:
    """Made of numbers, classes of ours, and a sentence that was escaped."""
    return Markup(svg)  # noqa: S704


def meter(used: float, klass: str) -> Markup:
    """A part of a whole, 0 to 1; the number stands beside it."""
    width = min(1.0, max(0.0, used)) * 72
    return _drawing(
        f'<svg class="meter" viewBox="0 0 72 8" aria-hidden="true"><rect class="whole" width="72" height="8"/>'
        f'<rect class="{klass}" width="{width:.1f}" height="8"/></svg>'
    )


def mix(outcomes: dict[str, int]) -> Markup:
    """Outcomes side by side, in their order of badness."""
    total = sum(outcomes.values()) or 1
    drawn, at = [], 0.0
    for outcome, count in sorted(outcomes.items(), key=lambda pair: _RANK.get(pair[0], 1)):
        width = max(1.5, count / total * 100)
        drawn.append(f'<rect class="{_COLOUR.get(outcome, "transient")}" x="{at:.1f}" width="{width:.1f}" height="8"/>')
        at += width
    return _drawing(
        f'<svg class="mix" viewBox="0 0 {max(100, at):.1f} 8" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(drawn)}</svg>"
    )


_RANK = {"accepted": 0, "none": 0, "released": 2, "rejected": 3}
_COLOUR = {"accepted": "fine", "none": "fine", "rejected": "fatal"}
