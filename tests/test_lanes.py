"""The light at the end of `make test`: each thing that can be wrong turns it red, and says what it was."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests import lanes
from tests.kit.patience import HANG_S
from tests.kit.processes.toolchains import NEEDS_GO, NEEDS_NAMESPACES, NEEDS_RABBITMQ, NEEDS_RUST
from tests.lanes import BROKERS, PYTEST, Look, in_memory, run
from tests.verdict import SECOND_LOOKS_MAX, UNSTEADY_MAX, Room, Verdict, note_unsteady
from tests.waiting import Waiting

ROOT = Path(__file__).parent.parent
PASSES = "def test_good(): ...\n"
FAILS = "def test_bad(): assert 1 == 2, 'one is not two'\n"
FAILS_FIRST = """
import pathlib, pytest
@pytest.mark.parametrize("number", range({count}))
def test_at_first(number):
    mark = pathlib.Path(r"{mark}-%d" % number)
    seen = mark.exists()
    mark.touch()
    assert seen, "not seen yet"
"""
SETUP_FAILS = """
import pytest
@pytest.fixture
def broker(): raise RuntimeError("no broker here")
def test_with_it(broker): ...
"""
TEARDOWN_FAILS = """
import pytest
@pytest.fixture
def gateway():
    yield
    raise RuntimeError("it ended with 3")
def test_with_it(gateway): ...
"""
DIES = "import os, signal\ndef test_dies(): os.kill(os.getpid(), signal.SIGKILL)\n"
LEAVES = "import os\ndef test_good(): ...\ndef test_leaves(): os._exit(0)\n"
HANGS = "import time, pytest\n@pytest.mark.timeout(0.5)\ndef test_hangs(): time.sleep(600)\n"
FIXTURE_HANGS = """
import time, pytest
@pytest.fixture
def broker(): time.sleep(600)
def test_with_it(broker): ...
"""
DOES_NOT_LOAD = "import no_such_module\n"
ASKS_FOR_A_BROKER = """
import os, pathlib, subprocess, sys
directory = pathlib.Path(os.environ.get("KAFKA_OF_LANE", r"{top}/own"))
def test_broker():
    with (pathlib.Path(r"{top}") / "asked").open("a") as asked:
        asked.write(f"{{directory}}\\n")
    directory.mkdir(exist_ok=True)
    if not (directory / "pid").exists():  # what `deploy/kafka/stop.sh` takes for a node
        sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
        sleep += ["kafka.Kafka", f"{{directory}}/server.properties"]
        (directory / "pid").write_text(str(subprocess.Popen(sleep, start_new_session=True).pid))
    assert {passes}
"""
COMPILES_ONCE = """
import sys
def test_bytecode_is_kept():
    assert not sys.dont_write_bytecode
    assert sys.pycache_prefix and sys.pycache_prefix.endswith("bytecode")
