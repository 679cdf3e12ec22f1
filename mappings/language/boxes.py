"""Boxes: sets of combinations, as one set of allowed values per axis, each set a bit mask.

A rule that leaves an axis out allows all its values, so a rule *is* a box, and what the checker must prove (no gap, no
clash) is arithmetic on boxes: nothing is enumerated, and a table may grow axes without the proof growing with the
product.

A box has one mask per axis, none of them 0: an empty set is no box.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from math import prod

Box = tuple[int, ...]


def full(sizes: Iterable[int]) -> Box:
    """Every combination of axes that have that many values."""
    return tuple((1 << size) - 1 for size in sizes)


def volume(box: Box) -> int:
    """How many combinations."""
    return prod(mask.bit_count() for mask in box)


def intersect(a: Box, b: Box) -> Box | None:
    masks = tuple(x & y for x, y in zip(a, b, strict=True))
    return masks if all(masks) else None


def subtract(a: Box, b: Box) -> list[Box]:
    """`a` without `b`, as disjoint boxes: at most one for each axis."""
    if intersect(a, b) is None:
        return [a]
    left: list[Box] = []
    head: Box = ()
    for axis, (mine, theirs) in enumerate(zip(a, b, strict=True)):
        if outside := mine & ~theirs:
            left.append((*head, outside, *a[axis + 1 :]))
        head = (*head, mine & theirs)
    return left


def subtract_all(boxes: Iterable[Box], taken: Iterable[Box]) -> list[Box]:
    """Disjoint `boxes` without every box of `taken`, as disjoint boxes."""
    left = list(boxes)
    for other in taken:
        left = [rest for box in left for rest in subtract(box, other)]
    return left


def within(box: Box, space: Iterable[Box]) -> list[Box]:
    """The part of `box` that lies in a space of disjoint boxes."""
    return [part for other in space if (part := intersect(box, other)) is not None]


def first_of(box: Box) -> tuple[int, ...]:
    """One combination of a box: the first value of each axis."""
    return tuple((mask & -mask).bit_length() - 1 for mask in box)


def combinations_of(box: Box) -> Iterator[tuple[int, ...]]:
    """Every combination of a box, first axis slowest."""
    return product(*([bit for bit in range(mask.bit_length()) if mask >> bit & 1] for mask in box))
