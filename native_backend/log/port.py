"""The log port: what the realm asks of Kafka, SQLite or the simulated log, and all it may ask.

A log holds named topics; a topic has a 16-byte id (a recreated topic has another one) and partitions; a partition is a
rising, not dense, sequence of records. The port knows nothing of AMQP, queues, access or capacity: only records.

Two kinds of call:

* *data* calls (`Log`, `Reader`) never block. They are made from the gateway's one thread; what they started is answered
  by a completion out of `poll`.
* *control* calls (`Log.control`) block up to a deadline and may be made from any thread; they raise `LogError`.

A record with headers has a `HeadedKey` for its key, in and out (`native_backend/log/record_headers.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from native_backend.log.access_lists import AccessLists
from native_backend.log.columns import Strings

Cause = Literal[
    "not-found",  # the topic (or partition) does not exist, after a metadata refresh
    "too-large",  # this record can never be stored
    "invalid",  # this record is one that the log does not take; it takes others
    "capacity-reached",  # there is no room now; certainly not done
    "refused",  # the log's own access rules said no
    "fenced",  # another process has claimed this shard since
    "indeterminate",  # the deadline passed: it may or may not be stored
    "retention",  # the position asked for lies below the first record that is kept, or beyond the end
    "unavailable",  # could not be reached inside the deadline; certainly not done
    "unexpected",  # anything else; `detail` has the log's own words
]

FORMAT = "format"  # the code of a failure: what is stored has a version that this release does not know


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something was not done: a value, not an exception (the world failed; the tables decide what follows)."""

    cause: Cause
    detail: str = ""
    code: str = ""  # the log's own error code or name, for the error matrix