"""
IS_A_SESSION = "import os\ndef test_it_is_a_session_of_its_own(): assert os.getsid(0) == os.getpid()\n"
SKIPS = "import pytest\n@pytest.mark.skip(reason='needs Go')\ndef test_with_go(): ...\ndef test_good(): ...\n"


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Each of its pytests loads the one plugin that is used: others take a second of processor time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    records = tmp_path / "records"
    records.mkdir()
    command = (*PYTEST, "-p", "pytest_timeout", "-c", "/dev/null", f"--rootdir={tmp_path}")
    return Look(records, command, scratch=tmp_path / "scratch")


def ran(look: Look, **rooms: str) -> Verdict:
    """The verdict on rooms with one file each."""
    top = look.records.parent
    for name, text in rooms.items():
        (top / name).mkdir()
        (top / name / f"test_{name}.py").write_text(text)
    return run([str(top / name) for name in rooms], [], look)


def last_line(verdict: Verdict) -> str:
    """Without its time and its load."""
    line = verdict.text().splitlines()[-1]
    return f"{line.partition(';')[0]}:{line.rpartition(':')[2]}"


def test_a_room_has_a_part_of_the_processors_of_its_own(look: Look) -> None:
    """Beside a busy process it would share one with the other rooms."""
    assert "1 passed" in last_line(ran(look, one=IS_A_SESSION))


def test_a_run_without_failures_is_green(look: Look) -> None:
    verdict = ran(look, one=PASSES, two=SKIPS)
    assert verdict.is_green
    assert last_line(verdict) == "3 tests in 2 rooms: 2 passed, 0 failed, 0 unsteady, 1 skipped: GREEN"
    assert "test_with_go   Skipped: needs Go" in verdict.text()


def test_a_room_does_not_compile_what_another_one_has(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert ran(look, one=COMPILES_ONCE).is_green


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FAILS, "AssertionError: one is not two"),
        (SETUP_FAILS, "[setup, "),
        (TEARDOWN_FAILS, "RuntimeError: it ended with 3"),
        (HANGS, "Timeout"),
    ],
    ids=["test", "setup", "teardown", "hang"],
)
def test_what_fails_twice_is_red_with_both_texts(look: Look, text: str, words: str) -> None:
    verdict = ran(look, good=PASSES, bad=text)
    assert last_line(verdict) == "2 tests in 2 rooms: 1 passed, 1 failed, 0 unsteady, 0 skipped: RED"
    ((test, texts),) = verdict.failed.items()
    assert test.startswith("bad/test_bad.py::test_")
    assert len(texts) == 2 and all(words in output for output in texts)
    assert all(part in verdict.text() for part in ("failed twice (1)", f"\n{test}\n", "  first: ", "  second: ", words))


@pytest.mark.parametrize("count", [1, UNSTEADY_MAX, UNSTEADY_MAX + 1])
def test_what_passes_at_the_second_look_is_unsteady_and_few_may_be(look: Look, count: int, tmp_path: Path) -> None:
    verdict = ran(look, shy=FAILS_FIRST.format(count=count, mark=tmp_path / "mark"))
    light = "GREEN" if count <= UNSTEADY_MAX else "RED"
    assert last_line(verdict) == f"{count} tests in 1 rooms: 0 passed, 0 failed, {count} unsteady, 0 skipped: {light}"
    assert verdict.is_green is (light == "GREEN")
    assert "shy/test_shy.py::test_at_first[0]   AssertionError: not seen yet" in verdict.text()
    assert len((tmp_path / "records").glob("*-again.jsonl").__next__().read_text().splitlines()) == 2 * count
    note_unsteady(verdict, tmp_path / "unsteady.jsonl")
    notes = [json.loads(line) for line in (tmp_path / "unsteady.jsonl").read_text().splitlines()]
    assert [note["test"] for note in notes] == [f"shy/test_shy.py::test_at_first[{n}]" for n in range(count)]


def test_where_too_many_fail_there_is_no_second_look(look: Look, tmp_path: Path) -> None:
    count = SECOND_LOOKS_MAX + 1
    verdict = ran(look, shy=FAILS_FIRST.format(count=count, mark=tmp_path / "mark"))
    assert last_line(verdict) == f"{count} tests in 1 rooms: 0 passed, {count} failed, 0 unsteady, 0 skipped: RED"
    assert f"failed, and did not get a second look ({count})" in verdict.text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (DIES, "ended with -9, beside bad/test_bad.py::test_dies"),
        (LEAVES, "ended with 0, and not all of its tests passed, beside bad/test_bad.py::test_leaves"),
        (DOES_NOT_LOAD, "ended with 2"),
        ("", "has no tests"),
    ],
    ids=["crash", "exit", "import", "empty"],
)
def test_a_room_that_does_not_end_as_pytest_does_is_red(look: Look, text: str, words: str, tmp_path: Path) -> None:
    verdict = ran(look, good=PASSES, bad=text, shy=FAILS_FIRST.format(count=1, mark=tmp_path / "mark"))
    assert f"---- broken (1) ----\n{tmp_path}/bad {words}\n" in verdict.text()
    assert last_line(verdict).endswith("RED")
    assert not verdict.again, "what is broken is broken: no second look at the others"


def test_a_fixture_that_hangs_ends_its_room(look: Look) -> None:
    look.hang_s = 4.0
    verdict = ran(look, bad=FIXTURE_HANGS)
    assert re.search(r"/bad did not end in \d+ s, beside bad/test_bad.py::test_with_it\n", verdict.text())
    assert last_line(verdict).endswith("RED")


@pytest.mark.parametrize(("a_line_each_s", "exit_code"), [(1_000, 0), (3_000, None)])
def test_a_room_hangs_where_no_test_goes_on_however_long_it_takes(
    look: Look, monkeypatch: pytest.MonkeyPatch, a_line_each_s: int, exit_code: int | None
) -> None:
    """It takes five hours; the limit is half an hour without a line."""
    now_s, record = 0.0, look.records / "slow.jsonl"
    ended: list[object] = []

    class Slow:
        def wait(self, seconds: float) -> int:
            nonlocal now_s
            now_s += seconds
            if now_s >= 18_000:
                return 0
            record.write_text("x" * int(now_s / a_line_each_s))
            raise subprocess.TimeoutExpired("pytest", seconds)

    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(lanes, "end", ended.append)
    process = Slow()
    assert look.ended(process, record) == exit_code  # type: ignore[arg-type]
    assert ended == ([process] if exit_code is None else [])


def test_a_client_that_cannot_be_built_is_red_as_that(look: Look, capfd: pytest.CaptureFixture[str]) -> None:
    top = look.records.parent
    (top / "test_good.py").write_text(PASSES)
    registry = (sys.executable, "-c", "raise SystemExit('the registry does not answer')")
    verdict = run([str(top / "test_good.py"), "tests/interop"], [], look, {"Qpid JMS": registry})
    assert "ready: Qpid JMS: ended with 1: the registry does not answer\n" in verdict.text()
    assert "tests/interop did not run" in verdict.text()
    assert last_line(verdict) == "1 tests in 1 rooms: 1 passed, 0 failed, 0 unsteady, 0 skipped: RED"


def test_a_room_that_never_ran_is_red(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(self: Look, room: str, *, lane: int = 0, only: Sequence[str] = ()) -> Room:
        raise OSError("no space left on device")

    monkeypatch.setattr(Look, "at", dies)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    verdict = ran(look, one=PASSES)
    assert f"{look.records.parent}/one did not run" in verdict.text()
    assert last_line(verdict).endswith("RED")


@pytest.fixture
def one_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the quiet rooms is left."""
    monkeypatch.setattr(lanes, "LANES", 0)


