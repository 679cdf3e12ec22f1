"""Numbers and times as pages write them: thousands with commas, times in UTC, durations in one or two units."""

from __future__ import annotations

from datetime import UTC, datetime

DAY_US = 86_400_000_000


def iso(at_us: float | None) -> str | None:
    """For programs; None where it is not known."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="milliseconds") if at_us else None


def clock(at_us: float | None, now_us: float = 0) -> str:
    """`14:32:10`, with its day where that is not today's."""
    if not at_us:
        return "unknown"
    at = datetime.fromtimestamp(at_us / 1e6, UTC)
    is_today = not now_us or at_us // DAY_US == now_us // DAY_US
    return at.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M")


def minute(at_us: float) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%H:%M")


def duration(seconds: float | None) -> str:
    """`2 s`, `34 min`, `1 h 5 min`, `3 d 4 h`."""
    if seconds is None:
        return "unknown"
    if seconds < 1:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "0 s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7_200:
        return f"{whole // 60} min"
    hours, minutes = divmod(whole // 60, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h"


def number(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def octets(value: float | None) -> str:
    if value is None:
        return "unknown"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    raise AssertionError


def change(count: int, before: int | None) -> str:
    """`new`, a factor from 2 up, a difference below 10, else a percentage."""
    if before is None:
        return "unknown"
    if count and not before:
        return "new"
    if count == before:
        return "0"
    if before and count >= 2 * before and count >= 10:
        return f"\u00d7 {count / before:.0f}"
    if max(count, before) < 10:
        return f"{count - before:+,}".replace("-", "\u2212")
    return f"{(count - before) * 100 / before:+,.0f} %".replace("-", "\u2212")


def some(names: list[str], shown: int = 2) -> str:
    """`orders`, `orders, prices`, `orders, prices + 3`."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" + {more}" if more > 0 else "")
