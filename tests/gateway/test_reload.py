"""Reloading tables: on SIGHUP and on a changed file, good and bad, with messages in flight."""

from __future__ import annotations

import json
import logging
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from gateway.limits import RELOAD_STEP_LINKS
from mappings import TableSet, load_tables
from mappings.loading import Loader
from mappings.vocabulary import PROFILES
from tests.conftest import StartGateway
from tests.gateway.reloading import ACCEPTED, BAD, MESSAGE, RELEASED, Folder, reload_once, run
from tests.wire import frames
from tests.wire.peer import Peer
from tests.wire.tcp_house import TcpHouse

DEADLINE_S = 30.0


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "ours")


@pytest.fixture
def house(folder: Folder) -> Iterator[TcpHouse]:
    with TcpHouse(load_tables(folder.directory), directory=folder.directory) as house:
        yield house


def test_200_reloads_under_load_lose_nothing(tmp_path: Path) -> None:
    figures = run(200, tmp_path / "ours")
    assert (figures.reloads, figures.refused) == (100, 100)
    assert figures.messages > 0
    assert figures.outcomes["accepted"] + figures.outcomes["released"] == figures.messages


def test_what_is_in_flight_is_decided_by_the_tables_under_which_it_came(house: TcpHouse, folder: Folder) -> None:
    realm = house.realm
    with Peer(house.port) as peer:
        peer.publisher("q")
        realm.holds.add("publish")
        [before] = peer.publish(MESSAGE)
        house.until(lambda: "publish 1" in realm.calls)
        folder.write(RELEASED)
        reload_once(house)
        [after] = peer.publish(MESSAGE)
        house.until(lambda: realm.calls.count("publish 1") == 2)
        house.do(realm.release)
        assert peer.outcomes(2) == {before: "accepted", after: "released"}
    house.do(lambda: house.gateway.outcomes.flush(closed=True))
    records = [orjson.loads(value) for value in realm.evidence]
    told = {(record["digest"], group["outcome"]) for record in records for group in record.get("groups", ())}
    assert told == {
        (house.tables.digest, "accepted"),
        (house.gateway.tables.digest, "released"),
    }
    numbers = [record["n"] for record in records if "groups" in record]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_disposition_is_decided_by_the_tables_under_which_it_came(house: TcpHouse, folder: Folder) -> None:
    realm = house.realm
    path = folder.directory / "tables" / "settled.yaml"
    asked, refused = "then: {outcome: asked, settle: true}", "then: {outcome: none, settle: true}"
    assert path.read_text().count(asked) == 1
    with Peer(house.port) as peer:
        peer.consumer("q", credit=2)
        peer.stored("q", MESSAGE, MESSAGE)
        peer.receive(2)
        realm.holds.add("settle")
        peer.settle([0], frames.state("accepted"), settled=False)
        house.until(lambda: "acknowledge 1" in realm.calls)
        path.write_text(path.read_text().replace(asked, refused))
        reload_once(house)
        peer.settle([1], frames.state("accepted"), settled=False)
        house.until(lambda: realm.calls.count("acknowledge 1") == 2)
        house.do(realm.release)
        assert peer.outcomes(2) == {0: "accepted", 1: None}


def test_links_that_were_there_take_partial_deliveries_as_the_new_tables_say(house: TcpHouse, folder: Folder) -> None:
    path = folder.directory / "tables" / "publish.yaml"
    text = path.read_text(encoding="utf-8")
    rules = text[text.index("      - id: partial-rejected") : text.index("      - id: untransformed-rejected")]
    with Peer(house.port) as peer:
        peer.publisher("q")
        peer.send(frames.transfer(0, MESSAGE[:3], more=True), frames.transfer(0, MESSAGE[3:]))
        assert peer.outcomes(1) == {0: "accepted"}
        extended = text.index("  extended:")
        head, tail = text[:extended], text[extended:]
        begin = tail.index("      - id: partial-reassembled")
        end = tail.find("      - id: ", begin + 10)
        tail = tail[:begin] + rules.replace("id: partial", "id: our-partial") + (tail[end:] if end > 0 else "")
        path.write_text(head + tail, encoding="utf-8")
        reload_once(house)
        assert house.server.reload.problems == []
        peer.send(frames.transfer(1, MESSAGE[:3], more=True))
        assert peer.outcomes(1) == {1: "rejected:amqp:not-implemented"}
        assert peer.detached(0) == "amqp:not-implemented"


