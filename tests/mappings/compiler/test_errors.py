"""The table of native errors: every code that the clients can raise is in it, once, and every mistake in it is told."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import KafkaError
from kafka import errors as kafka_python

from mappings import MappingProblems, load_tables
from mappings.compiler.errors import (
    IN_FORCE,
    LOGS,
    RETRIES,
    SAY_BYTES_MAX,
    SCOPES,
    Errors,
    load_errors,
    shipped_errors,
    usable_errors_of,
)
from mappings.compiler.table_set import SHIPPED
from mappings.language.causes import ANSWERS, MOMENTS, STAGES, cause_at
from mappings.language.vocabulary import PROFILES, TABLES
from mappings.tools.error_table import COLUMNS, error_lines
from native_backend.log.kafka.causes import (
    causes_in_force,
    control_code,
    control_failure_of,
    failure_of,
    is_retriable,
)
from native_backend.log.sqlite.commit import certainly_not_done

FILE = SHIPPED / "errors.yaml"
TEXT = FILE.read_text(encoding="utf-8")
NO_ERROR = {"NO_ERROR", "_PARTITION_EOF"}


def test_every_code_of_confluent_kafka_is_there() -> None:
    codes = {name for name in dir(KafkaError) if name.isupper() and isinstance(getattr(KafkaError, name), int)}
    assert len(codes) >= 188
    assert shipped_errors().codes["kafka"].keys() == codes - NO_ERROR
    assert {KafkaError(code).name() for code in causes_in_force()} <= codes | {""}


def test_every_code_that_kafka_python_asks_again_for_is_one_that_does_no_harm() -> None:
    """Both clients number the broker's errors alike."""
    for error in vars(kafka_python).values():
        if (
            isinstance(error, type)
            and issubclass(error, kafka_python.KafkaError)
            and getattr(error, "retriable", False)
        ):
            code = getattr(error, "errno", None)
            if isinstance(code, int) and causes_in_force().get(code, "unexpected") not in ("not-found", "unexpected"):
                assert is_retriable(code), error


def test_every_error_of_kafka_python_that_passes_has_a_number() -> None:
    bases = {kafka_python.RetriableError, kafka_python.InvalidMetadataError}
    for error in vars(kafka_python).values():
        if isinstance(error, type) and issubclass(error, kafka_python.RetriableError) and error not in bases:
            code = control_code(error())
            assert code is not None, error
            assert control_failure_of(error()).code, error


def test_every_primary_code_of_sqlite_is_there() -> None:
    codes = {
        name
        for name in dir(sqlite3)
        if name.startswith("SQLITE_") and isinstance(getattr(sqlite3, name), int) and getattr(sqlite3, name) < 256
    }
    results = {name for name in codes if name in PRIMARY}
    known = shipped_errors().codes["sqlite"].keys() | {"SQLITE_OK", "SQLITE_ROW", "SQLITE_DONE", "SQLITE_NOTICE"}
    assert results <= known
    assert known - results <= {"SQLITE_NOLFS", "SQLITE_EMPTY"}
    assert shipped_errors().named("SQLITE_IOERR_FSYNC") is shipped_errors().of("sqlite", "SQLITE_IOERR")
    assert certainly_not_done(sqlite3.SQLITE_FULL)
    assert not certainly_not_done(sqlite3.SQLITE_IOERR)


PRIMARY = {
    *("SQLITE_ABORT", "SQLITE_AUTH", "SQLITE_BUSY", "SQLITE_CANTOPEN", "SQLITE_CONSTRAINT", "SQLITE_CORRUPT"),
    *("SQLITE_DONE", "SQLITE_EMPTY", "SQLITE_ERROR", "SQLITE_FORMAT", "SQLITE_FULL", "SQLITE_INTERNAL"),
    *("SQLITE_INTERRUPT", "SQLITE_IOERR", "SQLITE_LOCKED", "SQLITE_MISMATCH", "SQLITE_MISUSE", "SQLITE_NOLFS"),
    *("SQLITE_NOMEM", "SQLITE_NOTADB", "SQLITE_NOTFOUND", "SQLITE_NOTICE", "SQLITE_OK", "SQLITE_PERM"),
    *("SQLITE_PROTOCOL", "SQLITE_RANGE", "SQLITE_READONLY", "SQLITE_ROW", "SQLITE_SCHEMA", "SQLITE_TOOBIG"),
    "SQLITE_WARNING",
}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_code_has_its_lines_in_every_profile(profile: str) -> None:
    """The codes are the clients' own here, not those of `errors.yaml`."""
    lines = [
        dict(zip(COLUMNS, line.split("\t"), strict=True))
        for line in (SHIPPED / "expanded" / f"{profile}.error.tsv").read_text(encoding="utf-8").splitlines()[1:]
    ]
    kafka = {name for name in dir(KafkaError) if name.isupper() and isinstance(getattr(KafkaError, name), int)}
    sqlite = PRIMARY - {"SQLITE_OK", "SQLITE_ROW", "SQLITE_DONE", "SQLITE_NOTICE"}
    wanted = {(code, "kafka") for code in kafka - NO_ERROR} | {(code, "sqlite") for code in sqlite}
    for moment in ("attach", "later", "publish", "settle", "commit"):
        mine = [line for line in lines if line["moment"] == moment]
        assert {(line["code"], line["realm"]) for line in mine} == wanted, moment
    for line in lines:
        assert line["scope"] in SCOPES and line["retry"] in RETRIES, line
        if not line["rule"]:
            assert line["answer"] in ("asked-again", "looked-up", "passed-over"), line
            assert not line["condition"] and not line["class"], line
            continue
        if line["rule"] == "attached.not-found-keeps-the-publisher":  # it is answered when it publishes
            assert not line["condition"] and not line["class"], line
            continue
        assert line["class"] in ("fatal", "transient"), line
        table = TABLES[line["rule"].partition(".")[0]]
        assert line["answer"] in table.axes["answer"], line
        assert line["condition"] or line["class"] == "transient", line


