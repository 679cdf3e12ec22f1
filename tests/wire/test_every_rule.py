"""No outcome is decided in Python code: change any one shipped rule, and a gateway that is started on the changed
tables sends other frames. For every rule of every table and profile, one cell of it is run.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import pytest
import yaml

from mappings import TableSet, load_tables
from mappings.compiler.compile import Table
from mappings.compiler.table_set import SHIPPED
from mappings.language.vocabulary import PROFILES
from mappings.language.vocabulary import TABLES as WORDS
from tests.kit.processes.gateway import StartGateway
from tests.kit.scenarios.table_scenarios import run_scenario
from tests.kit.tables.mutants import FILES, compiled, mutants
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

TABLES = {profile: load_tables(profile=profile) for profile in PROFILES}
# A version's rules that are another's too are run once; `extended` is what most run, so all of its own run.
RULES = [
    (profile, name, rule)
    for profile in PROFILES
    for name in TABLES[profile]
    for rule in TABLES[profile][name].rules
    if profile in ("um-9.12", "extended") or rule not in TABLES["um-9.12"][name].rules
]
CELLS_MAX = 12  # of one rule, tried until a changed one shows
MUTANTS_MAX = 12
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class ChangedTables(TableSet):
    """The shipped tables of a profile, but for one."""

    def __init__(self, shipped: TableSet, changed: Table) -> None:
        super().__init__(shipped.profile, {name: shipped[name] for name in shipped} | {changed.name: changed})


def changed_tables(directory: Path, profile: str, name: str, rule: str) -> Iterator[TableSet]:
    """The tables with that rule changed in one lawful way after another, read from a file."""
    path = directory / f"{name}.yaml"
    writer, at = place(profile, name, rule)
    for document in varied(chain(mutants(name, writer, at), fatal(name, writer, at), refused(name, writer, at))):
        path.write_text(yaml.dump(document, Dumper=DUMPER, sort_keys=False))
        tables = compiled(path, name)
        if tables is not None:
            yield ChangedTables(TABLES[profile], tables[profile])


def fatal(name: str, writer: str, at: int) -> Iterator[tuple[dict[str, Any], Any]]:
    """The one change of two words that no other rule may happen to say: the link closes."""
    if "class" in WORDS[name].then:
        document = copy.deepcopy(FILES[name])
        change = {"class": "fatal", "condition": "amqp:internal-error"}
        document["profiles"][writer]["rules"][at]["then"] |= change
        yield change, document


def refused(name: str, writer: str, at: int) -> Iterator[tuple[dict[str, Any], Any]]:
    """The link is refused, or detached where it would be kept: what no other rule of the profile may happen to say."""
    document = copy.deepcopy(FILES[name])
    then = document["profiles"][writer]["rules"][at]["then"]
    if name == "attach":
        change = {"native": "none", "subscription": "none", "attach": "refuse", "condition": "amqp:internal-error"}
    elif name == "attached" and then["attach"] == "keep":
        change = {"attach": "detach", "in_flight": "none", "condition": "amqp:internal-error", "class": "fatal"}
    else:
        return
    document["profiles"][writer]["rules"][at]["then"] = change
    yield change, document


def varied(mutants: Iterator[tuple[dict[str, Any], Any]]) -> Iterator[Any]:
    """The documents, one of each kind of change before a second of any."""
    kinds: dict[tuple[str, ...], list[Any]] = {}
    for change, document in mutants:
        kinds.setdefault(tuple(change), []).append(document)
    return (document for row in zip_longest(*kinds.values()) for document in row if document is not None)


def place(profile: str, name: str, rule: str) -> tuple[str, int]:
    """The profile that writes the rule down, and where in its list."""
    for writer in (profile, *PROFILES):
        ids = [entry["id"] for entry in FILES[name]["profiles"].get(writer, {"rules": []})["rules"]]
        if rule in ids:
            return writer, ids.index(rule)
    raise AssertionError(f"no profile writes {rule}")


def cells(table: Any, rule: str) -> Iterator[dict[str, str]]:
    """Combinations that the rule decides, neighbours far apart first."""
    matches = [decision.cell for decision in table.cells if decision is not None and decision.rule == rule]
    step = max(1, len(matches) // CELLS_MAX)
    return (table.facts(cell) for cell in matches[::step])


def id_of(profile: str, name: str, rule: str) -> str:
    """What `extended` has, too, is named so; `tests/tiers.py` puts it into the long tier."""
    again = profile != "extended" and rule in TABLES["extended"][name].rules
    return f"{'again-' if again else ''}{profile}-{name}-{rule}"


@pytest.mark.parametrize(("profile", "name", "rule"), RULES, ids=[id_of(*rule) for rule in RULES])
def test_a_changed_rule_changes_the_frames(tmp_path: Path, profile: str, name: str, rule: str) -> None:
    shipped = TABLES[profile]
    changed: list[TableSet] = []
    more = islice(changed_tables(tmp_path, profile, name, rule), MUTANTS_MAX)
    for facts in cells(shipped[name], rule):
        before = run_scenario(name, facts, shipped)
        assert before == run_scenario(name, facts, shipped), (
            "the same scenario went otherwise: a difference would prove nothing"
        )
        if any(run_scenario(name, facts, tables) != before for tables in changed):
            return
        for tables in more:
            changed.append(tables)
            if run_scenario(name, facts, tables) != before:
                return
    assert changed, "no law leaves this rule a choice"
    pytest.fail(f"nothing that rule {rule} says is seen on the wire")


def test_a_fault_without_a_scenario_cannot_be_passed_over() -> None:
    with pytest.raises(KeyError):
        run_scenario("fault", {"fault": "something new"}, TABLES["extended"])


def test_a_gateway_that_is_started_on_changed_tables_goes_by_them(new_gateway: StartGateway, tmp_path: Path) -> None:
    """The same over a socket, with a process and the whole directory: what is stored is told as modified."""
    shutil.copytree(SHIPPED / "tables", tmp_path / "own" / "tables")
    path = tmp_path / "own" / "tables" / "published.yaml"
    rule = "then: {outcome: accepted, settle: true}"
    text = path.read_text(encoding="utf-8")
    assert text.count(rule) == 1
    path.write_text(text.replace(rule, "then: {outcome: modified, settle: true}"), encoding="utf-8")
    gateway = new_gateway("embedded", mappings={"dir": str(tmp_path / "own")})
    with Peer(gateway.port) as peer:
        peer.publisher("q")
        peer.publish(frames.message())
        assert peer.outcomes(1) == {0: "modified"}
