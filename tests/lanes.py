"""The whole suite, in two lanes at once: `make test` runs it so.

Most of the suite waits: for a broker, a JVM, a second that has to pass. The rooms in `QUIET` wait for nothing: they
have no process, no port and no clock but a simulated one. They run beside the others, niced, on what those leave of the
machine, and cost nearly no time. `tests/test_tidy.py` is left out: `make check` has just run it.

What the quiet lane says is printed at the end; the exit code is the first that is not 0. May import: the standard
library.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
QUIET = ("mappings", "simulation", "transformers")


def lanes() -> tuple[list[str], list[str]]:
    """The rooms that wait, and those that do not: all that has tests is in one of them."""
    rooms = sorted(room.name for room in HERE.iterdir() if next(room.rglob("test_*.py"), None))
    files = sorted(file.name for file in HERE.glob("test_*.py") if file.name != "test_tidy.py")
    return [f"tests/{each}" for each in rooms + files if each not in QUIET], [f"tests/{room}" for room in QUIET]


def main() -> int:
    waiting, quiet = lanes()
    pytest = [sys.executable, "-m", "pytest"]
    with tempfile.TemporaryFile("w+") as said:
        beside = ["nice", "-n", "15", *pytest, "-p", "no:cacheprovider", *quiet]
        with subprocess.Popen(beside, cwd=HERE.parent, stdout=said, stderr=subprocess.STDOUT) as other:
            try:
                code = subprocess.run([*pytest, *waiting], cwd=HERE.parent, check=False).returncode
                other.wait()
            finally:
                other.terminate()
        said.seek(0)
        sys.stdout.write(f"beside: {' '.join(quiet)}\n{said.read()}")
    return code or other.returncode


if __name__ == "__main__":
    sys.exit(main())
