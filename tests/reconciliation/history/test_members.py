"""Which messages a finding is of: kept as text and read again, and what one has that another has not."""

from __future__ import annotations

from itertools import combinations

import pytest

from reconciliation.history import members
from reconciliation.history.members import PARTS_MAX, Members
from tests.reconciliation.history.runs import causes, lost, row


def of(*eids: int) -> Members:
    return causes(lost(*eids))[0].members if eids else Members()


def test_eids_are_ranges_in_any_order() -> None:
    assert of(20, 17, 18, 33, 19).parts() == ["17-20", "33"]


def test_a_group_is_a_word_with_its_number() -> None:
    rows = [
        row("A3", eid=4, run="1a-0001", seq=9, rule="accepts", count=3, detail="outcome released"),
        row("A3", eid=8, run="1a-0001", seq=12, rule="accepts", count=1, detail="outcome released"),
    ]
    assert causes(rows)[0].members.parts() == ["1a-0001:12", "1a-0001:9 x3"]


def test_what_is_missing_and_named_by_words_alone() -> None:
    detail = "2 outcomes records missing: n 2 to 3"
    [cause] = causes([row("Q1", eid=None, node=None, store=None, run="1a-0001", count=2, detail=detail)])
    assert cause.members.parts() == [f"{detail} x2"]


@pytest.mark.parametrize(
    "words", [["a x3"], ["a x3", "a x3"], ["a x3", "a", "a", "a"], ["a x1"], ["17"], ["17-19", "x x2 x3"]]
)
def test_a_word_that_ends_as_a_number_of_times(words: list[str]) -> None:
    """A publisher may choose such a message-id: the finding is kept, read again, and acknowledged."""
    rows = [row("C1", eid=None, store=None, detail=word) for word in words]
    of_rows = Members()
    for entry in rows:
        of_rows.add(entry, in_words=False)
    of_rows.settle()
    assert of_rows.count == len(words)
    assert Members.of(of_rows.parts(), len(words)) == of_rows


@pytest.mark.parametrize("eids", [(), (5,), (1, 2, 3, 9), (0, 4, 5, 6, 8, 12)])
def test_parts_are_read_as_they_were(eids: tuple[int, ...]) -> None:
    members = of(*eids)
    assert Members.of(members.parts(), members.count) == members


def test_what_one_has_and_another_has_not() -> None:
    """Held against sets, over all pairs of subsets of a small range."""
    subsets = [subset for size in range(6) for subset in combinations(range(7), size)]
    for some in subsets:
        for others in subsets[::5]:
            left = of(*some).without(of(*others))
            assert left == of(*sorted({*some} - {*others})), (some, others)


def test_words_are_taken_away_by_their_number() -> None:
    more, fewer = Members(others={"a": 5, "b": 1}), Members(others={"a": 3})
    assert more.without(fewer) == Members(others={"a": 2, "b": 1})
    assert fewer.without(more).count == 0


def test_what_is_scattered_can_only_be_the_same_or_not() -> None:
    scattered = of(*range(0, 4 * PARTS_MAX, 2))
    [digest] = scattered.parts()
    assert digest.startswith("digest ") and scattered.count == 2 * PARTS_MAX
    known = Members.of([digest], scattered.count)
    assert known.count == scattered.count
    assert scattered.without(known).count == 0 and known.without(scattered).count == 0
    grown = of(*range(0, 4 * PARTS_MAX + 2, 2))
    assert grown.without(known).count == grown.count, "which of them are new is not known: none is passed over"


def test_more_than_memory_holds_are_known_by_a_sum_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scattered EIDs and words: so many of them as are kept, and then no more memory for any number of others."""
    monkeypatch.setattr(members, "MOST", 10)
    some = lost(*range(0, 200, 2))
    words = [row("A3", run="1a-0001", seq=seq, rule="accepts", detail="outcome released") for seq in range(100)]
    for rows in (some, words):
        [cause], [other] = causes(rows), causes(reversed(rows))
        [digest] = cause.members.parts()
        assert digest.startswith("digest sum ") and [digest] == other.members.parts()
        assert cause.count == 100 and not cause.members.eids and not cause.members.others
        known = Members.of([digest], 100)
        assert cause.members.without(known).count == 0
        assert causes([*rows, {**rows[0], "eid": 999, "seq": 999}])[0].members.without(known).count == 101


def test_neighbours_are_a_range_however_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "MOST", 10)
    [cause] = causes(lost(*range(5, 500), *range(700, 900)))
    assert cause.members.parts() == ["5-499", "700-899"]
    [cause] = causes(lost(*range(1, 20, 2), *range(0, 20, 2)))
    assert cause.members.parts() == ["0-19"], "they are joined before they are given up"


@pytest.mark.parametrize(("parts", "messages"), [(["1-3"], 2), (["3-1"], -1), ([], 1), (["a x2"], 1)])
def test_parts_that_do_not_agree_with_their_number(parts: list[str], messages: int) -> None:
    with pytest.raises(ValueError, match="messages"):
        Members.of(parts, messages)