def test_many_links_change_in_groups_and_all_of_them_do(house: TcpHouse, folder: Folder) -> None:
    count = RELOAD_STEP_LINKS // 2 + 1
    peers = [Peer(house.port, container=f"c{at}") for at in range(3)]
    for peer in peers:
        for handle in range(count):
            peer.publisher("q", handle=handle)
    folder.write(RELEASED)
    steps = house.do(lambda: len([*house.gateway.use(house.tables)]))
    assert steps == 3 * count // RELOAD_STEP_LINKS
    reload_once(house)
    for peer in peers:
        for handle in (0, count - 1):
            [number] = peer.publish(MESSAGE, handle=handle)
            assert peer.outcomes(1) == {number: "released"}
        peer.close()
    stored = [orjson.loads(value)["digest"] for value in house.realm.evidence if b'"tables"' in value]
    assert stored.count(house.gateway.tables.digest) == 1


def test_tables_are_stored_once_a_run(house: TcpHouse, folder: Folder) -> None:
    for then in (RELEASED, ACCEPTED, RELEASED, ACCEPTED):
        folder.write(then)
        reload_once(house)
    stored = [orjson.loads(value)["digest"] for value in house.realm.evidence]
    assert len(stored) == len(set(stored)) == 2


def test_a_bad_file_changes_nothing_and_is_logged_once(
    house: TcpHouse, folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write(BAD)
    with caplog.at_level(logging.ERROR, "realmgate.reload"):
        for _ in range(3):
            reload_once(house)
    assert house.gateway.tables is house.tables
    assert house.server.reload.refused == 3
    [problem] = house.server.reload.problems
    assert problem.startswith(f"{folder.directory}/tables/published.yaml:")
    assert "settle cannot be maybe" in problem
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    folder.write(ACCEPTED)
    reload_once(house)
    assert house.server.reload.problems == []
    assert house.gateway.tables is house.tables, "the same tables need not be put in force anew"
    (folder.directory / "tables" / "fault.yaml").unlink()
    reload_once(house)
    assert "the file of table fault is missing" in house.server.reload.problems[0]


def test_a_checker_that_dies_is_told_and_the_next_one_is_asked(house: TcpHouse, folder: Folder) -> None:
    reload_once(house)
    reload = house.server.reload
    assert reload._process is not None
    reload._process.kill()
    folder.write(RELEASED)
    reload_once(house)
    if reload.problems:  # it was asked before its end was known
        assert "could not be checked" in reload.problems[0]
        reload_once(house)
    assert house.gateway.tables.digest != house.tables.digest


def test_a_process_reloads_on_sighup_and_on_a_changed_file(gateway: StartGateway, folder: Folder) -> None:
    process = gateway("embedded", mappings={"dir": str(folder.directory)})
    with Peer(process.port) as peer:
        peer.publisher("q")

        def until(outcome: str) -> None:
            end = time.monotonic() + DEADLINE_S
            while set(peer.outcomes(len(peer.publish(MESSAGE))).values()) != {outcome}:
                assert time.monotonic() < end, f"never {outcome}"
                time.sleep(0.05)

        until("accepted")
        folder.write(RELEASED)
        until("released")
        folder.write(ACCEPTED)
        assert process.process is not None
        process.process.send_signal(signal.SIGHUP)
        until("accepted")


@pytest.mark.parametrize("profile", PROFILES)
def test_the_loader_answers_as_load_tables_does(folder: Folder, profile: str) -> None:
    loader = Loader()
    for then in (ACCEPTED, ACCEPTED, RELEASED, ACCEPTED):
        folder.write(then)
        document = json.loads(json.dumps(loader.answer(folder.directory, profile)))["document"]
        expected = load_tables(folder.directory, profile)
        assert document == expected.expanded()
        again = TableSet.read(document)
        assert again.digest == expected.digest
        for name in expected:
            assert again[name].cells == expected[name].cells
    folder.write(BAD)
    assert "settle cannot be maybe" in loader.answer(folder.directory, profile)["problems"][0]
    assert "is no directory" in loader.answer(folder.directory / "nowhere", profile)["problems"][0]
    assert loader.answer(None, profile)["document"] == load_tables(None, profile).expanded()