class LogError(Exception):
    """A control call failed; `failure` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.cause}: {failure.detail}")
        self.failure = failure


class if_there:
    """Leaves its block where a topic is not there; other failures are raised."""

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        return isinstance(error, LogError) and error.failure.cause == "not-found"


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create. `compacted` keeps the newest record of a key; otherwise nothing is ever deleted by the log
    itself (`retention.ms=-1`): the realm trims."""

    name: str
    partitions: int = 1
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists."""

    name: str
    id: bytes  # 16 octets
    partitions: int


@dataclass(frozen=True, slots=True)
class TopicState:
    """`settings` in the log's own names; `replicas` and `in_sync` of the partition that has fewest."""

    settings: Mapping[str, str]
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a log with brokers says of itself. `version`: empty where it was not asked for. `free_bytes`: of the fullest
    disk; None where brokers do not say it, or were not asked. `risk`: by what their release may lose, empty: nothing
    that is known.
    A topic that is not there, or whose settings may not be read, is not among `topics`; of these, those that may be
    there are `unread`."""

    brokers: int
    version: str
    free_bytes: int | None
    topics: Mapping[str, TopicState]
    unread: Set[str] = frozenset()
    risk: str = ""


@dataclass(frozen=True, slots=True)
class Records:
    """A run of records in offset order, as columns of equal length. `next` is where to read on: at least one past the
    last offset, more where the log skips (control records, aborted records, gaps)."""

    offsets: list[int]
    timestamps_ms: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]  # None is a tombstone
    next: int


@dataclass(slots=True)
class Append:
    """One batch for one partition, stored in order. The driver completes it in one or several `Appended`.

    `keys` and `values` have equal length; all of the keys are `HeadedKey`s or none is. `owner` is the caller's, and so
    are `known`, the end of the partition that it knew of, and `began_s`, when it handed the batch over, in monotonic
    seconds; no driver looks at them. `aside`: no caller waits for it. It may take longer than what is published, and
    whatever becomes of it must not make the result of what is published unknown.
    """

    topic: str
    partition: int
    keys: Strings
    values: Strings
    owner: Any = None
    offsets: list[int] = field(default_factory=list)  # the driver's scratch; read `Appended` instead
    aside: bool = False
    known: int = 0
    began_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Appended:
    """Records `first .. first + len(offsets) - 1` of `batch` are stored (fsynced or acks=all), or failed.

    Completions of one partition come in the order of their appends. On `failure`, `offsets` holds -1 for each record
    it speaks of.
    """

    batch: Append
    first: int
    offsets: list[int]
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One record of a transaction."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Transacted:
    """A transaction ended. `failure` None: all of it is stored, at `offsets` (one for each write). `indeterminate`:
    it may have been; `claim` the shard again, then read the journal to learn. Any other cause: none of it is stored.
    `rest_s`: one that is handed over earlier waits for so long; who gathers meanwhile carries more, no later."""

    owner: Any
    offsets: list[int]
    failure: Failure | None = None
    rest_s: float = 0.0


TopicPartition = tuple[str, int]
Completion = Appended | Transacted
Taken = tuple[list[int], list[bytes], list["bytes | None"]]
"""Offsets, values and keys."""
Positions = dict[TopicPartition, tuple[int, str]]
"""Offsets of a group, each with its metadata text."""
METADATA_CHARACTERS_MAX = 4000


def check_metadata(positions: Positions) -> None:
    """Raises `LogError`."""
    if any(len(metadata) > METADATA_CHARACTERS_MAX for _, metadata in positions.values()):
        raise LogError(Failure("too-large", f"metadata of more than {METADATA_CHARACTERS_MAX} characters"))


class Reader(Protocol):
    """One position in one partition, reading forward, committed records only. Never blocks."""

    times_ms: list[int]  # of the records that the last `read` gave, when it was opened `stamped`

    @property
    def position(self) -> int:
        """The offset that `read` continues from."""
        ...

    def read(self, count_max: int) -> Taken | Failure | None:
        """The next 1..count_max records that are already here; None if there are none at
        the moment. Tombstones and records with a null value are passed over. `retention` where nothing can come: the
        partition begins above the position, or ends below it."""
        ...

    def close(self) -> None: ...


class Control(Protocol):
    """The calls that may block up to `deadline_s`, from any thread but the gateway's while it serves. They raise
    `LogError`."""

    def create_topics(self, specs: Sequence[TopicSpec], deadline_s: float = 10.0) -> list[Topic]:
        """Create what does not exist; idempotent, in the order of `specs`."""
        ...

    def grow_topic(self, name: str, partitions: int, deadline_s: float = 10.0) -> None:
        """Give a topic so many partitions; one that has as many or more keeps them."""
        ...

    def topics(self, prefix: str, deadline_s: float = 10.0) -> dict[str, Topic]:
        """The topics whose name begins with `prefix`, by name."""
        ...

    def find_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> dict[str, Topic]:
        """Those of them that exist and can be used now, by name."""
        ...

    def delete_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> None:
        """Deleting a topic that does not exist is no error."""
        ...

    def bounds(self, topic: str, partition: int, deadline_s: float = 10.0) -> tuple[int, int]:
        """The first offset that is kept, and the end: one past the last committed record (the last stable offset)."""
        ...

    def read_range(self, topic: str, partition: int, start: int, count_max: int, deadline_s: float = 10.0) -> Records:
        """Up to count_max committed records at or after `start`; fewer (with `next` == the end) only at the end.
        Tombstones are included. Raises `retention` when `start` lies below the first kept record."""
        ...

    def holds_only(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        records: int,
        transactions: int,
        deadline_s: float = 10.0,
    ) -> bool:
        """Whether nothing is in [start, end) but so many records that the caller stored, in so many transactions (and
        appends). Both were the end once, so the marks of those transactions lie in between. False where only reading
        would tell."""
        ...

    def put(self, topic: str, key: bytes, value: bytes | None, deadline_s: float = 10.0) -> int:
        """Append one record to partition 0 outside any transaction and wait until it is stored: the command line's
        and metadata's way. Returns its offset."""
        ...

    def put_all(
        self, topic: str, keys: Sequence[bytes], values: Sequence[bytes | None], deadline_s: float = 10.0
    ) -> list[int]:
        """The same for several records, stored in their order. After an error some of them may be there."""
        ...

    def claim(self, shard: str, deadline_s: float = 10.0) -> None:
        """Become the only process that may `transact` for `shard`; an earlier holder is fenced (its next transaction
        fails with `fenced`). Ends, one way or the other, any transaction that was left open."""
        ...

    def trim(self, topic: str, partition: int, before: int, deadline_s: float = 10.0) -> None:
        """Delete records below `before`."""
        ...

    def project(self, group: str, positions: Positions, deadline_s: float = 10.0) -> None:
        """Commit group offsets with metadata text (at most METADATA_CHARACTERS_MAX characters), plainly."""
        ...

    def projected(self, group: str, deadline_s: float = 10.0) -> Positions:
        """The stored offsets of a group; empty when there are none."""
        ...

    def access_lists(self, deadline_s: float = 10.0) -> AccessLists | None:
        """The log's own access lists; None: it keeps none."""
        ...

    def forget(self, group: str, deadline_s: float = 10.0) -> None:
        """Delete the group's stored offsets. A group without any is no error."""
        ...

    def record_bytes_max(self, topics: Sequence[str], deadline_s: float = 10.0) -> dict[str, int]:
        """How many octets a record of each topic has at most, its key and headers among them. A topic whose setting
        cannot be read has the size that every log takes."""
        ...

    def certain_copies(self, topic: str, deadline_s: float = 10.0) -> int | None:
        """On how many brokers a record is at least when it is answered as stored; None for a log without brokers."""
        ...

    def inspect(self, topics: Sequence[str], deadline_s: float = 10.0, *, whole: bool = True) -> Inspection | None:
        """How its brokers and these topics are set up, for an operator; None for a log without brokers. Not
        `whole`: neither their version, which one broker has to be asked for, nor how full their disks are, which takes
        long where there are many partitions."""
        ...


class Log(Protocol):
    """A driver: its data calls, and its control calls in `control`. `kind` is what `serve` prints after `realm=`."""

    kind: str
    poll_interval_s: float  # with anything in flight or a reader open, `poll` at least this often; 0: `wake` tells
    descriptor: int  # an eventfd that becomes readable when `poll` has something to do; -1: there is none

    @property
    def control(self) -> Control: ...

    def append(self, batch: Append) -> None:
        """Store `batch`; completed by `Appended`."""
        ...

    def transact(self, shard: str, writes: Sequence[Write], owner: Any) -> None:
        """Store `writes` all or none, fenced by the claim on `shard`; completed by `Transacted`. One at a time a
        shard."""
        ...

    def open_reader(
        self, topic: str, partition: int, start: int, stamped: bool = False, headed: bool = False
    ) -> Reader:
        """`stamped`: with the records' times. `headed`: with their headers; a log that has them at hand gives them
        anyhow, another gives the records' own keys."""
        ...

    def poll(self) -> list[Completion]:
        """What has completed since the last call, oldest first."""
        ...

    def on_ready(self, wake: Callable[[], None]) -> None:
        """`wake` may be called from any thread when `poll` or a reader has something. Drivers with a poll interval
        need not."""
        ...

    def close(self, deadline_s: float = 3.0) -> None:
        """Complete what can be completed, then release everything."""
        ...
