"""Whether a run of the suite was green, and what it says at its end.

A test that failed runs once more, alone, when all lanes have ended. It fails again: failed. It passes: unsteady, which
is a bug report about the test or the product; three are the most that a run may have. No second look where a process
did not end as pytest does, or where more tests failed than a busy machine can explain.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.record import Record, first_line

UNSTEADY_MAX = 3
SECOND_LOOKS_MAX = 10


def duration(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


@dataclass(slots=True)
class Room:
    """One pytest that ran. `exit`: its exit code; None when it did not end in its time."""

    path: str
    exit: int | None
    seconds: float
    record: Record
    printed: str

    @property
    def broken(self) -> str:
        """Why no verdict can be taken from it; empty when it passed or tests of it failed."""
        beside = f", beside {self.record.running}" if self.record.running else ""
        if self.exit is None:
            return f"did not end in {self.seconds:.0f} s{beside}"
        if self.exit == 5:
            return "has no tests"
        if self.exit == 1 and not self.record.failed:
            return "ended with 1, and no test of it failed"
        if self.exit == 0 and (self.record.failed or self.record.running):
            return f"ended with 0, and not all of its tests passed{beside}"
        return "" if self.exit in (0, 1) else f"ended with {self.exit}{beside}"

    @property
    def ending(self) -> str:
        return self.broken or ("failed" if self.record.failed else "passed")


@dataclass(slots=True)
class Verdict:
    """Of the first look at these rooms, and of the second ones that came. `missing`: what never came, such as a room
    that did not run."""

    rooms: Sequence[Room]
    missing: Sequence[str] = ()
    again: list[Room] = field(default_factory=list)
    seconds: float = 0.0
    load: float = 0.0

    def to_look_at_again(self) -> dict[str, list[str]]:
        """Of each room, the tests that are to run once more."""
        failed = {room.path: list(room.record.failed) for room in self.rooms if room.record.failed}
        many = sum(len(tests) for tests in failed.values()) > SECOND_LOOKS_MAX
        return {} if many or self.broken else failed

    def look_again(self, room: Room) -> None:
        self.again.append(room)

    @property
    def failed(self) -> dict[str, list[str]]:
        """Test -> its texts: two where it failed twice, one where there was no second look."""
        seconds = {room.path: room for room in self.again}
        texts = {}
        for room in self.rooms:
            second = seconds.get(room.path)
            for test, text in room.record.failed.items():
                if second is None:
                    texts[test] = [text]
                elif second.broken or test not in second.record.ended:
                    texts[test] = [text, second.broken or "did not run again"]
                elif test in second.record.failed:
                    texts[test] = [text, second.record.failed[test]]
        return texts

    @property
    def unsteady(self) -> dict[str, str]:
        """Test -> the text of its first look."""
        return {
            test: text for room in self.rooms for test, text in room.record.failed.items() if test not in self.failed
        }

    @property
    def broken(self) -> list[str]:
        """What says nothing of its tests, and why."""
        rooms = [f"{room.path} {room.broken}" for room in [*self.rooms, *self.again] if room.broken]
        return [*rooms, *self.missing]

    @property
    def is_green(self) -> bool:
        return not self.broken and not self.failed and len(self.unsteady) <= UNSTEADY_MAX

    def text(self) -> str:
        return "\n".join([*self._named(), self.total()])

    def total(self) -> str:
        """The last line."""
        records = [room.record for room in self.rooms]
        skipped, failed, unsteady = sum(len(record.skipped) for record in records), len(self.failed), len(self.unsteady)
        tests = sum(len(record.begun) for record in records)
        passed = sum(len({*record.ended} - record.skipped.keys() - record.failed.keys()) for record in records)
        return (
            f"{tests:,} tests in {len(self.rooms)} rooms: {passed:,} passed, {failed} failed, {unsteady} unsteady, "
            f"{skipped} skipped; {duration(self.seconds)}, load {self.load:.1f} at most: "
            f"{'GREEN' if self.is_green else 'RED'}"
        )

    def _named(self) -> Iterator[str]:
        skipped = {test: reason for room in self.rooms for test, reason in room.record.skipped.items()}
        yield from _part("skipped", [f"{test}   {reason}" for test, reason in sorted(skipped.items())])
        yield from _part("broken", self.broken)
        unsteady = [f"{test}   {first_line(text)}" for test, text in self.unsteady.items()]
        yield from _part("unsteady: failed beside the others, passed alone", unsteady)
        for once, title in ((False, "failed twice"), (True, "failed, and did not get a second look")):
            failed = {test: texts for test, texts in self.failed.items() if (len(texts) == 1) is once}
            yield from _part(title, [_both(test, texts) for test, texts in failed.items()])


def _part(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"---- {title} ({len(lines)}) ----"
        yield from lines


def _both(test: str, texts: Sequence[str]) -> str:
    looks = zip(("first", "second"), texts, strict=False)
    return "\n".join([test, *(f"  {look}: {text.replace(chr(10), chr(10) + '    ')}" for look, text in looks)])


def note_unsteady(verdict: Verdict, path: Path) -> None:
    """One line a test, to find later the tests that are unsteady again and again."""
    if not verdict.unsteady:
        return
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    with path.open("a") as notes:
        for test, text in verdict.unsteady.items():
            note = {"test": test, "commit": revision.stdout.strip(), "load": verdict.load, "error": first_line(text)}
            notes.write(json.dumps(note) + "\n")
