"""The results: every sample as JSON, medians and ratios as one Markdown table."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from bench.decisions import decisions, lines_of
from bench.plan import Plan

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
SYSTEMS = ("kafka", "embedded", "artemis", "producer")
# At 1,000 in flight on the Kafka realm: at least this part of that system's rate.
REQUIRED = {("in", "artemis"): 0.75, ("in", "producer"): 0.30, ("out", "artemis"): 0.80, ("both", "artemis"): 0.50}
ACCEPT_P99_US_MAX = 30_000
FOREIGN_CPU_MAX = 0.05
NOTES = """Rates are messages a second, medians; one connection, durable queue, consumers accepting each message, every
process on the same cores. `kafka` and `embedded` are realmgate on those realms, `producer` is confluent-kafka alone
(three headers, a callback each). Artemis syncs its journal before it accepts, and so does the embedded realm; a lone
Kafka node leaves that to the page cache. `accept` is the 99th percentile in microseconds, from when a message was due,
at half the system's own rate in."""


def document(plan: Plan, command: str, started: str, memory: dict[str, Any] | None) -> dict[str, Any]:
    """All that was measured and on what."""
    rows = [
        {
            "row": row,
            "system": system,
            "size": size,
            "in_flight": in_flight,
            "median": _figure(row, samples),
            "samples": samples,
        }
        for (row, system, size, in_flight), samples in plan.samples.items()
    ]
    return {
        "started": started,
        "command": command,
        "commit": commit(),
        "versions": versions(),
        "journal": plan.systems.artemis.journal,
        "load_average": os.getloadavg(),
        "warm_up": plan.warm_up,
        "failures": plan.failures,
        "retaken": plan.retaken,
        "rows": rows,
        "memory": memory,
        "decisions": decisions(),
    }


