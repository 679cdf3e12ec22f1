"""Java's archive of Spark's classes: it is used where it is of this Java and this Spark, and else there is none."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciliation.cli import main as commands
from reconciliation.engine import class_archive, connector, java
from reconciliation.model.errors import SetupError
from tests.kit.patience import HANG_S

SESSION = """
import sys
from pathlib import Path
from reconciliation.engine import spark
from reconciliation.engine.spark_settings import JAVA, Asked
scratch, log, *jars = map(Path, sys.argv[1:])
options = Asked(conf={JAVA: f"-Xlog:class+load:file={log}"})
spark.start(scratch, offsets=0, jars=jars, options=options).range(1).collect()
"""


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    directory = tmp_path / "the jars"
    ignored = shutil.ignore_patterns(java.ARCHIVES)
    return Path(shutil.copytree(connector.default_directory(), directory, ignore=ignored))


def another_java(home: Path) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="99"\n')
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"99\"' >&2\n")
    (home / "bin" / "java").chmod(0o755)
    return home


def test_a_session_loads_its_classes_from_it(jars: Path, tmp_path: Path) -> None:
    old = jars / java.ARCHIVES.replace("*", "0" * 16)
    old.touch()
    out = io.StringIO()
    assert commands.main(["--fetch-jars", str(jars)], out) == 0
    made = java.archive_in(jars)
    assert made is not None and out.getvalue().splitlines()[-1] == str(made) and not old.exists()
    (tmp_path / "scratch").mkdir()
    words = [tmp_path / "scratch", log := tmp_path / "log", *connector.jars_in(jars)]
    subprocess.run([sys.executable, "-c", SESSION, *map(str, words)], check=True, timeout=HANG_S)
    loaded = [line for line in log.read_text(errors="replace").splitlines() if "org.apache.spark.sql.Dataset " in line]
    assert loaded and all("shared objects file (top)" in line for line in loaded), loaded
    written = made.stat().st_mtime_ns
    assert class_archive.make(jars).stat().st_mtime_ns == written, "it is there"


def test_another_java_has_none(jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = java.archive_for(jars)
    here.touch()
    assert java.archive_in(jars) == here
    home = another_java(tmp_path / "other")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.archive_in(jars) is None
    (home / "release").unlink()
    with pytest.raises(SetupError, match="release is not there"):
        java.archive_for(jars)


def test_without_one_the_jars_are_fetched_all_the_same(
    jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(another_java(tmp_path / "other")))
    out = io.StringIO()
    assert commands.main(["--fetch-jars", str(jars)], out) == 0
    assert out.getvalue().splitlines() == [str(path) for path in connector.jars_in(jars)]
    assert "no archive of Spark's classes: Java wrote none" in capsys.readouterr().err
    assert java.archive_in(jars) is None
