"""`realmgate import`: what becomes of the configuration of Artemis, RabbitMQ and Universal Messaging, and that a realm
takes it. Real ones: tests/gateway/cli/imports/broker-2.44.xml is what `artemis create` of 2.44.0 wrote; RabbitMQ's own
export is read by tests/interop/test_import_rabbitmq.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.cli.imports.wildcards import matches, specific_first
from gateway.cli.main import run as main
from tests.gateway.cli.command_line import Run, config, run

__all__ = ["config", "run"]
HERE = Path(__file__).parent


def imported(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, list[dict[str, Any]], str, str]:
    """Exit code, nodes, their text, notes."""
    code = main(["import", *map(str, words)])
    output = capsys.readouterr()
    return code, yaml.safe_load(output.out) or [], output.out, output.err


def named(nodes: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {node["name"]: node for node in nodes if "name" in node}


def applies(run: Run, text: str, tmp_path: Path) -> str:
    """A realm takes the file, and then is as the file says."""
    file = tmp_path / "nodes.yaml"
    file.write_text(text)
    code, out, err = run("node", "apply", str(file), "--dry-run")
    assert code == 0, err
    assert run("node", "apply", str(file))[0] == 0
    assert "make" not in run("node", "apply", str(file), "--dry-run")[1]
    return out


def test_artemis(capsys: pytest.CaptureFixture[str], run: Run, tmp_path: Path) -> None:
    file = HERE / "shop-broker.xml"
    code, nodes, text, err = imported(capsys, "artemis", file)
    assert code == 0
    entries = named(nodes)
    common = {"attempts": 10, "dead-letter": "DLQ"}
    orders = {
        "kind": "queue",
        "dead-letter": "DLQ",
        "redelivery-delay": "5000ms",
        "redelivery": "exponential",
        "redelivery-delay-max": "60000ms",
        "ttl": "3600000ms",
        "capacity-bytes": "104857600B",
        "honour-capacity": True,
        "acl": [{"who": "group:clerks", "allow": ["subscribe"]}, {"who": "group:shop", "allow": ["publish"]}],
    }
    assert entries["orders.eu"] == {"name": "orders.eu", **orders}, "-1 attempts are no end"
    us = {"attempts": 3, "capacity-events": 100, "type": "reliable"}
    assert entries["orders.us"] == {"name": "orders.us", **orders, **us}
    others = [
        {"who": "group:apps", "allow": ["publish", "subscribe"]},
        {"who": "group:ops", "allow": ["durable", "peek", "publish", "subscribe"]},
    ]
    assert entries["news"] == {"name": "news", "kind": "channel", **common, "acl": others}
    assert entries["DLQ"] == {"name": "DLQ", "kind": "queue", "attempts": 10, "acl": others}
    assert nodes[0]["realm"]["acl"] == [
        {"who": "group:apps", "allow": ["temporary"]},
        {"who": "group:ops", "allow": ["manage", "temporary"]},
    ]
    assert "create queue orders.us" in applies(run, text, tmp_path)
    for note in (
        f"{file}:7: acceptor amqp is no matter of the realm; write into the configuration: listen: "
        '["amqp://0.0.0.0:5672"]',
        f"{file}:9: acceptor artemis speaks CORE, OPENWIRE;",
        f"{file}:19: permission view of #;",
        f"{file}:29: expiry-address ExpiryQueue beside dead-letter-address DLQ; expired messages go to DLQ, too",
        f"{file}:54: max-consumers of queue orders.us;",
        f"{file}:56: filter of queue orders.us; give the selector to the consumers",
        f"{file}:62: subscription client.reader of news is not made: a durable begins when its subscriber attaches;",
        f"{file}:66: queue one of address split has a name of its own; the queues of split become one",
        f"{file}:70: divert copy-orders; have the producer send to both nodes",
        f"{file}:72: ha-policy; a second gateway is a standby",
        f"{file}:4,5: Artemis' own storage, threads and limits; nothing to do here",
    ):
        assert note in err, err
    assert (
        "the roles apps, clerks, ops, shop stand in other files; for each user: realmgate user hash NAME --group" in err
    )
    assert err.splitlines()[-1].startswith(f"realmgate: {file}: 6 nodes, ")


def test_the_file_that_artemis_creates(capsys: pytest.CaptureFixture[str], run: Run, tmp_path: Path) -> None:
    code, nodes, text, err = imported(capsys, "artemis", HERE / "broker-2.44.xml")
    assert code == 0 and "Traceback" not in err
    assert {name: node["kind"] for name, node in named(nodes).items()} == {"DLQ": "queue", "ExpiryQueue": "queue"}
    assert nodes[0] == {"realm": {"acl": [{"who": "group:amq", "allow": sorted(ALL)}]}}
    assert named(nodes)["ExpiryQueue"]["dead-letter"] == "DLQ" and "dead-letter" not in named(nodes)["DLQ"]
    assert "create queue DLQ" in applies(run, text, tmp_path)
    assert "acceptor stomp speaks STOMP" in err and 'listen: ["amqp://0.0.0.0:5672"]' in err


ALL = {"publish", "subscribe", "peek", "durable", "manage", "temporary"}


def test_an_artemis_without_security_settings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "broker.xml"
    for security, words in (
        ("<security-enabled>false</security-enabled>", "security is off: every user may do everything"),
        ("", "no security-settings: nothing is granted; Artemis lets no user in then"),
        (
            '<security-settings><security-setting match="b.#"><permission type="send" roles="r"/></security-setting>'
            "</security-settings>",
            "no role may use a; every user may use it here until it has one: realmgate acl grant WHO OPERATIONS --node",
        ),
    ):
        address = '<addresses><address name="a"><anycast><queue name="a"/></anycast></address></addresses>'
        file.write_text(f"<configuration><core>{security}{address}</core></configuration>")
        code, nodes, _, err = imported(capsys, "artemis", file)
        assert code == 0 and words in err and nodes == [{"name": "a", "kind": "queue", "attempts": 10}]


@pytest.mark.parametrize(
    ("pattern", "address", "does"),
    [
        ("#", "a.b", True),
        ("a.#", "a", True),
        ("a.#", "a.b.c", True),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.*.c", "a.b.c", True),
        ("*.#.c", "c", False),
        ("a", "ab", False),
    ],
)
def test_wildcards(pattern: str, address: str, does: bool) -> None:
    assert matches(pattern, address) == does


@pytest.mark.parametrize(
    ("address", "order"),
    [
        ("a.b", "a.b a.* *.b a.# #"),
        ("orders", "orders orders.#"),
        ("a.b.c", "a.b.* a.*.c a.*.* *.b.c *.*.c"),
        ("a.b.c", "a.*.c a.b.# a.# #"),
    ],
)
def test_the_more_specific_match_wins(address: str, order: str) -> None:
    """As Artemis 2.55 sorts them."""
    assert specific_first(order.split()[::-1], address) == order.split()


BOMB = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<configuration><core>&b;</core></configuration>
"""


