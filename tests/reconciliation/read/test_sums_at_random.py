"""Random histories, cut anywhere into increments, are judged from sums as they are from all rows."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.cut_world import cut_world
from tests.reconciliation.days import said
from tests.reconciliation.random_history import History
from tests.reconciliation.realms import made

STEPS = 50
SEEDS = range(*(int(number) for number in os.environ.get("SEEDS", "0 6").split()))


@pytest.mark.timeout(1500)  # of five reconciliations: each takes a minute beside others
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_history_is_judged_by_sums(
    request: pytest.FixtureRequest, tmp_path: Path, reconcile: Reconcile, seed: int
) -> None:
    rng, results = random.Random(seed), list[Result]()
    place, state = made("embedded", request, tmp_path / "realm"), tmp_path / "state"

    def look() -> None:
        results.append(reconcile(place.realm, state=state, sums=True))

    cuts = rng.sample(range(5, 60), rng.randint(1, 3))
    with cut_world(place.realm, look, cuts) as world:
        history = History(world, rng, faults=seed % 3, shortens=seed % 4 == 3)
        history.fill(STEPS)
    look()
    words = [line for result in results for line in result.text.splitlines() if "Judged" in line]
    print(seed, cuts, history.planted, results[-1].classes(), *(word[-90:] for word in words), sep="\n  ")
    if not history.faults and not history.shortens:
        assert all("Judged from the sums" in word for word in words), words
    assert said(results[-1]) == said(reconcile(place.realm))
