"""What an operator meets first: the prerequisites, the locks, `make help`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from gateway.config.settings import EmbeddedRealm, KafkaRealm, load_settings

ROOT = Path(__file__).parent.parent.parent
PREREQUISITES = ROOT / "deploy" / "prerequisites.sh"
TARGETS = {
    "setup",
    "demo",
    "test",
    "run",
    "kafka",
    "kafka-stop",
    "bench",
    "check",
    "simulate",
    "mappings-check",
    "wheels",
    "help",
}


def bare_machine(tmp_path: Path) -> dict[str, str]:
    """A PATH with nothing on it but what the script itself is made of."""
    tmp_path.mkdir(exist_ok=True)
    for tool in ("bash", "sort", "tr", "grep", "head"):
        (tmp_path / tool).symlink_to(Path("/usr/bin") / tool)
    return {"PATH": str(tmp_path)}


def prerequisites(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PREREQUISITES, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_this_machine_has_what_the_tests_need() -> None:
    done = prerequisites("test")
    assert (done.returncode, done.stderr) == (0, "")


def test_everything_missing_is_named_with_one_command(tmp_path: Path) -> None:
    done = prerequisites("test", environment=bare_machine(tmp_path))
    assert done.returncode == 1
    for what in ("Python 3.11", "C compiler", "Java 17", "Maven", "Node", "Qpid Proton"):
        assert what in done.stderr
    [command] = re.findall(r"apt-get install.*", done.stderr)
    for package in ("python3-venv", "python3-dev", "build-essential", "openjdk-17-jdk-headless", "maven", "nodejs"):
        assert package in command.split()
    assert "libqpid-proton11-dev" in command


def test_the_long_tier_needs_a_browser_and_prometheus(tmp_path: Path) -> None:
    done = prerequisites("--packages", "long", environment=bare_machine(tmp_path))
    assert {"chromium", "nodejs", "prometheus"} <= {*done.stdout.split()}
    assert "chromium" not in prerequisites("test", environment=bare_machine(tmp_path / "other")).stderr


def test_the_product_alone_needs_no_node(tmp_path: Path) -> None:
    done = prerequisites("--packages", "run", environment=bare_machine(tmp_path))
    assert done.returncode == 0
    assert "maven" in done.stdout.split()
    assert "nodejs" not in done.stdout


@pytest.mark.parametrize("lock", ["requirements.lock", "deploy/python/build.lock"])
def test_every_locked_package_has_a_hash_and_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    packages = re.split(r"\n(?=\S)", text.strip())
    assert len(packages) > 4
    for package in packages:
        assert re.match(r"[\w.-]+==[\w.]+ \\\n    --hash=sha256:", package), package


def test_the_foreign_clients_are_locked_without_a_host() -> None:
    text = (ROOT / "tests" / "interop" / "rhea" / "package-lock.json").read_text()
    assert "resolved" not in text
    assert '"integrity": "sha512-' in text


def test_make_help_lists_what_there_is() -> None:
    done = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True)
    assert set(re.findall(r"^  make (\S+)", done.stdout, re.MULTILINE)) >= TARGETS


def test_the_sample_configurations_load() -> None:
    assert isinstance(load_settings(ROOT / "deploy" / "embedded.yaml").realm, EmbeddedRealm)
    assert isinstance(load_settings(ROOT / "deploy" / "kafka.yaml").realm, KafkaRealm)
    for name in ("embedded", "kafka"):
        assert yaml.safe_load((ROOT / "deploy" / f"{name}.yaml").read_text())["listen"] == ["amqp://127.0.0.1:5672"]
