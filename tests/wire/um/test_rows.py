"""Every row of the documented delivery-state tables, in every profile, over a TCP socket: the frames that come back and
what the realm is asked are what the row says, and `docs/conformance/um.md` says so truly.
"""

from __future__ import annotations

import re

import pytest

from mappings import TableSet, load_tables
from mappings.language.vocabulary import PROFILES
from tests.kit.tables.um_rows import SEED
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_gateway import ScriptedGateway
from tests.wire.um.conformance import DOCUMENT, HEAD, line_of, lines, show

TABLES: dict[str, TableSet] = {profile: load_tables(profile=profile) for profile in PROFILES}
WRITTEN = DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.parametrize(("row", "profile"), [(line.row, line.profile) for line in lines()])
def test_um_rows(row: str, profile: str) -> None:
    shown = show(line_of(row, profile), TABLES[profile])
    assert str(shown) in WRITTEN.splitlines(), f"{shown}; run python -m tests.wire.um.conformance and review the change"


def test_the_document_has_a_line_for_each_row_and_profile_and_no_cell_is_empty() -> None:
    assert WRITTEN.startswith(HEAD)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in WRITTEN[len(HEAD) :].splitlines()]
    assert [(row, profile) for row, profile, *_ in cells] == [(row, profile) for row in SEED for profile in PROFILES]
    assert len(cells) == 47 * 4
    for row, profile, rule, test, realms, result in cells:
        assert re.fullmatch(r"[a-z]+\.[a-z0-9-]+(, [a-z]+\.[a-z0-9-]+)*", rule), (row, profile, rule)
        assert test == f"`test_um_rows[{row}-{profile}]`"
        assert realms.startswith(("embedded; Kafka", "Kafka; scripted only on embedded", "scripted only on embedded"))
        assert result.startswith(("as documented", "departs: "))


def test_only_what_is_known_departs() -> None:
    """A version departs from its own documentation only about transactions."""
    departing = {(line.row, line.profile) for line in lines() if line.result.startswith("departs")}
    assert {row for row, profile in departing if profile != "extended"} <= {row for row in SEED if _transactional(row)}
    assert {row for row, profile in departing if profile == "extended" and not _transactional(row)} == {
        "P-A1",
        "P-R1",
        "S-A1",
        "S-A9",
        "S-R1c",
        "S-R2b",
    }


@pytest.mark.parametrize("default", ["released", "rejected", "modified"])
def test_S_A1_silence_is_the_default_outcome_of_the_source(default: str) -> None:
    """And what it has become is no contradiction of what the peer says next."""
    with ScriptedGateway(TABLES["um-9.12"]) as gateway, Peer(gateway.port) as peer:
        peer.consumer(frames.source("q", default=frames.state(default)), credit=1)
        peer.stored("q", frames.message())
        peer.receive(1)
        gateway.realm.calls.clear()
        gateway.realm.holds.add("settle")
        peer.settle([0], None, settled=False)
        gateway.until(lambda: bool(gateway.realm.calls))
        peer.settle([0], frames.state(default), settled=False)
        peer.settle([0], None, settled=False)
        peer.nothing_at_once()
        gateway.do(gateway.realm.release)
        assert peer.outcomes(1) == {0: default}
        assert gateway.realm.calls == [{"rejected": "discard 1"}.get(default, "return 1")]


def _transactional(row: str) -> bool:
    return row.startswith(("T-", "P-R3")) or row in ("P-A6", "S-A8")
