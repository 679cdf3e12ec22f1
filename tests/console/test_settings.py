"""The command line: what it takes, and what it refuses, with what to write instead."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from console.settings import SettingsError, read_settings
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import REALMGATE
from tests.kit.wire.logins import write_users

GATEWAY = ("--gateway", "http://127.0.0.1:9464")
CONFIG = """listen: ["amqp://127.0.0.1:5672"]
realm: {kind: embedded, path: realm}
admin: {listen: "http://0.0.0.0:9464"}
security: {sasl: [SCRAM-SHA-256], users: users.yaml}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    write_users(tmp_path / "users.yaml", ann=["operators"])
    path = tmp_path / "gateway.yaml"
    path.write_text(CONFIG)
    return path


def test_the_configuration_says_where_to_ask(config: Path) -> None:
    settings = read_settings(["--config", str(config)])
    assert settings.gateways == ("http://127.0.0.1:9464",)
    assert (settings.host, settings.port, settings.users, settings.realm) == ("127.0.0.1", 9465, None, "um")


def test_the_configuration_says_all_of_it(config: Path) -> None:
    with config.open("a") as file:
        file.write(
            'console: {listen: "http://0.0.0.0:9466", gateways: ["http://gw-a:1", "http://gw-b:2"], reports: [report],'
            " groups: [operators], actions: true, without_tls: true}\n"
        )
    settings = read_settings(["--config", str(config)])
    assert (settings.host, settings.port, settings.gateways) == ("0.0.0.0", 9466, ("http://gw-a:1", "http://gw-b:2"))
    assert (settings.reports, settings.users) == ((config.parent / "report",), config.parent / "users.yaml")
    assert (settings.groups, settings.actions, settings.tls) == (("operators",), True, None)
    more = ["--listen", "http://127.0.0.1:1", "--gateway", "http://gw-c:3", "--group", "others", "--reports", "x"]
    other = read_settings(["--config", str(config), *more])
    assert (other.port, other.gateways, other.groups, other.reports) == (
        1,
        ("http://gw-c:3",),
        ("others",),
        (Path("x"),),
    )


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ('{listen: "127.0.0.1:9465"}', "is no http://HOST:PORT or https://HOST:PORT"),
        ('{listen: "http://h:99999"}', "is no http://HOST:PORT or https://HOST:PORT"),
        ('{gateways: ["https://h:1"]}', "is no http://HOST:PORT"),
        ('{gateways: ["http://h:0"]}', "is no http://HOST:PORT"),
        ("{actions: perhaps}", "true or false"),
        ("{colour: red}", "colour"),
        ("{reports: report}", "a list of paths"),
        ('{listen: "http://0.0.0.0:1", without_login: true}', "in clear text"),
    ],
)
def test_a_section_that_is_wrong_is_refused(config: Path, written: str, words: str) -> None:
    with config.open("a") as file:
        file.write(f"console: {written}\n")
    with pytest.raises(SettingsError, match=words):
        read_settings(["--config", str(config)])


def test_gateways_are_named_once(config: Path) -> None:
    settings = read_settings([*GATEWAY, "--gateway", "http://127.0.0.1:9464/", "--gateway", "http://[::1]:9"])
    assert settings.gateways == ("http://127.0.0.1:9464", "http://[::1]:9")


def test_beyond_loopback_there_is_a_login(config: Path) -> None:
    settings = read_settings(["--config", str(config), "--listen", "http://0.0.0.0:9465", "--without-tls"])
    assert settings.users == config.parent / "users.yaml"
    grouped = read_settings(["--config", str(config), "--group", "operators"])
    assert (grouped.users, grouped.groups) == (config.parent / "users.yaml", ("operators",))
    open_ = read_settings([*GATEWAY, "--listen", "http://0.0.0.0:1", "--without-tls", "--without-login"])
    assert open_.users is None


def test_actions_need_the_users_of_the_gateway(config: Path) -> None:
    settings = read_settings(["--config", str(config), "--actions"])
    assert settings.actions and settings.users == config.parent / "users.yaml" and settings.config == config
    for more, words in (
        (["--without-login"], "needs a login"),
        (["--users", str(config.parent / "others.yaml")], "the users of the gateway"),
    ):
        with pytest.raises(SettingsError, match=words):
            read_settings(["--config", str(config), "--actions", *more])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no gateway is named"),
        (("--gateway", "127.0.0.1:9464"), "write http://HOST:PORT"),
        (("--gateway", "http://host:x"), "write http://HOST:PORT"),
        (("--gateway", "https://host:1"), "write http://HOST:PORT"),
        ((*GATEWAY, "--listen", "0.0.0.0:9465"), "write http://HOST:PORT or https://HOST:PORT"),
        ((*GATEWAY, "--listen", "http://0.0.0.0:9465"), "there are no users"),
        ((*GATEWAY, "--listen", "http://no.such.host.invalid:9465"), "there are no users"),
        ((*GATEWAY, "--listen", "http://0.0.0.0:9465", "--without-login"), "in clear text"),
        ((*GATEWAY, "--listen", "https://0.0.0.0:9465"), "--tls-certificate and --tls-key"),
        ((*GATEWAY, "--group", "operators"), "--group needs users"),
        ((*GATEWAY, "--config", "no-such.yaml"), "no-such.yaml"),
        ((*GATEWAY, "--actions"), "--actions needs --config FILE"),
        ([f"--gateway=http://h:{at}" for at in range(1, 40)], "32 at most"),
    ],
)
def test_what_is_wrong_is_refused(arguments: Sequence[str], words: str) -> None:
    with pytest.raises(SettingsError, match=words.replace("[", r"\[")):
        read_settings(arguments)


def test_without_its_packages_it_says_what_to_install(tmp_path: Path) -> None:
    hidden = tmp_path / "starlette"
    hidden.mkdir()
    (hidden / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'starlette'\", name='starlette')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [REALMGATE, "console", *GATEWAY], capture_output=True, text=True, timeout=HANG_S, env=environment
    )
    assert done.returncode == 2 and not done.stdout
    assert (
        "starlette is not installed" in done.stderr and "-m pip install 'jinja2' 'starlette' 'uvicorn'" in done.stderr
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--listen", "http://127.0.0.1:0", "--users", "no-such.yaml"), "no-such.yaml:1: cannot be read: No such file"),
        (("--listen", "http://127.0.0.1:0", "--users", "wrong.yaml"), "wrong.yaml:1"),
        (("--listen", "https://127.0.0.1:0", "--tls-certificate", "no.pem", "--tls-key", "no.key"), "no.pem cannot be"),
        (("--listen", "http://192.0.2.1:1", "--without-tls", "--without-login"), "192.0.2.1:1: Cannot assign"),
    ],
    ids=["no-users", "wrong-users", "certificate", "address"],
)
def test_keys_that_it_cannot_use_are_reported(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "wrong.yaml").write_text("users: 7")
    command = [str(REALMGATE), "console", *GATEWAY, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("console: ") and words in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_a_mistake_is_a_sentence_and_exit_code_2() -> None:
    done = subprocess.run(
        [REALMGATE, "console", "--gateway", "nonsense"], capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 2 and done.stderr.startswith("console: --gateway nonsense is no admin address")


def test_serving_needs_none_of_its_packages() -> None:
    program = "import sys; import gateway.cli.main, gateway.serve.serve; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S, check=True)
    assert not [name for name in ("starlette", "uvicorn", "jinja2", "'console'") if name in done.stdout]
