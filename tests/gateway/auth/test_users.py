"""The users file: what it means, everything that is wrong with it by line, and that no key is ever shown."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import pytest

from gateway.auth.passwords import hash_password, is_password
from gateway.auth.users import Users, load_users
from gateway.cli import main as cli
from gateway.config.settings import SettingsProblems, load_settings
from mappings.language.yaml_lines import Problem
from tests.gateway.auth.user_entry import ENTRY, PASSWORD

ENTRY_512 = hash_password("other", "SCRAM-SHA-512", 4096)


def load(directory: Path, text: str) -> tuple[Users, list[str]]:
    file = directory / "users.yaml"
    file.write_text(text, encoding="utf-8")
    problems: list[Problem] = []
    users = load_users(file, problems)
    return users, [str(problem).removeprefix(f"{directory}/") for problem in problems]


def test_who_is_who(tmp_path: Path) -> None:
    users, problems = load(
        tmp_path,
        f"users:\n  alice:\n    groups: [traders, ops]\n    scram: [{json.dumps(ENTRY)}]\n"
        f'  "böb x": {{scram: [{json.dumps(ENTRY_512)}]}}\n',
    )
    assert problems == []
    assert users.subject("alice").groups == {"traders", "ops"}
    assert users.subject("böb x").groups == frozenset()
    assert is_password(users, "alice", PASSWORD)
    assert is_password(users, "böb x", "other")
    for name, password in [("alice", "other"), ("alice", ""), ("alice", "\u0007"), ("unknown", PASSWORD), ("", "")]:
        assert not is_password(users, name, password)


def test_an_unknown_user_looks_like_a_known_one(tmp_path: Path) -> None:
    users, _ = load(tmp_path, f"users: {{alice: {{scram: [{json.dumps(ENTRY)}]}}}}\n")
    known, unknown = users.keys("alice", "SCRAM-SHA-256"), users.keys("mallory", "SCRAM-SHA-256")
    assert (unknown.iterations, len(unknown.salt)) == (known.iterations, len(known.salt))
    assert users.keys("mallory", "SCRAM-SHA-256").salt == unknown.salt != users.keys("eve", "SCRAM-SHA-256").salt
    assert users.keys("alice", "SCRAM-SHA-512").salt != known.salt  # alice has no entry for it: as if unknown


def test_entries_of_fewer_rounds_work_and_are_named(tmp_path: Path) -> None:
    new = hash_password(PASSWORD, "SCRAM-SHA-256")
    assert new.startswith("SCRAM-SHA-256$100000:")
    weak = "".join(f"  old-{number}: {{scram: [{json.dumps(ENTRY)}]}}\n" for number in range(7))
    users, problems = load(tmp_path, f"users:\n{weak}  new: {{scram: [{json.dumps(new)}]}}\n")
    assert problems == [] and is_password(users, "old-6", PASSWORD) and is_password(users, "new", PASSWORD)
    assert users.weakness.startswith("7 users have passwords with fewer than 100,000 rounds")
    assert "('old-0', 'old-1', 'old-2', 'old-3', 'old-4', ...): realmgate user hash NAME" in users.weakness
    rounds = {users.keys(f"unknown-{number}", "SCRAM-SHA-256").iterations for number in range(50)}
    assert rounds == {4096, 100_000}, "an unknown user has such rounds as others have"
    users, _ = load(tmp_path, f"users: {{new: {{scram: [{json.dumps(new)}]}}}}\n")
    assert users.weakness == ""


def test_a_certificate_is_of_the_user_that_has_a_name_of_it(tmp_path: Path) -> None:
    users, problems = load(
        tmp_path, "users:\n  a: {certificates: ['subject:CN=a', 'dns:a']}\n  b: {certificates: ['dns:b']}\n"
    )
    assert problems == []
    assert users.with_certificate(("subject:CN=a", "dns:else")) == "a"
    assert users.with_certificate(("subject:CN=a", "dns:a")) == "a"
    assert users.with_certificate(("subject:CN=a", "dns:b")) is None  # whose?
    assert users.with_certificate(("subject:CN=c",)) is users.with_certificate(()) is None
    assert not is_password(users, "a", "")


CUT = ENTRY[:-8] + "AA=="
FEW = ENTRY.replace("$4096:", "$4095:")
WRONG = [
    ("users:\n  a: {certificates: [CN=a]}\n", "2: certificates: 'CN=a' is no name of a certificate; write subject:"),
    ("users:\n  a: {certificates: ['dns:']}\n", "2: certificates: 'dns:' is no name of a certificate"),
    (
        "users:\n  a: {certificates: ['dns:a']}\n  b: {certificates: ['dns:b', 'dns:a']}\n",
        "3: certificates: 'dns:a' is the name of 'a', too; keep one",
    ),
    ("user: {}\n", "1: unknown key user; write users"),
    ("- alice\n", "1: there is no mapping of users; write users:"),
    ("users: [alice]\n", "1: there is no mapping of users"),
    ("users:\n  alice: secret\n", "2: user 'alice' is a text; write {scram"),
    (
        "users:\n  alice: {}\n",
        "2: user 'alice' has neither password nor certificate; make it with: realmgate user hash NAME",
    ),
    ("users:\n  alice: {pasword: x}\n", "2: unknown key pasword"),
    ("users:\n  alice:\n    scram: secret\n", "3: scram must be a list of texts"),
    ("users:\n  alice:\n    scram: [secret]\n", "3: scram: the entry cannot be read; make it"),
    ('users:\n  alice:\n    scram: ["SCRAM-SHA-1$1:a$b:c"]\n', "scram: mechanism 'SCRAM-SHA-1' cannot be read; write"),
    (f"users:\n  alice:\n    scram: [{json.dumps(CUT)}]\n", "3: scram: the entry is cut short or was changed"),
    (f"users:\n  alice:\n    scram: [{json.dumps(FEW)}]\n", "3: scram: 4095 iterations; make it anew with 4096"),
    (
        f"users:\n  a:\n    scram:\n    - {json.dumps(ENTRY)}\n    - {json.dumps(ENTRY)}\n",
        "5: a second entry",
    ),
    (f"users:\n  anonymous: {{scram: [{json.dumps(ENTRY)}]}}\n", "2: user 'anonymous' is reserved for clients"),
    (f'users:\n  " a": {{scram: [{json.dumps(ENTRY)}]}}\n', "2: user ' a' is empty, not printable, or begins"),
    (f"users:\n  a: {{groups: ops, scram: [{json.dumps(ENTRY)}]}}\n", "2: groups must be a list of texts"),
    ("users:\n  a: {}\n  a: {}\n", "3: key a is written twice"),
]


@pytest.mark.parametrize(("text", "expected"), WRONG, ids=[expected for _, expected in WRONG])
def test_mistakes_are_reported_by_line_and_show_no_secret(tmp_path: Path, text: str, expected: str) -> None:
    _, problems = load(tmp_path, text)
    assert any(problem.startswith("users.yaml:") and expected in problem for problem in problems), problems
    assert not any("secret" in problem or ENTRY[30:] in problem for problem in problems)


def test_all_problems_of_both_files_at_once(tmp_path: Path) -> None:
    (tmp_path / "users.yaml").write_text("users:\n  alice: {}\n  bob: {scram: [x]}\n")
    (tmp_path / "gateway.yaml").write_text(
        "realm: {kind: embedded}\nsecurity: {users: users.yaml, sasl: [PLAIN, SCRAM-SHA-256]}\n"
    )
    with pytest.raises(SettingsProblems) as raised:
        load_settings(tmp_path / "gateway.yaml")
    text = str(raised.value)
    assert text.count("users.yaml:") == 2
    assert "gateway.yaml:2: security.sasl: PLAIN sends passwords in clear text over the network" in text


def test_bare_amqp_is_open_where_anonymous_is(tmp_path: Path) -> None:
    (tmp_path / "users.yaml").write_text(f"users: {{a: {{scram: [{json.dumps(ENTRY)}]}}}}\n")
    for sasl, bare in [("[SCRAM-SHA-256]", False), ("[ANONYMOUS, SCRAM-SHA-256]", True)]:
        (tmp_path / "gateway.yaml").write_text(
            f"realm: {{kind: embedded}}\nsecurity: {{users: users.yaml, sasl: {sasl}}}\n"
        )
        assert load_settings(tmp_path / "gateway.yaml").security.bare_amqp is bare
    (tmp_path / "gateway.yaml").write_text("realm: {kind: embedded}\nsecurity: {users: users.yaml}\n")
    with pytest.raises(SettingsProblems, match="no mechanism uses them"):
        load_settings(tmp_path / "gateway.yaml")


def test_no_repr_shows_a_key(tmp_path: Path) -> None:
    (tmp_path / "users.yaml").write_text(f"users: {{a: {{scram: [{json.dumps(ENTRY)}]}}}}\n")
    (tmp_path / "gateway.yaml").write_text(
        "realm: {kind: embedded}\nsecurity: {users: users.yaml, sasl: [SCRAM-SHA-256]}\n"
    )
    settings = load_settings(tmp_path / "gateway.yaml")
    users = settings.security.users
    shown = f"{settings!r} {users!r} {users._users!r} {users.keys('a', 'SCRAM-SHA-256')!r}"
    for part in ENTRY.replace("$", ":").split(":")[2:]:
        assert part not in shown
        assert repr(base64.b64decode(part)) not in shown


def hash_command(monkeypatch: pytest.MonkeyPatch, typed: str, *arguments: str) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    return cli.run(["user", "hash", *arguments])


def test_the_command_makes_what_the_file_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hash_command(monkeypatch, f"{PASSWORD}\n", 'al"ice', "--group", "ops", "--iterations", "4096") == 0
    made = capsys.readouterr().out
    assert PASSWORD not in made
    users, problems = load(tmp_path, f"users:\n{made}")
    assert problems == []
    assert users.subject('al"ice').groups == {"ops"}
    assert is_password(users, 'al"ice', PASSWORD)
    assert {users.keys('al"ice', name).iterations for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")} == {4096}


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [("\n", ["a"]), ("x\n", ["anonymous"]), ("\u0007\n", ["a"]), ("x\n", ["a", "--iterations", "4095"]), ("x\n", [""])],
)
def test_the_command_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, arguments: list[str]
) -> None:
    assert hash_command(monkeypatch, typed, *arguments) == 2
    output = capsys.readouterr()
    assert output.err.startswith("realmgate: ") and not output.out
