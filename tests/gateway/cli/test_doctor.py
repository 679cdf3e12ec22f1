"""`doctor`: each planted fault turns its line red, with a remedy; on a healthy realm no line is; on both realms."""

from __future__ import annotations

import os
import re
import resource
import shutil
import socket
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import yaml
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from gateway.cli.doctor import command, machine
from gateway.cli.doctor.command import examine
from gateway.cli.doctor.finding import Finding
from gateway.cli.doctor.realm import lease_of
from gateway.config.settings import load_settings
from gateway.serve.open_log import open_log
from mappings.compiler.table_set import SHIPPED
from native_backend.clock import SystemClock
from native_backend.journal.lease_records import encode_lease
from native_backend.log.open import EMBEDDED_FILE
from native_backend.log.port import Log, TopicSpec
from reconciliation.model.folder import LocalFolder
from reconciliation.model.ranges import Extent
from reconciliation.model.window import BEGINNING, END, Window
from reconciliation.read.landing import Landed
from reconciliation.report.balance import Balance
from reconciliation.report.findings import Findings
from reconciliation.report.report import MANIFEST, write_manifest
from reconciliation.report.verdict import Verdict, Word
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.certificates import Authority
from tests.kit.processes.gateway import GatewayProcess, StartGateway, realmgate
from tests.kit.wire import frames
from tests.kit.wire.logins import write_users
from tests.kit.wire.peer import Peer

REALMS = pytest.mark.parametrize("kind", ["embedded", "kafka"])
ROOM = SimpleNamespace(free=1 << 40)


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine of the tests may be full."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: ROOM)
    monkeypatch.setattr(machine, "DISK_LOW", 1)


def red(gateway: GatewayProcess, reports: Path | None = None) -> dict[str, list[Finding]]:
    """The lines that say that something is wrong, by check; each has a remedy."""
    code, findings = examine(gateway.config_path, reports, HANG_S)
    wrong: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.status in ("warn", "FAIL"):
            wrong.setdefault(finding.check, []).append(finding)
            assert finding.remedy, finding
    assert code == int(bool(wrong)), findings
    return wrong


def used(new_gateway: StartGateway, kind: str, **settings: Any) -> GatewayProcess:
    """A gateway that has stored and settled something."""
    gateway = new_gateway(kind, limits={"connections": 50, "stores_read": 50}, **settings)
    gateway.command("node", "create", "orders")
    with Peer(gateway.port) as peer:
        peer.stored("orders", frames.message(), frames.message())
        peer.consumer("orders", credit=1)
        peer.settle([seen.field(1) for seen in peer.receive(1)], frames.state("accepted"))
    return gateway


def report_in(directory: Path, word: Word, sentence: str) -> Path:
    """The manifest of a report with that verdict, as the reconciliation itself writes it."""
    directory.mkdir(parents=True, exist_ok=True)
    landed = Landed(LocalFolder(directory / "landed"), Extent((), ()))
    judged: Any = SimpleNamespace(runs=[], catalog=SimpleNamespace(digests=()))
    result: Any = SimpleNamespace(
        window=Window(BEGINNING, END), landed=landed, judgement=judged, findings=Findings([], Counter()),
        sheet=Balance([], [], 0, 0), verdict=Verdict(word, True, sentence), known=(),
        record=SimpleNamespace(versions={}), compared=None,
    )  # fmt: skip
    write_manifest(LocalFolder(directory), result)
    return directory / MANIFEST


def log_of(gateway: GatewayProcess) -> Log:
    return open_log(load_settings(gateway.config_path))


def takes(log: Log, prefix: str, run: str, process: dict[str, Any], *, without: str = "") -> None:
    """A run of another gateway has the lease; its record lacks `without`."""
    lease = lease_of(log, prefix)
    assert lease is not None
    took = orjson.loads(encode_lease("take", lease, run, process, 0, 5.0))
    took.pop(without, None)
    log.control.put(f"{prefix}.lease", run.encode(), orjson.dumps(took))


