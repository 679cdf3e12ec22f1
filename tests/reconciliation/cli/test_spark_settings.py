"""The settings of Spark: on one machine, on a named master, and where spark-submit was there before; and its end."""

from __future__ import annotations

import io
import logging
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, get_return_value  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from reconciliation.cli import main as commands
from reconciliation.engine import spark
from reconciliation.engine.spark_settings import (
    FEW_SUMS,
    JAVA,
    SMALL_OFFSETS,
    SWITCHED,
    Asked,
    checked,
    plans_for,
    plans_for_sums,
    settings,
)
from reconciliation.model.settings import SettingsError

SCRATCH = Path("/nowhere/scratch")
FOR_ONE_MACHINE = {"spark.driver.host", "spark.driver.bindAddress"}
PAGES = "spark.buffer.pageSize"


def told(options: Asked, submitted: Mapping[str, str] | None = None, offsets: int = 0, *jars: str) -> dict[str, str]:
    wanted = checked(options, submitted)
    paths = [Path(jar) for jar in jars]
    return settings(wanted, submitted, scratch=SCRATCH, offsets=offsets, jars=paths, cores=2)


def test_without_a_master_it_is_this_machine_alone() -> None:
    small, large = told(Asked()), told(Asked(), None, SMALL_OFFSETS + 1)
    assert small["spark.master"] == large["spark.master"] == "local[2]"
    assert {small[name] for name in FOR_ONE_MACHINE} == {"127.0.0.1"}
    assert (small["spark.sql.shuffle.partitions"], large["spark.sql.shuffle.partitions"]) == ("1", "16")
    assert "TieredStopAtLevel=1" in small["spark.driver.extraJavaOptions"]
    assert "TieredStopAtLevel" not in large["spark.driver.extraJavaOptions"]


def test_a_named_master_gets_nothing_that_only_one_machine_needs() -> None:
    cluster = told(Asked("spark://there:7077"))
    assert cluster["spark.master"] == "spark://there:7077"
    assert not FOR_ONE_MACHINE & cluster.keys() and not {"spark.sql.shuffle.partitions", PAGES} & cluster.keys()
    assert {told(Asked("local[7]"))[name] for name in FOR_ONE_MACHINE} == {"127.0.0.1"}


def test_a_setting_of_the_command_line_comes_before_ours() -> None:
    wanted = {"spark.driver.memory": "9g", "spark.sql.shuffle.partitions": "7", "spark.executor.cores": "3"}
    conf = told(Asked(None, wanted))
    assert wanted.items() <= conf.items()
    assert told(Asked(None, {"spark.master": "local[5]"}))["spark.master"] == "local[5]"


def test_a_session_plans_for_what_it_reads(session: SparkSession) -> None:
    def planned() -> list[str | None]:
        return [session.conf.get(name) for name in ("spark.sql.codegen.wholeStage", "spark.sql.shuffle.partitions")]

    for plans, wanted in (
        (plans_for(SMALL_OFFSETS + 1), ["true", "16"]),
        (plans_for_sums(FEW_SUMS + 1), ["true", "2"]),
        (plans_for_sums(FEW_SUMS), ["false", "1"]),
        (plans_for(SMALL_OFFSETS), ["false", "1"]),
    ):
        spark.plan_for(session, plans)
        assert planned() == wanted


def test_many_offsets_judged_by_sums_do_with_the_first_compiler() -> None:
    def options(conf: dict[str, str], *, of_sums: bool) -> str:
        return settings(conf, None, scratch=SCRATCH, offsets=10**9, jars=[], cores=2, of_sums=of_sums)[JAVA]

    assert "TieredStopAtLevel=1" in options({}, of_sums=True)
    assert "TieredStopAtLevel" not in options({}, of_sums=False)
    assert "TieredStopAtLevel" not in options({"spark.master": "spark://there:7077"}, of_sums=True)


def test_what_is_asked_for_is_not_switched() -> None:
    assert "spark.sql.shuffle.partitions" in told(Asked())[SWITCHED].split()
    assert "spark.sql.shuffle.partitions" not in told(Asked(None, {"spark.sql.shuffle.partitions": "7"}))[SWITCHED]
    assert SWITCHED not in told(Asked("spark://there:7077"))