def test_a_description_leaves_room_for_the_name_of_the_node() -> None:
    errors = shipped_errors()
    sayings = [*errors.answers.values(), *(error.say for log in LOGS for error in errors.codes[log].values())]
    assert all(0 < len(text.encode()) <= SAY_BYTES_MAX for saying in sayings for text in saying.texts())
    assert errors.say("too-large", "MSG_SIZE_TOO_LARGE").startswith("the message is larger than the log takes")
    assert errors.say("in-use", "") == "it is in use; attach again later"


def test_no_error_says_that_something_may_be_stored_where_nothing_was_sent() -> None:
    """At each moment at which a peer waits, for every code of every log, as the tables are asked."""
    errors = shipped_errors()
    for log in LOGS:
        for code, error in errors.codes[log].items():
            for moment in (moment for moment in MOMENTS if moment != "later"):
                for stage in STAGES:
                    cause = cause_at(log, error.cause, moment, stage)
                    seen = errors.say(ANSWERS[moment][cause], code, moment)
                    in_doubt = ANSWERS[moment][cause] == "indeterminate"
                    assert ("may" in seen) == (in_doubt and moment != "attach"), (code, moment, stage, seen)
                    assert ("send it again" in seen) == (in_doubt and moment == "publish"), (code, moment, stage, seen)
    assert errors.say("indeterminate", "_TIMED_OUT", "attach") == "the log did not answer in time; attach again"
    assert errors.say("unavailable", "_TIMED_OUT", "publish") == "it cannot be reached; try again later"
    assert Errors.read(json.loads(json.dumps(errors.document()))).codes == errors.codes


def test_every_answer_of_the_realm_has_words() -> None:
    answers = {
        *(TABLES["published"].axes["answer"]),
        *(TABLES["attached"].axes["answer"]),
        *(TABLES["settled"].axes["answer"]),
    }
    assert answers - {"stored", "ready", "done"} == shipped_errors().answers.keys()


@pytest.mark.parametrize("profile", PROFILES)
def test_every_cause_leads_to_a_decision_and_a_time_to_wait_is_given_only_where_it_helps(profile: str) -> None:
    """`fatal` and a time to wait do not go together: who is told to wait keeps the link, except in documented versions,
    which know one answer for whatever goes wrong."""
    tables = load_tables(profile=profile)
    for log in LOGS:
        for error in shipped_errors().codes[log].values():
            waiting_helps = error.cause in ("indeterminate", "unavailable", "capacity-reached")
            assert (error.retry_after_ms is not None) == waiting_helps, error
            if waiting_helps and profile == "extended":
                then = (
                    tables["published"]
                    .decide(answer=error.cause, sender_settle_mode="unsettled", presettled="no", **_more("published"))
                    .then
                )
                assert then["class"] == "transient"


def _more(table: str) -> dict[str, str]:
    """The first value of each axis that later versions of the table have gained."""
    known = {"answer", "sender_settle_mode", "presettled"}
    return {axis: values[0] for axis, values in TABLES[table].axes.items() if axis not in known}


