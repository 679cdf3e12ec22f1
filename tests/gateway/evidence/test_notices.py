"""What an operator hears of peers: who is new at once, what repeats in numbers, and never more than a disk bears."""

from __future__ import annotations

import pytest

from gateway.evidence.notices import CONNECTIONS, FORGET_S, KEYS, LINE_S, LINES, SUMMARY_S, Notices
from tests.kit.realm.virtual_clock import VirtualClock

DAY_S = 86_400


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_each_key_is_named_once_and_what_repeats_is_summed_up(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    notices = Notices(clock)
    for _ in range(50):
        notices.tell("denied", "ann", "ann was denied")
        notices.tell("denied", "ben", "ben was denied")
    assert lines(caplog) == ["denied: ann was denied", "denied: ben was denied"]
    notices.advance()
    assert len(lines(caplog)) == 2
    clock.advance(int(SUMMARY_S * 1000))
    notices.advance()
    assert lines(caplog)[2:] == ["denied: 98 more of this kind; the last: ben was denied"]
    clock.advance(int(FORGET_S * 1000) + 1)
    notices.tell("denied", "ann", "ann was denied again")
    assert lines(caplog)[3:] == ["denied: ann was denied again"]


def test_what_has_no_line_of_its_own_is_logged_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    notices = Notices(VirtualClock())
    for number in range(LINES + 7):
        notices.tell("denied", number, f"user {number}")
    notices.tell("other kind", 1, "its own lines")
    notices.close()
    assert lines(caplog)[LINES:] == [
        "other kind: its own lines",
        f"denied: 7 more of this kind; the last: user {LINES + 6}",
    ]


def test_a_day_of_names_that_are_made_up_fills_no_disk(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    notices = Notices(clock)
    for number in range(DAY_S):
        notices.tell("denied", number, f"{number} " * 10_000)
        notices.advance()
        clock.advance(1_000)
    assert len(lines(caplog)) <= LINES + DAY_S / LINE_S + DAY_S / SUMMARY_S + 1
    assert sum(map(len, lines(caplog))) < 1_500_000
    assert all(len(kind.heard) <= KEYS for kind in notices._kinds.values())


def test_connections_that_come_in_a_loop_have_a_bound_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = VirtualClock()
    notices = Notices(clock)
    for number in range(10_000):
        notices.tell("connection opened", number, f"{number}", {}, 20, CONNECTIONS)
        clock.advance(10)
    notices.tell("denied", "ann", "ann was denied")
    notices.close()
    messages = lines(caplog)
    assert CONNECTIONS.lines < len(messages) <= CONNECTIONS.lines + 100 / CONNECTIONS.line_s + 4
    assert f"connection opened: {10_000 - len(messages) + 2} more of this kind; the last: 9999" in messages
    assert "denied: ann was denied" in messages