def test_a_list_of_the_command_line_is_added_to_ours() -> None:
    more = {"spark.jars": "s3a://x/y.jar", "spark.driver.extraJavaOptions": "-Dmine=1"}
    conf = told(Asked(None, more), None, 0, "/jars/a.jar", "/jars/b.jar")
    assert conf["spark.jars"] == "/jars/a.jar,/jars/b.jar,s3a://x/y.jar"
    assert conf["spark.driver.extraJavaOptions"].startswith("-Dlog4j2.configurationFile=file:")
    assert conf["spark.driver.extraJavaOptions"].endswith(" -Dmine=1")


def test_an_archive_of_classes_is_loaded_wherever_it_is() -> None:
    archive = Path("/the jars/spark-1.jsa")

    def options(*wanted: str) -> str:
        conf = {JAVA: " ".join(wanted)}
        return settings(conf, None, scratch=SCRATCH, offsets=0, jars=[], cores=2, archive=archive)[JAVA]

    assert "'-XX:SharedArchiveFile=/the jars/spark-1.jsa'" in options()
    assert "SharedArchiveFile" not in options("-XX:ArchiveClassesAtExit=/other.jsa")
    assert "SharedArchiveFile" not in told(Asked())[JAVA]


def test_what_spark_submit_has_set_stays() -> None:
    submitted = {"spark.master": "yarn", "spark.ui.showConsoleProgress": "true", "spark.executor.cores": "8"}
    session = told(Asked(None, {"spark.executor.cores": "8", "spark.sql.files.maxPartitionBytes": "1m"}), submitted)
    assert "spark.master" not in session and "spark.ui.showConsoleProgress" not in session
    assert "spark.driver.memory" not in session and "spark.local.dir" not in session
    assert session["spark.sql.files.maxPartitionBytes"] == "1m"
    assert (session["spark.sql.session.timeZone"], session["spark.sql.ansi.enabled"]) == ("UTC", "true")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Asked("spark://there:7077"), "--master spark://there:7077: spark-submit has set spark.master=yarn"),
        (Asked(None, {"spark.app.name": "x"}), "--conf spark.app.name=x: spark-submit has set spark.app.name=y"),
    ],
)
def test_what_spark_submit_has_set_is_not_contradicted(options: Asked, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        checked(options, {"spark.master": "yarn", "spark.app.name": "y"})
    assert checked(Asked("yarn"), {"spark.master": "yarn"}) == {"spark.master": "yarn"}, "the same may be said twice"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("spark.jars.packages=a:b:1", "a reconciliation downloads nothing; fetch the jars before"),
        ("spark.sql.session.timeZone=CET", "what is found depends on it; it is always UTC"),
        ("spark.sql.ansi.enabled=false", "what is found depends on it; it is always true"),
    ],
)
def test_what_a_reconciliation_does_not_accept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], setting: str, words: str
) -> None:
    (tmp_path / "realmgate.yaml").write_text("realm: {kind: embedded, path: realm}\n")
    argv = ["--config", str(tmp_path / "realmgate.yaml"), "--out", str(tmp_path / "out"), "--conf", setting]
    assert commands.main(argv, io.StringIO()) == 2
    assert words in capsys.readouterr().err


def test_a_setting_without_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        commands.main(["--config", "x", "--out", "y", "--conf", "spark.cores"], io.StringIO())
    assert "'spark.cores' is not KEY=VALUE" in capsys.readouterr().err


class LostJvm:
    """A session whose JVM has gone: what it is asked for py4j sends, and there is no reply."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            parameters = GatewayParameters("127.0.0.1", listener.getsockname()[1])
            self._client = GatewayClient(gateway_parameters=parameters)
            self._connection = self._client._get_connection()
            self._jvm, _ = listener.accept()

    def stop(self) -> None:
        self._client._give_back_connection(self._connection)
        self._jvm.close()
        get_return_value(self._client.send_command("stop\n", retry=False), self._client, "session", "stop")


def test_a_jvm_that_has_gone_ends_without_a_traceback(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Py4JError):
        LostJvm().stop()
    assert "Exception while sending command." in caplog.text, "py4j logs it"
    caplog.clear()
    spark.stop(cast(SparkSession, LostJvm()))
    assert (caplog.text, capfd.readouterr()) == ("", ("", ""))
    logging.getLogger().error("what follows is logged")
    assert "what follows is logged" in caplog.text
