"""Real gateways with real clients and their ledgers: an unchanged gateway is clean; a changed one is found."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.kit.processes.gateway import StartGateway, embedded_realm, make_gateway
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.judging import judged
from tests.reconciliation.mutants import mutated
from tests.reconciliation.mutants.mutants import MUTANTS
from tests.reconciliation.mutants.workload import NAMES, create, work

PROGRAM = [sys.executable, "-P", mutated.__file__]


@pytest.mark.parametrize("transformer", ["basic", "complete", "none"])
@pytest.mark.parametrize("kind", ["embedded", "kafka"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_unchanged_gateway_is_clean(
    kind: str, transformer: str, new_gateway: StartGateway, reconcile: Reconcile, tmp_path: Path
) -> None:
    gateway = new_gateway(kind, transformer=transformer)
    create(gateway)
    work(gateway, tmp_path / "ledgers")
    assert gateway.stop() == 0
    result = judged(gateway, reconcile, tmp_path / "ledgers")
    assert (result.code, result.manifest["ledgers"]["left"]) == (0, {}), result.text
    steps = result.manifest["ledgers"]["steps"]
    assert steps["sent"] == steps["told"] == len(NAMES) + 4
    assert steps["received"] == steps["settled"] == len(NAMES) + 2 + 1 + 2, "two came again, one died, two were small"


def test_the_code_has_what_each_mutant_changes_once() -> None:
    specs = {name: importlib.util.find_spec(mutant.module) for name, mutant in MUTANTS.items()}
    texts = {name: Path(spec.origin).read_text() for name, spec in specs.items() if spec and spec.origin}
    assert {name: texts[name].count(mutant.old) for name, mutant in MUTANTS.items()} == dict.fromkeys(MUTANTS, 1)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_changed_gateway_is_found(name: str, reconcile: Reconcile, tmp_path: Path) -> None:
    mutant = MUTANTS[name]
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path))
    try:
        gateway.start()
        create(gateway)
        assert gateway.stop() == 0
        gateway.program = [*PROGRAM, mutant.module, mutant.old, mutant.new]
        gateway.start()
        work(gateway, tmp_path / "ledgers")
    finally:
        code = gateway.stop()
    assert code == 0, gateway.log()
    result = judged(gateway, reconcile, tmp_path / "ledgers")
    codes = frozenset(result.classes()) - {"P5"}
    of_clients = frozenset(code for code in codes if code.startswith("C"))
    assert (of_clients, codes - of_clients) == (mutant.by_ledgers, mutant.by_records), result.text
    assert bool(mutant.why) is not bool(mutant.by_records)
