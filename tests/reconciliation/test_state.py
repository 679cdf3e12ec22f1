"""What the next reconciliation reads, and why it cannot go on from where the last one was, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciliation.model.folder import LocalFolder
from reconciliation.model.ranges import Extent, Range, Unread
from reconciliation.model.settings import Realm, SettingsError
from reconciliation.model.state import (
    Seen,
    State,
    changed_of,
    check_realm,
    judged_extent,
    next_state,
    plan,
    state_of,
)
from reconciliation.read import increments
from reconciliation.read.links import files_of

IDS = {"um.realm": "r", "um.outcomes": "o", "um.journal": "j", "um.node.a": "a", "um.node.b": "b"}


def extent(**ends: tuple[int, int]) -> Extent:
    """First and end by the last part of a topic's name."""
    bounds = {"outcomes": (0, 10), "journal": (0, 20), "a": (0, 30), "b": (0, 0)} | ends
    names = {topic.rpartition(".")[2]: topic for topic in IDS}
    ranges = [Range(names[name], 0, first, end) for name, (first, end) in bounds.items()]
    return Extent((*ranges, Range("um.realm", 0, 0, 5)), (), IDS)


def seen(topic: str, first: int, last: int) -> dict[tuple[str, int], Seen]:
    return {(topic, 0): Seen(first, hash((topic, first)), last, hash((topic, last)))}


def first_state() -> State:
    now = extent()
    marks = seen("um.outcomes", 0, 8) | seen("um.journal", 0, 19) | seen("um.node.a", 0, 29)
    return next_state(None, now, "um", plan(None, now, "um"), marks, "1", 1_000)


def reads(state: State, now: Extent) -> dict[str, tuple[int, int]]:
    reading = plan(state, now, "um")
    assert not reading.broken
    return {topic.rpartition(".")[2]: (start.read, start.counts) for (topic, _), start in reading.starts.items()}


def test_each_partition_is_read_from_its_last_record_on() -> None:
    now = extent(outcomes=(0, 15), a=(12, 33), b=(0, 4))
    assert reads(first_state(), now) == {"outcomes": (8, 10), "journal": (19, 20), "a": (29, 30), "b": (0, 0)}
    assert reads(first_state(), extent(a=(31, 33), outcomes=(9, 15))) | {"journal": (0, 0)} == {
        "outcomes": (10, 10), "journal": (0, 0), "a": (31, 31), "b": (0, 0),
    }  # fmt: skip


def test_a_state_comes_back_as_it_was_written() -> None:
    state = first_state()
    assert state_of(state.as_json(), "DIR") == state


def test_a_state_that_was_changed_is_refused() -> None:
    body = json.loads(first_state().as_json())
    body["links"][0]["ranges"][0]["end"] -= 1
    with pytest.raises(SettingsError, match="the state in DIR was changed after it was written"):
        state_of(json.dumps(body).encode(), "DIR")


def test_the_state_of_an_earlier_release_is_read() -> None:
    body = json.loads(first_state().as_json())
    del body["digest"]
    for link in body["links"]:
        del link["files"], link["merges"]
    assert state_of(json.dumps(body, indent=1).encode(), "DIR") == first_state()


def test_a_link_that_has_lost_a_file_is_a_gap_in_the_chain(tmp_path: Path) -> None:
    folder, own = LocalFolder(tmp_path), tmp_path / "links" / "link=1"
    for kind in ("outcomes", "events"):
        (own / f"kind={kind}").mkdir(parents=True)
        (own / f"kind={kind}" / "part-0.parquet").touch()
        (own / f"kind={kind}" / "_SUCCESS").touch()
    files = files_of(folder / "links", "1")
    state = next_state(None, extent(), "um", plan(None, extent(), "um"), {}, "1", 1_000, files)
    folder.write("state-000001.json", state.as_json())
    (own / "kind=events" / "_SUCCESS").unlink()  # no records
    assert increments.in_force(Realm("embedded", "um"), extent(), folder) == state
    (own / "kind=events" / "part-0.parquet").unlink()
    with pytest.raises(SettingsError, match="link=1 has not the files any more that its state names"):
        increments.in_force(Realm("embedded", "um"), extent(), folder)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (extent(outcomes=(0, 9)), "um.outcomes ends at offset 9, and was read up to 10: it became shorter"),
        (extent(journal=(22, 30)), "um.journal was trimmed up to offset 22, and read up to 20: no reconciliation has"),
        (replace(extent(), topics={**IDS, "um.journal": "x"}), "um.journal is another topic than the one that was"),
    ],
)
def test_evidence_that_does_not_continue_is_read_anew_as_a_whole(now: Extent, words: str) -> None:
    reading = plan(first_state(), now, "um")
    assert [words in why for why in reading.broken] == [True]
    assert not any(start.continued for start in reading.starts.values())
    state = next_state(first_state(), now, "um", reading, {}, "2", 2_000)
    assert [link.name for link in state.links] == ["2"]
    assert [words in remark.words for remark in state.remarks] == [True]
    later = next_state(state, now, "um", plan(state, now, "um"), {}, "3", 3_000)
    assert later.remarks == state.remarks, "it is said ever after"


