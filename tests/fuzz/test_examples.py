"""The property tests with other examples than those that the gate runs each time. A failure names the seed."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
FILES = [
    file for file in sorted(TESTS.rglob("test_*.py")) if re.search("^from hypothesis", file.read_text(), re.MULTILINE)
]
ROOMS = sorted({file.relative_to(TESTS).parts[0] for file in FILES})


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("room", ROOMS)
def test_other_examples(room: str) -> None:
    files = [str(file) for file in FILES if file.is_relative_to(TESTS / room)]
    seed = random.randrange(1 << 32)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not long", f"--hypothesis-seed={seed}"]
    environment = {**os.environ, "EXAMPLES": "others"}
    environment.pop("RECORD", None)
    environment.pop("ONLY", None)
    done = subprocess.run(
        [*command, *files], cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"EXAMPLES=others {' '.join(command[1:])} {' '.join(files)}\n{done.stdout}"