@pytest.mark.parametrize(
    ("broker", "text", "words"),
    [
        ("artemis", BOMB, ":2: it has a document type (<!DOCTYPE>), which is not read"),
        ("um", '<!DOCTYPE x SYSTEM "file:///etc/passwd"><NirvanaRealm/>', ":1: it has a document type"),
        ("artemis", "<a>" * 100, ":1: more than 64 levels of elements"),
        ("artemis", "<configuration>\n<core>", ":2: no element found"),
        ("artemis", "", ":1: no element found"),
        ("artemis", "<a/>", ":1: there is no <core>: it is no broker.xml of Artemis"),
        ("um", "<a/>", ":1: the root is <a>, that of an exported realm is <NirvanaRealm>"),
        ("rabbitmq", "{", ": it is no JSON"),
        ("rabbitmq", "[]", ": it is no object"),
        ("rabbitmq", "{}", ": there are no queues and exchanges: export it by rabbitmqctl export_definitions"),
        (
            "rabbitmq",
            '{"vhosts": [{"name": "x"}], "queues": [], "exchanges": []}',
            ": there is no virtual host /, there are x",
        ),
        ("rabbitmq", '{"queues": 5, "exchanges": []}', ": queues is no list"),
        ("rabbitmq", '{"queues": ["a"], "exchanges": []}', ": queues[0] is no object"),
        ("rabbitmq", '{"queues": [{"name": "a"}, {}], "exchanges": []}', ": queues[1] has no name"),
        ("rabbitmq", '{"queues": [], "exchanges": [{"name": "a"}]}', ": exchanges[0] has no type"),
        (
            "rabbitmq",
            '{"queues": [{"name": "a", "arguments": 5}], "exchanges": []}',
            ": queues[0]: arguments is no object",
        ),
        (
            "rabbitmq",
            '{"queues": [], "exchanges": [], "policies": [{"priority": "high"}]}',
            ": policies[0]: priority is no number",
        ),
        (
            "rabbitmq",
            '{"queues": [], "exchanges": [], "permissions": [{"write": ".*"}]}',
            ": permissions[0] has no user",
        ),
        ("rabbitmq", '{"queues": [], "exchanges": [], "bindings": [{}]}', ": bindings[0] has no source"),
    ],
)
def test_what_is_no_configuration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, broker: str, text: str, words: str
) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    code, _, out, err = imported(capsys, broker, file)
    assert (code, out) == (2, "") and f"realmgate: {file}{words}" in err
    code, _, out, err = imported(capsys, broker, tmp_path / "absent")
    assert (code, out) == (2, "") and "No such file" in err


def test_out_names_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "nodes.yaml"
    assert imported(capsys, "um", HERE / "exported-realm.xml", "--out", out)[2] == ""
    assert [node["name"] for node in yaml.safe_load(out.read_text())] == ["news/europe", "orders"]
    code, _, _, err = imported(capsys, "um", HERE / "exported-realm.xml", "--out", tmp_path / "absent" / "x")
    assert code == 2 and "No such file or directory" in err


