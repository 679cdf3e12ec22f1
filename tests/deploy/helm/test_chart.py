"""The Helm chart: Kubernetes' schemas take what it renders, a gateway takes the configuration, its parts find each
other, and wrong values are refused with a clear text. Nothing runs in a cluster here.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.helm.rendered import CHART, COMPONENT, NAMESPACE, OF_OPERATORS, Rendered, rendered, template
from tests.deploy.helm.tools import VERSIONS, complaints, run
from tests.kit.patience import HANG_S, until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.certificates import Authority
from tests.kit.processes.gateway import REALMGATE, StartGateway
from tests.kit.processes.toolchains import NEEDS_GO

pytestmark = NEEDS_GO

ROOT = CHART.parents[2]
KAFKA = {"realm": {"kind": "kafka", "bootstrap": "kafka-1:9092,kafka-2:9092"}}
OPEN = {"anonymous": True, "console": {"withoutTls": True, "withoutLogin": True}}
TABLES = {f"tables/{file.name}": file.read_text() for file in (ROOT / "mappings" / "tables").glob("*.yaml")}
FULL: dict[str, Any] = {
    "config": {
        "realm": {
            **KAFKA["realm"],
            "client": {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "gateway",
                "sasl.password": {"file": "kafka/password"},
                "ssl.ca.location": "kafka/ca.pem",
            },
        },
        "mappings": {"profile": "um-9.12"},
        "security": {"users": "users.yaml", "sasl": ["SCRAM-SHA-512", "PLAIN"]},
        "tls": {"certificate": "tls/tls.crt", "key": "tls/tls.key", "minimum_version": "1.3"},
        "limits": {"in_flight_bytes": 1 << 30, "connections": 20_000},
    },
    "files": [
        {"secret": "users", "items": {"users.yaml": "users.yaml"}},
        {"secret": "certificate", "items": {"tls/tls.crt": "tls.crt", "tls/tls.key": "tls.key"}},
        {"secret": "kafka", "items": {"kafka/password": "password"}},
        {"configMap": "authorities", "items": {"kafka/ca.pem": "ca.pem"}},
    ],
    "listeners": ["amqp", "amqps", "ws", "wss"],
    "mappings": {**TABLES, "errors.yaml": (ROOT / "mappings" / "errors.yaml").read_text()},
    "monitoring": {"serviceMonitor": True, "rules": True, "dashboard": True, "labels": {"release": "prometheus"}},
    "console": {"tlsSecret": "console-tls", "groups": ["operators"]},
    "reconcile": {"reports": {"existingClaim": "reports"}},
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "messaging", "operator": "Exists"}],
    "podAnnotations": {"team": "messaging"},
}
BARE = {**OPEN, "config": KAFKA, "replicas": 1, "console": {"enabled": False}, "reconcile": {"enabled": False}}
BARE |= {"networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False}}
VARIANTS: dict[str, dict[str, Any]] = {"open": {**OPEN, "config": KAFKA}, "full": FULL, "bare": BARE}


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rendered]:
    return {name: rendered(tmp_path_factory.mktemp(name), values) for name, values in VARIANTS.items()}


@pytest.fixture
def contents(tmp_path: Path) -> dict[tuple[str, str], str]:
    """Of the Secrets, by name and key."""
    pair = Authority(tmp_path / "authority").sign("server", "/CN=localhost", "IP:127.0.0.1")
    hashed = subprocess.run(
        [REALMGATE, "user", "hash", "alice", "--group", "operators"],
        input="secret\n", capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return {
        ("users", "users.yaml"): f"users:\n{hashed}",
        ("certificate", "tls.crt"): pair.certificate.read_text(),
        ("certificate", "tls.key"): pair.key.read_text(),
        ("kafka", "password"): "secret",
        ("authorities", "ca.pem"): (tmp_path / "authority" / "ca.pem").read_text(),
    }


def invalid(directory: Path, version: str, *charts: Rendered) -> str:
    file = directory / "resources.yaml"
    resources = [resource for chart in charts for resource in chart.resources if resource["kind"] not in OF_OPERATORS]
    file.write_text(yaml.safe_dump_all(resources))
    return complaints(file, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_the_resources(charts: dict[str, Rendered], tmp_path: Path, version: str) -> None:
    assert invalid(tmp_path, version, *charts.values()) == ""


def test_a_misspelt_field_is_found(charts: dict[str, Rendered], tmp_path: Path) -> None:
    wrong = copy.deepcopy(charts["open"])
    wrong.pod("gateway")["spec"]["containers"][0]["livenesProbe"] = {}
    assert "livenesProbe" in invalid(tmp_path, VERSIONS[-1], wrong)


def test_helm_lints_it_without_a_complaint(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(FULL))
    done = run("lint", "--strict", CHART, "-f", tmp_path / "values.yaml", "--kube-version", "1.30.0")
    assert done.returncode == 0 and "0 chart(s) failed" in done.stdout, done.stdout + done.stderr


# -- the configuration


@pytest.mark.parametrize("component", ["gateway", "console", "reconcile"])
@pytest.mark.parametrize("variant", ["open", "full"])
def test_a_gateway_takes_the_configuration(
    charts: dict[str, Rendered], tmp_path: Path, contents: dict[tuple[str, str], str], variant: str, component: str
) -> None:
    """With the files beside it that the pod has beside it."""
    chart = charts[variant]
    config = chart.lay_out(chart.pod(component), tmp_path / "etc", contents)
    done = subprocess.run(
        [REALMGATE, "config", "check", "--config", config], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert ("a peer needs no user name" in done.stderr) == (variant == "open"), done.stderr


def test_the_configuration_says_what_the_values_say_and_where_to_listen(charts: dict[str, Rendered]) -> None:
    config = yaml.safe_load(charts["full"].one("ConfigMap", "realmgate")["data"]["realmgate.yaml"])
    assert config.pop("listen") == [f"{name}://0.0.0.0:{port}" for name, port in PORTS.items()]
    assert config.pop("admin") == {"listen": "http://0.0.0.0:9464", "commands": "loopback", "guarded": True}
    bare = yaml.safe_load(charts["bare"].one("ConfigMap", "realmgate")["data"]["realmgate.yaml"])
    assert bare["admin"]["guarded"] is False, "it has no network policy"
    assert config.pop("mappings") == {"profile": "um-9.12", "dir": "mappings"}
    assert config.pop("log") == {"format": "json"} and config["realm"].pop("prefix") == "um"
    assert config == {key: value for key, value in FULL["config"].items() if key != "mappings"}


PORTS = {"amqp": 5672, "amqps": 5671, "ws": 8080, "wss": 8443}


def test_listeners_behind_proxies_name_their_networks(tmp_path: Path) -> None:
    values = {**BARE, "listeners": ["amqp", "ws"], "proxies": ["10.0.0.0/24"]}
    config = yaml.safe_load(rendered(tmp_path, values).one("ConfigMap", "realmgate")["data"]["realmgate.yaml"])
    behind = {"proxy_protocol": True, "proxies": ["10.0.0.0/24"]}
    assert config["listen"] == [
        {"address": "amqp://0.0.0.0:5672", **behind},
        {"address": "ws://0.0.0.0:8080", **behind},
    ]


def test_another_configuration_starts_the_gateways_anew_and_other_tables_do_not(tmp_path: Path) -> None:
    def checksum(values: dict[str, Any]) -> str:
        annotations = rendered(tmp_path, values).pod("gateway")["metadata"]["annotations"]
        return str(annotations["checksum/configuration"])

    before = checksum(FULL)
    assert checksum({**FULL, "mappings": TABLES | {"errors.yaml": "# other\n"}}) == before
    assert checksum({**FULL, "config": {**FULL["config"], "transformer": "complete"}}) != before


# -- the parts find each other


def selectors(chart: Rendered) -> Iterator[tuple[str, dict[str, str], str]]:
    """Name of the resource, what it selects by, and the component that it means."""
    for resource in chart.resources:
        name, spec = resource["metadata"]["name"], resource.get("spec", {})
        means = "console" if name.endswith("-console") else "gateway"
        if resource["kind"] == "Service":
            yield name, spec["selector"], means
        if resource["kind"] in ("StatefulSet", "Deployment", "PodDisruptionBudget"):
            yield name, spec["selector"]["matchLabels"], means
        if resource["kind"] == "NetworkPolicy":
            yield name, spec["podSelector"]["matchLabels"], "gateway"
            yield name, spec["ingress"][1]["from"][0]["podSelector"]["matchLabels"], "console"


def test_what_selects_pods_selects_those_that_it_means(charts: dict[str, Rendered]) -> None:
    rows = list(selectors(charts["full"]))
    assert len(rows) == 8
    for name, by, means in rows:
        selected = [
            pod["metadata"]["labels"][COMPONENT]
            for pod in charts["full"].pods()
            if by.items() <= pod["metadata"]["labels"].items()
        ]
        assert selected == [means], name


def test_ports_are_named_as_the_pods_name_them(charts: dict[str, Rendered]) -> None:
    chart = charts["full"]
    [gateway], [console] = (chart.pod(name)["spec"]["containers"] for name in ("gateway", "console"))
    named = {port["name"]: port["containerPort"] for port in gateway["ports"]}
    assert named == {"admin": 9464, **PORTS}
    pages = {port["name"] for port in console["ports"]}
    for service in chart.all("Service"):
        there = pages if service["metadata"]["name"].endswith("-console") else named
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= set(there)
    policy = chart.one("NetworkPolicy")["spec"]["ingress"]
    assert {port["port"] for port in policy[0]["ports"]} == set(PORTS)
    assert [port["port"] for port in policy[1]["ports"]] == ["admin"]


def test_the_console_asks_each_gateway_at_its_own_name(charts: dict[str, Rendered]) -> None:
    chart = charts["full"]
    gateways, headless = chart.one("StatefulSet"), chart.one("Service", "-gateways")
    assert gateways["spec"]["serviceName"] == headless["metadata"]["name"] and headless["spec"]["clusterIP"] == "None"
    [console] = chart.pod("console")["spec"]["containers"]
    urls = [url for word, url in zip(console["args"], console["args"][1:], strict=False) if word == "--gateway"]
    name = gateways["metadata"]["name"]
    assert urls == [f"http://{name}-{number}.{name}-gateways:9464" for number in range(2)]


def test_prometheus_gets_a_job_that_the_alerts_know(charts: dict[str, Rendered]) -> None:
    chart = charts["full"]
    monitor, headless = chart.one("ServiceMonitor"), chart.one("Service", "-gateways")
    labels = headless["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    job = labels[monitor["spec"]["jobLabel"]]
    assert job == f"orders-realmgate-{NAMESPACE}"
    rules = (ROOT / "deploy" / "prometheus" / "rules.yml").read_text()
    patterns = re.findall(r'up\{job=~"([^"]+)"\}', rules)
    assert patterns and all(re.fullmatch(pattern, job) for pattern in patterns)
    assert [entry for entry in chart.all("Service") if monitor["spec"]["jobLabel"] in entry["metadata"]["labels"]] == [
        headless
    ]
    assert chart.one("PrometheusRule")["spec"] == yaml.safe_load(rules)
    [dashboard] = chart.one("ConfigMap", "-dashboard")["data"].values()
    assert json.loads(dashboard) == json.loads((ROOT / "deploy" / "grafana" / "realmgate.json").read_text())


def test_the_names_of_two_releases_and_of_a_long_one_are_of_kubernetes(tmp_path: Path) -> None:
    for release in ("realmgate", "a" * 53):
        done = template(tmp_path, VARIANTS["open"], release=release)
        assert done.returncode == 0, done.stderr
        names = [resource["metadata"]["name"] for resource in yaml.safe_load_all(done.stdout) if resource]
        assert all(len(name) <= 52 for name in names), "of a CronJob, 52"


@pytest.mark.parametrize(
    ("change", "is_beside_it"),
    [
        ({}, True),
        ({"reconcile": {"reports": {"accessMode": "ReadWriteMany"}}}, False),
        ({"console": {"enabled": False}}, False),
    ],
    ids=["once", "many", "no-console"],
)
def test_a_claim_that_one_machine_mounts_has_the_job_where_the_console_is(
    tmp_path: Path, change: dict[str, Any], is_beside_it: bool
) -> None:
    chart = rendered(tmp_path, {**OPEN, "config": KAFKA, **change})
    affinity = chart.pod("reconcile")["spec"].get("affinity")
    assert (affinity is not None) is is_beside_it
    if affinity is not None:
        [term] = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        selected = term["labelSelector"]["matchLabels"].items() <= chart.pod("console")["metadata"]["labels"].items()
        assert selected and term["topologyKey"] == "kubernetes.io/hostname"


# -- the processes


def test_no_container_is_root_or_writes_to_its_image(charts: dict[str, Rendered]) -> None:
    pods = [pod["spec"] for pod in charts["full"].pods()]
    assert len(pods) == 3
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_a_serving_gateway_answers_the_probes(charts: dict[str, Rendered], new_gateway: StartGateway) -> None:
    [container] = charts["open"].pod("gateway")["spec"]["containers"]
    paths = [container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness", "readiness")]
    assert paths == ["/livez", "/livez", "/readyz"]
    watch = Watch.of(new_gateway("embedded", admin={"listen": "http://127.0.0.1:0"}))
    assert [watch.ask(path)[0] for path in paths] == [200, 200, 200]


def test_the_console_starts_as_its_pod_starts_it(
    charts: dict[str, Rendered], tmp_path: Path, contents: dict[tuple[str, str], str]
) -> None:
    """On another port, with what is mounted laid out below a directory."""
    chart, tls = charts["full"], tmp_path / "tls"
    tls.mkdir()
    for key in ("tls.crt", "tls.key"):
        (tls / key).write_text(contents["certificate", key])
    (tmp_path / "reports").mkdir()
    pod = chart.pod("console")
    chart.lay_out(pod, tmp_path / "etc", contents)
    [container] = pod["spec"]["containers"]
    places = {"/etc/realmgate-console": tls, "/etc/realmgate/": f"{tmp_path / 'etc'}/", "0.0.0.0:9465": "127.0.0.1:0"}
    places["/var/lib/realmgate-reports"] = tmp_path / "reports"
    words = list(container["args"])
    for place, here in places.items():
        words = [word.replace(place, str(here)) for word in words]
    assert container["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"
    with (tmp_path / "log").open("w") as log:
        console = subprocess.Popen([REALMGATE, *words], stdout=log, stderr=log)
    try:
        pattern = re.compile(r"console at (https://127\.0\.0\.1:\d+)")
        until(lambda: pattern.search((tmp_path / "log").read_text()) or console.poll() is not None, "the console")
        match = pattern.search((tmp_path / "log").read_text())
        assert match, (tmp_path / "log").read_text()
        url = f"{match[1]}{container['livenessProbe']['httpGet']['path']}"
        answer = subprocess.run(["curl", "-ksf", url], capture_output=True, check=False, timeout=HANG_S)
        assert answer.returncode == 0
    finally:
        console.terminate()
        assert console.wait(HANG_S) == 0


# -- wrong values


def changed(values: dict[str, Any], **change: Any) -> dict[str, Any]:
    return {**copy.deepcopy(values), **change}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no brokers": (changed(OPEN), "missing property 'bootstrap'"),
    "no port": (changed(OPEN, config={"realm": {"bootstrap": "kafka"}}), "'/config/realm/bootstrap'"),
    "an embedded realm": (changed(OPEN, config={"realm": {**KAFKA["realm"], "kind": "embedded"}}), "must be 'kafka'"),
    "a misspelt value": (changed(BARE, replica=3), "additional properties 'replica' not allowed"),
    "a misspelt key": (changed(BARE, config={**KAFKA, "limit": {}}), "additional properties 'limit' not allowed"),
    "a limit of words": (changed(BARE, config={**KAFKA, "limits": {"links": "many"}}), "'/config/limits/links'"),
    "the chart's own": (changed(BARE, config={**KAFKA, "listen": []}), "additional properties 'listen' not allowed"),
    "an unknown listener": (changed(BARE, listeners=["mqtt"]), "'/listeners/0'"),
    "a table of no name": (changed(BARE, mappings={"../publish.yaml": ""}), "invalid propertyName '../publish.yaml'"),
    "no users": (changed(BARE, anonymous=False), "No users: every client that can connect may do everything."),
    "users and none": (changed(FULL, anonymous=True), "anonymous: true contradicts config.security.users"),
    "a file that is nowhere": (
        changed(FULL, files=FULL["files"][1:]),
        "The configuration names the file users.yaml, and nothing puts it there.",
    ),
    "a password that is nowhere": (changed(FULL, files=FULL["files"][:2]), "names the file kafka/password"),
    "two sources of a file": (
        changed(FULL, files=[{"secret": "a", "configMap": "b", "items": {"x": "y"}}]),
        "'/files/0'",
    ),
    "no certificate": (changed(BARE, listeners=["amqps"]), "The listener amqps needs config.tls.certificate"),
    "a console without TLS": (changed(OPEN, config=KAFKA, console={"withoutLogin": True}), "console.tlsSecret"),
    "a console without users": (changed(OPEN, config=KAFKA, console={"withoutTls": True}), "console.withoutLogin"),
    "a claim for one pod": (
        changed(OPEN, config=KAFKA, reconcile={"reports": {"accessMode": "ReadWriteOncePod"}}),
        "reconcile.reports.accessMode ReadWriteOncePod",
    ),
    "no schedule": (changed(OPEN, config=KAFKA, reconcile={"schedule": "nightly"}), "'/reconcile/schedule'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_refused_with_what_is_wrong(tmp_path: Path, name: str) -> None:
    values, words = WRONG[name]
    done = template(tmp_path, values)
    assert done.returncode != 0 and words in done.stderr, done.stderr


def test_a_package_has_the_alerts_and_the_dashboard(tmp_path: Path) -> None:
    """They are links in the tree."""
    assert run("package", CHART, "-d", tmp_path).returncode == 0
    [package] = tmp_path.glob("*.tgz")
    done = run("template", "orders", package, "--kube-version", "1.30.0", *SETTINGS)
    assert "RealmgateNotReady" in done.stdout and "label_values(realmgate_ready, job)" in done.stdout, done.stderr


SETTINGS = [
    f"--set={setting}"
    for setting in (
        "config.realm.bootstrap=kafka:9092", "anonymous=true", "console.enabled=false", "monitoring.rules=true",
        "monitoring.dashboard=true",
    )
]  # fmt: skip
