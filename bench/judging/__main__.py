"""How long a realm of many outcomes takes to be landed and judged, beside DuckDB on the same records.

    python -m bench.judging [--outcomes 10000000] [--days 10] [--sums-only] [--record]

The realm is that of `bench.increments`, on this machine: `--days` runs of a gateway, deliveries in turns of 256 on
twenty queues. The reconciliations, from all rows and with `--sums`, are processes of their own; their steps say when
the records are landed, which makes their sums, and when they are judged. `--sums-only` leaves the one from all rows
out. DuckDB is asked the same of the same Parquet (`by_duckdb.py`) where it is installed: `.venv/bin/python -m pip
install duckdb`. Seconds, and processor seconds of all processes. `--record` writes results/DATE-COMMIT-judging.json.
Required on two idle cores: 10 M outcomes judged in 15 s and 100 M in 40 s, 0.6 M a second landed, at most 6 times the
processor time of DuckDB.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bench.increments import Realm, Reconciliation
from bench.report import show

JUDGED_S: Final = {10_000_000: 15.0, 100_000_000: 40.0}
LANDED_A_SECOND, OF_DUCKDB = 600_000, 6.0
_LAND, _JUDGE, _END = "1 of 6  ", "2 of 6  ", "done"


class Steps:
    """When each step began, in seconds and processor seconds, by the lines that a reconciliation writes."""

    def __init__(self) -> None:
        self._at: dict[str, tuple[float, float]] = {}

    def read(self, line: str, used_s: float) -> None:
        """`reconcile:  12.3 s  2 of 6  reading ...`; others say what remains of a step."""
        sys.stderr.write(line)
        for step in (_LAND, _JUDGE, _END):
            if f" s  {step}" in line:
                self._at[step] = (float(line.split(":")[1].split()[0]), used_s)

    @property
    def landing(self) -> dict[str, float]:
        return self._between(_LAND, _JUDGE)

    @property
    def judging(self) -> dict[str, float]:
        return self._between(_JUDGE, _END)

    def _between(self, first: str, last: str) -> dict[str, float]:
        (began_s, began_cpu_s), (ended_s, ended_cpu_s) = self._at[first], self._at[last]
        return {"s": round(ended_s - began_s, 1), "cpu_s": round(ended_cpu_s - began_cpu_s, 1)}


def measured(directory: Path, outcomes: int, days: int, *, sums_only: bool) -> dict[str, Any]:
    with closing(Realm(directory / "realm")) as realm:
        for day in range(days):
            realm.add_day(outcomes // days)
            sys.stderr.write(f"written: {day + 1} of {days} days\n")
    report: dict[str, Any] = {}
    if not sums_only:
        report["by_rows"] = _of(realm.directory, outcomes, "by-rows")
    report["by_sums"] = _of(realm.directory, outcomes, "by-sums", "--state", str(directory / "state"), "--sums")
    assert "Judged from the sums" in report["by_sums"]["judged"], report
    landed = next((directory / "state").rglob("extent.json")).parent
    report["duckdb"] = _by_duckdb(landed)
    if "in_all" in report["duckdb"]:
        of_duckdb = report["duckdb"]["in_all"]["cpu_s"]
        report["of_duckdb"] = {
            way: round(report[way]["judging"]["cpu_s"] / of_duckdb, 1)
            for way in ("by_rows", "by_sums")
            if way in report
        }
    return report


def _of(realm: Path, outcomes: int, out: str, *more: str) -> dict[str, Any]:
    """One reconciliation."""
    steps = Steps()
    done = Reconciliation(realm, out, *more, heard=steps.read)
    judged = done.output[done.output.index("Judged from") :].splitlines()[0] if more else "Judged from all rows."
    return {
        "verdict": done.verdict,
        "judged": judged,
        "landing": steps.landing,
        "landed_a_second": round(outcomes / steps.landing["s"]),
        "judging": steps.judging,
    }


def _by_duckdb(landed: Path) -> dict[str, Any]:
    if importlib.util.find_spec("duckdb") is None:
        return {"not measured": "it is not installed: .venv/bin/python -m pip install duckdb"}
    command = [sys.executable, "-m", "bench.judging.by_duckdb", str(landed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.judging", description=__doc__)
    parser.add_argument("--outcomes", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--sums-only", action="store_true")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    started = time.strftime("%Y-%m-%dT%H%M")
    with tempfile.TemporaryDirectory(prefix="bench-judging-") as directory:
        figures = measured(Path(directory), arguments.outcomes, arguments.days, sums_only=arguments.sums_only)
    report = {"outcomes": arguments.outcomes, **figures}
    report["required"] = {"judged_s": JUDGED_S.get(arguments.outcomes), "landed_a_second": LANDED_A_SECOND,
                          "of_duckdb": OF_DUCKDB}  # fmt: skip
    show(started, "judging", report, is_kept=arguments.record)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
