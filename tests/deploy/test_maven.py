"""Java artifacts are what they were when their versions were chosen: `deploy/maven/class-path.sh`."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "deploy" / "maven" / "class-path.sh"
POMS = sorted(
    pom for room in ("bench", "deploy", "tests") for pom in (ROOT / room).rglob("pom.xml") if "target" not in pom.parts
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A pom, its list, and a class path of two artifacts that is as listed."""
    (tmp_path / "pom.xml").touch()
    (tmp_path / "libs").mkdir()
    for name in ("a-1.jar", "b-2.jar"):
        (tmp_path / "libs" / name).write_bytes(name.encode())
    sums = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in ("a-1.jar", "b-2.jar")]
    (tmp_path / "artifacts.sha256").write_text("".join(sums))
    return tmp_path


def check(place: Path) -> tuple[int, str]:
    command = [str(SCRIPT), "--check", str(place / "pom.xml"), str(place / "libs")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_what_is_listed_is_taken(place: Path) -> None:
    assert check(place) == (0, "")


def test_a_changed_artifact_is_named(place: Path) -> None:
    (place / "libs" / "b-2.jar").write_bytes(b"another")
    code, output = check(place)
    assert code == 1
    assert f"> {hashlib.sha256(b'another').hexdigest()}  b-2.jar" in output
    assert "a-1.jar" not in output
    assert f"class-path.sh --lock {place / 'pom.xml'}" in output


def test_an_artifact_that_is_not_listed_is_named(place: Path) -> None:
    (place / "libs" / "c-3.jar").touch()
    code, output = check(place)
    assert (code, "c-3.jar" in output) == (1, True)


def test_a_missing_artifact_is_named(place: Path) -> None:
    (place / "libs" / "a-1.jar").unlink()
    code, output = check(place)
    assert (code, "< " in output, "a-1.jar" in output) == (1, True, True)


def test_without_a_list_nothing_is_taken(place: Path) -> None:
    (place / "artifacts.sha256").unlink()
    assert check(place)[0] != 0


@pytest.mark.parametrize("pom", POMS, ids=lambda pom: pom.parent.name)
def test_every_pom_has_its_list(pom: Path) -> None:
    lines = (pom.parent / "artifacts.sha256").read_text().splitlines()
    assert len(lines) > 4
    for line in lines:
        assert re.fullmatch(r"[0-9a-f]{64}  [\w.+-]+\.jar", line) and "SNAPSHOT" not in line, line
    direct = re.findall(r"<artifactId>([\w.-]+)</artifactId><version>", pom.read_text())
    assert direct, "every dependency stands on one line, with its version"
    for name in direct:
        assert any(f"  {name}-" in line for line in lines), name