def prefix_of(gateway: GatewayProcess) -> str:
    return str(gateway.settings["realm"].get("prefix", "um"))


@REALMS
def test_nothing_is_wrong_with_a_healthy_realm(new_gateway: StartGateway, kind: str, tmp_path: Path) -> None:
    gateway = used(new_gateway, kind, admin={"listen": "http://127.0.0.1:0"})
    assert red(gateway) == {}
    report_in(tmp_path / "reports", "clean", "Everything agrees.")
    assert red(gateway, tmp_path / "reports") == {}
    output = gateway.command("doctor", "--timeout", "60").splitlines()
    assert any(line.startswith("not looked at  verdict") and "--reports" in line for line in output)
    gateway.stop()
    assert red(gateway) == {}, "nor without a gateway"


@REALMS
def test_faults_of_a_realm_turn_their_lines_red(new_gateway: StartGateway, kind: str) -> None:
    gateway = used(new_gateway, kind)
    gateway.kill()
    assert {*red(gateway)} == {"lease"}, "its owner was killed"
    gateway.restart()
    gateway.stop()
    prefix = prefix_of(gateway)
    with closing(log_of(gateway)) as log:
        newest = log.control.read_range(f"{prefix}.outcomes", 0, 0, 50).values
        run = orjson.loads(newest[-1] or b"")["run"]
        vouched = {"node": "", "durable": "", "store": 0, "operation": "recorded", "runs": [[1, 10**9, 0, 1]]}
        value = orjson.dumps({"v": 1, "run": run, "n": 10**9, "at": 0, "entries": [vouched]})
        log.control.put(f"{prefix}.journal", run.encode(), value)
        assert {*red(gateway)} == {"evidence"}, "outcome records that the journal names are not there"
        [node] = list(log.control.topics(f"{prefix}.node."))
        log.control.project(f"{prefix}.queue.orders", {(node, 0): (1, "of another program")})
        assert {*red(gateway)} == {"evidence", "groups"}
        ahead = {"v": 1, "what": "ask", "term": 1, "run": run, "at": int((time.time() + 3600) * 1e6), "process": {}}
        log.control.put(f"{prefix}.lease", run.encode(), orjson.dumps({**ahead, "after": 0, "lease_ms": 5000}))
        assert {*red(gateway)} == {"evidence", "groups", "clocks"}
        log.control.delete_topics([node, f"{prefix}.commands"])
        wrong = red(gateway)
    assert "orders" in wrong["nodes"][0].words and f"{prefix}.commands" in wrong["topics"][0].words


class _Ahead(SystemClock):
    """Ten minutes ahead: what is new is old, and what has begun is long under way."""

    def epoch_us(self) -> int:
        return super().epoch_us() + 600_000_000


