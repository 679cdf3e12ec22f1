"""Actions on a real gateway: off unless switched on; done for the user who has logged in, with a reason, a typed name
and the page's own token; refused and recorded where the grants do not allow it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from console.facts.actions import ACTIONS, command_of, shown, target_of
from tests.kit.patience import until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.console import ConsoleProcess, start_console
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import BAD, given_back
from tests.kit.wire.logins import PASSWORD, write_users
from tests.kit.wire.peer import Peer

Fields = dict[str, str]
LETTERS = {"do": "resend", "node": "dead"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Two letters of `orders` in `dead`. ann may do everything, ben may use and look at it."""
    directory = tmp_path_factory.mktemp("acting-gateway")
    write_users(directory / "users.yaml", ann=["operators"], ben=["operators"])
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    admin = {"listen": "http://127.0.0.1:0"}
    gateway = start_gateway(directory, embedded_realm(directory), security=security, admin=admin, nodes={})
    gateway.command("node", "create", "dead")
    gateway.command("node", "create", "side")
    gateway.command("node", "create", "orders", "--dead-letter", "dead")
    given_back(gateway, "orders", BAD, frames.state("rejected"))
    gateway.command("acl", "grant", "user:ann", "full", "--realm")
    gateway.command("acl", "grant", "*", "publish,subscribe,peek", "--realm")
    yield gateway
    assert gateway.stop() == 0, gateway.log()


@pytest.fixture(scope="module")
def console(gateway: GatewayProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    url = Watch.of(gateway).url
    console = start_console(
        tmp_path_factory.mktemp("acting"), "--gateway", url, "--config", str(gateway.config_path), "--actions"
    )
    yield console
    assert console.stop() == 0, console.log()
    assert "Traceback" not in console.log() and PASSWORD not in console.log(), console.log()


@pytest.fixture(scope="module")
def ann(console: ConsoleProcess) -> dict[str, str]:
    return console.log_in("ann")


@pytest.fixture(scope="module")
def ben(console: ConsoleProcess) -> dict[str, str]:
    return console.log_in("ben")


def form(console: ConsoleProcess, who: dict[str, str], target: Fields) -> tuple[str, Fields]:
    """The page of an action, and the fields that it would send."""
    answers = [(0, "")]

    def is_counted() -> bool:  # on a busy machine the dry run may take longer than a page waits
        status, _, page = console.get(f"/act?{urlencode(target)}", who)
        answers[0] = status, page
        return "took longer than" not in page

    until(is_counted, "the dry run")
    status, page = answers[0]
    assert status == 200, (status, page)
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page)
    return unescape(page), {name: unescape(value) for name, value in fields}


def send(console: ConsoleProcess, who: dict[str, str], fields: Fields) -> tuple[int, str]:
    status, _, page = console.get("/act", who, urlencode(fields).encode())
    return status, unescape(page)


def audited(gateway: GatewayProcess) -> list[dict[str, Any]]:
    return list(json.loads(gateway.command("audit", "--json", "--since", "1h")))


def test_a_wrong_token_a_wrong_name_and_no_reason_do_nothing(
    gateway: GatewayProcess, console: ConsoleProcess, ann: dict[str, str], ben: dict[str, str]
) -> None:
    before = audited(gateway)
    page, fields = form(console, ann, LETTERS)
    assert "2 messages would be sent back, 0 stay" in page and "orders" in page
    assert "realmgate queue resend --to-origin dead" in page
    good = {**fields, "why": "consumer 2.3 is out", "name": "dead"}
    wrong = [
        (403, {**good, "token": "0" * 64}), (403, {**good, "token": ""}), (403, {**good, "token": "\u00e4"}),
        (403, {**good, "node": "orders", "name": "orders"}), (403, {**good, "do": "purge"}),
        (400, {**good, "name": "orders"}), (400, {**good, "name": ""}), (400, {**good, "why": " "}),
        (404, {**good, "do": "format"}), (404, {}),
    ]  # fmt: skip
    assert [send(console, ann, request)[0] for _, request in wrong] == [status for status, _ in wrong]
    assert send(console, ben, good)[0] == 403, "the token is ann's"
    assert send(console, {"Origin": console.url}, good)[0] == 401
    assert send(console, {**ann, "Origin": "http://evil.example"}, good)[0] == 403
    assert send(console, {"Cookie": ann["Cookie"]}, good)[0] == 403
    assert "is not dead. Nothing was done." in send(console, ann, {**good, "name": "Dead"})[1]
    assert audited(gateway) == before
    assert "wrong token" in console.log()


