"""The auditor reads the realm's records by code of its own, from docs/records.md alone: it says of them what the realm
says of them. Only these tests know both."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from mappings.language.classification import Classification as OfGateway
from native_backend.journal.process_liveness import SystemLiveness
from native_backend.journal.snapshot import StateCopy, encode_snapshot, newest_sets
from native_backend.limits import RealmLimits
from native_backend.log.open import open_embedded
from native_backend.log.port import Records
from native_backend.log.record_headers import HeadedKey
from native_backend.log.sqlite.columns import encode
from native_backend.nodes import group_offset
from native_backend.nodes.durable import Durable, durable_key, encode_durable
from native_backend.nodes.durable_terms import DurableTerms
from native_backend.nodes.metadata import Metadata as OfRealm
from native_backend.nodes.node import Node, encode_node, node_key, store_id
from native_backend.nodes.properties import Properties
from native_backend.state.ack_state import AckState
from native_backend.state.intervals import Intervals
from reconciliation.model.realm_nodes import Metadata
from reconciliation.model.settings import SettingsError, load_realm
from reconciliation.model.withdrawn import merged
from reconciliation.read import realm_file, record_file
from reconciliation.read.group_positions import projection_of
from reconciliation.read.node_classes import Classification
from reconciliation.read.processes import has_ended
from reconciliation.read.snapshots import newest
from tests.kit.realm import sqlite_snapshot as snapshot
from tests.reconciliation.world import World

Record = tuple[int, bytes, "bytes | None"]
IDENTITY = b"3;complete;1-0001;7;1;4;"


def never(topic: str, number: int, first: int, end: int) -> None:
    raise AssertionError(f"{topic}/{number} cannot be read from {first} to {end}")


def test_the_file_of_an_embedded_realm(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path)) as log:
        world = World(log, "um")
        orders, run = world.queue("orders"), world.run()
        sent = run.publish(orders, 5)
        run.settle(orders, sent[:2], "accepted")
        world.project(orders, None, sent[2].eid)
        log.control.trim(orders.topic, 0, sent[1].eid)
        run.close()
    with snapshot.opened(tmp_path) as theirs, realm_file.opened(tmp_path) as ours:
        assert ours.topic_ids() == theirs.topic_ids()
        assert ours.ends() == theirs.ends()
        assert ours.group_positions() == theirs.group_positions() != []
        for topic in ours.topic_ids():
            assert [*ours.rows(topic, never)] == [*theirs.rows(topic, never)], topic


def test_records_with_headers_and_without() -> None:
    keys = [
        HeadedKey.of_event(IDENTITY, b"own", (("colour", b"red"), ("none", None))),
        None,
        b"plain",
        HeadedKey(b"own", b"own", (("strange", b"3;x"),)),
    ]
    data = encode(keys, [b"v", None, b"", b"w"])
    names, values = realm_file.decode(data, 4)
    assert (names, values) == ([IDENTITY, None, b"plain", b"own"], [b"v", None, b"", b"w"])


@pytest.mark.parametrize("wanted", [100, 102, 103])
@pytest.mark.parametrize(
    ("keys", "values"),
    [
        ([b"1", b"22", b"", b"4444"], [b"v", b"", b"www", b"x" * 9]),
        ([b"1", None, b"3", None], [None, b"2", None, b""]),
        ([HeadedKey.of_event(IDENTITY, b"own", (("colour", b"red"),)), b"2", None, b"4"], [b"v", None, b"", b"w"]),
        ([None] * 4, [None] * 4),
    ],
)
def test_columns_are_what_the_rows_are(keys: list[bytes | None], values: list[bytes | None], wanted: int) -> None:
    data = encode(keys, values)
    batch = realm_file.Batch("um.node.orders", 2, wanted, 100, 4, 1_764_000_000_000, data)
    names, held = realm_file.decode(data, 4)
    rows = [*zip(range(100, 104), names, held, strict=True)][wanted - 100 :]
    columns = record_file.columns_of([batch], of_events=False)
    assert columns.values is not None
    read = columns.offsets.tolist(), columns.names.to_pylist(), columns.values.to_pylist()
    assert [*zip(*read, strict=True)] == rows
    events = record_file.columns_of([batch], of_events=True)
    kept = [(offset, name) for offset, name, value in rows if value is not None]
    assert [*zip(events.offsets.tolist(), events.names.to_pylist(), strict=True)] == kept and events.values is None


def test_a_file_of_records_has_the_rows_of_all_batches(tmp_path: Path) -> None:
    """Of two topics and partitions; a row group ends where so many records are there."""
    file, written = record_file.RecordFile(tmp_path, lambda: written.append(file.written)), list[int]()
    expected = []
    for number, (topic, count) in enumerate([("a", 3), ("b", record_file.BATCH_RECORDS), ("a", 1)]):
        keys, values = [b"%d" % place for place in range(count)], [b"v%d" % place for place in range(count)]
        batch = realm_file.Batch(topic, number, 0, 0, count, 5 + number, encode(keys, values))
        file.add(record_file.columns_of([batch], of_events=False))
        expected += [(topic, number, place, 5 + number, keys[place], values[place]) for place in range(count)]
    file.close()
    table = pq.read_table(tmp_path / "part-0.parquet")
    assert [tuple(row.values()) for row in table.to_pylist()] == expected
    assert written == [record_file.BATCH_RECORDS + 3, record_file.BATCH_RECORDS + 4]


def test_octets_that_are_no_batch_are_torn() -> None:
    batch = realm_file.Batch("um.node.orders", 0, 0, 0, 4, 5, b"short")
    with pytest.raises((ValueError, struct.error)):
        record_file.columns_of([batch], of_events=True)


BATCHES: list[tuple[list[HeadedKey | bytes | None], list[bytes | None]]] = [
    ([b"1", b"22"], [b"v", None]),
    ([None], [b""]),
    ([HeadedKey.of_event(IDENTITY, b"own", (("colour", b"red"),)), b"4"], [b"www", b"x"]),
    ([b"", b"66", b"7"], [None, None, b"y"]),
]


@pytest.mark.parametrize("chosen", [[0, 1, 3], [0, 1, 2, 3], [2, 2], [1, 1, 1, 1, 1]])
@pytest.mark.parametrize("wanted", [0, 1, 3])
def test_columns_of_several_batches_are_those_of_each(chosen: list[int], wanted: int) -> None:
    """With headers in one of them, tombstones, absent keys, and a beginning within one."""
    batches, first = list[realm_file.Batch](), 0
    for number in chosen:
        keys, values = BATCHES[number]
        batches.append(realm_file.Batch("um.node.a", 1, wanted, first, len(keys), 5 + first, encode(keys, values)))
        first += len(keys)
    assert len(_rows(record_file.columns_of(batches, of_events=False))) == first - wanted
    for of_events in (False, True):
        together = record_file.columns_of(batches, of_events=of_events)
        alone = [record_file.columns_of([batch], of_events=of_events) for batch in batches]
        assert _rows(together) == [row for columns in alone for row in _rows(columns)]


def _rows(columns: record_file.Columns) -> list[tuple[Any, ...]]:
    values = [None] * len(columns.offsets) if columns.values is None else columns.values.to_pylist()
    return [*zip(columns.offsets.tolist(), columns.at_ms.tolist(), columns.names.to_pylist(), values, strict=True)]


def test_batches_of_one_partition_are_read_together_until_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "BATCH_RECORDS", 5)
    monkeypatch.setattr(record_file, "BATCH_BYTES", 1_000)
    places = [("a", 0, 2, 1), ("a", 0, 3, 1), ("a", 0, 1, 1), ("a", 1, 1, 1), ("b", 1, 1, 1_000), ("b", 1, 9, 1)]
    batches = [realm_file.Batch(topic, number, 0, 0, count, 0, b"x" * size) for topic, number, count, size in places]
    groups = [[batches.index(batch) for batch in group] for group in record_file.gathered(batches)]
    assert groups == [[0, 1], [2], [3], [4], [5]]


def histories(seed: int) -> Iterator[Record]:
    """Nodes that begin, change, end and begin anew, under few names; durables beside them."""
    chance, offset = random.Random(seed), 0
    topics = {"a": range(1, 4), "b": range(4, 7)}  # no two nodes have one topic
    for _ in range(60):
        offset += chance.randrange(1, 3)
        name = chance.choice("ab")
        topic_id = bytes([chance.choice(topics[name])]) * 16
        store = store_id(topic_id)
        what = chance.choice(["node", "node", "durable", "durable", "end", "end of a durable", "realm"])
        if what == "node":
            properties = Properties(ttl_ms=chance.randrange(3), partitions=chance.choice([1, 1, 3]))
            node = Node(name, "channel", f"t{store}", topic_id, store, properties, created_us=offset)
            after = chance.choice([None, 0, chance.randrange(offset)])
            yield offset, node_key(name), encode_node(node, offset + chance.randrange(2), after)
        elif what == "durable":
            terms = DurableTerms(selector=chance.choice(["", "a = 1"]))
            starts = chance.choice([(), (3, 4)])
            places, owner = (chance.randrange(9), chance.randrange(9)), chance.choice(["", "alice"])
            durable = Durable(name, "d", store, f"g.{name}", *places, terms, starts, owner)
            yield offset, durable_key(name, "d"), encode_durable(durable, offset)
        elif what == "end":
            yield offset, node_key(name), None
        elif what == "end of a durable":
            yield offset, durable_key(name, "d"), None
        else:
            yield offset, orjson.dumps(["realm"]), orjson.dumps({"v": 2, "acl": []})


@pytest.mark.parametrize("seed", range(40))
def test_metadata(seed: int) -> None:
    theirs, ours = OfRealm(), Metadata()
    for offset, key, value in histories(seed):
        theirs.fold([Records([offset], [0], [key], [value], offset + 1)])
        ours.take(offset, key, value)
        ours.take(offset, key, value)  # what is known already changes nothing
        assert {name: _node(node) for name, node in ours.nodes.items()} == {
            name: _node(node) for name, node in theirs.nodes.items()
        }
        assert {store: _node(node) for store, node in ours.stores.items()} == {
            store: _node(node) for store, node in theirs.stores.items()
        }
        assert [_durable(*pair) for pair in ours.each_durable()] == [_durable(*pair) for pair in theirs.each_durable()]


def _node(node: Any) -> tuple[object, ...]:
    properties = node.properties
    return (node.name, node.kind, node.topic, node.topic_id, node.store, node.partition, node.created_us, node.adopted,
            properties.ttl_ms, properties.stores, properties.capacity_events, properties.honour_capacity)  # fmt: skip


def _durable(node: Any, entry: Any) -> tuple[object, ...]:
    selector = entry.selector if hasattr(entry, "selector") else entry.terms.selector
    return node.store, entry.node, entry.name, entry.store, entry.group, entry.start, entry.journal, selector


def test_a_node_of_a_later_release_is_refused() -> None:
    with pytest.raises(ValueError, match="version 9"):
        Metadata().take(0, node_key("a"), orjson.dumps({"v": 9}))


def test_snapshots_whole_and_torn() -> None:
    records: list[tuple[bytes, dict[str, Any]]] = []
    for journal, room in ((5, 900_000), (9, 600), (7, 700)):
        state = AckState(journal, 100)
        for first in range(journal + 2, 90, 3):
            state.acked.add(first, first)
        copy = StateCopy("orders", "queue", 7, journal, False, state)
        parts = encode_snapshot(copy, f"run:{journal}", room)
        records += [(key, orjson.loads(value)) for key, value in parts]
    records.append((orjson.dumps([8, "old"]), {"v": 1, "low": 3, "acked": [[5, 6]], "failed": [], "journal": 2}))
    for torn in ([], records[1:2]):
        kept = [record for record in records if record not in torn]
        expected = {
            key: (parts[0]["low"], [tuple(stretch) for part in parts for stretch in part["acked"]], parts[0]["journal"])
            for key, parts, _ in newest_sets(kept)
            if parts
        }
        unreadable: list[str] = []
        snapshots = newest(kept, unreadable)
        assert {key: (entry.low, [*entry.acked], entry.journal) for key, entry in snapshots.items()} == expected
        assert unreadable == []
    newest([(orjson.dumps([8, "new"]), {"v": 3})], unreadable)
    assert unreadable == ["state: version 3 is of a later release"]


@pytest.mark.parametrize("text", ["", "mine", "realmgate2;7;3;00000000", "realmgate1;7;0", "realmgate2;x;3;0"])
def test_group_offsets(text: str) -> None:
    for position in ((5, text), group_offset.projection(5, 3, 7), (6, group_offset.projection(5, 3, 7)[1])):
        projection = projection_of(*position)
        assert projection.mark == group_offset.low_of(position)
        assert (projection.journal if projection.intact else None) == group_offset.parse_projection(position)


def test_whether_a_process_has_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    here = SystemLiveness().this_process()
    fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    of_child = {**here, "pid": child.pid, "start": int(fields[19])}
    assert not has_ended(here)
    assert not has_ended(of_child)
    assert has_ended({**of_child, "start": 1}), "its number is another's now"
    child.kill()
    child.wait()
    assert has_ended(of_child)
    assert not has_ended({**of_child, "boot": "another machine"})
    assert not has_ended({})


def test_classes_of_nodes() -> None:
    document = {
        "node_classes": ["default", "bulk", "odd"],
        "rules": {
            "a": {
                "names": ["orders.*", "*.bulk"],
                "unless": ["orders.small*"],
                "node_class": "bulk",
                "transformer": None,
            },
            "b": {"names": ["a*b*c", "x.y"], "unless": [], "node_class": "odd", "transformer": "none"},
        },
    }
    names = ["orders.1", "orders.small", "x.bulk", "abc", "aXbXc", "abcb", "x.y", "xzy", "", "orders.\nline"]
    for part in (document, None):
        assert [Classification(part).class_of(name) for name in names] == [
            OfGateway.read(part)(name).node_class for name in names
        ]


def test_ranges() -> None:
    chance = random.Random(5)
    for _ in range(50):
        ranges = [(first, first + chance.randrange(4)) for first in chance.sample(range(60), 12)]
        assert merged(ranges) == [*Intervals(ranges)]


def test_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text("secret\n")
    monkeypatch.setenv("KEY_PASSWORD", "of the environment")
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "listen: []\n"
        "realm:\n"
        "  kind: kafka\n"
        "  bootstrap: 127.0.0.1:9092\n"
        "  client: {sasl.username: ann, sasl.password: {file: password}, ssl.key.password: {env: KEY_PASSWORD},\n"
        "    ssl.ca.location: ca.pem, enable.ssl: true, retries: 7}\n"
    )
    realm = load_realm(file)
    assert realm.client == {
        "sasl.username": "ann", "sasl.password": "secret", "ssl.key.password": "of the environment",
        "ssl.ca.location": str(tmp_path / "ca.pem"), "enable.ssl": "True", "retries": "7",
    }  # fmt: skip
    assert (realm.prefix, realm.evidence_s) == ("um", RealmLimits().evidence_s)
    assert "secret" not in repr(realm)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "realm: {kind: kafka, bootstrap: b, client: {sasl.password: {file: none}}}",
            r":1: realm.client.sasl.password: ",
        ),
        (
            "\nrealm: {kind: kafka, bootstrap: b, client: {a: {env: NOT_SET}}}",
            r":2: realm.client.a: env NOT_SET holds no",
        ),
        ("realm: [", r":1: this is not YAML: "),
        ("- a list", r":1: realm is missing"),
    ],
)
def test_a_configuration_that_cannot_be_used(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(text)
    os.environ.pop("NOT_SET", None)
    with pytest.raises(SettingsError, match=words):
        load_realm(file)
    with pytest.raises(SettingsError, match="cannot be read"):
        load_realm(tmp_path / "absent.yaml")