@REALMS
def test_a_history_that_is_not_written_is_red(
    new_gateway: StartGateway, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that has served for ten minutes, and has no record, or none that is newer."""
    gateway = new_gateway(kind, limits={"connections": 50, "stores_read": 50, "history_interval_s": 3600})
    says(gateway, 60)
    assert "too early to say" in of_history(gateway, "not looked at")
    monkeypatch.setattr(command, "SystemClock", _Ahead)
    assert "there is no record" in of_history(gateway, "warn")
    says(gateway, 600)
    assert "too early to say" in of_history(gateway, "not looked at")
    gateway.stop()
    says(gateway, 60)
    assert "none is written" in of_history(gateway, "ok")
    gateway.settings["limits"]["history_interval_s"] = 3600
    gateway.start()
    says(gateway, 60)
    assert re.search(r"the newest record is 1\d min old", of_history(gateway, "warn")), "the machine may be slow"
    monkeypatch.setattr(command, "SystemClock", SystemClock)
    assert "its newest record is " in of_history(gateway, "ok")


def says(gateway: GatewayProcess, interval_s: int) -> None:
    """What the configuration says to the commands; the gateway has read it already."""
    gateway.settings["limits"]["history_interval_s"] = interval_s
    gateway.config_path.write_text(yaml.safe_dump(gateway.settings))


def of_history(gateway: GatewayProcess, status: str) -> str:
    """The words of its line, which has that status; and no other line is red."""
    findings = examine(gateway.config_path, None, HANG_S)[1]
    wrong = {finding.check for finding in findings if finding.status in ("warn", "FAIL")}
    [line] = [finding for finding in findings if finding.check == "history"]
    assert line.status == status and wrong == ({"history"} if status == "warn" else set()), findings
    assert bool(line.remedy) == (status == "warn")
    return line.words


@REALMS
def test_what_a_serving_gateway_says_is_wrong_is_shown(new_gateway: StartGateway, kind: str) -> None:
    gateway = used(new_gateway, kind, admin={"listen": "http://127.0.0.1:0"})
    asks(gateway, Watch.of(gateway).url)
    assert red(gateway) == {}
    with closing(log_of(gateway)) as log:
        log.control.delete_topics([*log.control.topics(f"{prefix_of(gateway)}.node.")])
    deadline = time.monotonic() + HANG_S
    while "gateway" not in (wrong := red(gateway)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "orders" in wrong["gateway"][0].words


def asks(gateway: GatewayProcess, address: str) -> None:
    """The configuration names that admin address to the commands."""
    gateway.settings["admin"] = {"listen": address}
    gateway.config_path.write_text(yaml.safe_dump(gateway.settings))


def test_a_gateway_that_lives_and_does_not_answer_is_red(new_gateway: StartGateway) -> None:
    gateway = used(new_gateway, "embedded")
    asks(gateway, "http://127.0.0.1:1")
    [line] = red(gateway)["gateway"]
    assert "does not answer" in line.words and "a gateway owns the realm" in line.words
    gateway.stop()
    assert red(gateway) == {}, "none is meant to answer"


@REALMS
def test_an_owner_on_another_machine_is_not_called_alive(new_gateway: StartGateway, kind: str) -> None:
    gateway = used(new_gateway, kind)
    gateway.stop()
    elsewhere = {"host": "gw-b", "pid": 1, "start": 1, "boot": "of gw-b", "space": "pid:[1]"}
    with closing(log_of(gateway)) as log:
        takes(log, prefix_of(gateway), "b-1", elsewhere)
    [line] = [finding for finding in examine(gateway.config_path, None, HANG_S)[1] if finding.check == "lease"]
    assert line.status == "not looked at" and "run b-1 on gw-b owns the realm" in line.words, line


@REALMS
def test_evidence_that_was_made_again_is_red(new_gateway: StartGateway, kind: str) -> None:
    """The topic is there, and none of the records that the journal names."""
    gateway = used(new_gateway, kind)
    gateway.stop()
    topic = f"{prefix_of(gateway)}.outcomes"
    with closing(log_of(gateway)) as log:
        end = log.control.bounds(topic, 0)[1]
        log.control.trim(topic, 0, end)
        assert red(gateway) == {}, "retention may take it"
        log.control.delete_topics([topic])
        log.control.create_topics([TopicSpec(topic)])
    assert {*red(gateway)} == {"evidence"}


def test_a_gateway_without_pyspark_is_whole(new_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = used(new_gateway, "embedded")
    gateway.stop()
    monkeypatch.setattr(machine, "find_spec", lambda _: None)
    assert red(gateway) == {}
    [line] = [finding for finding in examine(gateway.config_path, None, HANG_S)[1] if finding.check == "spark"]
    assert line.status == "not looked at" and "pyspark is not installed" in line.words


@REALMS
def test_a_missing_history_is_a_fault(new_gateway: StartGateway, kind: str) -> None:
    """Also where no gateway serves, and where none can be asked: the lease says which topics its owner makes."""
    gateway = used(new_gateway, kind)
    topic = f"{prefix_of(gateway)}.history"
    with closing(log_of(gateway)) as log:
        log.control.delete_topics([topic])
    [lost] = red(gateway).pop("topics")
    assert (lost.status, lost.words.split()[0]) == (
        "FAIL",
        topic,
    ) and "the next start makes an empty one" in lost.remedy
    gateway.stop()
    assert [finding.words.split()[0] for finding in red(gateway)["topics"]] == [topic]
    gateway.start()
    assert red(gateway) == {}, "as the remedy says"


@REALMS
def test_a_release_that_writes_no_history_lacks_none(new_gateway: StartGateway, kind: str) -> None:
    gateway = used(new_gateway, kind)
    gateway.stop()
    prefix = prefix_of(gateway)
    with closing(log_of(gateway)) as log:
        log.control.delete_topics([f"{prefix}.history"])
        takes(log, prefix, "earlier", {}, without="topics")
    assert red(gateway) == {}
    words = {finding.check: finding.words for finding in reversed(examine(gateway.config_path, None, HANG_S)[1])}
    assert f"{prefix}.history comes with the upgrade: run earlier is of an earlier release" in words["topics"]
    assert "run earlier is of an earlier release" in words["history"]


def test_settings_of_kafka_that_delete_messages_are_red(new_gateway: StartGateway) -> None:
    gateway = used(new_gateway, "kafka")
    gateway.stop()
    prefix = prefix_of(gateway)
    for topic, setting, value in (
        (f"{prefix}.node.orders", "retention.ms", "60000"),
        (f"{prefix}.node.orders", "cleanup.policy", "compact"),
        (f"{prefix}.state", "cleanup.policy", "delete"),
        (f"{prefix}.journal", "unclean.leader.election.enable", "true"),
    ):
        with closing(KafkaAdminClient(bootstrap_servers=gateway.settings["realm"]["bootstrap"])) as admin:
            admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {setting: value})])
            rows = red(gateway)["topics"]
            assert any(topic in row.words and setting in row.words and setting in row.remedy for row in rows), rows


def test_faults_of_the_machine_turn_their_lines_red(
    new_gateway: StartGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = used(new_gateway, "embedded")
    gateway.stop()
    write_users(tmp_path / "users.yaml", ann=[])
    (tmp_path / "users.yaml").chmod(0o644)
    (Path(gateway.settings["realm"]["path"]) / EMBEDDED_FILE).chmod(0o644)
    report_in(tmp_path, "not clean", "2 \u00d7 lost write (P1).")
    gateway.settings |= {"security": {"sasl": ["ANONYMOUS", "SCRAM-SHA-256"], "users": str(tmp_path / "users.yaml")}}
    gateway.settings["listen"] = ["amqp://0.0.0.0:5672"]
    gateway.config_path.write_text(yaml.safe_dump(gateway.settings))
    wrong = red(gateway, tmp_path)
    assert {*wrong} == {"users", "realm file", "open", "verdict"}
    assert "not clean" in wrong["verdict"][0].words and "lost write (P1)" in wrong["verdict"][0].words
    assert "summary.txt" in wrong["verdict"][0].remedy
    report_in(tmp_path, "clean but for acknowledged", "Acknowledged: 2 \u00d7 lost write (P1).")
    assert "verdict" not in red(gateway, tmp_path)
    os.utime(report_in(tmp_path, "clean", "Everything agrees."), (1, 1))
    assert [finding.status for finding in red(gateway, tmp_path)["verdict"]] == ["warn"], "it is old"
    monkeypatch.setattr(machine, "version", lambda _: "0.0.1")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert {"versions", "file limit", "disk", "spark"} <= {*red(gateway)}


def test_tables_and_addresses_that_serve_refuses_are_red(new_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = used(new_gateway, "embedded")
    gateway.stop()
    assert "ok             mappings" in gateway.command("doctor", "--timeout", "60")
    tables = tmp_path / "own"
    shutil.copytree(SHIPPED / "tables", tables / "tables")
    (tables / "tables" / "attach.yaml").write_text("rules: [\n")
    gateway.settings["mappings"] = {"dir": str(tables)}
    gateway.config_path.write_text(yaml.safe_dump(gateway.settings))
    wrong = red(gateway)
    assert {*wrong} == {"mappings"} and "attach.yaml:" in wrong["mappings"][0].words
    shutil.copy(SHIPPED / "tables" / "attach.yaml", tables / "tables")
    (tables / "errors.yaml").write_text("errors: [\n")
    code, findings = examine(gateway.config_path, None, HANG_S)
    words = [finding.words for finding in findings if finding.status == "FAIL"]
    assert code == 2 and len(words) == len({*words}) and "errors.yaml:" in words[0], "without them no realm is opened"
    gateway.settings |= {"mappings": {}, "listen": ["amqp://192.0.2.1:5672"]}
    gateway.config_path.write_text(yaml.safe_dump(gateway.settings))
    assert "192.0.2.1" in red(gateway)["configuration"][0].words


def test_a_certificate_that_expires_is_red(new_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = used(new_gateway, "embedded")
    gateway.stop()
    pair = Authority(tmp_path / "ours").sign("server", "/CN=localhost", "IP:127.0.0.1")
    gateway.settings["listen"] = ["amqps://127.0.0.1:5671"]
    gateway.settings["tls"] = {"certificate": str(pair.certificate), "key": str(pair.key)}
    gateway.config_path.write_text(yaml.safe_dump(gateway.settings))
    assert [finding.status for finding in red(gateway)["certificates"]] == ["warn"], "it holds for two days"
    settings, day_s = load_settings(gateway.config_path), 86_400
    for days, status in ((-60, "ok"), (0, "warn"), (3, "FAIL")):
        assert [finding.status for finding in machine.certificates(settings, time.time() + days * day_s)] == [status]


def test_what_cannot_be_reached_is_not_counted_as_fine(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("realm: {kind: embedded, path: nowhere}\n")
    code, findings = examine(config, None, HANG_S)
    assert code == 2
    assert {line.status for line in findings if line.check in ("realm", "lease", "topics")} == {"FAIL", "not looked at"}
    assert not (tmp_path / "nowhere").exists(), "nothing is made by looking"
    config.write_text("realm: {kind: embedded, path: nowhere, wrong: 1}\n")
    code, findings = examine(config, None, HANG_S)
    assert (code, findings[0].status, bool(findings[0].remedy)) == (2, "FAIL", True)
    assert "gateway.yaml:1" in findings[0].words


def test_a_kafka_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    """A socket that takes connections and says nothing: a frozen broker."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        config = tmp_path / "gateway.yaml"
        config.write_text(f"realm: {{kind: kafka, bootstrap: '{address}'}}\nadmin: {{listen: 'http://{address}'}}\n")
        code, findings = examine(config, None, 1.0)
        by_check = {finding.check: finding for finding in findings}
        assert code == 2 and by_check["realm"].status == "FAIL" and address in by_check["realm"].words
        assert f"kafka-broker-api-versions --bootstrap-server {address}" in by_check["realm"].remedy
        assert by_check["users"].status == "ok" and by_check["lease"].status == "not looked at"
        assert by_check["gateway"].status == "not looked at", "it is asked, and does not answer either"
        for words in (("node", "list"), ("queue", "peek", "orders"), ("durable", "list"), ("acl", "list", "--realm")):
            code, _, complaints = realmgate(*words, "--timeout", "0.5", "--config", str(config))
            assert code == 2 and f"{address}: unavailable: " in complaints, complaints
            assert "kafka-broker-api-versions" in complaints
