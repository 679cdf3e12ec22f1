"""`docs/conformance/amqp.md` is what the markers say, and every MUST and MUST NOT has a test that passes."""

from __future__ import annotations

import pytest

from tests.wire.amqp.choices import CHOICES, OPEN
from tests.wire.amqp.conformance import DOCUMENT, HEAD, PASSES, REQUIREMENTS, cited, lines, written

IDS = [entry["id"] for entry in REQUIREMENTS]
WRITTEN = written()
LINES = {line.id: line for line in lines(dict.fromkeys((test for tests in cited().values() for test in tests), PASSES))}
RENEW = "run python -m tests.wire.amqp.conformance and review the change"


def test_the_document_has_a_line_for_each_requirement() -> None:
    assert DOCUMENT.read_text(encoding="utf-8").startswith(HEAD), RENEW
    assert list(WRITTEN) == IDS, RENEW
    assert len(IDS) == len(set(IDS)) == 154


@pytest.mark.parametrize("requirement", IDS)
def test_a_line_is_true_and_what_is_binding_has_a_test_that_passes(requirement: str) -> None:
    line = LINES[requirement]
    assert WRITTEN[requirement] == str(line), RENEW
    assert line.tests or line.choice or requirement in OPEN, "neither a test nor a choice"
    assert line.binding <= bool(line.tests) or requirement in OPEN, "binding, and no test cites it"
    if line.binding and line.tests:
        on_the_wire = ("tests/wire/", "tests/interop/test_plain_kafka")
        assert any(test.startswith(on_the_wire) for test in line.tests), "no test of it is on the wire"


def test_only_what_is_required_is_cited_and_nothing_open_has_a_test() -> None:
    assert set(cited()) | set(CHOICES) | OPEN <= set(IDS)
    assert not [requirement for requirement in OPEN if LINES[requirement].tests]
