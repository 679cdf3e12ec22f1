"""When the next turn is due."""

from __future__ import annotations

from gateway.server.poll_interval import BUSY_INTERVAL_S, IDLE_INTERVAL_S, QUIET_AFTER_S, QUIET_INTERVAL_S, PollInterval


def test_what_is_under_way_is_looked_at_often_and_less_so_when_nothing_comes_of_it() -> None:
    polled, woken = PollInterval(woken=False), PollInterval(woken=True)
    for poll_interval, quiet_s in ((polled, QUIET_INTERVAL_S), (woken, IDLE_INTERVAL_S)):
        poll_interval.mark_active(100.0)
        assert poll_interval.interval_s(100.0, busy=True, ready=False) == BUSY_INTERVAL_S
        assert poll_interval.interval_s(100.0 + QUIET_AFTER_S / 2, busy=True, ready=False) == BUSY_INTERVAL_S
        assert poll_interval.interval_s(100.0 + QUIET_AFTER_S, busy=True, ready=False) == quiet_s
        poll_interval.mark_active(200.0)
        assert poll_interval.interval_s(200.0, busy=True, ready=False) == BUSY_INTERVAL_S


def test_nothing_under_way_is_no_work_and_a_link_that_may_get_more_is() -> None:
    poll_interval = PollInterval(woken=True)
    poll_interval.mark_active(100.0)
    assert poll_interval.interval_s(100.0, busy=False, ready=False) == IDLE_INTERVAL_S
    assert poll_interval.interval_s(900.0, busy=True, ready=True) == BUSY_INTERVAL_S
    assert poll_interval.interval_s(900.0, busy=False, ready=True) == BUSY_INTERVAL_S
