"""The same questions to the same Parquet, by DuckDB: the anchor for what Spark takes.

    python -m bench.judging.by_duckdb LANDED --threads 2

`LANDED` is a landing of a reconciliation, with a folder `kind=KIND` for each kind. It decodes outcome records and the
journal, adds deliveries up by node and rule, and compares in blocks of 4,096 numbers of each run: what peers were
answered with the events that are stored, what ended with the journal, and the numbers themselves with each other. It
prints JSON: seconds and processor seconds of each question, and its answer. It leaves out what a reconciliation asks
besides: rules against stored tables, the realm's own acts, commands, snapshots, groups of an offset, copies.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

_GROUP: Final = {
    "direction": "VARCHAR", "node": "VARCHAR", "store": "BIGINT", "rule": "VARCHAR", "operation": "VARCHAR",
    "outcome": "VARCHAR", "condition": "VARCHAR", "class": "VARCHAR", "answer": "VARCHAR",
    "seq": ["BIGINT"], "eid": ["BIGINT"],
}  # fmt: skip
_RECORD: Final = {"run": "VARCHAR", "n": "BIGINT", "low": "BIGINT", "next": "BIGINT", "groups": [_GROUP]}
_ENTRY: Final = {"store": "BIGINT", "durable": "VARCHAR", "operation": "VARCHAR", "runs": [["BIGINT"]]}
_NOTE: Final = {"run": "VARCHAR", "n": "BIGINT", "entries": [_ENTRY]}

_DECODED: Final = f"""
CREATE TEMP TABLE groups AS
SELECT run, unnest(groups, recursive := false) AS g
FROM (SELECT unnest(from_json(decode(value), '{json.dumps(_RECORD)}')) FROM read_parquet($outcomes));
CREATE TEMP TABLE runs AS
SELECT run, max(next) AS following
FROM (SELECT unnest(from_json(decode(value), '{{"run":"VARCHAR","next":"BIGINT"}}'))
      FROM read_parquet($outcomes))
GROUP BY run;
CREATE TEMP TABLE noted AS
SELECT run, e.store AS store, unnest(e.runs) AS r
FROM (SELECT note.run AS run, unnest(note.entries) AS e
      FROM (SELECT from_json(decode(value), '{json.dumps(_NOTE)}') AS note FROM read_parquet($journal)))
WHERE e.operation <> 'recorded';
"""
_TALLIES: Final = """
SELECT count(*), CAST(sum(deliveries) AS BIGINT) FROM (
  SELECT g.node, g.direction, g.rule, g.operation, g.outcome, g.condition, g.class, g.answer,
         sum(len(g.seq)) AS deliveries
  FROM groups GROUP BY ALL)
"""
_COMPARED: Final = """
SELECT count(*) FROM (
  SELECT run, seq >> 12 AS block, count(*) AS n, bit_xor(hash(seq, store, eid)) AS x FROM ({claimed}) GROUP BY ALL) c
FULL JOIN (
  SELECT run, seq >> 12 AS block, count(*) AS n, bit_xor(hash(seq, store, eid)) AS x FROM ({held}) GROUP BY ALL) h
USING (run, block)
WHERE c.n IS DISTINCT FROM h.n OR c.x IS DISTINCT FROM h.x
"""
_CLAIMED: Final = """
SELECT run, unnest(g.seq) AS seq, g.store AS store, unnest(g.eid) AS eid FROM groups WHERE g.direction = '{direction}'
"""
_EVENTS: Final = """
SELECT split_part(k, ';', 3) AS run, CAST(split_part(k, ';', 4) AS BIGINT) AS seq, s.store AS store, "offset" AS eid
FROM (SELECT topic, "offset", decode(key) AS k FROM read_parquet($events))
JOIN (SELECT DISTINCT 'um.node.' || g.node AS topic, g.store AS store FROM groups) s USING (topic)
"""
_ENDED: Final = """
SELECT run, r[3] + i AS seq, store, r[1] + i AS eid
FROM (SELECT run, store, r, unnest(range(r[2] - r[1] + 1)) AS i FROM noted)
"""
_HOLES: Final = """
SELECT count(*) FROM runs LEFT JOIN (SELECT run, sum(len(g.seq)) AS n FROM groups GROUP BY run) USING (run)
WHERE coalesce(n, 0) <> following - 1
"""


def asked(landed: Path, threads: int) -> dict[str, Any]:
    """By question: seconds, processor seconds, answer; `in_all` is their sum. Errors: `ModuleNotFoundError`."""
    duckdb: Any = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"threads": threads})
    files = {kind: str(landed / f"kind={kind}" / "*.parquet") for kind in ("outcomes", "journal", "events")}
    questions = {
        "decode": _DECODED,
        "tallies": _TALLIES,
        "stored": _COMPARED.format(claimed=_CLAIMED.format(direction="publish"), held=_EVENTS),
        "ended": _COMPARED.format(claimed=_CLAIMED.format(direction="subscribe"), held=_ENDED),
        "holes": _HOLES,
    }
    figures: dict[str, Any] = {}
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    for name, text in questions.items():
        at_s, at_cpu_s, answer = time.monotonic(), time.process_time(), None
        for statement in filter(str.strip, text.split(";\n")):
            used = {kind: path for kind, path in files.items() if f"${kind}" in statement}
            rows = connection.execute(_with_files(statement, used)).fetchall()
            answer = rows[0] if rows else None
        cost = {"s": round(time.monotonic() - at_s, 2), "cpu_s": round(time.process_time() - at_cpu_s, 2)}
        figures[name] = {**cost, "answer": answer}
    took = {"s": round(time.monotonic() - began_s, 2), "cpu_s": round(time.process_time() - began_cpu_s, 2)}
    return {"version": duckdb.__version__, **figures, "in_all": took}


def _with_files(statement: str, files: dict[str, str]) -> str:
    """A table cannot be made of a prepared statement."""
    for kind, path in files.items():
        statement = statement.replace(f"${kind}", "'" + path.replace("'", "''") + "'")
    return statement


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.judging.by_duckdb")
    parser.add_argument("landed", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    json.dump(asked(arguments.landed, arguments.threads), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
