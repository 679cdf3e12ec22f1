"""The console in Chromium: incidents are found with the keyboard alone, an open page shows what happens, axe finds
nothing serious. Pictures of every page: `.cache/console/shots`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.pages.all import PAGES
from tests.console.incidents import incidents, misspell, start_troubled, write_report
from tests.kit.chromium import beside, drive, report_of, shots
from tests.kit.patience import until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.console import ConsoleProcess, start_console
from tests.kit.processes.gateway import GatewayProcess


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    gateway = start_troubled(tmp_path_factory.mktemp("browser-gateway"))
    with incidents(gateway):
        yield gateway
    assert gateway.stop() == 0, gateway.log()


@pytest.fixture(scope="module")
def console(gateway: GatewayProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    silent = "http://127.0.0.1:9"  # nothing listens there
    directory = tmp_path_factory.mktemp("browser")
    write_report(directory / "reports" / "monday")
    console = start_console(
        directory, "--gateway", Watch.of(gateway).url, "--gateway", silent, "--config", str(gateway.config_path),
        "--reports", str(directory / "reports"),
    )  # fmt: skip
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
    report = drive("keys", console.url, "/", f"type:{word}", "Enter>", "j", "Enter>")
    assert "/errors/one?" in report["url"], report
    text = report["text"].replace("\n", " ")
    assert all(phrase in text for phrase in wanted), report["text"]
    assert not report["errors"]


@pytest.mark.parametrize(
    ("panel", "keys", "wanted"),
    [
        ("verdict", ("Tab",), ("problems are open", "small is full")),
        ("errors", ("g", "e>"), ("Condition by native code", "amqp:not-found", "capacity-reached")),
        ("transient", ("g", "e>", "f", "type:capacity-reached"), ("1 row", "erp-export-1")),
        ("outcomes", ("g", "n>", "f", "type:small", "Escape", "j", "Enter>"), ("in rejected 3",)),
        ("links", ("g", "l>", "f", "type:pricing-cache-1"), ("1 row", "prices")),
        ("acknowledgement", ("g", "d>", "f", "type:prices"), ("has a hole", "1 row")),
        ("transactions", ("Tab",), ("Transactions", "open 1")),
        ("capacity", ("g", "n>", "f", "type:small"), ("100 %", "full")),
        ("rules", ("g", "u>", "f", "type:capacity-reached-rejected", "Enter>"), ("capacity-reached-rejected",)),
        ("reconciliation", ("g", "c>"), ("Not clean.", "lost write (P1)")),
        ("dead letters", ("g", "x>"), ("app:bad", "cannot parse order 4711", "bills")),
        ("history", ("g", "h>", "f", "type:capacity-reached-rejected"), ("2 rows", "Times without a record", "small")),
        (
            "history, one error",
            ("g", "h>", "f", "type:resource-limit", "Escape", "j", "Enter>"),
            ("erp-export-1", "small 3"),
        ),
        ("denials", ("g", "r>", "f", "type:secret"), ("anonymous", "amqp:unauthorized-access")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_panels_incident_is_found_with_the_keyboard_alone(
    console: ConsoleProcess, panel: str, keys: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    report = drive("keys", console.url, *keys)
    text = " ".join(report["text"].split()).lower()
    assert all(phrase.lower() in text for phrase in wanted), (panel, report["text"])
    assert not report["errors"]


def test_every_page_is_two_keys_away(console: ConsoleProcess) -> None:
    for path, page in PAGES.items():
        if page.key:
            report = drive("keys", console.url, "g", f"{page.key}>")
            assert report["url"].removeprefix(console.url) == path and page.title in report["text"], report


def test_rows_examples_filter_and_dialog_have_keys(console: ConsoleProcess) -> None:
    report = drive("keys", console.url, "g", "e>", "f", "type:capacity-reached", "Escape", "j", " ")
    assert report["filter"] == "capacity-reached", "Escape leaves the box, and the filter stays"
    assert report["opened"] == 1 and "life of the first message" in report["text"], report
    report = drive("keys", console.url, "g", "e>", "f", "type:capacity-reached")
    assert report["rows"] == 1 and "1 row" in report["text"], report
    assert drive("keys", console.url, "?")["dialog"] and not drive("keys", console.url, "?", "Escape")["dialog"]
    report = drive("keys", console.url, "t", "p")
    assert (report["theme"], report["paused"]) == ("dark", "true")
    report = drive("keys", console.url, "Tab", "Enter", "Tab")
    assert report["focus"] not in ("", "realmgate"), "the first Tab leads to the content"


def test_an_open_page_shows_what_happens(gateway: GatewayProcess, console: ConsoleProcess) -> None:
    process = beside("live", console.url, "/refusals", "invocies")
    assert process.stderr is not None and process.stderr.readline() == "open\n"
    misspell(gateway, "invocies")
    report = report_of(process)
    assert report["says"] and report["waited"] and not report["errors"], report
    assert report["live"].startswith("live")


SHOTS = shots("console")
SCHEMES = [("light", "rgb(246, 247, 249)"), ("dark", "rgb(16, 20, 26)")]


@pytest.mark.parametrize(("scheme", "ground"), SCHEMES)
def test_axe_finds_nothing(console: ConsoleProcess, scheme: str, ground: str) -> None:
    address = "/errors/one?class=transient&condition=amqp:resource-limit-exceeded&code=capacity-reached"
    paths = [path for path in PAGES if path != "/errors/one"]
    paths += [f"{address}&rule=published.capacity-reached-rejected", "/nodes?node=small", "/find?q=small"]
    paths += ["/rules?table=published&answer=capacity-reached&open=published"]
    reports = drive("look", console.url, str(SHOTS), scheme, *paths)
    assert len(reports) == 2 * len(paths)
    look_well(reports, ground)


@pytest.mark.parametrize(("scheme", "ground"), SCHEMES)
def test_axe_finds_nothing_where_an_action_is_confirmed(
    gateway: GatewayProcess, tmp_path: Path, scheme: str, ground: str
) -> None:
    """The form with its dry run, the refusal of a node that is not there, and the pages that lead to actions."""
    watched = "--gateway", Watch.of(gateway).url, "--config", str(gateway.config_path)
    console = start_console(tmp_path, *watched, "--actions")
    cookie = console.log_in("ann")["Cookie"]
    paths = ["/act?do=resend&node=dead", "/act?do=resend&node=nowhere", "/dead", "/nodes?node=small"]
    until(lambda: 'class="confirm"' in console.get(paths[0], {"Cookie": cookie})[2], "the dry run")
    reports = drive("look", console.url, str(SHOTS / "actions"), scheme, *paths, cookie=cookie)
    assert console.stop() == 0, console.log()
    assert len(reports) == 2 * len(paths)
    look_well(reports, ground)


def look_well(reports: list[dict[str, Any]], ground: str) -> None:
    for report in reports:
        where = f"{report['path']} at {report['width']}"
        assert not report["violations"], f"{where}: {report['violations']}"
        assert not report["errors"] and report["overflow"] <= 0, f"{where}: {report['errors']}, {report['overflow']}"
        assert report["ground"] == ground
