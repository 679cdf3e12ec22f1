"""What the outcome records of a link say of one store of its node. A node has one store or several (ADR 0041); keys are
made once, so that a group of outcomes is found by identity.

Records: docs/records.md "Outcomes".
"""

from __future__ import annotations

from dataclasses import replace

from gateway.evidence.outcome_key import LinkIdentity, OutcomeKey
from mappings import Decision
from native_backend.nodes.answers import Published, Settled
from native_backend.nodes.node import Node


class StoreOutcomes:
    """Of one link and one store."""

    def __init__(self, facts: LinkIdentity) -> None:
        self._facts = facts
        self._keys: dict[tuple[object, ...], OutcomeKey] = {}

    def clear(self) -> None:
        """Other tables: other rules."""
        self._keys.clear()

    def published(
        self, rule: Decision, answer_rule: Decision | None, presettled: int, answer: Published | None
    ) -> OutcomeKey:
        """Of messages that met `rule`, and `answer_rule` once the realm had answered."""
        native = answer.native if answer else ""
        key = (id(rule), id(answer_rule), native, presettled)
        outcome = self._keys.get(key)
        if outcome is None:
            then = (answer_rule or rule).then
            outcome = self._keys[key] = OutcomeKey(
                link=self._facts,
                rule=rule,
                answer_rule=answer_rule,
                operation="publish" if rule.then["native"] == "publish" else "none",
                cause="transfer",
                answer=answer.answer if answer else None,
                native=native or None,
                outcome=then["outcome"],
                condition=then["condition"],
                klass=then["class"],
                presettled=bool(presettled),
            )
        return outcome

    def settled(
        self,
        rule: Decision,
        answer_rule: Decision | None,
        answer: Settled | None,
        cause: str,
        state: str,
        peer_settled: bool,
    ) -> OutcomeKey:
        """Of deliveries whose state met `rule`, and `answer_rule` once the realm had answered."""
        key = (id(rule), id(answer_rule), cause, peer_settled, answer.native if answer else "")
        outcome = self._keys.get(key)
        if outcome is None:
            decided, then = rule.then, (answer_rule or rule).then
            outcome = self._keys[key] = OutcomeKey(
                link=self._facts,
                rule=rule,
                answer_rule=answer_rule,
                operation=decided["native"],
                cause=cause,
                answer=answer.answer if answer else None,
                native=(answer.native or None) if answer else None,
                outcome=decided["outcome"] if then["outcome"] == "asked" else then["outcome"],
                condition=then["condition"],
                klass=then["class"],
                presettled=cause == "sent-settled",
                stated=state,
            )
        return outcome

    def failed(self, rule: Decision, answer: str, native: str) -> OutcomeKey:
        """Of what was in flight when its subscription failed, by a rule of the table `attached`."""
        return OutcomeKey(
            link=self._facts,
            rule=rule,
            answer_rule=None,
            operation="none",
            cause="lost",
            answer=answer,
            native=native or None,
            outcome=rule.then["in_flight"],
            condition=rule.then["condition"],
            klass=rule.then["class"],
            presettled=False,
        )


def of_each_store(facts: LinkIdentity, node: Node) -> list[StoreOutcomes]:
    """By partition."""
    return [StoreOutcomes(replace(facts, store=part.store)) for part in node.parts]
