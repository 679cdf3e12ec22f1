"""The configuration: what it means, and that everything wrong with it is said at once, with its line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gateway.config.field import REQUIRED
from gateway.config.fields import FIELDS, RESERVED_CLIENT_KEYS, configuration_table
from gateway.config.limits import Limits, limit_fields
from gateway.config.settings import (
    EmbeddedRealm,
    KafkaRealm,
    Listen,
    Security,
    SettingsProblems,
    load_settings,
)
from native_backend.log.client_settings import ClientSettings
from tests.gateway.config.configuration import REALM, load, problems

ROOT = Path(__file__).parents[3]


def test_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, "realm: {kind: embedded}\n")
    assert settings.listen == (Listen("127.0.0.1", 5672),)
    assert settings.realm == EmbeddedRealm(tmp_path / "var/realm", "um")
    assert (settings.mappings.profile, settings.mappings.directory) == ("extended", None)
    assert settings.nodes.create_on_attach == ()
    assert settings.security == Security(("ANONYMOUS",), True)
    assert settings.limits == Limits()
    assert settings.transformer == "basic"


def test_everything_written_out(tmp_path: Path) -> None:
    (tmp_path / "ours/tables").mkdir(parents=True)
    settings = load(
        tmp_path,
        'listen: ["amqp://0.0.0.0:0", "amqp://[::1]:5673", "amqp://host.example"]\n'
        'realm: {kind: kafka, bootstrap: "a:9092, b:9093", prefix: p.q_r-s,'
        " client: {client.id: x, linger.ms: 2, log.queue: true}}\n"
        "mappings: {profile: um-9.12, dir: ours}\n"
        'nodes: {create_on_attach: ["orders.*", "?"]}\n'
        "security: {sasl: [], bare_amqp: true}\n"
        "limits: {connections: 7, idle_timeout_ms: 0, window_bytes: 2097152, readers: 3}\n"
        "transformer: none\n",
    )
    assert settings.listen == (Listen("0.0.0.0", 0), Listen("::1", 5673), Listen("host.example", 5672))
    assert settings.realm == KafkaRealm(
        "a:9092, b:9093", "p.q_r-s", ClientSettings({"client.id": "x", "linger.ms": 2, "log.queue": True})
    )
    assert (settings.mappings.profile, settings.mappings.directory) == ("um-9.12", tmp_path / "ours")
    assert settings.nodes.create_on_attach == ("orders.*", "?")
    assert settings.security == Security((), True)
    assert settings.limits == dataclasses.replace(
        Limits(), connections=7, idle_timeout_ms=0, window_bytes=2097152, readers=3
    )
    assert (settings.limits.realm.window_bytes, settings.limits.realm.readers) == (2097152, 3)
    assert settings.transformer == "none"


def test_an_absolute_path_stays(tmp_path: Path) -> None:
    assert load(tmp_path, f"realm: {{kind: embedded, path: {tmp_path}/x}}\n").realm == EmbeddedRealm(tmp_path / "x")


def test_all_problems_at_once_in_order_of_lines(tmp_path: Path) -> None:
    listed = problems(
        tmp_path,
        'listen: ["amqp://127.0.0.1:70000", "localhost:5672"]\n'
        "realm: {kind: embeded, path: 5}\n"
        "mapings: {profile: extended}\n"
        "security:\n"
        "  sasl: [PLANE]\n"
        "  bare_amqp: on\n"
        "limits: {connections: 0, conections: 5}\n"
        "nodes: {create_on_attach: orders}\n"
        "nodes: {}\n"
        "transformer: 9.10\n",
    )
    lines = [int(problem.split(":")[1]) for problem in listed]
    assert lines == sorted(lines)
    expected = [
        'gateway.yaml:1: listen: "amqp://127.0.0.1:70000" has port 70000, ports go from 0 to 65535; write',
        'gateway.yaml:1: listen: "localhost:5672" is no amqp://, amqps://, ws:// or wss:// address; write "amqp:',
        'gateway.yaml:2: realm.kind: there is no "embeded"; write embedded',
        "gateway.yaml:3: unknown key mapings; write mappings",
        'gateway.yaml:5: security.sasl: there is no "PLANE"; write PLAIN',
        "gateway.yaml:6: bare on is ambiguous; write true",
        "gateway.yaml:7: unknown key conections; write connections",
        "gateway.yaml:7: limits.connections is 0; write a number from 1 to 100000",
        'gateway.yaml:8: nodes.create_on_attach must be a list of patterns, not text "orders"; write create',
        "gateway.yaml:9: key nodes is written twice (first on line 8); keep one",
        'gateway.yaml:10: bare 9.10 is no whole number; write "9.10" in quotes',
    ]
    for beginning in expected:
        assert any(problem.startswith(beginning) for problem in listed), (beginning, listed)


REFUSED = [
    ("listen: []\n" + REALM, "1: listen is empty; write"),
    ("listen: amqp://a:1\n" + REALM, "1: listen must be a list of addresses, not text"),
    ('listen: ["amqps://a:1"]\n' + REALM, "1: listen: amqps:// needs a certificate; write tls: {certificate"),
    ('listen: ["http://a:1"]\n' + REALM, "is no amqp://, amqps://, ws:// or wss:// address"),
    ('listen: ["amqp://a:1", "amqp://a:1"]\n' + REALM, "twice; keep one"),
    ("listen: [5672]\n" + REALM, "1: listen must be an address or a mapping, not integer 5672"),
    ("realm: {}\n", "1: realm.kind is missing; write kind: embedded"),
    ("realm: embedded\n", "1: realm must be a mapping, not text; write realm: {kind: embedded, path: var/realm}"),
    ("transformer: basic\n", "1: realm is missing; write realm: {kind: embedded"),
    ("realm: {kind: kafka}\n", '1: realm.bootstrap is missing; write bootstrap: "127.0.0.1:9092"'),
    ('realm: {kind: kafka, bootstrap: "a"}\n', "is no list of HOST:PORT"),
    ('realm: {kind: kafka, bootstrap: "a:0"}\n', "ports go from 1 to 65535"),
    ('realm: {kind: kafka, bootstrap: "a:1", prefix: "a b"}\n', "is no prefix"),
    (
        'realm: {kind: kafka, bootstrap: "a:1", path: x}\n',
        "1: realm.path belongs to a realm of kind embedded; remove it",
    ),
    ("realm: {kind: embedded, prefix: x}\n", "1: realm.prefix belongs to a realm of kind kafka"),
    (
        'realm: {kind: kafka, bootstrap: "a:1", client: {acks: 0}}\n',
        "realm.client.acks is the gateway's to set; remove it",
    ),
    ('realm: {kind: kafka, bootstrap: "a:1", client: {x: [1]}}\n', "realm.client.x must be one value, not sequence"),
    (
        'realm: {kind: kafka, bootstrap: "a:1", client: {sasl.password: "top"}}\n',
        "1: realm.client.sasl.password is a secret and stands in the configuration; write {file: PATH} or {env: NAME}",
    ),
    ('realm: {kind: kafka, bootstrap: "a:1", client: {x: {fle: z}}}\n', "realm.client.x names no source; write {file:"),
    (
        'realm: {kind: kafka, bootstrap: "a:1", client: {x: {env: NOT_SET_X}}}\n',
        "the environment has no NOT_SET_X; set",
    ),
    ('realm: {kind: kafka, bootstrap: "a:1", client: {x: {file: none}}}\n', "none cannot be read: No such file"),
    ('realm: {kind: kafka, bootstrap: "a:1", client: x}\n', "realm.client must be a mapping"),
    ('realm: {kind: embedded, path: ""}\n', '1: realm.path: "" is empty; write var/realm'),
    (REALM + "mappings: {profile: um-9.1}\n", '2: mappings.profile: there is no "um-9.1"; write um-9.'),
    (REALM + "mappings: {dir: nowhere}\n", "holds no tables/"),
    (REALM + "security: {sasl: [], bare_amqp: false}\n", "2: security lets no client in"),
    (REALM + "security: {kafka_acls: true}\n", "2: security.kafka_acls: this realm is not on Kafka; remove it"),
    (REALM + "security: {sasl: [SCRAM-SHA-256]}\n", "2: security.sasl: SCRAM-SHA-256 needs users; write users:"),
    (REALM + "security: {users: missing.yaml, sasl: [SCRAM-SHA-256]}\n", "missing.yaml:1: cannot be read"),
    (REALM + 'security: {bare_amqp: "true"}\n', '2: security.bare_amqp must be true or false, not text "true"'),
    (REALM + "limits: {frame_size_bytes: 511}\n", "2: limits.frame_size_bytes is 511; write a number from 512 to"),
    (
        REALM + 'limits: {links: "5"}\n',
        'limits.links must be a whole number from 1 to 1000000, not text "5"; write links: 5000',
    ),
    (REALM + "limits: {links: true}\n", "not boolean true"),
    (REALM + "limits: null\n", "2: limits must be a mapping, not null"),
    (
        REALM + "transformer: complet\n",
        "2: transformer: no transformer is called 'complet' (there are none, basic, complete); install",
    ),
    (REALM + "nodes: {create_on_attach: [3]}\n", "2: nodes.create_on_attach must be a pattern, not integer 3"),
    ("- listen\n", "1: the file is a sequence"),
    ("", "1: the file is empty"),
    ("listen: [\n", "is not YAML"),
]


@pytest.mark.parametrize(("text", "expected"), REFUSED, ids=[expected for _, expected in REFUSED])
def test_refused(tmp_path: Path, text: str, expected: str) -> None:
    listed = problems(tmp_path, text)
    assert len(listed) == 1, listed
    assert expected in listed[0]
    assert listed[0].startswith(("gateway.yaml:", "missing.yaml:"))
    assert "; " in listed[0], "it says what to write instead"


def test_a_bare_9_10(tmp_path: Path) -> None:
    listed = problems(tmp_path, REALM + "mappings: {profile: 9.10}\n")
    assert listed[0].startswith('gateway.yaml:2: bare 9.10 is no whole number; write "9.10" in quotes')
    assert listed[1:] == ['gateway.yaml:2: mappings.profile: there is no "9.10"; write um-9.10']


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsProblems, match="cannot be read"):
        load_settings(tmp_path / "nothing.yaml")


def test_all_that_is_wrong_with_the_client_settings_at_once(tmp_path: Path) -> None:
    listed = problems(
        tmp_path,
        "realm:\n"
        "  kind: kafka\n"
        '  bootstrap: "a:1"\n'
        "  client:\n"
        "    acks: 1\n"
        "    sasl.password: secret\n"
        "    linger.msec: 5\n"
        "    linger.ms: soon\n"
        "    ssl.ca.location: nowhere.pem\n"
        "    ssl.ca.pem: x\n"
        "    client.id: fine\n"
        "mappings: {dir: nowhere}\n"
        "colour: red\n",
    )
    expected = [
        "gateway.yaml:5: realm.client.acks is the gateway's to set; remove it",
        "gateway.yaml:6: realm.client.sasl.password is a secret and stands in the configuration; write {file: PATH} ",
        'gateway.yaml:7: realm.client.linger.msec: No such configuration property: "linger.msec"; write what ',
        "gateway.yaml:8: realm.client.linger.ms: Invalid value for configuration property",
        "gateway.yaml:9: realm.client.ssl.ca.location: there is no nowhere.pem; name a file",
        "gateway.yaml:10: realm.client.ssl.ca.pem: the client for admin calls knows no such setting; remove it",
        "gateway.yaml:12: nowhere holds no tables/; name a directory that does",
        "gateway.yaml:13: unknown key colour",
    ]
    assert len(listed) == len(expected), listed
    for line, beginning in zip(listed, expected, strict=True):
        assert line.startswith(beginning)


@pytest.mark.parametrize("name", sorted(RESERVED_CLIENT_KEYS))
def test_the_client_settings_that_guarantees_rest_on(tmp_path: Path, name: str) -> None:
    listed = problems(tmp_path, f'realm: {{kind: kafka, bootstrap: "a:1", client: {{{name}: "x"}}}}\n')
    assert listed == [f"gateway.yaml:1: realm.client.{name} is the gateway's to set; remove it"]


def test_every_limit_can_be_set_and_is_bounded(tmp_path: Path) -> None:
    for limit in limit_fields():
        low, high = limit.metadata["low"], limit.metadata["high"]
        for value in (low, high):
            assert getattr(load(tmp_path, REALM + f"limits: {{{limit.name}: {value}}}\n").limits, limit.name) == value
        for value in (low - 1, high + 1):
            assert (
                f"limits.{limit.name} is {value}"
                in problems(tmp_path, REALM + f"limits: {{{limit.name}: {value}}}\n")[0]
            )
        assert low <= limit.default <= high
        assert limit.metadata["about"]


def test_the_documentation_is_the_table() -> None:
    assert configuration_table() in (ROOT / "docs/configuration.md").read_text(encoding="utf-8")


def test_the_table_names_every_key_with_its_default() -> None:
    table = configuration_table()
    for field in FIELDS:
        [row] = [line for line in table.splitlines() if line.startswith(f"| `{field.key}` |")]
        assert ("none: required" in row) == (field.default is REQUIRED)


def test_the_examples_of_the_documentation_are_legal(tmp_path: Path) -> None:
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert load(tmp_path, text.split("```yaml\n")[1].split("```")[0]).limits.connections == 100


@pytest.mark.parametrize("name", ["embedded.yaml", "kafka.yaml"])
def test_the_shipped_configurations_are_legal(name: str) -> None:
    assert load_settings(ROOT / "deploy" / name).listen == (Listen("127.0.0.1", 5672),)


def test_secrets_come_from_elsewhere_and_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REALMGATE_TEST_KEY", "from the environment")
    (tmp_path / "password").write_text("from a file \n\n")
    settings = load(
        tmp_path,
        'realm: {kind: kafka, bootstrap: "a:1", client: {sasl.username: gw, sasl.password: {file: password},'
        " ssl.key.password: {env: REALMGATE_TEST_KEY}, client.id: {env: REALMGATE_TEST_KEY}}}\n",
    )
    assert isinstance(settings.realm, KafkaRealm)
    assert dict(settings.realm.client) == {
        "sasl.username": "gw",
        "sasl.password": "from a file \n",
        "ssl.key.password": "from the environment",
        "client.id": "from the environment",
    }
    shown = f"{settings!r} {settings.realm} {settings.realm.client}"
    assert "gw" in shown and "from a" not in shown and "from the" not in shown
    assert "top" not in "".join(
        problems(tmp_path, 'realm: {kind: kafka, bootstrap: "a:1", client: {sasl.password: top}}')
    )
