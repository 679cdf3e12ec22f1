"""`realmgate mappings explain --record RUN:SEQ --config FILE`: what was decided about one delivery, decided again by
the tables that its outcome record names, from the log alone.

Exit codes: 0 the same decision, 1 another one, or no such record. Errors: `LogError`, printed by `gateway.cli.main`.
"""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from typing import Any, TextIO

from gateway.cli.configuration.search import add_config
from gateway.cli.output import printable
from gateway.cli.stored_tables import documents, stored_tables
from gateway.config.settings import Settings
from gateway.serve.open_log import open_log
from mappings import TableSet
from mappings.compiler.table_set import compile_profile, load_rules
from mappings.language.vocabulary import NODE_CLASS
from mappings.tools.expand import write_then
from mappings.tools.explain import explain
from native_backend.log.port import Log


def record_arguments(argv: list[str]) -> argparse.Namespace:
    """The command line of `explain --record`."""
    parser = argparse.ArgumentParser(prog="realmgate mappings explain", allow_abbrev=False)
    parser.add_argument("--record", metavar="RUN:SEQ", required=True, help="a delivery, as the report names it")
    add_config(parser)
    parser.set_defaults(command="replay")
    return parser.parse_args(argv)


def run(arguments: argparse.Namespace, settings: Settings, out: TextIO) -> int:
    """Find the record, decide again, and say so."""
    run_id, _, number = arguments.record.rpartition(":")
    if not run_id or not number.isdigit():
        out.write(f"{arguments.record} is no RUN:SEQ; a report and a record write both\n")
        return 1
    prefix = settings.realm.prefix
    with closing(open_log(settings)) as log:
        outcome = _outcome(log, f"{prefix}.outcomes", run_id, int(number))
        if outcome is None:
            out.write(f"no outcome of delivery {number} of run {run_id} is kept\n")
            return 1
        record, group = outcome
        tables = stored_tables(log, f"{prefix}.tables", record["digest"])
    at = group["seq"].index(int(number))
    out.write(f"delivery {number} of run {run_id}: {group['direction']} {group['node']}, eid {group['eid'][at]}\n")
    out.write(f"  told     {group['outcome']} {group['condition'] or ''}".rstrip() + "\n")
    _write_error(group, int(number), out)
    if tables is None:
        out.write(f"no tables are kept under digest {record['digest']}\n")
        return 1
    out.write(f"decided by tables {tables.digest} of profile {tables.profile}\n")
    same = [decide_again(tables, group, side, settings, out) for side in ("", "answer_") if group[f"{side}table"]]
    return 0 if all(same) else 1


def _write_error(group: dict[str, Any], seq: int, out: TextIO) -> None:
    """What its consumer gave as the reason of `rejected`."""
    for error in group.get("errors", ()):
        if seq in error["seq"]:
            words = [printable(error["condition"]), json.dumps(error["description"]), json.dumps(error["info"])]
            out.write(f"  error    {' '.join(word for word in words if word != 'null')}\n")


def decide_again(tables: TableSet, group: dict[str, Any], side: str, settings: Settings, out: TextIO) -> bool:
    """One of the two decisions of a delivery: what came, and what the realm answered."""
    name, cell, recorded = group[f"{side}table"], group[f"{side}cell"], group[f"{side}rule"]
    decision = tables[name].cells[cell]
    rule = "impossible" if decision is None else decision.rule
    ours, problems = load_rules(settings.mappings.directory)
    if not problems and name in ours and compile_profile(ours, tables.profile).digest == tables.digest:
        out.writelines(
            f"{line}\n" for line in explain(ours[name], tables[name], tables.profile, tables[name].facts(cell))
        )
    else:  # the tables have changed since
        facts = " ".join(f"{axis}={value}" for axis, value in tables[name].facts(cell).items())
        out.write(f"table {name}, profile {tables.profile}, cell {cell}\n  {facts}\nrule {rule}\n")
        if decision is not None:
            out.write(f"  then     {write_then(decision.then)}\n")
        if reason := tables.because.get(name, {}).get(rule):
            out.write(f"  because  {reason}\n")
    taken_for = tables[name].facts(cell).get(NODE_CLASS)
    node_class = tables.classify(group["node"] or "").node_class
    if taken_for not in (None, node_class):
        out.write(f"  class    {node_class}, but the record says {taken_for}\n")
        return False
    verdict = "as recorded" if rule == recorded else f"but the record says {recorded}"
    out.write(f"  decided  {rule}, {verdict}\n")
    return bool(rule == recorded)


def _outcome(log: Log, topic: str, run_id: str, seq: int) -> tuple[dict[str, Any], dict[str, Any]] | None:
    for record in documents(log, topic):
        if record["run"] == run_id:
            for group in record["groups"]:
                if seq in group["seq"]:
                    return record, group
    return None
