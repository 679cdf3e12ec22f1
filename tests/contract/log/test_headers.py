"""The contract of the log port: records with headers, in and out with their keys."""

from __future__ import annotations

from native_backend.log.port import Append, Appended, Write
from native_backend.log.record_headers import IDENTITY, HeadedKey, headed, key_bytes, record_key
from tests.kit.realm.worlds import RECORD_BYTES_MAX, OpenLog

HEADERS = (("name", b"text"), ("none", None), ("empty", b""), ("name", b"again"), ("\u00e4", bytes(range(256))))


def identity(seq: int) -> bytes:
    return b"3;complete;19aa5b3c1f0-9c2e;%d;0;4;" % seq


def keys(count: int) -> list[bytes]:
    own = (b"own", None, b"")
    return [HeadedKey.of_event(identity(seq), own[seq % 3], HEADERS[: seq % 6]) for seq in range(count)]


def looked_at(key: bytes | None) -> tuple[bytes | None, bytes | None, object]:
    return key, record_key(key), key.headers if type(key) is HeadedKey else None


def store(opened: OpenLog, topic: str, keys: list[bytes], values: list[bytes]) -> list[int]:
    opened.log.append(Append(topic, 0, keys, values))
    offsets = []
    for answer in opened.completions(len(values)):
        assert isinstance(answer, Appended)
        assert answer.failure is None, answer.failure
        offsets += answer.offsets
    return offsets


def test_appended_headers_come_back_by_readers_and_ranges(opened: OpenLog) -> None:
    name, sent, values = opened.topic("t"), keys(40), [b"%d" % n if n % 4 else b"" for n in range(40)]
    offsets = store(opened, name, sent, values)
    read = opened.read(opened.log.open_reader(name, 0, 0, headed=True), 40, at_a_time=7)
    assert [(offset, value) for offset, value, _ in read] == list(zip(offsets, values, strict=True))
    assert [looked_at(key) for _, _, key in read] == [looked_at(key) for key in sent]
    opened.until(lambda: opened.log.control.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    records = opened.log.control.read_range(name, 0, offsets[3], 100)
    assert [looked_at(key) for key in records.keys] == [looked_at(key) for key in sent[3:]]
    assert records.values == values[3:]


def test_transacted_headers_come_back_among_records_without(opened: OpenLog) -> None:
    name, (first, second) = opened.topic("t"), keys(2)
    opened.log.control.claim("s")
    assert not opened.transact(
        "s", [Write(name, 0, first, b"1"), Write(name, 0, b"k", b"2"), Write(name, 0, second, b"3")]
    ).failure
    read = opened.read(opened.log.open_reader(name, 0, 0, headed=True), 3)
    assert [looked_at(key) for _, _, key in read] == [looked_at(first), (b"k", b"k", None), looked_at(second)]


def test_batches_with_and_without_headers_keep_their_order(opened: OpenLog) -> None:
    name = opened.topic("t")
    for batch in range(6):
        some = keys(3) if batch % 2 else [b"k"] * 3
        opened.log.append(Append(name, 0, some, [b"%d" % (batch * 3 + n) for n in range(3)]))
    opened.completions(18)
    read = opened.read(opened.log.open_reader(name, 0, 0, headed=True), 18)
    assert [value for _, value, _ in read] == [b"%d" % n for n in range(18)]
    assert [type(key) is HeadedKey for _, _, key in read] == [n % 6 > 2 for n in range(18)]


def test_a_reader_without_headers_still_gives_the_records(opened: OpenLog) -> None:
    name = opened.topic("t")
    store(opened, name, keys(3), [b"a", b"b", b"c"])
    read = opened.read(opened.log.open_reader(name, 0, 0), 3)
    assert [(value, record_key(key)) for _, value, key in read] == [(b"a", b"own"), (b"b", None), (b"c", b"")]


def test_headers_count_towards_what_a_record_may_be(opened: OpenLog) -> None:
    name, large = opened.topic("t"), (("large", b"x" * RECORD_BYTES_MAX),)
    too_large = HeadedKey.of_event(identity(1), None, large)
    opened.log.append(Append(name, 0, [keys(1)[0], too_large, keys(1)[0]], [b"1", b"2", b"3"]))
    answers = opened.completions(3)
    causes = [a.failure and a.failure.cause for a in answers if isinstance(a, Appended) for _ in a.offsets]
    assert causes == [None, "too-large", None]
    assert [value for _, value, _ in opened.read(opened.log.open_reader(name, 0, 0), 2)] == [b"1", b"3"]


def test_an_identity_is_the_first_header_and_nothing_else() -> None:
    assert headed(b"k", None) == headed(b"k", []) == b"k"
    assert looked_at(headed(b"k", [("a", b"b")])) == (b"k", b"k", (("a", b"b"),))
    assert looked_at(headed(None, [("a", b"b")])) == (b"", None, (("a", b"b"),))
    assert headed(b"k", [(IDENTITY, b"3;x")]) == b"3;x"
    for forged in ([("a", b"b"), (IDENTITY, b"3;x")], [(IDENTITY, b"1;basic;r;1")], [(IDENTITY, None)]):
        assert headed(b"k", forged) == b"k"


def test_a_record_under_another_identity_keeps_all_else() -> None:
    event = HeadedKey.of_event(identity(7), b"own", HEADERS)
    copy = event.renamed(b"2;1;2;moved;" + event)
    assert looked_at(copy) == (b"2;1;2;moved;" + event, b"own", ((IDENTITY, bytes(copy)), *HEADERS))
    foreign = headed(b"own", HEADERS)
    assert type(foreign) is HeadedKey
    assert foreign.renamed(b"2;x").headers == ((IDENTITY, b"2;x"), *HEADERS)
    assert key_bytes(event) >= len(event) + 3 + sum(len(name) + len(value or b"") for name, value in HEADERS)
