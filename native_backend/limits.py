"""The realm's limits: every one has a number, and this file says what it bounds."""

from __future__ import annotations

from dataclasses import dataclass

PARTITIONS = 64
"""Stores of one node, at most: each has a reader, a window and an acknowledgement state of its own."""


@dataclass(frozen=True, slots=True)
class RealmLimits:
    """Bounds of one realm in one process. Bytes, seconds, counts."""

    window_bytes: int = 16 * 1024 * 1024
    """Raw events kept per store, shared by all its subscriptions; at least one chunk is kept whatever its size."""
    feed_bytes: int = 256 * 1024 * 1024
    """Raw events kept in all: the windows of all stores, what lagging subscriptions read, what was read again; and at
    least the last chunk of each reader."""
    chunk_bytes: int = 1024 * 1024
    """What one read of events aims at; its count follows from the size of the events read before."""
    read_count: int = 1000
    """Events in one read, at most."""
    readers: int = 16
    """Readers of subscriptions that lag behind a store's window, for the whole realm."""
    reader_turn_s: float = 0.5
    """How long a lagging subscription keeps its reader when others wait for one; longer if it has brought nothing."""
    returned_scan: int = 64
    """Ranges of returned events that a link cannot have now and that one `take` passes over."""
    level_turns: int = 64
    """Of so many takes of one link from a node with priority levels one begins at the lowest level: what is there
    waits no longer, however much comes above it."""
    level_start_s: float = 5.0
    """How long a new link's lower levels wait for the readers of higher ones to bring what was stored there before."""
    selection_scan: int = 500
    """Events that all links with selectors together may be asked about in one turn: about two milliseconds of it."""
    selection_scan_bytes: int = 1 << 18
    """Octets of them that selectors may read. Events with very many properties take a hundred times as long."""
    passed_ranges: int = 1_000_000
    """Ranges of events in a queue that selectors passed over and no link has taken (16 bytes each)."""
    delayed_ranges: int = 2_000_000
    """Stretches of events of one durable, or one plain subscription, that are not to be given yet (16 bytes each)."""
    returned_events: int = 100_000
    """Events of one plain subscription that failed and have not been dealt with (some 100 bytes each). With more of
    them what fails is given again without the node's delay."""
    groups: int = 65_536
    """Places in the table that says which consumer has a message group; groups that share a place share a consumer."""
    kept_ranges: int = 100_000
    """Stretches of events that wait for one consumer, because it has their groups (16 bytes each)."""
    journal_interval_s: float = 0.005
    """From the beginning of one journal transaction to the next, on logs that are polled. A log that wakes us paces
    itself."""
    journal_events: int = 10_000
    """With as many settlements waiting the next transaction does not wait for the interval."""
    journal_waiting: int = 1_000_000
    """Events whose settlements wait for the journal (some 100 bytes each): with more of them no event is given. A peer
    that settles and takes more could have the whole of a queue wait, while the log can be read and not written."""
    journal_runs: int = 8_000
    """Runs in one journal record; keeps it below a log's record limit (a run takes at most 80 bytes)."""
    transaction_bytes: int = 16 * 1024 * 1024
    """Octets of events that units and settlements bring into one transaction of the log, but for a single one of them
    that is larger; the rest waits for the next."""
    snapshot_records: int = 10_000
    """Journal records between two rounds of snapshots: bounds what recovery reads."""
    snapshot_bytes: int = 900_000
    """A snapshot is cut into records of at most this: below a log's record limit, whatever the state's size."""
    recovery_records: int = 20_000
    """Records of journal or state that recovery reads at a time, at most: fewer where they are large."""
    snapshot_batch: int = 100
    """Durables whose snapshots are written at a time."""
    count_interval_s: float = 0.5
    """How often the stores that are written to are looked at for what others wrote, and for the log's own marks."""
    count_close_s: float = 1.0
    """For the last look at them."""
    count_round_s: float = 5.0
    count_stores: int = 200
    """The same for all stores: how often a round of them begins, and how many are looked at in one interval."""
    count_batch: int = 20
    """Stores that are looked at before other control work has its turn."""
    count_records: int = 10_000
    count_bytes: int = 4 * 1024 * 1024
    """What is read at a time of a store that has to be counted."""
    projection_interval_s: float = 1.0
    projection_groups: int = 50
    """Group offsets projected in one round; the rest come in the next."""
    projection_batch: int = 20
    """Group offsets projected at a time: what else the worker thread has to do waits no longer than for these."""
    metadata_interval_s: float = 1.0
    """How often realm metadata is followed: when a deleted node is noticed at the latest."""
    retain_s: float = 7 * 86_400.0
    """Ended events of queues stay in the log so long after they were stored: reconciliation's time."""
    evidence_s: float = 14 * 86_400.0
    """Outcome records stay so long, and the journal a little longer: reconciliation judges what came after."""
    history_s: float = 14 * 86_400.0
    """Records of the history stay so long."""
    trim_interval_s: float = 60.0
    """From one look at what may be trimmed to the next."""
    evidence_bytes: int = 16 * 1024 * 1024
    """Octets of evidence that wait until the log takes records again; what finds no room is lost, said and counted."""
    attestation_interval_s: float = 0.25
    """How often the journal notes, at most, how many outcome records are stored."""
    letter_events: int = 1_000
    letter_bytes: int = 1024 * 1024
    """Dead letters that are read and copied in one transaction; one event always fits."""
    letter_rest_s: float = 10.0
    """An event whose dead letter was refused is given to no consumer, and not given up again, for so long; nor is
    another letter tried meanwhile where the log refused the whole node."""
    command_interval_s: float = 0.5
    """How often the owner looks for commands of operators."""
    rights_interval_s: float = 3.0
    """How often the log's own access lists are read, where they count."""
    retry_interval_s: float = 0.1
    """From a failed read, transaction or resolution to the next attempt."""
    retry_attempts: int = 5
    retry_deadline_s: float = 2.0
    """Of a control job that failed and certainly was not done: others wait behind it."""
    retry_calls: int = 30
    """Attempts of one control call to the log inside its deadline."""
    retry_wait_s: float = 0.02
    retry_wait_max_s: float = 0.5
    """Between two of them: the first wait, doubled each time up to the longest."""
    late_s: float = 0.5
    late_look_s: float = 0.02
    """How long a look at the end of a store waits for the log to show what it has answered as stored, and how often it
    looks meanwhile."""
    topic_look_s: float = 1.0
    """How often the topics that are published to are looked at: when a topic made again is noticed at the latest."""
    topic_round_s: float = 5.0
    topic_round_nodes: int = 50
    """How often the topics of all nodes are looked at, and of how many nodes in one look: with more nodes a round takes
    longer."""
    settings_round_s: float = 60.0
    settings_round_topics: int = 100
    """How often the settings of all topics are looked at, and of how many in one look, a second apart."""
    diagnosis_s: float = 0.25
    """How often it is looked what keeps the realm from its work."""
    diagnosis_probe_s: float = 2.0
    """From a refused record to one that is written only to learn whether the log takes records again."""
    evidence_stalled_s: float = 5.0
    """How long evidence may wait without any of it being stored until `/health` shows it."""
    lease_s: float = 5.0
    """How long the owner of the shard may go unheard before another process takes over."""
    lease_look_s: float = 0.5
    """How often the owner looks whether another process asks for the lease."""
    full_look_s: float = 1.0
    """How often it is looked, while a full node refuses events, whether the retention of its topic has made room."""
    temporary_topics: int = 4
    temporary_topics_max: int = 32
    """Topics for temporary nodes that are made ahead once there was one such node; twice as many whenever one had to be
    waited for, up to so many."""
    temporary_drop_s: float = 1.0
    """How long the topic of a temporary node that has ended waits for others, to be deleted with them in one call."""
    control_deadline_s: float = 10.0
    """Deadline of one control call to the log."""
