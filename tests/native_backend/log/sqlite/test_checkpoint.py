"""The write-ahead log is copied into the file beside the writer; what was committed is kept, whatever happens to it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from native_backend.log.open import open_embedded
from native_backend.log.port import Append, Appended, Log, TopicSpec
from native_backend.log.sqlite.checkpoint import EVERY_BYTES
from native_backend.log.sqlite.schema import FILE, connect
from tests.kit.patience import until

BODY = bytes(100_000)
COUNT = EVERY_BYTES // len(BODY) + 1


def write(log: Log, count: int) -> None:
    for number in range(count):
        log.append(Append("t", 0, [b"k"], [BODY], number))
    answers: list[object] = []

    def all_there() -> bool:
        answers.extend(log.poll())
        return len(answers) == count

    until(all_there, f"{count} answers")
    assert all(isinstance(answer, Appended) and answer.failure is None for answer in answers)


def test_the_file_grows_although_no_commit_has_copied(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path)) as log:
        log.control.create_topics([TopicSpec("t")])
        write(log, COUNT)
        until(lambda: (tmp_path / FILE).stat().st_size > EVERY_BYTES, "a copy of what was written")


def test_a_reader_of_an_old_state_holds_up_neither_writer_nor_close(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path)) as log:
        log.control.create_topics([TopicSpec("t")])
        with closing(connect(tmp_path)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM batches").fetchone() == (0,)
            write(log, 3 * COUNT)
            assert reader.execute("SELECT count(*) FROM batches").fetchone() == (0,)
            log.close()
    with closing(open_embedded(tmp_path)) as log:
        assert log.control.read_range("t", 0, 0, 4 * COUNT).values == [BODY] * 3 * COUNT
