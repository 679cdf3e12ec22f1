"""Where commands look for the configuration, and what `serve` begins where there is none."""

from __future__ import annotations

import argparse
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gateway.cli import main as cli
from gateway.cli.configuration import search
from gateway.config.exposure import reaches_beyond_loopback
from gateway.config.settings import EmbeddedRealm, load_settings
from tests.gateway.cli.command_line import Run, config, run
from tests.kit.processes.gateway import REALMGATE, STOP_TIMEOUT_S

__all__ = ["config", "run"]


@pytest.fixture(autouse=True)
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration at any place."""
    monkeypatch.delenv("REALMGATE_CONFIG", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(search, "SYSTEM_FILE", tmp_path / "etc" / "realmgate.yaml")


def own(tmp_path: Path) -> Path:
    return tmp_path / "home/.local/share/realmgate/realmgate.yaml"


def commands(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command below `parser` that takes --config, with what else it must have."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in below:
        for name, subparser in action.choices.items():
            yield from commands(subparser, (*words, name))
    if not below and "--config" in parser._option_string_actions:
        yield (*words, *must_have(parser))


def must_have(parser: argparse.ArgumentParser) -> Iterator[str]:
    groups = [group for group in parser._mutually_exclusive_groups if group.required]
    chosen = [group._group_actions[-1] for group in groups]
    for action in parser._actions:
        if action.required or action in chosen:
            yield from action.option_strings[-1:]
            if action.nargs != 0:
                yield str(next(iter(action.choices))) if action.choices else "1"


ALSO = [("mappings", "explain", "--record", "1:1"), ("reconcile", "--out", "report")]
READ = [words for words in commands(cli.build_parser()) if words[:2] != ("config", "init")]  # init writes one


def test_the_commands_are_found() -> None:
    assert len(READ) > 30 and ("node", "show", "1") in READ and ("serve",) in READ


def test_each_command_has_all_its_arguments_where_it_is_the_one_that_is_given() -> None:
    """The arguments of some others are left out then."""
    for first in {words[0] for words in READ}:
        mine = [
            words
            for words in commands(cli.build_parser(first))
            if words[0] == first and words[:2] != ("config", "init")
        ]
        assert mine == [words for words in READ if words[0] == first]


@pytest.mark.parametrize("words", [command for command in (*READ, *ALSO) if command != ("serve",)], ids=" ".join)
def test_a_command_without_a_configuration_names_the_places(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    code, out, err = run(*words, configured=False)
    assert (code, out) == (2, "")
    places = ("--config", "REALMGATE_CONFIG", str(tmp_path / "etc" / "realmgate.yaml"), str(own(tmp_path)))
    assert all(place in err for place in places) and "write --config FILE" in err and err.count("\n") == 1
    assert not own(tmp_path).parent.exists(), "nothing is made"


def test_the_first_place_counts(run: Run, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [own(tmp_path), search.SYSTEM_FILE, tmp_path / "by-variable.yaml", tmp_path / "by-option.yaml"]
    for path in places[:2]:
        path.parent.mkdir(parents=True)
    for number, path in enumerate(places):
        path.write_text("realm: {kind: embedded}\n")
        if number == 2:
            monkeypatch.setenv("REALMGATE_CONFIG", str(path))
        option = ["--config", str(path)] if number == 3 else []
        code, out, err = run("config", "check", *option, configured=False)
        assert (code, out) == (0, f"{path}: no problem\n")
        assert (f"{path} is used" in err) == (number == 0), "the user's own is named, as it was named by nothing"


def test_an_empty_variable_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REALMGATE_CONFIG", "")
    code, _, err = run("config", "check", configured=False)
    assert code == 2 and "no REALMGATE_CONFIG" in err


def test_a_file_that_is_there_and_wrong_is_not_passed_over(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(tmp_path).parent.mkdir(parents=True)
    own(tmp_path).write_text("realm: {kind: embedded}\n")
    search.SYSTEM_FILE.parent.mkdir()
    search.SYSTEM_FILE.write_text("realm: {kind: nowhere}\n")
    code, _, err = run("config", "show", configured=False)
    assert code == 2 and f'{search.SYSTEM_FILE}:1: realm.kind: there is no "nowhere"' in err
    search.SYSTEM_FILE.unlink()
    search.SYSTEM_FILE.symlink_to(tmp_path / "gone.yaml")
    code, _, err = run("config", "show", configured=False)
    assert code == 2 and f"{search.SYSTEM_FILE}:1: cannot be read" in err
    monkeypatch.setenv("REALMGATE_CONFIG", str(tmp_path / "nowhere.yaml"))
    code, _, err = run("config", "show", configured=False)
    assert code == 2 and f"REALMGATE_CONFIG names {tmp_path / 'nowhere.yaml'}, which is not there" in err


def test_an_address_needs_no_configuration(run: Run) -> None:
    code, _, err = run("connections", "--gateway", "http://127.0.0.1:1", configured=False)
    assert code == 2 and "http://127.0.0.1:1 does not answer" in err
    code, _, err = run("send", "a", "--url", "amqp://127.0.0.1:1", "--timeout", "5", configured=False)
    assert code == 2 and "does a peer listen there?" in err


def test_reconcile_gets_what_was_found(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, words: became.append(words[4:]))
    monkeypatch.setenv("REALMGATE_CONFIG", str(config))
    for words in (["--out", "x"], ["--out", "x", "--config=y"], ["--help"], ["--fetch-jars=x"]):
        cli.run(["reconcile", *words])
    as_they_are = [["--out", "x", "--config=y"], ["--help"], ["--fetch-jars=x"]]
    assert became == [["--config", str(config), "--out", "x"], *as_they_are]


def test_serve_begins_a_realm_that_only_this_machine_reaches(tmp_path: Path) -> None:
    path = search.configuration_file(None, begin=True)
    assert path == own(tmp_path)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700, "a realm of this user"
    assert [*path.parent.iterdir()] == [path], "nothing else is left"
    settings = load_settings(path)
    assert settings.admin is not None and settings.security.sasl == ("ANONYMOUS",)
    assert [listener.url for listener in settings.listen] == ["amqp://127.0.0.1:5672"]
    assert not any(reaches_beyond_loopback(listener.host) for listener in (*settings.listen, settings.admin))
    assert settings.realm == EmbeddedRealm(path.parent / "realm")


def test_what_the_user_wrote_there_stays(tmp_path: Path) -> None:
    path = search.configuration_file(None, begin=True)
    path.write_text("# mine\n")
    assert search.configuration_file(None, begin=True) == path and path.read_text() == "# mine\n"


def test_the_user_may_keep_data_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert search.own_file() == tmp_path / "data/realmgate/realmgate.yaml"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert search.own_file() == own(tmp_path), "the specification says to ignore it"


def test_serve_says_where_it_could_not_begin(run: Run, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file\n")
    code, out, err = run("serve", configured=False)
    assert (code, out) == (2, "") and "cannot be written" in err and "--config FILE" in err


def test_serve_without_a_configuration_says_where_the_realm_is(tmp_path: Path) -> None:
    path = search.configuration_file(None, begin=True)
    document = yaml.safe_load(path.read_text())
    document |= {"listen": ["amqp://127.0.0.1:0"], "admin": {"listen": "http://127.0.0.1:0"}}  # theirs may be taken
    path.write_text(yaml.safe_dump(document))
    environment = {name: value for name, value in os.environ.items() if name != "REALMGATE_CONFIG"}
    with subprocess.Popen(
        [REALMGATE, "serve"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            url = process.stdout.readline().split()[1]
            words: list[str | Path] = [REALMGATE, "send", "demo.first", "--url", url]
            sent = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
            assert (sent.returncode, sent.stderr) == (0, "") and "accepted" in sent.stdout
        finally:
            process.terminate()
            process.wait(STOP_TIMEOUT_S)
        output = process.stderr.read()
    assert process.returncode == 0
    assert (
        f"{path} is used" in output and f"messages are kept in the embedded realm in {path.parent / 'realm'}" in output
    )
