"""Each table of each page as CSV, by the names that JSON has; nothing in it is a formula."""

from __future__ import annotations

import csv
import io
import re

import pytest

from console.facts.rules import Tables
from console.pages.all import PAGES
from console.pages.csv_tables import as_csv, first_of, tables
from tests.console.fixed import error, gateway, view


@pytest.fixture(scope="module")
def shipped() -> Tables:
    return Tables.load(None)


def read(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("path", [path for path in PAGES if path not in ("/find", "/errors/one", "/reconciliation")])
def test_every_page_has_its_rows_as_csv(path: str, shipped: Tables) -> None:
    made = view(gateway(1), gateway(2))
    made.tables = shipped
    sheets = tables(PAGES[path].make(made))
    rows = read(as_csv(sheets[first_of(sheets)]))
    if path not in ("/gateways",):
        assert len(rows) == len(sheets[first_of(sheets)]) > 0, (path, first_of(sheets))
    assert {row["name"] for row in read(as_csv(sheets["gateways"]))} == {"gw-a:1", "gw-a:2"}
    assert "problems" in sheets


def test_numbers_names_and_lists_are_cells() -> None:
    sheets = tables(PAGES["/errors"].make(view(gateway())))
    assert {"fatal", "transient", "indeterminate", "other", "changed"} <= {*sheets}
    [row] = read(as_csv(sheets["transient"]))
    assert (row["code"], row["count"], row["before"]) == ("capacity-reached", "3", "0")
    assert '"container":"erp-export-1"' in row["who"] and row["series"].count("; ") == 29
    assert as_csv([]) == ""
    assert as_csv([{"a": None, "b": True}, {"c": -1.5, "a": 'x"y\nz'}]) == 'a,b,c\r\n,true,\r\n"x""y\nz",,-1.5\r\n'


@pytest.mark.parametrize(
    "written", ["=1+1", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =cmd|' /C calc'!A0", "\uff1d1", "%0A", "|x"]
)
def test_nothing_is_a_formula(written: str) -> None:
    [row] = csv.reader(io.StringIO(as_csv([{"a": written, "b": [written]}]).partition("\r\n")[2]))
    assert row == [f"'{written}", f"'{written}"]
    assert as_csv([{written: 1}]).lstrip('"').startswith("'")


def test_what_peers_call_themselves_is_no_formula() -> None:
    evil = '=HYPERLINK("http://evil.example";"x")'
    odd = error(7, "attach", 1, user=evil, container=evil, node=evil, condition="amqp:not-found", text=evil)
    sheets = tables(PAGES["/refusals"].make(view(gateway(errors=[odd]))))
    for rows in sheets.values():
        for line in csv.reader(io.StringIO(as_csv(rows))):
            assert not [cell for cell in line if re.match(r"\s*[=+@]", cell)], line
    assert read(as_csv(sheets["rows"]))[0]["user"] == f"'{evil}"
