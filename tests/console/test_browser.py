"""The console in Chromium: incidents are found with the keyboard alone, an open page shows what happens, axe finds
nothing serious. Pictures of every page: `.cache/console/shots`."""

from __future__ import annotations

from collections.abc import Iterator

import proton
import pytest

from console.pages.all import PAGES
from tests.console.chromium import SHOTS, beside, drive, report_of
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.console import ConsoleProcess, start_console
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.logins import PASSWORD, connect, write_users
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("browser-gateway")
    write_users(directory / "users.yaml", ann=[])
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    admin = {"listen": "http://127.0.0.1:0"}
    gateway = start_gateway(directory, embedded_realm(directory), security=security, admin=admin, nodes={})
    gateway.command("node", "create", "orders")
    gateway.command("node", "create", "small", "--capacity-events", "2", "--honour-capacity", "true")
    misspell(gateway, "ordres")
    with Peer(gateway.port, container="erp-export-1") as peer:
        peer.publisher("small")
        peer.outcomes(len(peer.publish(*[MESSAGE] * 5)))
        with pytest.raises(proton.ConnectionException):
            connect(gateway, f"{PASSWORD}?", "PLAIN", user="ann")
        yield gateway
    assert gateway.stop() == 0, gateway.log()


def misspell(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port, container="shop-batch-1") as peer:
        peer.send(frames.attach_sender(node, 7, f"to-{node}"))
        assert peer.refused() == "amqp:not-found"


@pytest.fixture(scope="module")
def console(gateway: GatewayProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    silent = "http://127.0.0.1:9"  # nothing listens there
    console = start_console(tmp_path_factory.mktemp("browser"), "--gateway", Watch.of(gateway).url, "--gateway", silent)
    console.until("/", "ordres does not exist", "small is full", "ann cannot log in", "does not answer")
    yield console
    assert console.stop() == 0, console.log()


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("ordres", ("attach.refuse-an-unknown-node", "shop-batch-1", "realmgate node create ordres", "attach.yaml")),
        (
            "small is full",
            ("published.capacity-reached-rejected", "erp-export-1", "realmgate trace", "capacity-events"),
        ),
        ("ann", ("failed-login", "correct the password", "127.0.0.1")),
    ],
    ids=["misspelt", "full", "password"],
)
def test_an_incident_is_found_with_the_keyboard_alone(
    console: ConsoleProcess, word: str, wanted: tuple[str, ...]
) -> None:
    found = drive("keys", console.url, "/", f"type:{word}", "Enter", "j", "Enter")
    assert "/errors/one?" in found["url"], found
    text = found["text"].replace("\n", " ")
    assert all(each in text for each in wanted), found["text"]
    assert not found["errors"]


def test_every_page_is_two_keys_away(console: ConsoleProcess) -> None:
    for path, page in PAGES.items():
        if page.key:
            found = drive("keys", console.url, "g", page.key)
            assert found["url"].removeprefix(console.url) == path and page.title in found["text"], found


def test_rows_examples_filter_and_dialog_have_keys(console: ConsoleProcess) -> None:
    found = drive("keys", console.url, "g", "e", "f", "type:capacity-reached", "Escape", "j", " ")
    assert found["opened"] == 1 and "life of the first message" in found["text"], found
    found = drive("keys", console.url, "g", "e", "f", "type:capacity-reached")
    assert found["rows"] == 1 and "1 row" in found["text"], found
    assert drive("keys", console.url, "?")["dialog"] and not drive("keys", console.url, "?", "Escape")["dialog"]
    found = drive("keys", console.url, "t", "p")
    assert (found["theme"], found["paused"]) == ("dark", "true")
    found = drive("keys", console.url, "Tab", "Enter", "Tab")
    assert found["focus"] not in ("", "realmgate"), "the first Tab leads to the content"


def test_an_open_page_shows_what_happens(gateway: GatewayProcess, console: ConsoleProcess) -> None:
    process = beside("live", console.url, "/refusals", "invocies")
    assert process.stderr is not None and process.stderr.readline() == "open\n"
    misspell(gateway, "invocies")
    found = report_of(process)
    assert found["says"] and found["waited"] and not found["errors"], found
    assert found["live"].startswith("live")


@pytest.mark.parametrize(("scheme", "ground"), [("light", "rgb(246, 247, 249)"), ("dark", "rgb(16, 20, 26)")])
def test_axe_finds_nothing(console: ConsoleProcess, scheme: str, ground: str) -> None:
    one = "/errors/one?class=transient&condition=amqp:resource-limit-exceeded&code=capacity-reached"
    paths = [path for path in PAGES if path != "/errors/one"]
    paths += [f"{one}&rule=published.capacity-reached-rejected", "/nodes?node=small", "/find?q=small"]
    paths += ["/rules?table=published&answer=capacity-reached&open=published"]
    found = drive("look", console.url, str(SHOTS), scheme, *paths)
    assert len(found) == 2 * len(paths)
    for each in found:
        where = f"{each['path']} at {each['width']}"
        assert not each["violations"], f"{where}: {each['violations']}"
        assert not each["errors"] and each["overflow"] <= 0, f"{where}: {each['errors']}, {each['overflow']}"
        assert each["ground"] == ground
