"""`realmgate config`: all problems at once with their lines, every key with its source and without secrets, a first
file that a gateway serves with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config.fields import FIELDS
from gateway.config.settings import load_settings
from tests.gateway.cli.command_line import Run, config, run
from tests.kit.processes.gateway import GatewayProcess

__all__ = ["config", "run"]
SECRET = "not-to-be-seen-anywhere"


def configured(run: Run, action: str, path: Path, *words: str) -> tuple[int, str, str]:
    return run("config", action, *words, "--config", str(path), configured=False)


def shown(run: Run, path: Path) -> dict[str, dict[str, Any]]:
    code, out, err = configured(run, "show", path, "--json")
    assert (code, err) == (0, "")
    return {entry["key"]: entry for entry in json.loads(out)}


def values(run: Run, path: Path) -> dict[str, Any]:
    return {key: entry["value"] for key, entry in shown(run, path).items()}


def test_check_lists_every_problem_with_its_line(run: Run, config: Path) -> None:
    assert configured(run, "check", config) == (0, f"{config}: no problem\n", "")
    config.write_text('realm: {kind: embedded}\nlimits:\n  connections: 0\n  linkz: 5\nlisten: ["tcp://x"]\n')
    code, out, err = configured(run, "check", config)
    assert (code, out) == (1, "")
    lines = err.splitlines()
    assert [line.split(" ")[0] for line in lines] == [f"{config}:{number}:" for number in (3, 4, 5)]
    assert "write a number from 1 to" in lines[0] and "write links" in lines[1] and "amqp://" in lines[2]


def test_check_reads_what_serve_reads_besides(run: Run, config: Path, tmp_path: Path) -> None:
    tables = tmp_path / "ours" / "tables"
    tables.mkdir(parents=True)
    (tables / "publish.yaml").write_text("profiles: 7\n")
    config.write_text('realm: {kind: embedded}\nlisten: ["amqp://no.such.host.invalid"]\nmappings: {dir: ours}\n')
    code, out, err = configured(run, "check", config)
    assert (code, out) == (1, "")
    assert f"{config}:2: amqp://no.such.host.invalid:5672: listen: no.such.host.invalid means no address here" in err
    assert f"{tables / 'publish.yaml'}:1: " in err


def test_check_warns_of_what_is_open_to_the_world(run: Run, config: Path) -> None:
    config.write_text('realm: {kind: embedded}\nlisten: ["amqp://0.0.0.0:5672"]\n')
    code, out, err = configured(run, "check", config)
    assert (code, out) == (0, f"{config}: no problem\n")
    assert "warning: open to the world: amqp://0.0.0.0:5672: a peer needs no user name" in err


def test_check_says_that_there_is_no_file(run: Run, tmp_path: Path) -> None:
    code, out, err = configured(run, "check", tmp_path / "absent.yaml")
    assert (code, out) == (1, "") and "absent.yaml:1: cannot be read" in err


def test_show_has_every_key_with_its_source(run: Run, config: Path) -> None:
    config.write_text("realm:\n  kind: embedded\nlimits: {connections: 100}\nsecurity: {sasl: []}\n")
    entries = shown(run, config)
    assert set(entries) == {field.key for field in FIELDS if field.only != "kafka"}
    written = {"realm.kind": ("embedded", 2), "limits.connections": (100, 3), "security.sasl": ([], 4)}
    for field in FIELDS:
        if field.only == "kafka":
            continue
        entry = entries[field.key]
        if field.key in written:
            assert (entry["value"], entry["line"]) == written[field.key]
            assert entry["file"] == str(config) and not entry["default"]
        else:
            assert entry["default"] and entry["file"] is entry["line"] is None
            if field.key != "security.bare_amqp":
                assert entry["value"] == (list(field.default) if isinstance(field.default, tuple) else field.default)
    assert entries["security.bare_amqp"]["value"] is True, "where no mechanism is offered"


def test_what_is_shown_is_a_configuration_that_means_the_same(run: Run, config: Path) -> None:
    config.write_text(
        'limits: {links: 7}\nrealm: {kind: embedded, path: "a # b"}\nnodes: {create_on_attach: ["a.*"]}\n'
    )
    code, text, err = configured(run, "show", config)
    assert (code, err) == (0, "")
    assert f"  links: 7 # {config}:1\n" in re.sub(" +#", " #", text) and "# tls:\n" in text
    again = config.with_name("again.yaml")
    again.write_text(text)
    assert values(run, again) == values(run, config)
    code, second, _ = configured(run, "show", again)
    assert code == 0 and yaml.safe_load(second) == yaml.safe_load(text)


def test_show_gives_no_secret_away(run: Run, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD_OF_OURS", SECRET)
    (config.parent / "key.password").write_text(SECRET)
    config.write_text(
        'realm:\n  kind: kafka\n  bootstrap: "127.0.0.1:9092"\n  client:\n    sasl.username: gateway\n'
        "    sasl.password: {env: PASSWORD_OF_OURS}\n    ssl.key.password: {file: key.password}\n"
    )
    code, text, err = configured(run, "show", config)
    assert (code, err) == (0, "") and SECRET not in text
    assert yaml.safe_load(text)["realm"]["client"] == {
        "sasl.username": "gateway",
        "sasl.password": {"env": "PASSWORD_OF_OURS"},
        "ssl.key.password": {"file": "key.password"},
    }
    entries = shown(run, config)
    assert SECRET not in json.dumps(entries)
    assert entries["realm.client.sasl.password"]["line"] == 6
    config.write_text(config.read_text().replace("{env: PASSWORD_OF_OURS}", SECRET))
    code, text, err = configured(run, "show", config)
    assert (
        (code, text) == (2, "") and SECRET not in err and f"{config}:6: realm.client.sasl.password is a secret" in err
    )


def test_show_of_a_wrong_file_says_what_is_wrong(run: Run, config: Path) -> None:
    config.write_text("realm: {kind: embedded}\nlimitz: {}\n")
    code, out, err = configured(run, "show", config)
    assert (code, out) == (2, "") and f"{config}:2: unknown key limitz" in err


def test_a_gateway_serves_with_the_first_file(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "gateway.yaml", tmp_path / "gateway.log")
    output = gateway.command("config", "init")
    assert output.startswith(f"{gateway.config_path} is written")
    text = gateway.config_path.read_text()
    assert gateway.command("config", "check") == f"{gateway.config_path}: no problem\n"
    gateway.settings = yaml.safe_load(text)
    assert gateway.settings["listen"] == ["amqp://127.0.0.1:5672"] and gateway.settings["realm"]["kind"] == "embedded"
    gateway.settings["admin"]["listen"] = "http://127.0.0.1:0"  # both ports may be taken here
    gateway.start()
    try:
        assert "NAME" in gateway.command("node", "list")
    finally:
        assert gateway.stop() == 0


def test_init_overwrites_nothing(run: Run, config: Path) -> None:
    before = config.read_bytes()
    code, out, err = configured(run, "init", config)
    assert (code, out) == (1, "") and "exists, and is left as it is" in err
    assert config.read_bytes() == before
    code, _, err = configured(run, "init", config.parent / "absent" / "gateway.yaml")
    assert code == 2 and "No such file or directory" in err


def test_init_for_kafka(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "first.yaml"
    code, out, err = configured(run, "init", path, "--kafka", "nonsense")
    assert (code, out) == (2, "") and 'realm.bootstrap: "nonsense" is no list of HOST:PORT' in err
    assert not path.exists()
    code, _, err = configured(run, "init", path, "--kafka", "one:9092,two:9092")
    assert (code, err) == (0, "")
    realm = load_settings(path).realm
    assert (type(realm).__name__, realm.prefix) == ("KafkaRealm", "um")
    assert yaml.safe_load(path.read_text())["realm"] == {"kind": "kafka", "bootstrap": "one:9092,two:9092"}


@pytest.mark.parametrize("words", [[], ["--kafka", "one:9092"]], ids=["embedded", "kafka"])
def test_the_first_file_names_every_key(run: Run, tmp_path: Path, words: list[str]) -> None:
    path = tmp_path / "first.yaml"
    assert configured(run, "init", path, *words)[0] == 0
    active = [line.replace("#", "", 1) for line in path.read_text().splitlines() if not line.strip().startswith("# ")]
    whole = yaml.safe_load("\n".join(active))
    kind = whole["realm"]["kind"]
    named = {f"{section}.{name}" if isinstance(value, dict) else section for section, value in whole.items()
             for name in (value if isinstance(value, dict) else [""])}  # fmt: skip
    assert named == {field.key for field in FIELDS if field.only in ("", kind)}


def test_defaults_of_the_first_file_can_be_made_active(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "first.yaml"
    assert configured(run, "init", path)[0] == 0
    before = values(run, path)
    section, active = "", []
    for line in path.read_text().splitlines():
        section = line.strip("#:") if line[:1] not in (" ", "") and line.endswith(":") else section
        explains = line.strip().startswith("# ")
        active.append(line.replace("#", "", 1) if section == "limits" and not explains else line)
    path.write_text("\n".join(active) + "\n")
    assert values(run, path) == before and "\nlimits:\n" in path.read_text()
