"""`--as USER`: the grants decide what a command may do for a user, and the record names both; `peek --sections`, and
what a purge and a move would mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.passwords import hash_password
from gateway.cli.audit.who import CHARACTERS_MAX, who_am_i
from tests.gateway.cli.command_line import Run, config, run
from tests.kit.processes.gateway import StartGateway
from tests.kit.wire.consumer_errors import BAD, given_back, with_letters
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Described, ULong, encode

__all__ = ["config", "run"]


@pytest.fixture
def realm(run: Run, config: Path) -> Run:
    """Queue `dead`, which ann may purge, and ben may look at; `side`, into which ann may not publish."""
    entry = hash_password("secret", "SCRAM-SHA-256", 4096)
    users = "".join(f"  {name}: {{groups: [], scram: ['{entry}']}}\n" for name in ("ann", "ben"))
    (config.parent / "users.yaml").write_text(f"users:\n{users}")
    with config.open("a") as file:
        file.write("security: {sasl: [ANONYMOUS, SCRAM-SHA-256], users: users.yaml}\n")
    for node in ("dead", "side"):
        run("node", "create", node)
    run("acl", "grant", "user:ann", "purge", "--node", "dead")
    run("acl", "grant", "user:ben", "peek", "--node", "dead")
    run("acl", "grant", "group:operators", "full", "--node", "side")
    return run


def audited(run: Run) -> list[dict[str, Any]]:
    _, out, _ = run("audit", "--json")
    return [entry for entry in json.loads(out) if entry["what"] in ("purge", "move", "refused")]


def test_who_may_is_recorded_with_the_user(realm: Run) -> None:
    code, out, err = realm("queue", "purge", "dead", "--yes", "--as", "ann", "--why", "ticket 12")
    assert code == 0, (out, err)
    [entry] = audited(realm)
    assert (entry["what"], entry["answer"], entry["why"]) == ("purge", "done", "ticket 12")
    assert entry["who"] == f"ann (by {who_am_i()})"


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (("purge", "dead", "--as", "ben"), "ben may not purge node dead"),
        (("resend", "dead", "--to-origin", "--as", "ben"), "ben may not purge node dead"),
        (("move", "dead", "--to", "side", "--as", "ann"), "ann may not publish node side"),
        (("purge", "dead", "--as", "anonymous"), "anonymous may not purge node dead"),
    ],
)
def test_who_may_not_is_refused_and_that_is_recorded(realm: Run, words: tuple[str, ...], refused: str) -> None:
    code, out, err = realm("queue", *words, "--why", "so")
    assert code == 1 and refused in err and "realmgate acl grant" in err and not out
    [entry] = audited(realm)
    assert (entry["what"], entry["answer"], entry["detail"]) == ("refused", "access-denied", refused)
    assert entry["why"] == "so" and entry["who"].startswith(f"{words[-1]} (by ")
    assert entry["change"].startswith(f"{words[0]} dead")


def test_looking_needs_a_right_and_leaves_no_record(realm: Run) -> None:
    assert realm("queue", "peek", "dead", "--json", "--as", "ben")[:2] == (0, "[]\n")
    code, _, err = realm("queue", "peek", "dead", "--json", "--as", "ann")
    assert code == 1 and "ann may not peek node dead" in err
    code, _, err = realm("queue", "peek", "dead", "--as", "eve")
    assert code == 1 and "no user eve" in err
    assert audited(realm) == []


def test_a_durable_and_a_connection_need_manage(realm: Run, config: Path) -> None:
    code, _, err = realm("durable", "delete", "dead", "x:y", "--yes", "--as", "ben")
    assert code == 1 and "ben may not manage node dead" in err
    realm("acl", "grant", "user:ann", "manage", "--realm")
    close = ("connection", "close", "r.1", "--reason", "it hangs", "--gateway", "http://127.0.0.1:9")
    code, _, err = realm(*close, "--as", "ben")
    assert code == 2 and "ben may not manage the realm" in err
    code, _, err = realm(*close, "--as", "ann")
    assert code == 2 and "does not answer" in err, "ann may: the gateway is asked"
    code, _, err = realm(*close, "--as", "ann", configured=False)
    assert code == 2 and "write --config FILE" in err
    assert [entry["change"] for entry in audited(realm)] == ["delete x:y of dead", "close connection r.1"]


def test_a_long_name_leaves_room_for_who_ran_it() -> None:
    who = who_am_i("x" * 250)
    assert len(who) <= CHARACTERS_MAX and f"(by {who_am_i()}"[:60] in who


def test_a_letter_in_words(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    node, dead = with_letters(gateway, "orders")
    given_back(gateway, node, BAD)
    gateway.command("node", "create", "side")
    with Peer(gateway.port) as peer:
        header = encode(Described(ULong(0x70), [True]))
        properties = encode(Described(ULong(0x73), ["order-1", None, None, "\x1b[31mred"]))
        application = encode(Described(ULong(0x74), AmqpMap([("colour", "x" * 3_000), ("at", 7)])))
        peer.stored(dead, header + properties + application + encode(Described(ULong(0x75), b"{\x00}" * 1_000)))
    first, second = json.loads(gateway.command("queue", "peek", dead, "--json", "--sections"))
    assert first["dead_letter"]["cause"] == "rejected" and first["sections"]["body"] == "0" and "value" not in first
    shown = second["sections"]
    assert shown["header"] == {"durable": True}
    assert shown["properties"] == {"message-id": "order-1", "subject": "\\x1b[31mred"}
    assert shown["application_properties"]["at"] == 7
    assert len(shown["application_properties"]["colour"]) == 503
    assert shown["body"].startswith("{\\x00}{") and len(json.dumps(shown)) < 20_000
    assert second["octets"] > 6_000 and second["partition"] == 0
    for words in (("purge",), ("move", "--to", "side")):
        assert gateway.command("queue", words[0], dead, *words[1:], "--dry-run").endswith("means 2 messages\n")
    only = ("--where", "colour IS NOT NULL")
    assert gateway.command("queue", "purge", dead, "--dry-run", *only).endswith("means 1 messages\n")
    assert len(json.loads(gateway.command("queue", "peek", dead, "--json"))) == 2, "nothing was changed"
