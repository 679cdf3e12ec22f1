"""The verdict against a gateway: what was recorded under one profile and is decided by another is what a gateway with
that other profile would have done. Where the verdict says that this is not decidable, the truth is among the
alternatives, and there is more than one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice, product

import pytest

from reconciliation.what_if.recorded import Recorded
from reconciliation.what_if.verdict import Change, Verdict, decide
from tests.reconciliation.what_if import deciding
from tests.reconciliation.what_if.deciding import PROFILES, Done, World

GOES_ON = ("enlist", "reassemble")  # nothing but this is known: the facts of what follows are not recorded
SOME, FEW = 37, 211  # every so many; primes, so that all axes have their turn
PAIRS = [("extended", "um-9.12"), ("um-9.12", "extended"), ("extended", "um-9.9"), ("um-9.9", "um-9.12")]
DIRECTIONS = ("publish", "subscribe")
BESIDE = {"settled", "failed", "elsewhere", "transaction"}  # what a record does not say of the delivery itself


def worlds(direction: str, every: int) -> Iterator[World]:
    cases = deciding.publishes() if direction == "publish" else deciding.settlements()
    return islice(cases, 0, None, every)


def of_gateway(direction: str, profile: str, world: World) -> Done:
    tables = deciding.compiled(profile)
    return deciding.publish(tables, world) if direction == "publish" else deciding.settle(tables, world)


def recorded_by(direction: str, profile: str, world: World) -> tuple[Done, Recorded]:
    done = of_gateway(direction, profile, world)
    if direction == "publish":
        return done, done.recorded(direction, "transfer", world["presettled"] == "yes", profile)
    state = deciding.compiled(profile)["settle"].facts(done.rule.cell)["state"]
    cause = "disposition" if state.startswith("transactional") else world["cause"]
    return done, done.recorded(direction, cause, world["cause"] == "sent-settled", profile)


def is_true(change: Change | None, old: Done, new: Done) -> bool:
    """What the verdict says of this delivery is what the gateway does."""
    effects = {} if change is None else {effect.name: effect for effect in change.effects}
    if "operation" in effects and effects["operation"].new in GOES_ON:
        return True
    for name, value in old.columns.items():
        became = effects[name].new if name in effects else value
        if name in effects and effects[name].old != value:
            return False
        if became != new.columns[name] and not (change and change.unrecorded and name != "operation"):
            return False
    return True


def holds(verdict: Verdict, world: World, old: Done, new: Done) -> bool:
    if verdict.kind != "undecided":
        return is_true(verdict.change, old, new)
    fitting = [
        alternative.change
        for alternative in verdict.alternatives
        if any(all(world.get(name, value) == value for name, value in choice) for choice in alternative.choices)
    ]
    return any(is_true(change, old, new) for change in fitting)


def compared(direction: str, own: str, other: str, every: int) -> dict[Recorded, tuple[Verdict, set[str]]]:
    """By record: the verdict, and what gateways do about all that it may have been."""
    known: dict[Recorded, Verdict] = {}
    done: dict[Recorded, set[str]] = defaultdict(set)
    for world in worlds(direction, every):
        old, record = recorded_by(direction, own, world)
        if old.rule.rule == "received-noted":
            continue  # nothing is recorded of what says nothing yet
        if record not in known:
            known[record] = decide(record, deciding.expanded(own), deciding.expanded(other))
        new = of_gateway(direction, other, world)
        assert holds(known[record], world, old, new), (world, old, new, known[record])
        done[record].add(str(new.columns))
    return {record: (verdict, done[record]) for record, verdict in known.items()}


def kinds_of(verdicts: dict[Recorded, tuple[Verdict, set[str]]]) -> Counter[str]:
    return Counter(verdict.kind for verdict, _ in verdicts.values())


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("profile", PROFILES)
def test_the_same_tables_decide_alike(direction: str, profile: str) -> None:
    kinds = kinds_of(compared(direction, profile, profile, SOME))
    assert set(kinds) == {"alike"} and kinds["alike"] > 50, kinds


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_other_tables_decide_as_a_gateway_with_them(direction: str, own: str, other: str) -> None:
    kinds = kinds_of(compared(direction, own, other, FEW))
    assert kinds.total() > 20 and set(kinds) != {"alike"}, kinds


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("own", "other"), [*product(PROFILES, PROFILES)])
def test_every_fact_and_profile(direction: str, own: str, other: str) -> None:
    """Each cell, each fact that is not recorded. What is called undecidable differs in the end by what it may have
    been."""
    verdicts = compared(direction, own, other, 1)
    if own == other:
        assert set(kinds_of(verdicts)) == {"alike"}
    for record, (verdict, done) in verdicts.items():
        if verdict.kind == "undecided" and len(done) == 1:
            assert differ_beside(verdict), (record, verdict)


def differ_beside(verdict: Verdict) -> bool:
    """The alternatives are one in what a record says."""
    names = {effect.name for alternative in verdict.alternatives for effect in alternative.change.effects}
    return bool(names & BESIDE) or any(name.endswith("before the discharge") for name in names)
