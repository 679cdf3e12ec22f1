"""A transaction that stays open keeps what is behind it from being read: it is not readable yet, and not lost. Whose it
is and since when is said. Only Kafka has such transactions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from reconciliation.read import offsets
from tests.kit.realm.open_transaction import OpenTransaction
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.realms import Place, made

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
HUNG = "another-programs"


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr(offsets, "PATIENCE_S", 1.0)  # it will not end while we wait
    yield made("kafka", request, tmp_path)


def test_what_a_hanging_transaction_hides_is_not_lost(place: Place, reconcile: Reconcile) -> None:
    name = f"{HUNG}-{place.realm.prefix}"
    with place.world() as world:
        orders, other, run = world.queue("orders"), world.queue("other"), world.run()
        before = run.publish(orders, 2)
        run.settle(orders, before[:1], "accepted")
        run.turn()
        hanging = OpenTransaction(place.realm.bootstrap, name, [orders.topic, place.topic("journal")])
        try:
            behind = run.publish(orders, 3)
            run.publish(other, 1)
            run.settle(orders, before[1:], "accepted")
            run.close()
            result = reconcile(place.realm)
        finally:
            hanging.abort()
    assert (result.manifest["verdict"], result.code) == ("incomplete", 1), result.text
    assert set(result.classes()) == {"Q1"}
    details = [row["detail"] for row in result.examples("Q1")]
    since = r"since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC \(producer \d+, epoch \d+, transactional id " + name
    [of_events] = [text for text in details if text.startswith(f"{orders.topic} partition 0, offsets ")]
    assert re.search(rf"not readable yet, a transaction is open {since}\)", of_events), of_events
    assert of_events.endswith("3 publishes could be compared with nothing")
    assert f"offsets {behind[0].eid - 1:,} to {behind[-1].eid:,}" in of_events
    [of_journal] = [text for text in details if text.startswith(f"{place.topic('journal')} partition 0, ")]
    assert re.search(since, of_journal)
    assert "1 told as done, and the journal could not be read so far" in details
    books = {node["node"]: node for node in result.manifest["balance"]["nodes"]}
    assert (books["orders"]["accepted"], books["orders"]["stored"], books["orders"]["unread"]) == (5, 2, 3)
    assert (books["other"]["accepted"], books["other"]["stored"]) == (1, 1)
    assert result.manifest["balance"]["difference"] == 0
    assert reconcile(place.realm).text.startswith("Verdict: CLEAN."), "it has ended: all can be read"


def test_one_that_ends_while_we_ask_is_waited_for(
    place: Place, reconcile: Reconcile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a live gateway do, all the time."""
    with place.world() as world:
        orders, run = world.queue("orders"), world.run()
        hanging = OpenTransaction(place.realm.bootstrap, f"{HUNG}-short-{place.realm.prefix}", [orders.topic])
        run.publish(orders, 3)
        run.close()
        waited: list[float] = []

        def abort_once(seconds: float) -> None:
            if not waited:
                hanging.abort()
            waited.append(seconds)

        monkeypatch.setattr(offsets, "PATIENCE_S", 60.0)
        monkeypatch.setattr(offsets, "time", SimpleNamespace(monotonic=time.monotonic, sleep=abort_once))
        result = reconcile(place.realm)
    assert waited
    assert result.text.startswith("Verdict: CLEAN."), result.text