def markdown(results: dict[str, Any]) -> str:
    """The table that people read."""
    figures = {(r["row"], r["size"], r["in_flight"], r["system"]): r["median"] for r in results["rows"]}
    lines = [f"# Measured {results['started']} at {results['commit']}", "", f"`{results['command']}`", "", NOTES, ""]
    lines += [", ".join(f"{name} {value}" for name, value in results["versions"].items()) + ".", ""]
    lines += [f"Artemis's journal: {results['journal']}. {_neighbours(results['rows'])}{_speeds(results['rows'])}", ""]
    lines += ["| row | size | in flight | kafka | embedded | artemis | producer | kafka / artemis | kafka / producer |"]
    lines += ["|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    lines += [_line(row, figures) for row in sorted({key[:3] for key in figures}, key=_order)]
    lines += ["", "## Required", "", *_required(figures)]
    if "decisions" in results:  # those of earlier days have none
        lines += [
            "",
            "## Decisions of the mapping tables",
            "",
            *(f"- {line}" for line in lines_of(results["decisions"])),
        ]
    if results["memory"]:
        lines += ["", "## Memory of the gateway on Kafka", "", _memory(results["memory"]["points"])]
    if results.get("retaken"):
        lines += [
            "",
            "## Taken again, as the cores had slowed down meanwhile",
            "",
            *(f"- {note}" for note in results["retaken"]),
        ]
    if results["failures"]:
        lines += ["", "## Runs that failed", "", *(f"- {failure}" for failure in results["failures"])]
    return "\n".join(lines) + "\n"


def commit() -> str:
    revision = _out("git", "rev-parse", "--short", "HEAD")
    return revision + ("-changed" if _out("git", "status", "--porcelain", "--untracked-files=no") else "")


def keep(started: str, name: str, result: dict[str, Any]) -> Path:
    """Write what was measured to results/STARTED-COMMIT-NAME.json, with both in it; that file."""
    at = commit()
    path = RESULTS / f"{started}-{at}-{name}.json"
    path.write_text(json.dumps({"started": started, "commit": at, **result}, indent=1) + "\n")
    return path


def show(started: str, name: str, result: dict[str, Any], *, is_kept: bool) -> None:
    """As JSON on stdout, and, where it `is_kept`, in results."""
    if is_kept:
        keep(started, name, result)
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


def versions() -> dict[str, str]:
    releases = {name: importlib.metadata.version(name) for name in ("python-qpid-proton", "confluent-kafka", "uvloop")}
    for name, pom in (("kafka", "deploy/kafka/pom.xml"), ("artemis", "tests/kit/artemis/pom.xml")):
        match = re.search(rf"<{name}\.version>([^<]+)<", (ROOT / pom).read_text())
        releases[name] = match[1] if match else "?"
    releases["python"] = platform.python_version()
    releases["java"] = re.findall(r'"([^"]+)"', _out("java", "-version"))[0]
    releases["linux"] = platform.release()
    releases["cores"] = str(os.cpu_count())
    return releases


def _figure(row: str, samples: list[dict[str, Any]]) -> float:
    return float(median(sample["latency_us"]["p99"] if row == "accept" else sample["rate"] for sample in samples))


def _order(row: tuple[str, int, int]) -> tuple[int, int, int]:
    return (["in", "out", "both", "accept"].index(row[0]), row[1], row[2])


def _line(row: tuple[str, int, int], figures: dict[tuple[str, int, int, str], float]) -> str:
    values = {system: figures.get((*row, system)) for system in SYSTEMS}
    cells = [f"{values[system]:,.0f}" if values[system] is not None else "" for system in SYSTEMS]
    cells += [_ratio(values["kafka"], values[other]) for other in ("artemis", "producer")]
    return f"| {row[0]} | {row[1]:,} | {row[2]:,} | " + " | ".join(cells) + " |"


def _ratio(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}" if ours is not None and theirs else ""


def _required(figures: dict[tuple[str, int, int, str], float]) -> list[str]:
    lines = []
    for size in sorted({key[1] for key in figures}):
        for (row, other), least in REQUIRED.items():
            ours, theirs = figures.get((row, size, 1000, "kafka")), figures.get((row, size, 1000, other))
            if ours is not None and theirs:
                met = "met" if ours / theirs >= least else "NOT met"
                lines.append(f"- {row}, {size:,} B: {ours / theirs:.2f} x {other}, required {least:.2f}: {met}")
        p99 = figures.get(("accept", size, 1000, "kafka"))
        if p99 is not None:
            met = "met" if p99 <= ACCEPT_P99_US_MAX else "NOT met"
            lines.append(f"- accept at half the top rate, {size:,} B: p99 {p99 / 1000:.1f} ms, required 30 ms: {met}")
    return lines


def _neighbours(rows: list[dict[str, Any]]) -> str:
    """A measurement beside a busy neighbour is not one: say so."""
    shares = [sample["foreign_cpu"] for row in rows for sample in row["samples"]]
    if not shares:
        return ""
    warning = "" if median(shares) <= FOREIGN_CPU_MAX else " **Too much: measure again on a quiet machine.**"
    return f"Other processes used {median(shares):.0%} of the cores (median), {max(shares):.0%} at most.{warning}"


def _speeds(rows: list[dict[str, Any]]) -> str:
    """Samples that were begun while the host held the cores back."""
    speeds = [sample["core_speed"] for row in rows for sample in row["samples"] if "core_speed" in sample]
    if not speeds:  # those of earlier days have none
        return ""
    return (
        f" The cores ran at {median(speeds):.0%} of their best when samples began (median), {min(speeds):.0%} at least."
    )


def _memory(points: list[dict[str, int]]) -> str:
    tenth = points[max(1, len(points) // 10)]
    last = points[-1]
    growth = (last["rss_bytes"] - tenth["rss_bytes"]) / 1e6
    return (
        f"{tenth['rss_bytes'] / 1e6:.1f} MB after {tenth['messages']:,} messages, "
        f"{last['rss_bytes'] / 1e6:.1f} MB after {last['messages']:,}: {growth:+.1f} MB."
    )


def _out(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    return (done.stdout + done.stderr).strip()
