"""Contract tests in which something is consumed run on nodes of one, two and three stores (`SPREAD`).

A link on several stores and a link on one take the same path, and a mistake shows on two or three only: two links that
shared a durable with two selectors were both admitted there, and each passed over the other's events. So every contract
test that subscribes (and with it each one of sharing, selectors, endings and settlements) is spread. What is not is in
`NOT_SPREAD`, with the reason. Only names are read: of a test, and of what it calls in its own module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.kit.realm.fixtures import SPREAD

CONTRACT = Path(__file__).parent / "contract"
CONSUMING = {"consumer", "subscribed", "Sleeper"}  # the ways to subscribe of `tests/kit/realm` and `tests/contract`
NOT_SPREAD = {
    "nodes/test_partitions.py": "it makes nodes of several stores itself",
    "journal/test_snapshots.py::test_a_snapshot_of_the_version_before_is_read_and_one_of_a_later_version_refused": (
        "it is about the version of one record"
    ),
    "nodes/test_nodes.py::test_a_deleted_node_is_lost_and_a_recreated_one_is_another": "test_partitions.py has it",
    "nodes/test_nodes.py::test_a_node_made_anew_between_two_looks_is_another": "it is about the name of a node",
    "nodes/test_nodes.py::test_a_channel_durable_does_not_outlive_its_node": "it is about the name of a node",
    "nodes/test_nodes.py::test_nothing_is_kept_of_temporary_nodes_that_have_gone": "a temporary node has one store",
    "nodes/test_nodes.py::test_any_name_is_a_node": "it is about the name of a node",
    "nodes/test_nodes.py::test_names_with_the_same_slug_or_alike_in_kafkas_eyes_are_different_nodes": (
        "it is about the name of a node"
    ),
    "nodes/test_properties.py::test_a_change_reaches_a_serving_realm_by_itself": "it is about metadata",
    "nodes/test_properties.py::test_a_topic_that_is_adopted_again_begins_anew": "the adopted topic has one partition",
    "nodes/test_properties.py::test_what_was_acknowledged_in_an_adopted_queue_stays_so_after_a_kill": (
        "the adopted topic has one partition"
    ),
    "recovery/test_bad_worlds.py::test_a_topic_that_was_made_again_is_no_longer_the_nodes": "a node has one topic",
    "recovery/test_bad_worlds.py::test_a_journal_of_a_later_version_is_refused_and_the_realm_left_to_others": (
        "it is about the version of one record"
    ),
    "shard/test_lease.py::test_a_standby_waits_and_follows_at_once_when_the_owner_ends_in_order": (
        "a realm has one lease"
    ),
    "shard/test_lease.py::test_an_owner_that_is_not_heard_is_followed_and_gives_nothing_after_its_lease": (
        "a realm has one lease"
    ),
    "shard/test_lease.py::test_a_lease_that_cannot_be_looked_at_lapses_and_is_held_again": "a realm has one lease",
    "shard/test_lease.py::test_a_lease_whose_topic_cannot_be_trimmed_is_held": "a realm has one lease",
    "shard/test_lease.py::test_a_claim_without_the_lease_takes_the_shard_from_no_owner": "a realm has one lease",
    "shard/test_projection_waits.py::test_events_are_read_again_and_durables_begin_meanwhile": (
        "its log holds back the answer about one store"
    ),
}


def not_spread(files: Mapping[str, str]) -> Iterator[str]:
    """The tests that subscribe and run on fewer; `files`: text by path."""
    for path, text in files.items():
        module = ast.parse(text)
        functions = {step.name: step for step in module.body if isinstance(step, ast.FunctionDef)}
        if any(isinstance(step, ast.Assign) and ast.unparse(step) == "pytestmark = SPREAD" for step in module.body):
            continue
        for name, function in functions.items():
            marks = {ast.unparse(mark) for mark in function.decorator_list}
            if name.startswith("test_") and "SPREAD" not in marks and _calls(name, functions) & CONSUMING:
                yield f"{path}::{name}"


def _calls(name: str, functions: Mapping[str, ast.FunctionDef]) -> set[str]:
    """The names of what it calls, and of what those call that are in the same module."""
    known, pending = set[str](), [name]
    while pending:
        function = functions.get(pending.pop())
        if function is None:
            continue
        calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
        names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
        pending += names - known
        known |= names
    return known


def test_what_consumes_runs_on_one_two_and_three_stores() -> None:
    assert SPREAD.args == ("partitions", [1, 2, 3])
    files = {path.relative_to(CONTRACT).as_posix(): path.read_text() for path in CONTRACT.rglob("test_*.py")}
    tests = {*not_spread(files)}
    excepted = {test for test in tests if test in NOT_SPREAD or test.partition("::")[0] in NOT_SPREAD}
    assert not tests - excepted, "mark them SPREAD, or say in NOT_SPREAD why one store is enough"
    idle = {name for name in NOT_SPREAD if not any(test == name or test.startswith(f"{name}::") for test in tests)}
    assert not idle, "they are spread, or gone"


def test_what_runs_on_fewer_is_seen() -> None:
    shares = "def shares(realm):\n    realm.consumer(1, 'durable', 's')\n"
    alone, spread = "def test_it(realm):\n    shares(realm)\n", "@SPREAD\ndef test_too(realm):\n    shares(realm)\n"
    fewer = "@pytest.mark.parametrize('partitions', [1, 3])\n" + alone
    asks = "def test_of_a_node(realm):\n    realm.node('q')\n"
    for text, wanted in (
        (shares + alone + spread, ["x.py::test_it"]),
        (shares + fewer, ["x.py::test_it"]),
        (shares + spread + asks, []),
        ("pytestmark = SPREAD\n" + shares + alone, []),
    ):
        assert [*not_spread({"x.py": text})] == wanted