@pytest.mark.usefixtures("one_lane")
def test_the_lane_of_the_quiet_rooms_takes_of_the_others_then(look: Look) -> None:
    top = look.records.parent
    for name in ("quiet", "loud"):
        (top / f"test_{name}.py").write_text(PASSES)
    verdict = run([str(top / "test_loud.py")], [str(top / "test_quiet.py")], look)
    assert [Path(room.path).stem for room in verdict.rooms] == ["test_quiet", "test_loud"]
    assert last_line(verdict) == "2 tests in 2 rooms: 2 passed, 0 failed, 0 unsteady, 0 skipped: GREEN"


def test_only_so_many_heavy_rooms_run_at_once() -> None:
    waiting = Waiting(["heavy/1", "heavy/2", "heavy/3", "light"], ("heavy/",), at_once=2)
    assert [waiting.take() for _ in range(3)] == ["heavy/1", "heavy/2", "light"]
    taken: list[str | None] = []
    other = threading.Thread(target=lambda: taken.append(waiting.take()), daemon=True)
    other.start()
    waiting.done("light")
    assert other.is_alive() and not taken, "it waits for a heavy one to end"
    waiting.done("heavy/1")
    other.join(HANG_S)
    assert taken == ["heavy/3"] and waiting.take() is None


def test_none_waits_for_a_run_that_is_broken_off() -> None:
    waiting = Waiting(["heavy/1", "heavy/2"], ("heavy/",), at_once=1)
    taken = [waiting.take()]
    other = threading.Thread(target=lambda: taken.append(waiting.take()), daemon=True)
    other.start()
    waiting.clear()
    other.join(HANG_S)
    assert taken == ["heavy/1", None]


def command_lines() -> Iterator[bytes]:
    """Of every process of the machine."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            yield path.read_bytes()


@pytest.mark.usefixtures("one_lane")
def test_the_rooms_of_a_lane_share_a_broker_which_is_stopped_and_a_second_look_has_its_own(look: Look) -> None:
    top = look.records.parent
    at_first = ASKS_FOR_A_BROKER.format(top=top, passes="'KAFKA_OF_LANE' not in os.environ")
    verdict = ran(look, one=ASKS_FOR_A_BROKER.format(top=top, passes=True), two=at_first)
    assert last_line(verdict) == "2 tests in 2 rooms: 1 passed, 0 failed, 1 unsteady, 0 skipped: GREEN"
    first, second, third = [Path(line) for line in (top / "asked").read_text().splitlines()]
    assert first == second and first.parent == look.scratch / BROKERS and third == top / "own"
    assert not look.scratch.exists()
    assert not any(str(first).encode() in words for words in command_lines()), "the broker of the lane runs on"
    os.kill(int((top / "own" / "pid").read_text()), signal.SIGKILL)


def test_progress_is_shown_while_it_runs(
    look: Look, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lanes, "PROGRESS_S", 1.0)
    ran(look, bad=FAILS + "def test_slow():\n    import time\n    time.sleep(3)\n")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("-- ")]
    assert any("0 of 1 rooms done, 1 tests, 1 failed: bad/test_bad.py::test_bad; running: " in line for line in lines)


def test_each_reason_to_leave_a_test_out_says_what_to_install() -> None:
    """Every condition on what a machine has is one of these: another one needs a reason of its own here."""
    command = ["git", "grep", "-hE", r"skipif\(|pytest\.skip\(", "--", "tests/*/*.py"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 4, lines
    needs = (NEEDS_GO, NEEDS_NAMESPACES, NEEDS_RABBITMQ, NEEDS_RUST)
    reasons = [mark.mark.kwargs["reason"] for mark in needs]
    assert all(re.search(r"https://|apt-get install ", reason) for reason in reasons), reasons


def test_what_tests_write_is_in_memory_where_that_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MEMORY", tmp_path)
    monkeypatch.setattr(lanes, "MEMORY_LEAST", 1)
    monkeypatch.delenv("TMPDIR", raising=False)
    assert in_memory() == tmp_path
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert in_memory() is None, "the caller has chosen"
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(lanes, "MEMORY_LEAST", 1 << 60)
    assert in_memory() is None, "there is no room"
    monkeypatch.setattr(lanes, "MEMORY", tmp_path / "none")
    assert in_memory() is None
