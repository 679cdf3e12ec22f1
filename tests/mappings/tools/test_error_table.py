"""The error table says what the gateway would: its lines, what `diff` and `explain` make of them, and what is wrong."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import pytest

from mappings import load_tables
from mappings.compiler.errors import LOGS, shipped_errors
from mappings.compiler.table_set import SHIPPED
from mappings.language.causes import ANSWERS, CAUSES, MOMENTS, STAGES, TABLES_OF, UNANSWERED, cause_at
from mappings.language.vocabulary import TABLES
from mappings.tools.commands import main
from mappings.tools.error_table import error_lines
from native_backend.dispatch.context import LASTING, subscribe_answer
from native_backend.log.kafka.causes import unsent
from native_backend.log.port import Failure


def run(*argv: str | Path) -> tuple[int, str]:
    out = io.StringIO()
    return main([str(word) for word in argv], out), out.getvalue()


# What an operator would look up, written down by hand: code, moment, stage -> answer, condition, class.
LOOKED_UP = {
    ("_MSG_TIMED_OUT", "publish", "sent"): ("indeterminate", "", "transient"),
    ("_MSG_TIMED_OUT", "publish", "unsent"): ("unavailable", "", "transient"),
    ("_MSG_TIMED_OUT", "commit", "sent"): ("looked-up", "", ""),
    ("MSG_SIZE_TOO_LARGE", "publish", "any"): ("too-large", "amqp:link:message-size-exceeded", "transient"),
    ("TOPIC_AUTHORIZATION_FAILED", "attach", "any"): ("access-denied", "amqp:unauthorized-access", "fatal"),
    ("UNKNOWN_TOPIC_OR_PART", "attach", "any"): ("not-found", "amqp:not-found", "fatal"),
    ("UNKNOWN_TOPIC_OR_PART", "later", "any"): ("not-found", "amqp:resource-deleted", "fatal"),
    ("OFFSET_OUT_OF_RANGE", "later", "any"): ("passed-over", "", ""),
    ("PRODUCER_FENCED", "settle", "unsent"): ("looked-up", "", ""),
    ("NOT_ENOUGH_REPLICAS", "settle", "unsent"): ("asked-again", "", ""),
    ("INVALID_RECORD", "publish", "any"): ("invalid", "amqp:precondition-failed", "transient"),
    ("POLICY_VIOLATION", "publish", "any"): ("invalid", "amqp:precondition-failed", "transient"),
    ("SQLITE_FULL", "publish", "any"): ("capacity-reached", "amqp:resource-limit-exceeded", "transient"),
    ("SQLITE_FULL", "commit", "any"): ("capacity-reached", "amqp:transaction:rollback", "transient"),
    ("SQLITE_FULL", "settle", "any"): ("asked-again", "", ""),
    ("SQLITE_IOERR", "publish", "sent"): ("indeterminate", "", "transient"),
    ("SQLITE_TOOBIG", "publish", "unsent"): ("unavailable", "", "transient"),
}


def test_the_lines_that_an_operator_looks_up() -> None:
    tables = load_tables()
    for (code, moment, stage), answer in LOOKED_UP.items():
        answers = [
            (line.answer, line.condition, line.error_class)
            for line in error_lines(shipped_errors(), tables, code)
            if (line.moment, line.stage) == (moment, stage) and "unlisted" not in line.when
        ]
        assert answers == [answer], (code, moment, stage)


def test_a_commit_tells_apart_whether_its_source_lists_rejected() -> None:
    lines = error_lines(shipped_errors(), load_tables(), "TOPIC_AUTHORIZATION_FAILED")
    assert [(line.when, line.condition, line.error_class, line.rule) for line in lines if line.moment == "commit"] == [
        ("", "amqp:transaction:rollback", "transient", "committed.failed-rejected"),
        ("rejected=unlisted", "amqp:transaction:rollback", "fatal", "committed.failed-ends-the-link"),
        ("", "", "", ""),
    ]


@pytest.mark.parametrize("moment", MOMENTS)
def test_every_cause_has_an_answer_that_its_table_knows(moment: str) -> None:
    assert ANSWERS[moment].keys() == set(CAUSES)
    assert set(ANSWERS[moment].values()) <= set(TABLES[TABLES_OF[moment]].axes["answer"])
    assert UNANSWERED[moment].keys() <= set(CAUSES)


def test_the_realm_answers_by_the_same_columns() -> None:
    for cause in CAUSES:
        failure = Failure(cause)  # type: ignore[arg-type]
        assert subscribe_answer(failure) == ANSWERS["attach"][cause]
        assert (cause in LASTING) == (cause not in UNANSWERED["later"])
        for moment in ("publish", "settle", "commit"):
            assert unsent(failure).cause == cause_at("kafka", cause, moment, "unsent")
        for log in LOGS:
            for stage in STAGES:
                assert cause_at(log, cause, "publish", stage) in CAUSES


def test_diff_tells_of_a_code_whose_condition_changes(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for part in ("tables", "scenarios", "expanded"):
        shutil.copytree(SHIPPED / part, old / part)
    shutil.copy(SHIPPED / "errors.yaml", old)
    shutil.copytree(old, new)
    text = (new / "errors.yaml").read_text(encoding="utf-8").replace("TELEMETRY_TOO_LARGE, ", "")
    edited = text.replace("kafka: [MSG_SIZE_TOO_LARGE,", "kafka: [MSG_SIZE_TOO_LARGE, TELEMETRY_TOO_LARGE,")
    (new / "errors.yaml").write_text(edited, encoding="utf-8")
    code, output = run("diff", old, new)
    assert code == 1
    assert (
        "error in extended: 1 case: code TELEMETRY_TOO_LARGE, realm kafka, moment publish, stage any\n"
        "  cause: unexpected -> too-large, answer: unexpected -> too-large, condition: amqp:internal-error -> "
        "amqp:link:message-size-exceeded, class: fatal -> transient, scope: link -> message\n"
    ) in output
    assert output.endswith("\n1 native errors told otherwise\n")
    assert "extended.error.tsv:" in run("expand", "--check", new)[1]
    (new / "errors.yaml").write_text(text, encoding="utf-8")
    assert re.search(r"code TELEMETRY_TOO_LARGE, realm kafka.*\n  is gone\n", run("diff", old, new)[1])


def test_explain_says_what_a_code_means_and_what_each_peer_hears() -> None:
    code, output = run("explain", "code=_MSG_TIMED_OUT", "moment=publish")
    assert code == 0
    assert output.startswith(
        "code _MSG_TIMED_OUT of realm kafka, profile extended\nerror result-unknown (errors.yaml)\n"
    )
    assert "  scope    message\n  retry    never; a peer is advised to wait 1000 ms\n" in output
    assert (
        "moment publish, sent: cause indeterminate, answer indeterminate\n  condition  none\n  class      transi"
        in output
    )
    assert "  rule       published.not-stored-released (" in output
    fatal = run("explain", "error", "code=_MSG_TIMED_OUT", "moment=publish", "profile=um-9.9")[1]
    assert "  condition  amqp:internal-error\n  class      fatal\n  rule       published.not-stored-rejected (" in fatal
    commit = run("explain", "code=SQLITE_IOERR_FSYNC", "moment=commit")[1]
    assert commit.startswith("code SQLITE_IOERR of realm sqlite")
    assert commit.endswith("moment commit, sent: cause indeterminate; no peer is answered: looked up\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("code=_MSG_TIMED_OT",), "there is no code _MSG_TIMED_OT; write _MSG_TIMED_OUT"),
        (("code=_FATAL", "moment=publsh"), "there is no moment publsh; write publish"),
        (("code=_FATAL", "realm=sqlite"), "_FATAL is no code of realm sqlite; leave realm out"),
        (("code=_FATAL", "answer=stored"), "there is no fact answer; write "),
        (("code=_FATAL", "code=_FATAL"), "code=_FATAL is not code=VALUE, or stands twice"),
        (("error", "moment=publish"), "there is no code "),
    ],
)
def test_explain_names_the_word_that_is_wrong(words: tuple[str, ...], message: str) -> None:
    code, output = run("explain", *words)
    assert code == 2
    assert message in output


def test_a_mistake_in_native_errors_of_ones_own_is_reported_by_every_command(directory: Path) -> None:
    text = (SHIPPED / "errors.yaml").read_text(encoding="utf-8")
    (directory / "errors.yaml").write_text(text.replace("cause: not-found", "cause: not-fuond"), encoding="utf-8")
    message = "cause cannot be not-fuond; write not-found"
    for command in (("check",), ("expand",), ("expand", "--check")):
        code, output = run(*command, directory)
        assert code == 1 and f"{directory}/errors.yaml:" in output and message in output
    assert run("explain", directory, "code=_FATAL")[0] == 1
    code, output = run("diff", directory, SHIPPED)
    assert code == 2 and message in output
