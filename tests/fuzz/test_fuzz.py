"""What was found once is not found again; and a few seconds of looking for more."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.amqp.facts import Detached
from gateway.session import connection as connection_room
from tests.fuzz.__main__ import fuzz_engine
from tests.fuzz.case_gateway import CaseGateway, Wrong, listen_to_logs
from tests.fuzz.shrinking import smaller
from tests.fuzz.sockets import fuzz_sockets
from tests.fuzz.steps import Case, Step, cases_in, read_case
from tests.fuzz.worker import CORPUS, REGRESSIONS
from tests.kit.patience import HANG_S
from tests.kit.wire import frames

CASES = 120  # some seconds of work; the same on every machine
SOCKETS_CASES = 60
HELLO = frames.AMQP_HEADER + frames.open_() + frames.begin()


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.case")), ids=lambda path: path.stem)
def test_regression(path: Path) -> None:
    listen_to_logs()
    case = read_case(path)
    CaseGateway(case.gateway).carry_out(case)


def test_the_corpus_is_harmless_as_it_is() -> None:
    listen_to_logs()
    for case in cases_in(CORPUS):
        CaseGateway(case.gateway).carry_out(case)


def test_a_case_is_read_as_it_was_written(tmp_path: Path) -> None:
    steps = [Step(0, "send", b"\x00\xff"), Step(3, "pass", seconds=61), Step(3, "stall"), Step(0, "lose")]
    case = Case("small", steps, "why\n")
    (tmp_path / "a.case").write_text(str(case))
    assert read_case(tmp_path / "a.case") == case


def test_what_is_wrong_is_seen_and_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: a publisher's detach brings its turn down."""

    def broken(connection: object, fact: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setitem(connection_room._ON, Detached, broken)
    listen_to_logs()
    talk = [frames.attach_sender("q"), frames.transfer(0, frames.message()), frames.detach(0), frames.close()]
    case = Case("plain", [Step(1, "send", HELLO), Step(0, "send", HELLO + b"".join(talk))])

    def fails(other: Case) -> bool:
        try:
            CaseGateway(other.gateway).carry_out(other)
        except Wrong as wrong:
            return "planted" in str(wrong)
        return False

    assert fails(case)
    small = smaller(case, fails)
    assert small.steps == [Step(0, "send", HELLO + frames.attach_sender("q") + frames.detach(0))]


def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    run = fuzz_engine("suite", HANG_S, tmp_path, CASES)
    assert run.wrong == []
    assert run.cases == CASES


def test_a_short_run_over_sockets_finds_nothing(tmp_path: Path) -> None:
    done = fuzz_sockets("suite", HANG_S, tmp_path, SOCKETS_CASES)
    assert done.wrong == []
    assert done.cases >= SOCKETS_CASES  # a case may need several connections
