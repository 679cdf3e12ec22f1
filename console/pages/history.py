"""`/history`: what was counted earlier, as the gateways have written it down, and of which times there is no record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from shlex import quote
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from console.facts.history import SPANS, STORED, Asked, Reading, written
from console.limits import GAPS_SHOWN, HISTORY_S, ROWS_SHOWN
from console.pages.view import Document, View, frame
from console.pages.words import iso
from gateway.verdict.history import MINUTE_US, Sums, by_slot, distinct
from gateway.verdict.history_gaps import SILENT, Gap, gaps

_CHARTS: Final = (
    ("in", "fine"), ("out", "fine"), ("fatal", "fatal"), ("transient", "transient"), ("indeterminate", "indeterminate"),
)  # fmt: skip
_ALWAYS: Final = ("in", "out", "fatal", "transient")
_FACTS: Final = (
    ("In", "in", "deliveries from publishers"),
    ("Refused", "refused", "of these, not accepted"),
    ("Out", "out", "deliveries to consumers"),
    ("Fatal", "fatal", "errors"),
    ("Transient", "transient", "errors"),
    ("Indeterminate", "indeterminate", "errors"),
    ("Dead letters", "dead_letters", "messages"),
)


class _Time(NamedTuple):
    """What is shown: from when to when, of bars of that length; and until when all of it is counted."""

    begin_us: int
    end_us: int
    step_us: int
    counted_us: int

    @property
    def slots(self) -> range:
        return range(self.begin_us, self.end_us, self.step_us)


def history(view: View) -> Document:
    """`?span=1h|6h|24h|7d|14d&to=&gateway=&node=`: charts, a line a bar, times without a record, and who it was."""
    readings = _readings(view)
    rows = distinct({name: reading.rows for name, reading in readings.items()})
    time = _time(view, [readings[name] for name in rows])
    from_realm = STORED in rows and readings[STORED].at_us > 0
    known = [name for name in rows if rows[name] or not from_realm]
    missing = sorted((gap, name) for name in known for gap in _gaps_of(readings[name], time, view.now_us))
    node = view.query.get("node", "")
    counted = [
        row for counted_rows in rows.values() for row in counted_rows if time.begin_us <= row.begin_us < time.end_us
    ]
    slots = {slot: counted_rows.of_node(node) for slot, counted_rows in by_slot(counted, time.step_us).items()}
    whole = Sums(counted)
    times = [*_times(view.history.asked, time, slots, [gap for gap, _ in missing])]
    return frame(
        view, "history", "History", "What was counted earlier, and of which times is there no record?",
        **_window(view.history.asked, time), node=node, command=_command(view.history.asked, time, node, from_realm),
        from_realm=from_realm,
        times=times[::-1],
        charts=[*_charts(times)],
        facts=_facts(whole.of_node(node), missing),
        gaps=[_gap(gap, name) for gap, name in _longest(missing)], gaps_count=len(missing),
        gap_bars=_bars([gap for gap, _ in missing], time),
        **_tables(whole, node),
        readings=[_reading(view, name, reading, name in rows) for name, reading in readings.items()],
        every_s=HISTORY_S,
    )  # fmt: skip


def _readings(view: View) -> dict[str, Reading]:
    """By gateway. Where none can be read, what lies in the realm itself comes first; it is of no gateway alone."""
    shown = view.shown.of(view.gateways)
    readings = {gateway.name: view.history.of(gateway.name) for gateway in shown}
    stored = view.history.stored if view.history.is_missed and len(shown) == len(view.gateways) else None
    return ({STORED: stored} if stored is not None else {}) | readings


def _time(view: View, readings: Sequence[Reading]) -> _Time:
    request = view.history.asked
    begin_us, end_us = request.window(view.now_us)
    counted_us = min((reading.counted_us for reading in readings if reading.rows), default=0)
    return _Time(begin_us, end_us, request.step_us, counted_us)


def _gaps_of(reading: Reading, time: _Time, now_us: int) -> list[Gap]:
    """Of a gateway that has never answered none are known, nor of one that waits for its realm."""
    if not reading.at_us or reading.waits:
        return []
    counted_us = reading.counted_us if reading.is_cut or reading.problem else reading.at_us
    gap_list = gaps(reading.rows, time.begin_us, min(time.end_us, counted_us), reading.known_us)
    since_us, end_us = max(counted_us, time.begin_us), min(time.end_us, now_us)
    if reading.problem and since_us < end_us:
        gap_list.append(Gap(since_us, end_us, SILENT))
    return gap_list


def _window(request: Asked, time: _Time) -> Document:
    """In place of the frame's own, which is of what the console saw itself."""
    later_us = time.end_us + request.span_us
    return {
        "span": request.span, "spans": [*SPANS], "step": request.step,
        "window_minutes": request.span_us // MINUTE_US,
        "from": iso(time.begin_us), "from_us": time.begin_us, "to": iso(time.end_us), "to_us": time.end_us,
        "counted_from": iso(time.begin_us), "counted": request.span, "is_now": not request.to_us,
        "earlier": written(time.begin_us), "later": written(later_us),
        "counted_until": iso(time.counted_us), "counted_until_us": time.counted_us,
    }  # fmt: skip


