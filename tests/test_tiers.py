"""Each test is in exactly one tier, and the table of the long tier says what is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.lanes import HERE, SPLIT, SPLIT_LONG, TIERS, rooms
from tests.ready import STEPS
from tests.tiers import LONG, is_long

COLLECT = """
import pytest, sys
class Names:
    def pytest_collection_finish(self, session):
        for item in session.items:
            print("test", *(mark.name for mark in item.iter_markers("long")), ascii(item.nodeid))
sys.exit(pytest.main(["--collect-only", "-p", "no:cacheprovider", "tests"], plugins=[Names()]))
"""


@pytest.fixture(scope="module")
def collected() -> dict[str, int]:
    """Node id -> how often it is marked long, of the whole suite."""
    environment = {name: value for name, value in os.environ.items() if name not in ("RECORD", "ONLY")}
    done = subprocess.run(
        [sys.executable, "-c", COLLECT], cwd=HERE.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tests = re.findall(r"^test((?: long)*) ['\"](.*)['\"]$", done.stdout, re.MULTILINE)
    return {name.encode().decode("unicode_escape"): marks.count("long") for marks, name in tests}


def test_each_test_is_in_one_tier(collected: dict[str, int]) -> None:
    """The two selections of one mark leave nothing out and run nothing twice; only the table sets the mark."""
    assert (TIERS["gate"], TIERS["long"], TIERS["all"]) == (("-m", "not long"), ("-m", "long"), ())
    assert len(collected) > 5000
    assert {name: int(is_long(name)) for name in collected} == collected


def test_each_line_of_the_table_is_about_something(collected: dict[str, int]) -> None:
    idle = [pattern for pattern in LONG if not any(re.match(f"tests/{pattern}", name) for name in collected)]
    assert not idle


def test_each_room_has_its_lane(collected: dict[str, int]) -> None:
    """A room without a test of the tier would end with 5, which is red; one that is not started would be silent."""
    for tier, marks in (("gate", {0}), ("long", {1}), ("all", {0, 1})):
        names = {name.partition("::")[0].removeprefix("tests/") for name, n in collected.items() if n in marks}
        split = [f"{room}/" for room in (*SPLIT, *(SPLIT_LONG if tier == "long" else ()))]
        depths = {name: max((room.count("/") for room in split if name.startswith(room)), default=0) for name in names}
        with_tests = {"/".join(name.split("/")[: 1 + depth]) for name, depth in depths.items()}
        waiting, quiet = rooms(tier)
        assert {*waiting, *quiet} == {f"tests/{room}" for room in with_tests - {"test_tidy.py"}}, tier


def test_most_of_the_suite_is_in_the_gate(collected: dict[str, int]) -> None:
    """What is promised is shown there: each room keeps most of its tests, but for those that are costly by nature."""
    total, long = Counter[str](), Counter[str]()
    for name, marks in collected.items():
        room = name.split("/")[1].partition("::")[0]
        total[room] += 1
        long[room] += marks
    costly = {"deploy", "fuzz", "interop", "shake"}
    assert not [room for room in total if 2 * long[room] > total[room] and room not in costly]


def test_what_the_gate_needs_is_a_part_of_what_the_long_tier_needs() -> None:
    assert STEPS["gate"].items() <= STEPS["long"].items() == STEPS["all"].items()
