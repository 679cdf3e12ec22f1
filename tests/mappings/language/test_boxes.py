"""The proof by boxes against plain enumeration: on random small tables both find the same gaps and clashes."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from mappings.compiler.check import check_table
from mappings.language.boxes import Box, combinations_of, first_of, full, intersect, subtract, subtract_all, volume
from mappings.language.rules import Impossible, Profile, Rule, TableRules, facts_of, write_facts
from mappings.language.vocabulary import TableWords, Word

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@st.composite
def sized_boxes(draw: st.DrawFn, count_max: int = 6) -> tuple[list[int], list[Box]]:
    sizes = draw(SIZES)
    box = st.tuples(*(st.integers(1, (1 << size) - 1) for size in sizes))
    return sizes, draw(st.lists(box, min_size=2, max_size=count_max))


def cells(box: Box | None) -> set[tuple[int, ...]]:
    return set() if box is None else set(combinations_of(box))


@given(sized_boxes())
def test_box_arithmetic_is_set_arithmetic(case: tuple[list[int], list[Box]]) -> None:
    sizes, (a, b, *_) = case
    assert volume(a) == len(cells(a))
    assert cells(full(sizes)) == set(product(*(range(size) for size in sizes)))
    assert cells(intersect(a, b)) == cells(a) & cells(b)
    parts = subtract(a, b)
    assert set().union(*map(cells, parts)) == cells(a) - cells(b)
    assert sum(map(volume, parts)) == len(cells(a) - cells(b)), "the parts are disjoint"
    assert first_of(a) == next(combinations_of(a))


@given(sized_boxes())
def test_what_is_left_over_is_what_nothing_covers(case: tuple[list[int], list[Box]]) -> None:
    sizes, boxes = case
    left = subtract_all([full(sizes)], boxes)
    assert set().union(*map(cells, left)) == cells(full(sizes)) - set().union(*map(cells, boxes))
    assert all(intersect(a, b) is None for a, b in combinations(left, 2))


@settings(max_examples=200)
@given(sized_boxes(), st.integers(0, 2))
def test_the_proof_agrees_with_enumeration(case: tuple[list[int], list[Box]], impossible_count: int) -> None:
    sizes, boxes = case
    table = _table(sizes, boxes[impossible_count:], boxes[:impossible_count])
    possible = cells(full(sizes)) - set().union(*map(cells, boxes[:impossible_count]))
    hits = {at: [rule for rule in table.profiles["extended"].rules if at in cells(rule.box)] for at in possible}
    problems = [problem.message for problem in check_table(table)]

    gaps = [at for at, rules in hits.items() if not rules]
    told_gaps = [message for message in problems if "has a gap" in message]
    assert bool(gaps) == bool(told_gaps)
    if gaps:
        assert f"({len(gaps)} combinations)" in told_gaps[0]
        assert any(f"no rule hits {write_facts(facts_of(table.words, at))} (" in told_gaps[0] for at in gaps)

    clashing = {pair for rules in hits.values() for pair in combinations([rule.id for rule in rules], 2)}
    pairs = combinations([rule.id for rule in table.profiles["extended"].rules], 2)
    reported = {(a, b) for a, b in pairs if any(f"rules {a} (" in m and f" and {b} (" in m for m in problems)}
    assert reported == clashing

    dead = {rule.id for rule in table.profiles["extended"].rules if not cells(rule.box) & possible}
    assert dead == {message.split()[1] for message in problems if " is dead in " in message}


def _table(sizes: list[int], boxes: list[Box], impossible: list[Box]) -> TableRules:
    axes = {f"axis{at}": tuple(f"v{value}" for value in range(size)) for at, size in enumerate(sizes)}
    words = TableWords("random", axes, {"say": Word(("yes",))})
    rules = tuple(
        Rule(f"rule{at}", box, {"say": "yes"}, "because", ("S-A1",), "random.yaml", at + 10)
        for at, box in enumerate(boxes)
    )
    ruled_out = tuple(Impossible(box, "because", at + 2) for at, box in enumerate(impossible))
    return TableRules(words, "random.yaml", ruled_out, {"extended": Profile("extended", rules, 9)})
