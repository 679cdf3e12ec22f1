"""What a reconciliation's own lines say of the time that its steps took."""

from __future__ import annotations

import pytest

from bench.judging.__main__ import Steps

LINES = """\
reconcile:   0.7 s  1 of 6  landing the realm's records
reconcile:  10.8 s  1 of 6, for 10 s: 2,000 records remain
reconcile:  12.8 s  2 of 6  reading outcome records and the journal
reconcile:  23.4 s  2 of 6, for 11 s: 3 of 4 tasks of this query remain
reconcile:  30.0 s  3 of 6  comparing
reconcile:  42.3 s  done
"""


def test_landing_and_judging_have_a_time_each() -> None:
    steps = Steps()
    for number, line in enumerate(LINES.splitlines()):
        steps.read(line, 2.0 * number)
    assert (steps.landing, steps.judging) == ({"s": 12.1, "cpu_s": 4.0}, {"s": 29.5, "cpu_s": 6.0})


def test_one_that_did_not_end_has_no_time() -> None:
    steps = Steps()
    for line in LINES.splitlines()[:-1]:
        steps.read(line, 0.0)
    with pytest.raises(KeyError):
        _ = steps.judging
