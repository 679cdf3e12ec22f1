"""`deploy/kafka/start.sh` and `stop.sh`: idempotent, quiet, quick to come back, and helpful when a tool is missing."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewTopic

from tests.kit.patience import HANG_S
from tests.kit.processes.broker import SCRIPTS, Broker, free_port, start_broker


@pytest.fixture(scope="module", autouse=True)
def shipped() -> Iterator[None]:
    """The collector is what the script chooses: `tests/conftest.py` names one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KAFKA_GC", raising=False)
        yield


@pytest.fixture(scope="module")
def broker(shipped: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = start_broker(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


def start(broker: Broker, **environment: str) -> subprocess.CompletedProcess[str]:
    """Like a caller with a pipe on both outputs: it would hang here if the node held one of them."""
    return subprocess.run(
        [SCRIPTS / "start.sh"],
        env={**os.environ, "KAFKA_DIR": str(broker.directory), **environment},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


def options(broker: Broker) -> list[str]:
    return Path(f"/proc/{broker.pid}/cmdline").read_text().split("\0")


def test_prints_its_address_and_nothing_else(broker: Broker) -> None:
    assert re.fullmatch(r"127\.0\.0\.1:\d+", broker.bootstrap)


def test_a_node_that_is_up_is_left_alone(broker: Broker) -> None:
    again = start(broker)
    assert (again.returncode, again.stdout, again.stderr) == (0, broker.bootstrap + "\n", "")
    assert int((broker.directory / "pid").read_text()) == broker.pid


def test_another_port_for_a_node_that_is_up_is_refused(broker: Broker) -> None:
    refused = start(broker, KAFKA_PORT="1")
    assert refused.returncode == 1
    assert "already up" in refused.stderr


def test_topics_survive_a_kill_and_the_address_stays(broker: Broker) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.create_topics([NewTopic("kept", 1)])["kept"].result(10)
    address = broker.bootstrap
    broker.kill()
    broker.restart()
    assert broker.bootstrap == address
    assert "kept" in AdminClient({"bootstrap.servers": address}).list_topics(timeout=HANG_S).topics


def test_the_settings_that_the_realm_relies_on(broker: Broker) -> None:
    """kafka.md 0-12 and 12: quick to come back after a kill, offsets of groups without members never expire."""
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    node = ConfigResource(ConfigResource.Type.BROKER, "1")
    settings = client.describe_configs([node])[node].result(10)
    wanted = {
        "broker.session.timeout.ms": "2000",
        "offsets.retention.minutes": "2147483647",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
    }
    assert {name: settings[name].value for name in wanted} == wanted


def test_unknown_topics_are_not_created(broker: Broker) -> None:
    metadata = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics("not-made", timeout=HANG_S)
    assert metadata.topics["not-made"].error is not None


def test_the_node_does_not_stop_to_collect(broker: Broker) -> None:
    assert "-XX:+UseShenandoahGC" in options(broker)


def test_a_jvm_without_shenandoah_gets_g1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f'#!/bin/sh\ncase "$*" in *Shenandoah*) exit 1 ;; esac\nexec {shutil.which("java")} "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{java.parent}:{os.environ['PATH']}")
    node = start_broker(tmp_path / "kafka")
    try:
        assert "-XX:+UseG1GC" in options(node)
    finally:
        node.stop()


def test_stopping_twice_is_no_error(tmp_path: Path) -> None:
    for _ in range(2):
        done = subprocess.run([SCRIPTS / "stop.sh"], env={**os.environ, "KAFKA_DIR": str(tmp_path)}, check=False)
        assert done.returncode == 0


def test_a_recycled_pid_is_not_killed(tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        (tmp_path / "pid").write_text(str(bystander.pid))
        subprocess.run([SCRIPTS / "stop.sh"], env={**os.environ, "KAFKA_DIR": str(tmp_path)}, check=True)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_missing_tool_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    for tool in ("bash", "dirname", "mkdir", "flock"):
        (tmp_path / tool).symlink_to(Path("/usr/bin") / tool)
    done = subprocess.run(
        [SCRIPTS / "libs.sh"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "'java' is missing" in done.stderr
    assert "apt-get install" in done.stderr


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_free_port_is_none_of_those_that_are_given_to_others() -> None:
    """The controller had its node's own port, once in some hundred starts."""
    first = next(port for port in iter(free_port, None) if is_free(port + 1) and is_free(port + 2))
    script = f". {SCRIPTS}/ports.sh; free_port {first}; free_port {first} {first + 1}"
    environment = {**os.environ, "PORTS_FROM": str(first), "PORTS": "3"}
    for _ in range(10):  # it takes one of three each time
        done = subprocess.run(
            ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=HANG_S, check=True
        )
        chosen, last = map(int, done.stdout.split())
        assert chosen in (first + 1, first + 2) and last == first + 2


def test_no_two_free_ports_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.kit.processes.broker.GIVEN", set())
    monkeypatch.setenv("PORTS", "200")
    assert len({free_port() for _ in range(90)}) == 90


def started(directory: Path, archive: Path, log: Path) -> str:
    """What a node with this archive of classes says of those that it loads."""
    directory.mkdir()
    jvm = f"{os.environ['KAFKA_JVM']} -Xlog:class+load:file={log}"
    environment = {"KAFKA_PORT": str(free_port()), "KAFKA_ARCHIVE": str(archive), "KAFKA_JVM": jvm}
    start(broker := Broker(directory, "", 0), **environment)
    broker.stop()
    return log.read_text(errors="replace")


def test_a_node_loads_its_classes_from_the_archive(tmp_path: Path) -> None:
    subprocess.run([SCRIPTS / "classes.sh"], check=True, timeout=HANG_S)
    libs = Path(subprocess.run([SCRIPTS / "libs.sh"], check=True, capture_output=True, text=True).stdout.strip())
    loaded = started(tmp_path / "with", libs.with_name("classes.jsa"), tmp_path / "with.log")
    assert re.search(r"kafka\.server\.KafkaRaftServer source: shared objects file \(top\)", loaded)
    torn = tmp_path / "torn.jsa"
    torn.write_bytes(b"torn")
    assert "kafka.server.KafkaRaftServer source: file:" in started(tmp_path / "torn", torn, tmp_path / "torn.log")
