"""Records of reconciliations: as they were written or not at all, a bounded number, and damage that is seen."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciliation.history import kept
from reconciliation.history.kept import KEPT, keep, read
from reconciliation.history.record import FINDINGS_MAX, record_of
from reconciliation.model.folder import LocalFolder
from tests.reconciliation.history.runs import causes, lost, record, row


def test_a_record_is_read_as_it_was_written() -> None:
    written = record(lost(1, 2, 9), took_s=1.5, versions={"realmgate": "0.1.0"})
    copy = record_of(written.as_json())
    [cause] = copy.findings
    assert copy.as_json() == written.as_json()
    assert (cause.id, cause.count, cause.open, cause.members.parts()) == (causes(lost(1))[0].id, 3, 3, ["1-2", "9"])


def test_the_newest_are_kept(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "history")
    for day in range(KEPT + 2):
        keep(folder, record(day=day))
    history = read(folder)
    assert len(history.records) == KEPT and history.records[0].at_us == record(day=2).at_us
    assert [entry.at_us for entry in history.records] == sorted(entry.at_us for entry in history.records)
    assert [entry.at_us for entry in read(folder, 2).records] == [entry.at_us for entry in history.records[-2:]]


def test_two_at_once_are_both_kept(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    assert keep(folder, record()) != keep(folder, record(lost(1)))
    assert [entry.verdict for entry in read(folder).records] == ["clean", "not clean"]


def test_findings_beyond_the_bound_are_a_number(tmp_path: Path) -> None:
    many = record([row(node=f"node-{number}", store=number) for number in range(FINDINGS_MAX + 5)])
    copy = record_of(many.as_json())
    assert (len(copy.findings), copy.left_out) == (FINDINGS_MAX, 5)


_KILLED = """
import os, signal, sys
from pathlib import Path
from reconciliation.history import kept
from reconciliation.model.folder import LocalFolder
from tests.reconciliation.history.runs import lost, record
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[2], die)
kept.keep(LocalFolder(Path(sys.argv[1])), record(lost(1), day=1))
"""


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_kill_leaves_the_records_that_there_were(tmp_path: Path, step: str) -> None:
    """Before the content is on disk, and before it has its name. What was half done is removed a day later."""
    folder = LocalFolder(tmp_path)
    keep(folder, record())
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path), step], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    history = read(folder)
    assert (len(history.records), history.damaged) == (1, [])
    assert len([*tmp_path.iterdir()]) == 2, "the half is there"
    keep(folder, record(day=1))
    assert len([*tmp_path.iterdir()]) == 3, "it is young: another one may be writing it"
    keep(folder, record(day=3))
    assert len([*tmp_path.iterdir()]) == 3


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def fewer(content: bytes) -> bytes:
    """Its finding is taken out by hand."""
    return json.dumps({**json.loads(content), "findings": []}).encode()


def later(content: bytes) -> bytes:
    return content.replace(b'"v": 1', b'"v": 9')


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut, "it is no JSON"),
        (fewer, "it was cut or changed"),
        (later, "of version 9, and this release reads version 1"),
        (lambda _: b"[]", "it is no record of a reconciliation"),
        (lambda _: b"", "it is no JSON"),
    ],
)
def test_a_damaged_record_is_named_and_nothing_is_compared_with_an_older_one(
    tmp_path: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    folder = LocalFolder(tmp_path)
    keep(folder, record())
    name = keep(folder, record(lost(1), day=1))
    assert read(folder).before(record(day=2)) is not None
    (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
    history = read(folder)
    assert len(history.records) == 1 and history.before(record(day=2)) is None
    [sentence] = history.words_of_damaged()
    assert sentence.startswith(f"{tmp_path}/{name} is damaged: ") and words in sentence and "remove it" in sentence
    keep(folder, record(day=2))
    before = read(folder).before(record(day=3))
    assert before is not None and before.at_us == record(day=2).at_us, "a newer record is whole"


def test_only_the_same_window_of_the_same_realm_is_compared(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    keep(folder, record())
    now = record(day=1)
    assert read(folder).before(now) is not None
    one_made_again = record(day=1, realm={"um.realm": "a", "um.journal": "made again"})
    assert read(folder).before(one_made_again) is not None
    for other in ({"window": {"since_us": 5, "until_us": 9}}, {"realm": {"um.realm": "x", "um.journal": "y"}}):
        assert read(folder).before(record(day=1, **other)) is None


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert kept.read(LocalFolder(tmp_path / "history")).records == ()
