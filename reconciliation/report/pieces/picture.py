"""The balance as a picture: two bars of the same length, what was told and what there is; and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciliation.report.balance import Balance
from reconciliation.report.pieces.html import plural

WIDTH, HEIGHT = 1_000, 34
Part = tuple[str, int, str]
"""Its name, how many events, and its colour (`page.css`)."""


def picture(sheet: Balance) -> Iterator[str]:
    """Nothing where there is nothing to show."""
    answers, held = _sides(sheet)
    longest = max(_length(answers), _length(held))
    if not longest:
        return
    yield '<div class="picture">'
    yield from _bar("Told to publishers", answers, longest)
    yield from _bar("In the stores", held, longest)
    became = _became(sheet)
    if _length(became):
        yield from _bar("What became of it, for queues and durables", became, _length(became))
    yield "</div>"


def _sides(sheet: Balance) -> tuple[list[Part], list[Part]]:
    total = Counter[str]()
    for node in sheet.nodes:
        for name in ("accepted", "indeterminate", "in_flight", "copied", "older", "native", "unproven", "stored",
                     "retained_out", "unread"):  # fmt: skip
            total[name] += getattr(node, name)
        total["surplus"] += max(0, node.anomalies)
        total["lost"] += max(0, -node.anomalies)
    answers = [
        ("accepted", total["accepted"] - total["lost"], "one"),
        ("accepted and lost", total["lost"], "bad"),
        ("indeterminate", total["indeterminate"], "four"),
        ("in flight", total["in_flight"], "two"),
        ("copied", total["copied"], "three"),
        ("of plain producers", total["native"], "five"),
        ("older than the evidence", total["older"], "none"),
        ("without evidence", total["unproven"], "bad"),
        ("too many", total["surplus"], "bad"),
    ]
    held = [
        ("in store", total["stored"], "one"),
        ("no longer kept", total["retained_out"], "none"),
        ("not readable", total["unread"], "bad"),
        ("missing", total["lost"], "bad"),
    ]
    return answers, held


def _became(sheet: Balance) -> list[Part]:
    names = (
        ("acknowledged", "one"), ("available", "two"), ("dead_lettered", "four"), ("discarded", "four"),
        ("expired", "five"), ("filtered", "five"), ("evicted", "five"), ("moved", "three"), ("purged", "three"),
        ("skipped", "bad"), ("early", "bad"), ("retained_out", "bad"),
    )  # fmt: skip
    words = {"dead_lettered": "dead letters", "early": "ended before stored", "retained_out": "lost by retention"}
    return [
        (words.get(name, name), sum(getattr(queue, name) for queue in sheet.durables), colour) for name, colour in names
    ]


def _length(parts: Sequence[Part]) -> int:
    return sum(count for _, count, _ in parts if count > 0)


def _bar(title: str, parts: Sequence[Part], longest: int) -> Iterator[str]:
    there = [part for part in parts if part[1] > 0]
    text = "; ".join(f"{count:,} {name}" for name, count, _ in there) or "nothing"
    yield f"<figure><figcaption>{title}: {plural(_length(parts), 'event')}</figcaption>"
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{title}: {text}">'
    at = 0.0
    for name, count, colour in there:
        width = max(count / longest * WIDTH, 2.0)  # what is there can be seen
        yield f'<rect class="part {colour}" x="{min(at, WIDTH - 2):.1f}" y="0" width="{width:.1f}" height="{HEIGHT}">'
        yield f"<title>{count:,} {name}</title></rect>"
        at += width
    yield "</svg>"
    yield '<ul class="legend">'
    yield "".join(f'<li><i class="part {colour}"></i>{count:,} {name}</li>' for name, count, colour in there)
    yield "</ul></figure>"
