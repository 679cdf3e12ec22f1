"""Where a report is kept: a path, a `file:` URI, or a URI of a Hadoop file system. The one here is ViewFs, which comes
with Spark and mounts a directory of this machine under a URI of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reconciliation.history import kept
from reconciliation.model.errors import SetupError
from reconciliation.model.folder import Folder, LocalFolder, named
from reconciliation.model.hadoop_folder import HadoopFolder
from reconciliation.model.settings import SettingsError
from tests.reconciliation.history.runs import lost, record

MakeFolder = Callable[[Path], Folder]


@pytest.fixture(params=["local", "viewfs"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    """It lies in `tmp_path/"kept"`, and is not made yet."""
    if request.param == "local":
        return LocalFolder(tmp_path / "kept")
    session: SparkSession = request.getfixturevalue("session")
    mounted = f"fs.viewfs.mounttable.{tmp_path.name.lower().replace('_', '-')}"
    session._jsc.hadoopConfiguration().set(f"{mounted}.link./here", tmp_path.as_uri())
    (tmp_path / "scratch").mkdir()
    return HadoopFolder(session, f"viewfs://{mounted.rpartition('.')[2]}/here/kept", tmp_path / "scratch")


def test_a_folder_keeps_files(folder: Folder, tmp_path: Path) -> None:
    assert not folder.exists() and folder.read("a") is None
    folder.make()
    folder.write("a", b"one")
    folder.write("a", b"two")
    with (folder / "b").filled() as directory:
        (directory / "c").write_bytes(b"three")
        (directory / "d").mkdir()
        (directory / "d" / "e").write_bytes(b"four")
    assert folder.names() == ["a", "b"]
    assert (folder.read("a"), folder.read("none")) == (b"two", None)
    folder.move("b", folder / "x" / "y")
    assert ((folder / "x" / "y").fetched() / "d" / "e").read_bytes() == b"four"
    assert {path.name for path in (tmp_path / "kept" / "x" / "y").iterdir() if path.name[0] != "."} == {"c", "d"}
    for name in ("a", "x", "never"):
        folder.remove(name)
    assert folder.names() == []


def test_records_of_reconciliations_are_kept_there(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT", 2)
    history = folder / "history"
    assert kept.read(history).records == ()
    for day in range(3):
        kept.keep(history, record(lost(*range(day + 1)), day=day))
    assert [entry.messages for entry in kept.read(history).records] == [2, 3]
    name = kept.keep(history, record(day=3))
    history.write(name, b"{")
    assert [entry.name for entry in kept.read(history).damaged] == [name]


def test_a_file_is_whole_or_as_it_was(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full, or the connection broke, before all of it was there."""
    folder.make()
    folder.write("manifest.json", b"earlier")

    def breaks(file: Path, content: bytes) -> None:
        with file.open("wb") as begun:
            begun.write(content[:3])
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", breaks)
    with pytest.raises(OSError, match="no space left"):
        folder.write("manifest.json", b"later, and longer")
    assert folder.read("manifest.json") == b"earlier"


def test_a_file_system_that_spark_has_not_is_named_with_what_to_do(session: SparkSession, tmp_path: Path) -> None:
    for uri in ("s3a://bucket/reports", "strange://host/reports"):
        with pytest.raises(SetupError, match=rf"^{uri}: .*; .*--conf spark.jars=FILE,FILE") as raised:
            HadoopFolder(session, uri, tmp_path).make()
        assert "\n" not in str(raised.value)


def test_what_a_file_system_refuses_is_named_with_its_place(session: SparkSession, tmp_path: Path) -> None:
    session._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.refused.link./here", tmp_path.as_uri())
    with pytest.raises(SetupError, match=r"^viewfs://refused/elsewhere: .*; look at its address, your right to write"):
        HadoopFolder(session, "viewfs://refused/elsewhere", tmp_path).make()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("reports", Path("reports")),
        ("/a b/c:d", Path("/a b/c:d")),
        ("file:///a%20b/c", Path("/a b/c")),
        ("file:/a/", Path("/a")),
        ("s3a://bucket/reports/", "s3a://bucket/reports"),
        ("hdfs://name:8020/r", "hdfs://name:8020/r"),
    ],
)
def test_a_path_stays_a_path(text: str, meant: Path | str) -> None:
    assert named(text) == meant


@pytest.mark.parametrize("text", ["file://elsewhere/a", "s3a://bucket/a?b=c", "hdfs://name/a#b"])
def test_a_uri_that_names_no_directory(text: str) -> None:
    with pytest.raises(SettingsError, match="a directory"):
        named(text)
