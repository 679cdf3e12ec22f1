"""deploy/image: what is copied is there, what is started is a command line that realmgate takes, what is taken out of
the image to serve is not needed to serve, and the healthcheck is red when the gateway is. No image is built here.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from fnmatch import fnmatch
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from gateway.config.settings import load_settings
from tests.deploy.containerfile import Build, stages
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import REALMGATE, GatewayProcess, StartGateway, embedded_realm, make_gateway
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

ROOT = Path(__file__).parents[2]
IMAGE = ROOT / "deploy" / "image"
STAGES = {stage.name: stage for stage in stages((IMAGE / "Containerfile").read_text())}
TARGETS = ("serve", "reconcile")
PYTHON = "/opt/realmgate/bin/python"
WITHOUT = """
    import sys

    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in absent:
                raise ModuleNotFoundError(f"{name} is not in the image")

    absent = set(sys.argv.pop(1).split(","))
    sys.meta_path.insert(0, Absent())
    from gateway.cli.main import main
    main()
"""


def removed(stage: Build) -> set[str]:
    """The packages that it takes out, and those that its base takes out."""
    words = [word for run in stage.all("RUN") if "pip uninstall" in run for word in run.split()[3:]]
    return set(words) | (removed(STAGES[stage.base]) if stage.base in STAGES else set())


def modules_of(packages: set[str]) -> set[str]:
    return {module for module, names in packages_distributions().items() if packages & {name.lower() for name in names}}


@pytest.mark.parametrize("stage", STAGES.values(), ids=list(STAGES))
def test_what_is_copied_is_in_the_context(stage: Build) -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    for source in stage.copied():
        assert (ROOT / source).exists(), source
        assert not any(fnmatch(source, pattern) for pattern in ignored), source
    taken = [re.match(r"--from=(\S+)", rest) for rest in stage.all("COPY")]
    assert all(match[1] in STAGES for match in taken if match), "of a stage that there is"


def test_every_package_of_ours_is_copied() -> None:
    ours = {file.parent.name for file in ROOT.glob("*/__init__.py")} - {"bench", "tests"}
    assert ours <= set(STAGES["build"].copied())


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_runs_as_root_and_no_compiler_is_there(target: str) -> None:
    stage = STAGES[target]
    [user] = stage.all("USER")
    assert user.isdecimal() and int(user) > 0
    assert f"--uid {user}" in " ".join(stage.all("RUN"))
    assert stage.base not in STAGES and "build-essential" not in " ".join(stage.all("RUN"))


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_started_is_a_command_line_that_realmgate_takes(target: str) -> None:
    """It gets as far as the configuration, which is not at that place here."""
    program, *arguments = [*STAGES[target].command("ENTRYPOINT"), *STAGES[target].command("CMD")]
    assert program == "/opt/realmgate/bin/realmgate"
    done = subprocess.run([REALMGATE, *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "/etc/realmgate/realmgate.yaml" in done.stderr and "usage" not in done.stderr, done.stderr
    assert "deploy/image/realmgate.yaml /etc/realmgate/realmgate.yaml" in STAGES[target].all("COPY")


def test_its_configuration_keeps_the_realm_in_the_volume_and_listens_where_it_is_exposed() -> None:
    settings = load_settings(IMAGE / "realmgate.yaml")
    assert settings.admin is not None
    [volume] = STAGES["serve"].all("VOLUME")
    assert Path(settings.realm.place.removeprefix("the embedded realm in ")).is_relative_to(volume)
    assert STAGES["serve"].all("EXPOSE") == [f"{settings.listen[0].port} {settings.admin.port}"]
    assert {settings.listen[0].host, settings.admin.host} == {"0.0.0.0"}


def test_what_is_taken_out_is_locked_so_that_it_was_there() -> None:
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    locked |= set(re.findall(r"^([\w.-]+)==", (ROOT / "deploy/python/build.lock").read_text(), re.MULTILINE))
    assert {name.lower() for name in removed(STAGES["build-serve"])} <= locked


def test_a_gateway_serves_without_what_is_taken_out(tmp_path: Path) -> None:
    absent = modules_of({name.lower() for name in removed(STAGES["build-serve"])})
    assert {"numpy", "pyspark", "pyarrow", "py4j", "pytest"} <= absent
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), admin={"listen": "http://127.0.0.1:0"})
    gateway.program = [sys.executable, "-c", textwrap.dedent(WITHOUT), ",".join(sorted(absent))]
    gateway.start()
    try:
        with Peer(gateway.port) as peer:
            peer.stored("orders", MESSAGE)
        assert Watch.of(gateway).ask("/metrics")[0] == 200
        assert gateway.stop() == 0
    finally:
        gateway.kill()


def test_what_is_needed_may_not_be_taken_out(tmp_path: Path) -> None:
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path))
    gateway.program = [sys.executable, "-c", textwrap.dedent(WITHOUT), "orjson"]
    with pytest.raises(RuntimeError, match="orjson is not in the image"):
        gateway.start()


def is_healthy(gateway: GatewayProcess) -> bool:
    program, *arguments = STAGES["serve"].command("HEALTHCHECK")
    assert program == PYTHON
    port = Watch.of(gateway).url.rpartition(":")[2]
    arguments = [argument.replace("127.0.0.1:9464", f"127.0.0.1:{port}") for argument in arguments]
    return (
        subprocess.run([sys.executable, *arguments], capture_output=True, check=False, timeout=HANG_S).returncode == 0
    )


def test_the_healthcheck_is_green_while_the_gateway_lives_and_red_when_it_does_not(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded", admin={"listen": "http://127.0.0.1:0"})
    assert is_healthy(gateway)
    assert gateway.stop() == 0
    assert not is_healthy(gateway)
