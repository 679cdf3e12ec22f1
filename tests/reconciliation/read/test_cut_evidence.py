"""The outcomes of real gateways are cut off behind their backs: the journal knows how many there were. Without that,
restarts and kills leave a clean history. On both realms."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.kit.processes.gateway import StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.planting import Record
from tests.reconciliation.realms import ACCEPTED, PATIENCE_S, Place, place_of

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
NODES = {"create_on_attach": ["any.*"]}


def records(place: Place, kind: str) -> list[dict[str, object]]:
    return [json.loads(value) for _, _, value in place.records(place.topic(kind)) if value is not None]


def noted(place: Place, run: str) -> int:
    """How many outcome records of that run the journal says were stored."""
    notes = [
        last
        for record in records(place, "journal")
        for entry in record["entries"]  # type: ignore[attr-defined]
        if record["run"] == run and entry["operation"] == "recorded"
        for _, last, *_ in entry["runs"]
    ]
    return max(notes, default=0)


def await_noted(place: Place) -> str:
    """Until the journal knows of every outcome record that there is; the run of the last one."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        last = records(place, "outcomes")[-1]
        if noted(place, str(last["run"])) == last["n"]:
            return str(last["run"])
        assert time.monotonic() < until_s, "the journal does not note the outcome records"
        time.sleep(0.05)


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_the_end_of_the_outcomes_of_a_killed_gateway(
    new_gateway: StartGateway, reconcile: Reconcile, kind: str
) -> None:
    gateway = new_gateway(kind, nodes=NODES)
    place = place_of(gateway)
    with Peer(gateway.port) as peer:
        peer.stored("any.orders", *(frames.message(b"%d" % at) for at in range(8)))
        peer.consumer("any.orders", credit=4)
        peer.settle([seen.field(1) for seen in peer.receive(4)], ACCEPTED, settled=False)
        assert set(peer.outcomes(4).values()) == {"accepted"}
    gateway.restart()
    for at in range(3):  # nothing is consumed any more: the journal has nothing to say but how many records there are
        with Peer(gateway.port) as peer:
            peer.stored("any.orders", frames.message(b"late %d" % at))
    run = await_noted(place)
    gateway.kill()
    honest = reconcile(place.realm)
    assert honest.text.startswith("Verdict: CLEAN."), honest.text
    assert [entry["state"] for entry in honest.manifest["runs"]] == ["closed", "killed"], "its process is gone"

    def is_kept(record: Record) -> bool:
        content = json.loads(record[2] or b"null")
        return bool(content["run"] != run or content["n"] <= 2)

    place.keep(place.topic("outcomes"), is_kept)
    cut = reconcile(place.realm)
    assert (cut.manifest["verdict"], cut.code) == ("incomplete", 1), cut.text
    assert any(f"the journal notes that {noted(place, run)} were stored" in text for text in details(cut))
    assert any(text.endswith("events in the store; outcome records of this run are missing") for text in details(cut))
    assert cut.manifest["balance"]["difference"] == 0

    place.keep(place.topic("outcomes"), lambda _: False)
    none = reconcile(place.realm)
    assert (none.manifest["verdict"], none.code) == ("incomplete", 1), none.text
    assert f"{place.topic('outcomes')} holds no record: what peers were told is not known" in details(none)


def details(result: Result) -> list[str]:
    return [row["detail"] for row in result.examples("Q1")]


def test_an_orderly_end_notes_its_last_record(new_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = new_gateway("embedded", nodes=NODES)
    with Peer(gateway.port) as peer:
        peer.stored("any.orders", frames.message(b"1"))
    assert gateway.stop() == 0
    place = place_of(gateway)
    outcomes = records(place, "outcomes")
    first, last = outcomes[0], outcomes[-1]
    assert (first["n"], first["groups"], first["low"]) == (1, [], 1), "stored before the gateway listened"
    assert last["closed"] == 1
    assert noted(place, str(last["run"])) == last["n"]
