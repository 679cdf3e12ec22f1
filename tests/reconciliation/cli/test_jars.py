"""Spark's connector for Kafka: what is not there, or is another, is named with the command that fetches it; fetching
takes only what was listed. The registry is a directory of Maven's layout on this machine.
"""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from reconciliation.cli import main as commands
from reconciliation.engine import connector, java
from reconciliation.engine.connector import JARS
from reconciliation.model.errors import SetupError

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
</project>
"""


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns(java.ARCHIVES)
    return Path(shutil.copytree(connector.default_directory(), tmp_path / "the jars", ignore=ignored))


@pytest.fixture
def registry(tmp_path: Path, jars: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "registry"
    for jar in JARS:
        place = root.joinpath(*jar.group.split("."), jar.artifact, jar.version)
        place.mkdir(parents=True)
        shutil.copy(jars / jar.file, place)
        about = POM.format(group=jar.group, artifact=jar.artifact, version=jar.version)
        (place / jar.file).with_suffix(".pom").write_text(about)
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", f"{root.as_uri()}/")
    return root


def fetch(directory: Path) -> int:
    return commands.main(["--fetch-jars", str(directory)], io.StringIO())


def test_exactly_the_listed_files_are_taken(jars: Path) -> None:
    (jars / "left-by-another.jar").touch()
    assert connector.jars_in(jars) == [jars / jar.file for jar in JARS]


def test_one_that_is_missing_is_named_with_the_command_that_fetches_it(jars: Path) -> None:
    (jars / JARS[2].file).unlink()
    with pytest.raises(SetupError) as raised:
        connector.jars_in(jars)
    words, _, command = str(raised.value).rpartition(": ")
    assert str(jars / JARS[2].file) in words
    assert command == f"realmgate reconcile --fetch-jars '{jars}'"


def test_one_that_is_another_is_named_with_the_command_that_replaces_it(jars: Path) -> None:
    with (jars / JARS[1].file).open("ab") as jar:
        jar.write(b"more")
    with pytest.raises(SetupError, match=rf"{JARS[1].file} is not {JARS[1].coordinate} .*--fetch-jars '{jars}'$"):
        connector.jars_in(jars)


def test_a_realm_on_kafka_is_not_read_without_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the broker is asked, or Spark is started. An embedded realm needs none."""
    for kind, wanted in (
        ('kafka, bootstrap: "127.0.0.1:1"', "--fetch-jars"),
        ("embedded, path: nowhere", "no realm in"),
    ):
        (tmp_path / "realmgate.yaml").write_text(f"realm: {{kind: {kind}}}\n")
        words = ["--config", str(tmp_path / "realmgate.yaml"), "--out", str(tmp_path / "out"), "--jars", str(tmp_path)]
        assert commands.main(words, io.StringIO()) == 2
        assert wanted in capsys.readouterr().err


def test_fetched_are_the_listed_ones_under_their_names(tmp_path: Path, registry: Path) -> None:
    assert fetch(tmp_path / "fetched") == 0
    archive = java.archive_for(tmp_path / "fetched")
    assert {path.name for path in (tmp_path / "fetched").iterdir()} == {*(jar.file for jar in JARS), archive.name}


def test_fetched_is_what_is_not_there(tmp_path: Path, jars: Path, registry: Path) -> None:
    (jars / JARS[1].file).write_bytes(b"cut off")
    kept = (jars / JARS[0].file).stat().st_mtime_ns
    assert fetch(jars) == 0
    assert connector.jars_in(jars)
    shutil.rmtree(registry)
    assert fetch(jars) == 0, "the registry is not asked for what is there"
    assert (jars / JARS[0].file).stat().st_mtime_ns == kept


def test_fetching_does_not_take_another_than_was_listed(tmp_path: Path, registry: Path,
                                                        capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    [jar] = registry.rglob(JARS[1].file)
    jar.write_bytes(jar.read_bytes() + b"more")
    assert fetch(tmp_path / "fetched") == 2
    assert f"the registry has another {JARS[1].coordinate} than was tested" in capsys.readouterr().err
    assert not (tmp_path / "fetched" / JARS[1].file).exists()


def test_fetching_from_a_registry_that_has_none_says_where_to_name_another(
    tmp_path: Path, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(registry)
    assert fetch(tmp_path / "fetched") == 2
    errors = capsys.readouterr().err
    assert f"{JARS[0].group}#{JARS[0].artifact};{JARS[0].version}: not found" in errors
    assert "spark.jars.ivySettings" in errors and "DEFAULT_ARTIFACT_REPOSITORY" in errors
    assert not (tmp_path / "fetched").exists()