def test_who_may_not_is_refused_and_the_audit_says_so(
    gateway: GatewayProcess, console: ConsoleProcess, ben: dict[str, str]
) -> None:
    page, fields = form(console, ben, LETTERS)
    assert "ben may not purge node dead" in page, "the dry run says it before"
    status, page = send(console, ben, {**fields, "why": "I want to", "name": "dead"})
    assert status == 409 and "ben may not purge node dead" in page and "Done." not in page
    until(lambda: "I want to" in console.get("/gateways", ben)[2], "the refusal among the commands")
    rows = console.json("/gateways.json", ben)["commands"]["rows"]
    assert (rows[0]["what"], rows[0]["answer"]) == ("refused", "access-denied")
    last = audited(gateway)[-1]
    assert (last["what"], last["answer"], last["why"]) == ("refused", "access-denied", "I want to")
    assert last["who"].startswith("ben (by ")


def test_letters_go_back_and_the_audit_shows_user_and_reason(
    gateway: GatewayProcess, console: ConsoleProcess, ann: dict[str, str]
) -> None:
    target = {**LETTERS, "where": "amqp.dead_letter_condition = 'app:bad'"}
    page, fields = form(console, ann, target)
    assert "1 messages would be sent back" in page
    status, page = send(console, ann, {**fields, "why": "consumer 2.3 is out", "name": "dead"})
    assert status == 200 and "Done." in page and "1 messages are sent back, 0 stay" in page
    last = audited(gateway)[-1]
    assert (last["what"], last["node"], last["answer"], last["where"]) == ("resend", "dead", "done", target["where"])
    assert last["why"] == "consumer 2.3 is out" and last["who"].startswith("ann (by ")
    asks, _ = form(console, ann, {"do": "move", "node": "dead"})
    assert "the node that gets them" in asks and 'class="confirm"' not in asks
    page, fields = form(console, ann, {"do": "move", "node": "dead", "to": "side"})
    assert "move means 1 messages" in page
    assert send(console, ann, {**fields, "why": "aside", "name": "dead"})[0] == 200
    page, fields = form(console, ann, {"do": "purge", "node": "side"})
    assert "purge means 1 messages" in page
    assert send(console, ann, {**fields, "why": "not needed", "name": "side"})[0] == 200
    assert [entry["what"] for entry in audited(gateway)[-2:]] == ["move", "purge"]
    assert json.loads(gateway.command("queue", "peek", "side", "--json")) == []


def test_a_connection_is_closed(gateway: GatewayProcess, console: ConsoleProcess, ann: dict[str, str]) -> None:
    with Peer(gateway.port, container="stuck") as peer:
        until(lambda: console.json("/connections.json?q=stuck", ann)["rows"], "the connection")
        [row] = console.json("/connections.json?q=stuck", ann)["rows"]
        target = {"do": "close", "id": row["id"], "gateway": row["gateway_url"]}
        assert urlencode(target).replace("&", "&amp;") in console.get("/connections?q=stuck", ann)[2]
        _, fields = form(console, ann, target)
        status, page = send(console, ann, {**fields, "why": "it hangs", "name": row["id"]})
        assert status == 200 and "container stuck" in page, page
        peer.expect("close")
    until(lambda: audited(gateway)[-1]["what"] == "close-connection", "the record")
    assert audited(gateway)[-1]["who"].startswith("ann (by ") and audited(gateway)[-1]["why"] == "it hangs"
    assert console.get(f"/act?{urlencode({**target, 'gateway': 'http://127.0.0.1:9'})}", ann)[0] == 404


def test_without_a_login_there_is_no_form(console: ConsoleProcess) -> None:
    status, headers, _ = console.get("/act?do=resend&node=dead")
    assert status == 303 and headers["location"].startswith("/login?next=")


@pytest.mark.parametrize("do", ACTIONS)
def test_names_are_operands_and_never_options(do: str) -> None:
    target = target_of(
        {"do": do, "node": "--yes", "to": "-x; rm", "durable": "-d", "id": "--help", "gateway": "http://h:1"}
    )
    assert target is not None and target.typed.startswith("-")
    words, operands = command_of(target)
    assert "--yes" not in words and "--help" not in words and all(operand.startswith("-") for operand in operands)
    assert " -- " in shown(target)