MISTAKES = {
    "cause: not-found": ("cause: not-fuond", "cause cannot be not-fuond; write not-found"),
    "scope: message": ("scope: mesage", "scope cannot be mesage; write message"),
    "retry: inside": ("retry: always", "retry cannot be always; write"),
    "retry_after_ms: 1000": ("retry_after_ms: soon", "retry_after_ms is no whole number"),
    "version: 1": ("version: 2", "this version is not known; write version: 1"),
    "UNKNOWN_TOPIC_ID": ("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_OR_PART stands on line"),
    "    because:": ("    becuase:", "unknown key becuase; write because"),
    "say: it is not there": (f"say: {'x' * 80}", f"say in 1 to {SAY_BYTES_MAX} octets"),
    "      attach: the log did not answer in time": ("      atach: the log", "unknown key atach; write attach"),
    "      settle: it may": (f"      settle: {'x' * 80}", f"say in 1 to {SAY_BYTES_MAX} octets"),
    "  in-use: 1000": ("  in-use: soon", "what a peer waits is no whole number above 0"),
    "no_error:": ("no_errors:", "unknown key no_errors; write no_error"),
}


@pytest.mark.parametrize("right", MISTAKES, ids=[complaint for _, complaint in MISTAKES.values()])
def test_a_mistake_is_reported_with_its_place(tmp_path: Path, right: str) -> None:
    wrong, words = MISTAKES[right]
    assert right in TEXT
    path = tmp_path / "errors.yaml"
    path.write_text(TEXT.replace(right, wrong, 1), encoding="utf-8")
    with pytest.raises(MappingProblems) as error:
        load_errors(path)
    assert any(words in problem.sentence and problem.file == str(path) for problem in error.value.problems), error.value


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[Errors]:
    """A code of each log means something else, in a file of one's own."""
    text = TEXT
    for old, new in (
        ("TELEMETRY_TOO_LARGE, ", ""),
        ("[MSG_SIZE_TOO_LARGE,", "[MSG_SIZE_TOO_LARGE, TELEMETRY_TOO_LARGE,"),
        ("sqlite: [SQLITE_FULL]", "sqlite: [SQLITE_NOTADB]"),
        (", SQLITE_NOTADB]", "]"),
        ("sqlite: [SQLITE_TOOBIG]", "sqlite: [SQLITE_TOOBIG, SQLITE_FULL]"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "errors.yaml").write_text(text, encoding="utf-8")
    errors, problems = usable_errors_of(tmp_path)
    assert problems == []
    yield errors
    IN_FORCE.use(None)


def test_drivers_go_by_the_errors_in_force(changed: Errors) -> None:
    error = KafkaError(KafkaError.TELEMETRY_TOO_LARGE)
    assert failure_of(error).cause == "unexpected"
    IN_FORCE.use(changed)
    assert failure_of(error).cause == "too-large"
    assert IN_FORCE.errors.named("TELEMETRY_TOO_LARGE") is changed.named("MSG_SIZE_TOO_LARGE")
    assert not certainly_not_done(sqlite3.SQLITE_FULL), "too-large is no cause that a COMMIT certainly refuses"
    IN_FORCE.use(None)
    assert failure_of(error).cause == "unexpected"
    assert certainly_not_done(sqlite3.SQLITE_FULL)


def test_a_code_alone_can_say_that_there_is_no_room(tmp_path: Path) -> None:
    """A broker may say by any of them that a quota is used up. The first code of each error stands for the others."""
    tables = load_tables()
    shipped = yaml.safe_load(TEXT)
    for log in LOGS:
        for code in [error[log][0] for error in shipped["errors"] if error[log]]:
            whole = copy.deepcopy(shipped)
            for error in whole["errors"]:
                error[log] = [entry for entry in error[log] if entry != code]
            (full,) = (error for error in whole["errors"] if error["cause"] == "capacity-reached")
            full[log].append(code)
            whole["errors"] = [error for error in whole["errors"] if error["kafka"] or error["sqlite"]]
            (tmp_path / "errors.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
            errors, problems = usable_errors_of(tmp_path)
            assert problems == [], code
            answers = {
                (line.answer, line.condition, line.error_class)
                for line in error_lines(errors, tables, code)
                if line.moment == "publish" and "unlisted" not in line.when
            }
            assert answers == {("capacity-reached", "amqp:resource-limit-exceeded", "transient")}, code


def test_errors_can_be_sent_to_another_process(changed: Errors) -> None:
    for errors in (changed, shipped_errors()):
        again = Errors.read(json.loads(json.dumps(errors.document())))
        assert again.codes == errors.codes and again.answers == errors.answers


def test_a_file_of_ones_own_says_of_every_code(tmp_path: Path) -> None:
    path = tmp_path / "errors.yaml"
    path.write_text(TEXT.replace("TELEMETRY_TOO_LARGE, ", ""), encoding="utf-8")
    [problem] = usable_errors_of(tmp_path)[1]
    assert problem.file == str(path) and problem.message == "codes of kafka are missing: TELEMETRY_TOO_LARGE"
    assert usable_errors_of(tmp_path / "without")[1] == [] and usable_errors_of(None)[0] is shipped_errors()