def test_one_offset_that_held_nothing_is_no_gap() -> None:
    assert plan(first_state(), extent(journal=(21, 30)), "um").broken == ()


def test_a_record_that_is_another_one_now_is_seen() -> None:
    state, now = first_state(), extent(a=(0, 40))
    reading = plan(state, now, "um")
    same = seen("um.outcomes", 8, 8) | seen("um.journal", 19, 19) | seen("um.node.a", 29, 39)
    assert changed_of(reading, same) == set()
    assert changed_of(reading, {**same, ("um.node.a", 0): Seen(29, 7, 39, 7)}) == {("um.node.a", 0)}
    assert changed_of(reading, seen("um.outcomes", 8, 8) | seen("um.journal", 19, 19)) == {("um.node.a", 0)}
    again = plan(state, now, "um", {("um.node.a", 0)})
    assert again.broken == () and again.starts["um.node.a", 0].read == 0
    assert not reading.covers(again) and again.covers(reading)
    after = next_state(state, now, "um", again, seen("um.node.a", 0, 39), "2", 2_000)
    assert [{stretch.topic for stretch in link.ranges} for link in after.links] == [
        {"um.outcomes", "um.journal"},
        {"um.node.a"},
    ]
    assert plan(state, now, "um", {("um.outcomes", 0)}).broken, "evidence is never read anew in silence"


@pytest.mark.parametrize("ends", [{"a": (0, 12)}, {"a": (2, 12)}])
def test_a_store_that_became_shorter_is_read_anew(ends: dict[str, tuple[int, int]]) -> None:
    assert reads(first_state(), extent(**ends))["a"] == (ends["a"][0], ends["a"][0])


def test_what_cannot_be_read_now_is_not_forgotten_and_what_is_gone_is() -> None:
    state, now = first_state(), extent()
    without = tuple(stretch for stretch in now.ranges if stretch.topic != "um.node.a")
    down = replace(now, ranges=without, unread=(Unread("um.node.a", 0, "no leader"),))
    kept = next_state(state, down, "um", plan(state, down, "um"), {}, "2", 2_000)
    assert reads(kept, extent(a=(0, 31)))["a"] == (29, 30)
    topics = {topic: id_ for topic, id_ in IDS.items() if topic != "um.node.a"}
    gone = replace(now, ranges=without, topics=topics)
    forgotten = next_state(state, gone, "um", plan(state, gone, "um"), {}, "2", 2_000)
    assert "um.node.a" not in {point.topic for point in forgotten.reached}
    assert "um.node.a" not in {stretch.topic for link in forgotten.links for stretch in link.ranges}


def test_evidence_counts_from_where_it_was_first_read() -> None:
    now = extent(outcomes=(8, 12), a=(20, 30))
    state = first_state()
    after = next_state(state, now, "um", plan(state, now, "um"), {}, "2", 2_000)
    judged = judged_extent(now, "um", after.links)
    assert {stretch.topic: stretch.first for stretch in judged.ranges} == {
        "um.outcomes": 0, "um.journal": 0, "um.node.a": 20, "um.node.b": 0, "um.realm": 0,
    }  # fmt: skip


def test_a_state_of_another_realm_is_refused() -> None:
    others = replace(extent(), topics={name: f"other {id_}" for name, id_ in IDS.items()})
    for now, prefix in ((others, "um"), (extent(), "an")):
        with pytest.raises(SettingsError, match="DIR is of another realm"):
            check_realm(first_state(), now, prefix, "DIR")
    check_realm(first_state(), replace(extent(), topics={**IDS, "um.journal": "x"}), "um", "DIR")
