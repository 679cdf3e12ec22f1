"""The parts in C under the address and undefined-behaviour sanitizers: `make fuzz SANITIZE=1`, for some seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SANITIZED = ROOT / "tests/fuzz/sanitized.sh"
EXTENSIONS = "gateway.frames._frames gateway.amqp._deliveries gateway.amqp._sends native_backend.log.octets"
OVERRUN = "import ctypes; ctypes.memset(ctypes.create_string_buffer(16), 0, 64)"
FUZZ_S = 8


def sanitized(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(SANITIZED), *command], cwd=ROOT, capture_output=True, text=True, check=False)


def test_an_overrun_ends_the_process() -> None:
    done = sanitized(sys.executable, "-c", OVERRUN)
    assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr, done.stderr[-2000:]


def test_every_part_in_c_is_built_so() -> None:
    program = f"import importlib; print(*[importlib.import_module(each).__file__ for each in {EXTENSIONS.split()!r}])"
    built = sanitized(sys.executable, "-c", program)
    assert built.returncode == 0, built.stderr
    assert len(built.stdout.split()) == len(EXTENSIONS.split())
    for path in (ROOT / ".cache/sanitized").rglob("*.so"):
        assert b"__asan_report_load" in path.read_bytes(), path
        assert b"__ubsan_handle" in path.read_bytes(), path
    assert set(built.stdout.split()) <= {str(path) for path in (ROOT / ".cache/sanitized").rglob("*.so")}


def test_fuzzing_finds_nothing() -> None:
    done = sanitized(sys.executable, "-m", "tests.fuzz", "--seed", "sanitized", "--seconds", str(FUZZ_S))
    assert done.returncode == 0 and ": 0 found" in done.stdout, done.stdout + done.stderr[-4000:]
