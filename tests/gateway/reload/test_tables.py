"""Reloading tables: on SIGHUP and on a changed file, good and bad, with messages in flight."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.config.limits import RELOAD_STEP_LINKS
from gateway.reload.table_checker_main import PROBLEMS_MAX
from mappings import Decision, TableSet, load_tables
from mappings.compiler import compile as compiling
from mappings.compiler.compile import STEP_CELLS
from mappings.compiler.errors import IN_FORCE
from mappings.compiler.loading import Loader
from mappings.compiler.table_set import SHIPPED
from mappings.language.vocabulary import PROFILES
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import StartGateway
from tests.kit.rewriting import rewrite
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import ACCEPTED, BAD, MESSAGE, MODIFIED, Folder, reload_once, run
from tests.kit.wire.scripted_gateway import ScriptedGateway

DEADLINE_S = HANG_S


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "ours")


@pytest.fixture
def gateway(folder: Folder) -> Iterator[ScriptedGateway]:
    with ScriptedGateway(load_tables(folder.directory), directory=folder.directory) as gateway:
        yield gateway


def test_200_reloads_under_load_lose_nothing(tmp_path: Path) -> None:
    figures = run(200, tmp_path / "ours")
    assert (figures.reloads, figures.refused) == (100, 100)
    assert figures.messages > 0
    assert figures.outcomes["accepted"] + figures.outcomes["modified"] == figures.messages


def test_what_is_in_flight_is_decided_by_the_tables_under_which_it_came(
    gateway: ScriptedGateway, folder: Folder
) -> None:
    realm = gateway.realm
    with Peer(gateway.port) as peer:
        peer.publisher("q")
        realm.holds.add("publish")
        [before] = peer.publish(MESSAGE)
        gateway.until(lambda: "publish 1" in realm.calls)
        folder.write(MODIFIED)
        reload_once(gateway)
        [after] = peer.publish(MESSAGE)
        gateway.until(lambda: realm.calls.count("publish 1") == 2)
        gateway.do(realm.release)
        assert peer.outcomes(2) == {before: "accepted", after: "modified"}
    gateway.do(lambda: gateway.gateway.outcomes.flush(closed=True))
    records = [orjson.loads(value) for value in realm.evidence]
    outcomes = {(record["digest"], group["outcome"]) for record in records for group in record.get("groups", ())}
    assert outcomes == {
        (gateway.tables.digest, "accepted"),
        (gateway.gateway.tables.digest, "modified"),
    }
    numbers = [record["n"] for record in records if "groups" in record]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_disposition_is_decided_by_the_tables_under_which_it_came(gateway: ScriptedGateway, folder: Folder) -> None:
    realm = gateway.realm
    path = folder.directory / "tables" / "settled.yaml"
    shipped, refused = "then: {outcome: asked, settle: true}", "then: {outcome: none, settle: true}"
    assert path.read_text().count(shipped) == 1
    with Peer(gateway.port) as peer:
        peer.consumer("q", credit=2)
        peer.stored("q", MESSAGE, MESSAGE)
        peer.receive(2)
        realm.holds.add("settle")
        peer.settle([0], frames.state("accepted"), settled=False)
        gateway.until(lambda: "acknowledge 1" in realm.calls)
        rewrite(path, path.read_text().replace(shipped, refused))
        reload_once(gateway)
        peer.settle([1], frames.state("accepted"), settled=False)
        gateway.until(lambda: realm.calls.count("acknowledge 1") == 2)
        gateway.do(realm.release)
        assert peer.outcomes(2) == {0: "accepted", 1: None}


def test_links_that_were_there_take_partial_deliveries_as_the_new_tables_say(
    gateway: ScriptedGateway, folder: Folder
) -> None:
    path = folder.directory / "tables" / "publish.yaml"
    text = path.read_text(encoding="utf-8")
    rules = text[text.index("      - id: partial-rejected") : text.index("      - id: untransformed-rejected")]
    with Peer(gateway.port) as peer:
        peer.publisher("q")
        peer.send(frames.transfer(0, MESSAGE[:3], more=True), frames.transfer(0, MESSAGE[3:]))
        assert peer.outcomes(1) == {0: "accepted"}
        extended = text.index("  extended:")
        head, tail = text[:extended], text[extended:]
        begin = tail.index("      - id: partial-reassembled")
        end = tail.find("      - id: ", begin + 10)
        tail = tail[:begin] + rules.replace("id: partial", "id: our-partial") + (tail[end:] if end > 0 else "")
        rewrite(path, head + tail)
        reload_once(gateway)
        assert gateway.server.reload.problems == []
        peer.send(frames.transfer(1, MESSAGE[:3], more=True))
        assert peer.outcomes(1) == {1: "rejected:amqp:not-implemented"}
        assert peer.detached(0) == "amqp:not-implemented"


def test_many_links_change_in_groups_and_all_of_them_do(gateway: ScriptedGateway, folder: Folder) -> None:
    count = RELOAD_STEP_LINKS // 2 + 1
    peers = [Peer(gateway.port, container=f"c{at}") for at in range(3)]
    for peer in peers:
        for handle in range(count):
            peer.publisher("q", handle=handle)
    folder.write(MODIFIED)
    steps = gateway.do(lambda: len([*gateway.gateway.use(gateway.tables)]))
    assert steps == 3 * count // RELOAD_STEP_LINKS
    reload_once(gateway)
    for peer in peers:
        for handle in (0, count - 1):
            [number] = peer.publish(MESSAGE, handle=handle)
            assert peer.outcomes(1) == {number: "modified"}
        peer.close()
    stored = [orjson.loads(value)["digest"] for value in gateway.realm.evidence if b'"tables"' in value]
    assert stored.count(gateway.gateway.tables.digest) == 1


def test_tables_are_stored_once_a_run(gateway: ScriptedGateway, folder: Folder) -> None:
    for then in (MODIFIED, ACCEPTED, MODIFIED, ACCEPTED):
        folder.write(then)
        reload_once(gateway)
    documents = [orjson.loads(value) for value in gateway.realm.evidence]
    stored = [document["digest"] for document in documents if "of" not in document]
    assert len(stored) == len(set(stored)) == 2
    assert [document["of"] for document in documents if "of" in document] == stored, "and why their rules are so"


def test_other_reasons_of_the_same_rules_are_stored(gateway: ScriptedGateway, folder: Folder) -> None:
    before = gateway.gateway.tables
    path, words = folder.directory / "tables" / "published.yaml", "The event is stored, and only now"
    text = path.read_text()
    for reason in (words, "It is safe, and only now", words):
        rewrite(path, text.replace(words, reason))
        reload_once(gateway)
    assert gateway.gateway.tables is before, "they decide as they did"
    documents = [orjson.loads(value) for value in gateway.realm.evidence]
    reasons = [document["because"]["published"]["stored-accepted"][:10] for document in documents if "of" in document]
    assert reasons == ["It is safe", "The event "], "that which is in force is the last one"
    assert {document["of"] for document in documents if "of" in document} == {before.digest}


def test_a_bad_file_changes_nothing_and_is_logged_once(
    gateway: ScriptedGateway, folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write(BAD)
    with caplog.at_level(logging.ERROR, "realmgate.reload"):
        for _ in range(3):
            reload_once(gateway)
    assert gateway.gateway.tables is gateway.tables
    assert gateway.server.reload.refused == 3
    [problem] = gateway.server.reload.problems
    assert problem.startswith(f"{folder.directory}/tables/published.yaml:")
    assert "settle cannot be maybe" in problem
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    folder.write(ACCEPTED)
    reload_once(gateway)
    assert gateway.server.reload.problems == []
    assert gateway.gateway.tables is gateway.tables, "the same tables need not be made active anew"
    (folder.directory / "tables" / "fault.yaml").unlink()
    reload_once(gateway)
    assert "the file of table fault is missing" in gateway.server.reload.problems[0]


def test_a_table_of_absurd_size_is_refused_at_once_and_its_problems_are_counted(
    gateway: ScriptedGateway, folder: Folder
) -> None:
    path = folder.directory / "tables" / "fault.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_bytes(b"# " + b"x" * 10 * 1024 * 1024 + b"\ntable: fault\n")
    reload_once(gateway)
    assert gateway.server.reload.problems == [
        f"{path}:1:1: is 10,485,776 bytes long; that is too much; name a file of at most 1,000,000 bytes"
    ]
    rewrite(path, text + "".join(f"key{at}: 1\n" for at in range(PROBLEMS_MAX + 7)))
    reload_once(gateway)
    problems = gateway.server.reload.problems
    assert len(problems) == PROBLEMS_MAX + 1
    assert problems[-1] == "and 7 more; realmgate mappings check lists them all"
    rewrite(path, text)
    reload_once(gateway)
    assert gateway.server.reload.problems == []


def test_a_file_that_may_not_be_read_is_named_beside_the_others(gateway: ScriptedGateway, folder: Folder) -> None:
    path = folder.directory / "tables" / "fault.yaml"
    path.unlink()
    path.mkdir()
    folder.write(BAD)
    reload_once(gateway)
    unreadable, unsound = sorted(gateway.server.reload.problems)
    assert unreadable == f"{path}:1:1: cannot be read: Is a directory; name a readable file"
    assert "settle cannot be maybe" in unsound


def test_a_checker_that_dies_is_reported_and_the_next_one_checks(gateway: ScriptedGateway, folder: Folder) -> None:
    reload_once(gateway)
    reload = gateway.server.reload
    process = reload.checker.process
    assert process is not None
    process.kill()
    folder.write(MODIFIED)
    reload_once(gateway)
    if reload.problems:  # it was asked before its end was known
        assert "could not be checked" in reload.problems[0]
        reload_once(gateway)
    assert gateway.gateway.tables.digest != gateway.tables.digest


def test_a_process_reloads_on_sighup_and_on_a_changed_file(new_gateway: StartGateway, folder: Folder) -> None:
    process = new_gateway("embedded", mappings={"dir": str(folder.directory)})
    with Peer(process.port) as peer:
        peer.publisher("q")

        def until(outcome: str) -> None:
            end = time.monotonic() + DEADLINE_S
            while set(peer.outcomes(len(peer.publish(MESSAGE))).values()) != {outcome}:
                assert time.monotonic() < end, f"never {outcome}"
                time.sleep(0.05)

        until("accepted")
        folder.write(MODIFIED)
        until("modified")
        folder.write(ACCEPTED)
        assert process.process is not None
        process.process.send_signal(signal.SIGHUP)
        until("accepted")


def test_the_loop_starts_no_process(gateway: ScriptedGateway, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """To start one holds a thread up for tens of milliseconds: the first is started before the loop, others by a
    thread."""
    started: list[str] = []
    popen = subprocess.Popen.__init__

    def noted(self: Any, *arguments: Any, **named: Any) -> None:
        started.append(threading.current_thread().name)
        popen(self, *arguments, **named)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    for then in (MODIFIED, ACCEPTED):
        folder.write(then)
        reload_once(gateway)
    process = gateway.server.reload.checker.process
    assert process is not None
    process.kill()
    process.wait()
    folder.write(MODIFIED)
    reload_once(gateway)
    assert gateway.server.reload.problems == []
    assert len(started) == 2 and "gateway" not in started, started


def test_a_gateway_with_tables_of_its_own_has_the_process_before_it_serves(
    new_gateway: StartGateway, folder: Folder
) -> None:
    process = new_gateway("embedded", mappings={"dir": str(folder.directory)})
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0") for child in children]
    assert any(b"gateway.reload.table_checker_main" in command for command in commands), commands


def test_a_step_of_a_reload_makes_no_more_than_so_many_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    document = load_tables().expanded()
    attach = document["tables"]["attach"]  # as if it spoke of twenty classes
    attach["axes"] = {"node_class": [f"c{at}" for at in range(20)], **attach["axes"]}
    attach["cells"] *= 20
    made = [0]

    def counted(*arguments: Any) -> Decision:
        made[-1] += 1
        return Decision(*arguments)

    monkeypatch.setattr(compiling, "Decision", counted)
    whole = None
    for step in TableSet.read_in_steps(document):
        whole = step
        made.append(0)
    assert isinstance(whole, TableSet) and len(whole["attach"].cells) == len(attach["cells"])
    assert sum(made) > 20 * 500 and max(made) <= STEP_CELLS


def test_native_errors_of_ones_own_are_in_force_and_are_reloaded(gateway: ScriptedGateway, folder: Folder) -> None:
    path = folder.directory / "errors.yaml"
    shipped = (SHIPPED / "errors.yaml").read_text(encoding="utf-8")
    gateway.realm.answers["publish"] = "capacity-reached"  # of a realm's code SCRIPTED, which no table speaks of
    try:
        with Peer(gateway.port) as peer:
            peer.publisher("q")
            refusals = [rejected(peer)]
            for milliseconds in (30_000, 7_000):
                rewrite(path, shipped.replace("errors:\n", f"errors:\n{QUOTA % milliseconds}", 1))
                reload_once(gateway)
                assert gateway.server.reload.problems == []
                refusals.append(rejected(peer))
            rewrite(path, shipped.replace("errors:\n", "errors:\n  - {id: half}\n", 1))
            reload_once(gateway)
            assert f"{path}:" in gateway.server.reload.problems[0]
            refusals.append(rejected(peer))
            path.unlink()
            reload_once(gateway)
            refusals.append(rejected(peer))
    finally:
        IN_FORCE.use(None)
    usual = ("q: " + IN_FORCE.errors.say("capacity-reached", ""), 1000)
    ours = "q: its quota is used up; send less, or later"
    assert refusals == [usual, (ours, 30_000), (ours, 7_000), (ours, 7_000), usual]


QUOTA = """  - id: quota
    kafka: [SCRIPTED]
    sqlite: []
    cause: unavailable
    scope: link
    retry: inside
    retry_after_ms: %d
    say: its quota is used up; send less, or later
    because: "The test's realm says so."
"""


def rejected(peer: Peer) -> tuple[str, int]:
    """Publishes one: with what description it is rejected, and after how long it may be sent again."""
    peer.publish(MESSAGE)
    error = peer.expect("disposition").field(4).value[0]
    _, description, info = error.value
    return description, {str(key): value for key, value in info.pairs}["retry-after-ms"]


@pytest.mark.parametrize("profile", PROFILES)
def test_the_loader_answers_as_load_tables_does(folder: Folder, profile: str) -> None:
    loader = Loader()
    for then in (ACCEPTED, ACCEPTED, MODIFIED, ACCEPTED):
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
