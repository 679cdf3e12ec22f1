"""Runs, their faults and their deaths at named places, added up over days: a file of JSON, one line a run.

    {"commit":"9c849fc","realm":"embedded","seed":7,"faults":{NAME:COUNT},"deaths":{PLACE:COUNT},
     "broken":{GUARANTEE:COUNT},...}

Deaths of a run in which a guarantee was broken do not count; its line stays. `python -m tests.torture.ledger FILE`
shows all of it as Markdown.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.kit.commit import commit
from tests.torture.system.nemesis import points_of

Line = dict[str, Any]
REALMS = ("embedded", "kafka", "cluster")
SUMS = ("sent", "accepted", "given", "ended", "transactions", "doubled", "seconds")
BROKEN = "runs with a broken guarantee"


class Ledger:
    """See the module's docstring. `path` None: it ends with the process."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        kept = path.read_text().splitlines() if path is not None and path.exists() else []
        self.lines: list[Line] = [json.loads(line) for line in kept]

    def add(self, line: Line) -> None:
        self.lines.append(line)
        if self.path is not None:
            with self.path.open("a") as out:
                out.write(json.dumps({"commit": commit(), **line}, separators=(",", ":")) + "\n")

    def deaths(self, realm: str) -> Counter[str]:
        """By place, in runs that broke no guarantee."""
        counts: Counter[str] = Counter()
        for line in self.lines:
            if line["realm"] == realm and not line["broken"]:
                counts.update(line["deaths"])
        return counts

    def runs(self) -> str:
        """Runs, faults and what clients did by realm, as Markdown; last the runs in which a guarantee was broken."""
        names = sorted({name for line in self.lines for name in line.get("faults", {})})
        counts = {realm: Counter[str]() for realm in REALMS}
        for line in self.lines:
            sums = {name: line.get(name, 0) for name in SUMS}
            counts[line["realm"]].update({"runs": 1, **sums, BROKEN: bool(line["broken"]), **line.get("faults", {})})
        realms = [realm for realm in REALMS if counts[realm]["runs"]]
        rows = [["", *realms, "in all"], ["---", *("--:" for _ in [*realms, ""])]]
        for name in ("runs", *names, *SUMS, BROKEN):
            by_realm = [counts[realm][name] for realm in realms]
            rows.append([name, *(f"{count:,}" for count in [*by_realm, sum(by_realm)])])
        return _markdown(rows)

    def table(self, places: dict[str, list[str]]) -> str:
        """Places by realm, as Markdown: how often a gateway has died there."""
        realms = [realm for realm in REALMS if any(line["realm"] == realm for line in self.lines)]
        deaths = {realm: self.deaths(realm) for realm in realms}
        names = sorted({name for realm in realms for name in places[realm]})
        rows = [["place", *realms], ["---", *("--:" for _ in realms)]]
        rows += [[name, *(str(deaths[key][name]) if name in places[key] else "-" for key in realms)] for name in names]
        rows.append(["in all", *(str(deaths[realm].total()) for realm in realms)])
        return _markdown(rows)


def _markdown(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    places = {realm: [point.name for point in points_of(realm)] for realm in REALMS}
    ledger = Ledger(Path(sys.argv[1]))
    sys.stdout.write(f"{ledger.runs()}\n\n{ledger.table(places)}\n")


if __name__ == "__main__":
    main()
