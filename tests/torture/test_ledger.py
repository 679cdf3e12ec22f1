"""Deaths are added up over runs, but for those of runs that broke a guarantee."""

from __future__ import annotations

from pathlib import Path

from tests.torture.ledger import Ledger


def test_deaths_add_up_over_processes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger(path).add({"realm": "embedded", "seed": 1, "deaths": {"here": 2, "there": 1}, "broken": {}})
    Ledger(path).add({"realm": "embedded", "seed": 2, "deaths": {"here": 1}, "broken": {}})
    Ledger(path).add({"realm": "embedded", "seed": 3, "deaths": {"here": 9}, "broken": {"duplicated": 1}})
    Ledger(path).add({"realm": "kafka", "seed": 1, "deaths": {"here": 4, "yonder": 1}, "broken": {}})
    ledger = Ledger(path)
    assert [line["seed"] for line in ledger.lines] == [1, 2, 3, 1]
    assert ledger.deaths("embedded") == {"here": 3, "there": 1}
    table = ledger.table({"embedded": ["here", "there", "nowhere"], "kafka": ["here", "yonder"]}).splitlines()
    assert table[0] == "| place | embedded | kafka |"
    assert table[2:] == [
        "| here | 3 | 4 |",
        "| nowhere | 0 | - |",
        "| there | 1 | - |",
        "| yonder | - | 1 |",
        "| in all | 4 | 5 |",
    ]


def test_runs_and_their_faults_add_up_by_realm(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    sent = {"deaths": {}, "sent": 700, "seconds": 20}
    ledger.add({"realm": "embedded", "seed": 1, "faults": {"cut": 2, "fill disk": 1}, "broken": {}, **sent})
    ledger.add({"realm": "embedded", "seed": 2, "faults": {"cut": 1}, "broken": {"duplicated": 4}, **sent})
    ledger.add({"realm": "cluster", "seed": 1, "faults": {"part brokers": 1}, "broken": {}, **sent})
    lines = ledger.runs().splitlines()
    assert lines[0] == "|  | embedded | cluster | in all |"
    assert [line for line in lines[2:] if not line.endswith("| 0 |")] == [
        "| runs | 2 | 1 | 3 |",
        "| cut | 3 | 0 | 3 |",
        "| fill disk | 1 | 0 | 1 |",
        "| part brokers | 0 | 1 | 1 |",
        "| sent | 1,400 | 700 | 2,100 |",
        "| seconds | 40 | 20 | 60 |",
        "| runs with a broken guarantee | 1 | 0 | 1 |",
    ]