def _command(request: Asked, time: _Time, node: str, from_realm: bool) -> str:
    times = f"--since {written(time.begin_us)} --until {written(time.end_us)}"
    more = (" --stored" if from_realm else "") + (f" --node {quote(node)}" if node else "")
    return f"realmgate history {times} --by {request.step}{more}"


def _times(request: Asked, time: _Time, slots: Mapping[int, Sums], missing: Sequence[Gap]) -> Iterator[Document]:
    """A line a bar, the oldest first. `record`: of the whole time, of a part, or of none of it."""
    for slot in time.slots:
        end_us = slot + time.step_us
        lacks = any(gap.begin_us < end_us and gap.end_us > slot for gap in missing) or end_us > time.counted_us
        sums = slots.get(slot, Sums())
        is_known = slot in slots or not lacks
        yield {
            "at": iso(slot), "at_us": slot, "link": _closer(request, end_us),
            "record": "whole" if not lacks else "a part" if is_known else "none",
            **{name: count if is_known else None for name, count in sums.figures().items()},
            "accept_p99_ms": _finite(sums.accept_p99_ms()),
        }  # fmt: skip


def _closer(request: Asked, end_us: int) -> str:
    """The address of the hour that ends with it; empty: this is it."""
    if request.step == "minute":
        return ""
    hour_us = 60 * MINUTE_US
    return f"/history?{urlencode({'span': '1h', 'to': written(-(-end_us // hour_us) * hour_us)})}"


def _finite(p99_ms: float | None) -> float | None:
    return p99_ms if p99_ms is None or isfinite(p99_ms) else -1


def _charts(times: Sequence[Mapping[str, Any]]) -> Iterator[Document]:
    for name, klass in _CHARTS:
        series = [time[name] for time in times]
        known = [value for value in series if value is not None]
        if sum(known) or name in _ALWAYS:
            yield {
                "name": name, "class": klass, "series": series, "count": sum(known), "most": max(known, default=0),
                "whole": [time["record"] == "whole" for time in times],
            }  # fmt: skip


def _facts(whole: Sums, missing: Sequence[tuple[Gap, str]]) -> list[Document]:
    figures = whole.figures()
    rows: list[Document] = [{"name": title, "value": figures[name], "about": about} for title, name, about in _FACTS]
    without_s = sum(gap.end_us - gap.begin_us for gap, _ in missing) / 1e6
    return [*rows, {"name": "No record", "value": None, "about": "of this time", "seconds": without_s}]


def _longest(missing: Sequence[tuple[Gap, str]]) -> list[tuple[Gap, str]]:
    """The latest first."""
    kept = sorted(missing, key=lambda pair: pair[0].begin_us - pair[0].end_us)[:GAPS_SHOWN]
    return sorted(kept, reverse=True)


def _gap(gap: Gap, gateway: str) -> Document:
    return {
        "gateway": gateway, "begin": iso(gap.begin_us), "begin_us": gap.begin_us, "end": iso(gap.end_us),
        "end_us": gap.end_us, "for_s": (gap.end_us - gap.begin_us) / 1e6, "why": gap.why, "words": gap.words,
    }  # fmt: skip


def _bars(missing: Sequence[Gap], time: _Time) -> list[list[float]]:
    """Where gaps lie in a chart, in bars from its left edge."""
    return [
        [round((at_us - time.begin_us) / time.step_us, 2) for at_us in (gap.begin_us, gap.end_us)] for gap in missing
    ]


def _tables(whole: Sums, node: str) -> Document:
    """By node, condition and rule; of one node its errors only."""
    nodes = [] if node else whole.nodes()
    errors = whole.of_node(node).errors()
    rules = [] if node else whole.rules()
    return {
        "nodes": nodes[:ROWS_SHOWN], "nodes_count": len(nodes),
        "errors": errors[:ROWS_SHOWN], "errors_count": len(errors),
        "rules": rules[:ROWS_SHOWN], "rules_count": len(rules),
        "missed": whole.numbers["missed"], "together": whole.unnamed,
    }  # fmt: skip


def _reading(view: View, gateway: str, reading: Reading, counts: bool) -> Document:
    """`counts` false: another gateway answers from the same records, and has later ones."""
    return {
        "gateway": gateway, "at": iso(reading.read_us), "age_s": view.age_s(reading.read_us),
        "is_stored": gateway == STORED,
        "problem": reading.problem, "waits": reading.waits, "counts": counts, "is_cut": reading.is_cut,
        "known_from": iso(reading.known_us), "known_us": reading.known_us,
        "counted_until": iso(reading.counted_us), "counted_until_us": reading.counted_us,
    }  # fmt: skip