def test_universal_messaging(capsys: pytest.CaptureFixture[str], run: Run, tmp_path: Path) -> None:
    file = HERE / "exported-realm.xml"
    code, nodes, text, err = imported(capsys, "um", file)
    assert code == 0
    assert named(nodes) == {
        "news/europe": {
            "name": "news/europe",
            "kind": "channel",
            "type": "reliable",
            "ttl": "60000ms",
            "capacity-events": 1000,
            "honour-capacity": True,
            "acl": [
                {"who": "*", "allow": ["durable", "subscribe"]},
                {"who": "group:editors", "allow": ["publish"]},
                {"who": "user:sagadmin", "allow": ["full"]},
            ],
        },
        "orders": {
            "name": "orders",
            "kind": "queue",
            "type": "persistent",
            "acl": [{"who": "user:shop", "allow": ["peek", "publish", "subscribe"]}],
        },
    }
    assert "create channel news/europe" in applies(run, text, tmp_path)
    for note in (
        f"{file}:3: <RealmConfigurationSet>; limits stand in the configuration",
        f"{file}:6: jmsEngine of news/europe;",
        f"{file}:9: user:sagadmin is granted at host localhost only;",
        f"{file}:9: modifyACLEntries of user:sagadmin on news/europe;",
        f"{file}:13: <ChannelJoinSet> of news/europe; there are no joins",
        f"{file}:24: <QueueEntry> without attributes or a name; make its node",
    ):
        assert note in err, err


def definitions(**more: Any) -> dict[str, Any]:
    queue = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
    permission = {"vhost": "/", "configure": "", "write": "", "read": ""}
    return {
        "vhosts": [{"name": "/"}, {"name": "test"}],
        "users": [{"name": "ann", "password_hash": "x", "tags": ["administrator"]}],
        "permissions": [
            permission | {"user": "ann", "configure": ".*", "write": ".*", "read": ".*"},
            permission | {"user": "shop", "write": "^orders$", "read": "^$"},
        ],
        "topic_permissions": [],
        "parameters": [],
        "policies": [
            {"vhost": "/", "name": "ttl", "pattern": "^orders", "apply-to": "queues", "priority": 1}
            | {"definition": {"message-ttl": 5000, "max-length": 100, "overflow": "reject-publish"}}
        ],
        "queues": [
            queue | {"name": "orders", "arguments": {"x-dead-letter-exchange": "dlx", "x-message-ttl": 9000}},
            queue | {"name": "limited", "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 4}},
            queue | {"name": "dead", "durable": False},
            queue | {"name": "astray", "arguments": {"x-dead-letter-exchange": "nowhere", "x-expires": 1}},
            queue | {"name": "other", "vhost": "test"},
        ],
        "exchanges": [
            {"vhost": "/", "name": "dlx", "type": "direct"},
            {"vhost": "/", "name": "news", "type": "fanout"},
        ],
        "bindings": [
            {
                "vhost": "/",
                "source": "dlx",
                "destination_type": "queue",
                "destination": "dead",
                "routing_key": "orders",
            },
            {"vhost": "/", "source": "news", "destination_type": "queue", "destination": "dead", "routing_key": ""},
        ],
    } | more


def test_rabbitmq(capsys: pytest.CaptureFixture[str], run: Run, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(definitions()))
    code, nodes, text, err = imported(capsys, "rabbitmq", file)
    assert code == 0
    assert nodes[0]["realm"]["acl"] == [{"who": "user:ann", "allow": sorted(ALL)}]
    entries = named(nodes)
    assert entries["orders"] == {
        "name": "orders",
        "kind": "queue",
        "ttl": "5000ms",
        "capacity-events": 100,
        "honour-capacity": True,
        "dead-letter": "dead",
        "acl": [{"who": "user:shop", "allow": ["publish"]}],
    }, "the smaller time to live, and the queue that the exchange for dead letters reaches"
    assert entries["limited"] == {"name": "limited", "kind": "queue", "attempts": 5}
    assert entries["dead"] == {"name": "dead", "kind": "queue", "type": "reliable"}
    assert entries["news"] == {"name": "news", "kind": "channel"}
    assert entries["astray"] == {"name": "astray", "kind": "queue"}
    assert set(entries) == {"orders", "limited", "dead", "astray", "news"}
    assert "create queue limited: attempts 5" in applies(run, text, tmp_path)
    for note in (
        f"{file}: dead letters of queue astray go to exchange nowhere, from there to no queue;",
        f"{file}: expires of queue astray; a node stays",
        f"{file}: exchange news is a fanout to dead; it is made as a channel",
        f"{file}: exchange dlx (direct) to dead; there is no routing in a realm",
        f"{file}: binding of dlx to queue dead by orders;",
        f"{file}: user ann: RabbitMQ's hash of the password is of no use for SCRAM; make an entry: "
        "realmgate user hash ann --group administrator",
        f"{file}: 1 queues of the virtual host test; import them, too: --vhost test",
    ):
        assert note in err, err
    assert "password_hash" not in err
    assert set(named(imported(capsys, "rabbitmq", file, "--vhost", "test")[1])) == {"other"}
