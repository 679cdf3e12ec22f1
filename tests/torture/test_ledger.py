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
