"""When events were stored, as far as the bounded notes say it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from native_backend.events.event_times import NOTES, STEP_MS, EventTimes

STEPS_MS = st.lists(st.integers(0, 3 * STEP_MS), min_size=1, max_size=6 * NOTES)


def times_of(steps_ms: list[int]) -> list[int]:
    times_ms = [1_790_000_000_000]
    for step in steps_ms:
        times_ms.append(times_ms[-1] + step)
    return times_ms


@given(STEPS_MS, st.booleans(), st.integers(0, 6 * NOTES))
def test_a_time_is_known_to_a_second_or_to_some_percent_of_what_is_kept(
    steps_ms: list[int], at_once: bool, low: int
) -> None:
    times, stored_ms = EventTimes(), times_of(steps_ms)
    eids = [3 * at for at in range(len(stored_ms))]
    if at_once:
        times.learn(eids, stored_ms)
    else:
        for eid, time_ms in zip(eids, stored_ms, strict=True):
            times.note(eid, time_ms)
    low = min(low, len(stored_ms) - 1)
    times.remove_below(eids[low])
    error_ms = max(3 * STEP_MS, 4 * (stored_ms[-1] - stored_ms[0]) // NOTES)
    for eid, time_ms in [*zip(eids, stored_ms, strict=True)][low:]:
        known_ms = times.time_ms(eid)
        assert known_ms is not None and time_ms - error_ms <= known_ms <= time_ms
    assert len(times._eids) <= NOTES


def test_what_is_left_of_a_long_backlog_becomes_exact_again() -> None:
    times = EventTimes()
    times.learn([*range(10_000)], [at * 60_000 for at in range(10_000)])
    times.remove_below(9_999)
    for at in range(10_000, 10_200):
        times.note(at, 600_000_000 + (at - 10_000) * STEP_MS)
        times.remove_below(at - 50)
    assert times.time_ms(10_190) == 600_000_000 + 190 * STEP_MS


def test_a_clock_that_is_set_back_makes_no_event_older_than_those_before_it() -> None:
    times = EventTimes()
    times.learn([0, 1, 2, 3], [10_000, 4_000, 20_000, 21_500])
    assert [times.time_ms(eid) for eid in range(4)] == [10_000, 10_000, 20_000, 21_500]
    assert times.time_ms(-1) is None
