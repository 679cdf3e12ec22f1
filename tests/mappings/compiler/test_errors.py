"""The table of native errors: every code that the clients can raise is in it, once, and every mistake in it is told."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from kafka import errors as kafka_python

from mappings import MappingProblems, load_tables
from mappings.error_table import COLUMNS
from mappings.errors import (
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
from mappings.table_set import SHIPPED
from mappings.vocabulary import PROFILES, TABLES
from native_backend.logs.kafka.causes import (
    causes_in_force,
    control_code,
    control_failure_of,
    failure_of,
    is_asked_again,
)
from native_backend.logs.sqlite.commit import certainly_not_done

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
                assert is_asked_again(code), error


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
        assert line["class"] in ("fatal", "transient"), line
        table = TABLES[line["rule"].partition(".")[0]]
        assert line["answer"] in table.axes["answer"], line
        assert line["condition"] or line["class"] == "transient", line


def test_what_is_said_leaves_room_for_the_name_of_the_node() -> None:
    errors = shipped_errors()
    said = [*errors.answers.values(), *(error.say for log in LOGS for error in errors.codes[log].values())]
    assert all(0 < len(text.encode()) <= SAY_BYTES_MAX for text in said)
    assert errors.say("too-large", "MSG_SIZE_TOO_LARGE").startswith("the message is larger than the log takes")
    assert errors.say("in-use", "") == "somebody else holds it; attach again later"


def test_every_answer_of_the_realm_has_words() -> None:
    answers = {
        *(TABLES["published"].axes["answer"]),
        *(TABLES["attached"].axes["answer"]),
        *(TABLES["settled"].axes["answer"]),
    }
    assert answers - {"stored", "ready", "done"} == shipped_errors().answers.keys()


@pytest.mark.parametrize("profile", PROFILES)
def test_every_cause_leads_to_a_decision_and_waiting_is_told_only_where_it_helps(profile: str) -> None:
    """`fatal` and a time to wait do not go together: who is told to wait keeps the link, except in documented versions,
    which know one answer for whatever goes wrong."""
    tables = load_tables(profile=profile)
    for log in LOGS:
        for error in shipped_errors().codes[log].values():
            assert (error.retry_after_ms is not None) == (error.cause in ("indeterminate", "unavailable")), error
            if error.cause in ("indeterminate", "unavailable") and profile == "extended":
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
    "no_error:": ("no_errors:", "unknown key no_errors; write no_error"),
}


@pytest.mark.parametrize("right", MISTAKES, ids=[told for _, told in MISTAKES.values()])
def test_a_mistake_is_told_with_its_place(tmp_path: Path, right: str) -> None:
    wrong, told = MISTAKES[right]
    assert right in TEXT
    path = tmp_path / "errors.yaml"
    path.write_text(TEXT.replace(right, wrong, 1), encoding="utf-8")
    with pytest.raises(MappingProblems) as found:
        load_errors(path)
    assert any(told in problem.said and problem.file == str(path) for problem in found.value.problems), found.value


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[Errors]:
    """A code of each log means something else, in a file of one's own."""
    text = TEXT
    for old, new in (
        ("TELEMETRY_TOO_LARGE, ", ""),
        ("[MSG_SIZE_TOO_LARGE,", "[MSG_SIZE_TOO_LARGE, TELEMETRY_TOO_LARGE,"),
        ("sqlite: [SQLITE_FULL, ", "sqlite: ["),
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


def test_errors_can_be_told_to_another_process(changed: Errors) -> None:
    for errors in (changed, shipped_errors()):
        again = Errors.read(json.loads(json.dumps(errors.document())))
        assert again.codes == errors.codes and again.answers == errors.answers


def test_a_file_of_ones_own_says_of_every_code(tmp_path: Path) -> None:
    path = tmp_path / "errors.yaml"
    path.write_text(TEXT.replace("TELEMETRY_TOO_LARGE, ", ""), encoding="utf-8")
    [problem] = usable_errors_of(tmp_path)[1]
    assert problem.file == str(path) and problem.message == "codes of kafka are missing: TELEMETRY_TOO_LARGE"
    assert usable_errors_of(tmp_path / "without")[1] == [] and usable_errors_of(None)[0] is shipped_errors()
