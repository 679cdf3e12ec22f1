"""Notes and operations that this release does not know, or that end nothing, are neither ends nor anomalies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.realms import made


def test_what_ends_nothing_is_no_anomaly(tmp_path: Path, reconcile: Reconcile, request: pytest.FixtureRequest) -> None:
    place = made("embedded", request, tmp_path / "realm")
    with place.world() as world:
        orders, prices, run = world.queue("orders"), world.channel("prices"), world.run()
        sent, copies = run.publish(orders, 4), run.publish(prices, 2)
        run.settle(orders, sent[:2], "accepted")
        run.note(orders, "queue", "weighed", sent[0].eid, sent[3].eid)
        run.settle(prices, copies, "released", journal=False)  # a subscriber without durable got them back
        run.settle(orders, sent[2:3], "released", journal=False)  # lost with its record: the event is available again
        run.close()
    result = reconcile(place.realm)
    assert result.text.startswith("Verdict: CLEAN."), result.text
    assert result.classes() == {}
    [queue] = result.manifest["balance"]["durables"]
    assert (queue["entitled"], queue["acknowledged"], queue["available"]) == (4, 2, 2)
