"""The evidence names rules: the tables, asked again, name the same."""

from __future__ import annotations

from typing import Any

from tests.simulation.observation.checker import Checker
from tests.simulation.process import TABLES

_YES_NO = ("no", "yes")


class RuleMatchesExplain(Checker):
    """Cell and rule of every group belong together, the facts of the cell are those of the group, and what was told is
    what the rule says."""

    def at_end(self) -> None:
        for record in self.world.evidence.records:
            self.require(record["digest"] == TABLES.digest, f"digest {record['digest']}")
            for group in record["groups"]:
                self._group(group)

    def _group(self, group: dict[str, Any]) -> None:
        rule = self._decision(group["table"], group["cell"], group["rule"], group)
        facts = TABLES[group["table"]].facts(group["cell"])
        then = rule
        if group["answer_table"] is not None:
            then = self._decision(group["answer_table"], group["answer_cell"], group["answer_rule"], group)
            facts |= TABLES[group["answer_table"]].facts(group["answer_cell"])
        expected = self._facts(group)
        wrong = {axis: value for axis, value in expected.items() if axis in facts and facts[axis] != value}
        self.require(not wrong, f"facts {facts} of the cells are not {wrong} in {_short(group)}")
        if group["table"] == "attached":  # the subscription failed: its table names the outcome of what is in flight
            outcome = then["in_flight"]
        else:
            outcome = rule["outcome"] if then["outcome"] == "asked" else then["outcome"]
        self.require(group["outcome"] == outcome, f"the rule says {outcome}: {_short(group)}")
        self.require(group["condition"] == then["condition"], f"the rule says {then['condition']}: {_short(group)}")

    def _decision(self, table: str, cell: int, rule: str, group: dict[str, Any]) -> dict[str, Any]:
        decision = TABLES[table].cells[cell]
        self.require(decision is not None and decision.rule == rule, f"cell {cell} of {table}: {_short(group)}")
        assert decision is not None
        return dict(decision.then)

    def _facts(self, group: dict[str, Any]) -> dict[str, str]:
        facts = {}
        if group["direction"] == "publish":
            facts["presettled"] = _YES_NO[group["presettled"]]
        if group["answer"] is not None:
            facts["answer"] = group["answer"]
        if group["table"] == "settle":
            facts |= {"already_settled": "no", "subscription": self._subscription(group)}
            if group["cause"] == "sent-settled":
                facts["state"] = "sent-settled"
        if group["answer_table"] == "settled":
            facts["operation"] = group["operation"]
        return facts

    def _subscription(self, group: dict[str, Any]) -> str:
        return "durable" if group["durable"] else {"news": "plain"}.get(group["node"], "queue")


def _short(group: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key not in ("eid", "container", "store")}
