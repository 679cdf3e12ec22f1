"""Every limit of a gateway: its number, its bounds, and what happens at it. `limits` in the configuration.

Octets, milliseconds, counts. A limit of a peer closes the smallest scope; a limit of our own holds credit or reading
back and closes nothing.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import Any

from native_backend.limits import RealmLimits

_REALM = RealmLimits()
_MIB = 1024 * 1024

# Reloading tables, which an operator's directory may make as large as it likes: no more of the answer is read, nor is
# it waited for any longer; the active tables stay.
TABLES_ANSWER_BYTES = 16 * _MIB
TABLES_CHECK_TIMEOUT_S = 60.0
RELOAD_STEP_LINKS = 25  # links that change to other tables without a pause: some 0.5 ms
# The admin pages: of one request's head, of requests under way, of one request's time; one more request is closed.
ADMIN_REQUEST_BYTES = 8_192
ADMIN_CONNECTIONS = 16
ADMIN_TIMEOUT_S = 5.0
# Before the head is there, and of probes, which have places of their own: one more closes the one that came first.
ADMIN_HEADS = 32
ADMIN_HEAD_TIMEOUT_S = 2.0
ADMIN_PROBES = 4
ADMIN_ROWS = 500  # of one answer of /api
TURN_AGE_MAX_S = 10.0  # of the last turn, in /livez: an idle gateway takes one every 20 ms
# What metrics tell apart; the rest is `other`. Names come from peers and from operators.
METRIC_NODES = 100
METRIC_ERRORS = 500
METRIC_RULES = 1_000
METRIC_DURABLES = 200
# Of those beyond, so many have their names where something may be wrong: nodes that are nearly full, durables with
# messages that their consumers do not take.
METRIC_MORE_NODES = 50
METRIC_MORE_DURABLES = 100
METRIC_PROBLEMS = 100
# What peers may ask for in their OPEN: how long they wait at least before they must have heard something, and how often
# all of them together. A heartbeat takes some 10 us.
IDLE_TIMEOUT_MIN_MS = 100
HEARTBEATS_PER_S = 20_000
RELAY_ADDRESSES = 100  # that one anonymous link keeps at hand; those that are idle give way
# Temporary nodes: characters that a generated name takes of the container's and of the link's; how often, and of how
# many, it is looked whether the last message has gone.
GENERATED_NAME_PART = 200
EMPTY_LOOK_S = 1.0
EMPTY_LOOK_NODES = 16
SUSPENDED_LINKS = 256  # of one connection, detached and not closed, that keep temporary nodes; the oldest end first
PROBLEMS_SHOWN = 50  # of tables that were refused, in /health
_UINT_MAX = 2**32 - 1  # what a uint field of AMQP can carry


def _limit(default: int, low: int, high: int, about: str) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "about": about})


@dataclass(frozen=True, slots=True)
class Limits:
    """The numbers of one gateway process."""

    message_size_bytes: int = _limit(
        16 * _MIB,
        1,
        1_000_000_000,
        "one message; announced as max-message-size, on Kafka no more than the node's topic takes; a larger one closes "
        "its link",
    )
    frame_size_bytes: int = _limit(
        65_536, 512, 16 * _MIB, "one frame, and so every name and map of an attach; announced as max-frame-size"
    )
    connections: int = _limit(5_000, 1, 100_000, "connections; one more closes the oldest half-open one, or itself")
    half_open_connections: int = _limit(
        2_000, 1, 100_000, "connections that have not sent their open frame; where one more comes, the oldest is closed"
    )
    half_open_per_address: int = _limit(
        100,
        1,
        100_000,
        "of these, how many of one address are closed for no other address; where an address has more, its own oldest "
        "goes first",
    )
    connections_per_s: int = _limit(
        100,
        1,
        1_000_000,
        "new connections a second of one address, behind a burst of five seconds' worth; those that come faster wait "
        "for their turn, ten seconds at most; one that ended for a fault counts as eleven",
    )
    share_percent: int = _limit(
        75,
        1,
        100,
        "of `connections`, `links`, `transactions`, `transactions_bytes`, `in_flight_bytes`, `temporary_nodes`, "
        "`durables`, `stores_read` and half of `in_flight`: what one user may have, or without a login one address, "
        "while others have nothing; the more they have, the less; 100: all of it",
    )
    failed_logins: int = _limit(
        10_000, 1, 10_000_000, "addresses and users whose failed logins are remembered; the oldest is forgotten"
    )
    sessions_per_connection: int = _limit(
        1_024, 1, 65_536, "sessions; announced as channel-max, one more closes its connection"
    )
    links_per_session: int = _limit(
        1_024, 1, _UINT_MAX, "links of one session; announced as handle-max, one more closes its connection"
    )
    links: int = _limit(5_000, 1, 1_000_000, "links of all connections; one more is refused")
    temporary_nodes: int = _limit(1_000, 0, 100_000, "dynamic nodes of all connections; one more is refused")
    durables: int = _limit(
        50_000, 0, 10_000_000, "durables of the realm; an attach that would make one more is refused"
    )
    stores_read: int = _limit(
        2_000,
        0,
        100_000,
        "stores that are read for consumers, one for each partition of a node, whatever number of consumers it has; an "
        "attach to one more is refused. On Kafka each takes some 4 threads, 8 file descriptors and 0.6 MB",
    )
    credit_per_link: int = _limit(5_000, 1, _UINT_MAX, "deliveries that one publisher may have under way")
    in_flight: int = _limit(50_000, 1, 10_000_000, "deliveries that all publishers together may have under way")
    in_flight_bytes: int = _limit(
        256 * _MIB,
        _MIB,
        2**40,
        "octets of published messages that wait for the realm; who has more than its share is not read",
    )
    unsettled_per_link: int = _limit(
        10_000, 1, 10_000_000, "deliveries that one consumer may leave unsettled; at it no more are sent"
    )
    take_bytes: int = _limit(_MIB, 1, 2**30, "octets of events that one consumer is given in one turn")
    selector_characters: int = _limit(8_192, 1, 65_536, "a selector; a longer one is refused")
    no_local_containers: int = _limit(
        10_000, 1, 1_000_000, "containers whose consumers use a no-local filter; one more is refused"
    )
    transactions: int = _limit(1_000, 1, 1_000_000, "open transactions of all clients; one more is not declared")
    transaction_bytes: int = _limit(
        32 * _MIB, 1, 512 * _MIB, "octets of messages that one transaction may hold; one more message is rejected"
    )
    transactions_bytes: int = _limit(
        256 * _MIB, 1, 2**40, "octets of messages that all open transactions may hold; one more message is rejected"
    )
    transaction_deliveries: int = _limit(
        100_000, 1, 10_000_000, "messages and acknowledgements that one transaction may hold"
    )
    transaction_timeout_ms: int = _limit(
        60_000, 100, 2**31 - 1, "from declare to discharge; after it a transaction can only be rolled back"
    )
    write_buffer_bytes: int = _limit(
        4 * _MIB,
        1024,
        2**30,
        "octets that wait for a peer that does not read; at it no more is delivered to it, at twice no more is read",
    )
    held_bytes: int = _limit(
        512 * _MIB,
        65_536,
        2**40,
        "octets that all peers together may make the gateway hold: messages here in part, what they do not read, and "
        "800 octets a delivery that they do not settle; at it deliveries are held back, and the peer that holds "
        "most is refused",
    )
    held_bytes_per_connection: int = _limit(
        128 * _MIB,
        65_536,
        2**40,
        "the same of one connection; at it deliveries are held back, and a message that would need more is refused",
    )
    idle_timeout_ms: int = _limit(
        60_000, 0, 2**31 - 1, "silence of a peer until its connection is closed; 0 waits for ever"
    )
    open_timeout_ms: int = _limit(10_000, 1, 2**31 - 1, "from the socket to the peer's open frame")
    close_timeout_ms: int = _limit(4_000, 1, 2**31 - 1, "from our close frame to the peer's")
    node_name_bytes: int = _limit(1_024, 1, 65_536, "a node's name in UTF-8; a longer one is an unknown node")
    publish_deadline_ms: int = _limit(
        30_000, 100, 2**31 - 1, "from a message's hand-over to Kafka to its answer; then the outcome is indeterminate"
    )
    window_bytes: int = _limit(
        _REALM.window_bytes, _MIB, 2**40, "recent events kept in memory for each node, shared by its consumers"
    )
    readers: int = _limit(_REALM.readers, 1, 10_000, "consumers that read behind the window at one time")
    retain_s: int = _limit(
        round(_REALM.retain_s),
        0,
        2**31 - 1,
        "how old an event of a queue is at least, in seconds, when it is ended and deleted for good",
    )
    evidence_s: int = _limit(
        round(_REALM.evidence_s),
        0,
        2**31 - 1,
        "how old an outcome record is at least, in seconds, when it is deleted; the journal: a little more, and only "
        "below what the newest snapshots need",
    )
    history_interval_s: int = _limit(
        60, 1, 3_600, "from one record of the history to the next, in seconds; one more is written when the run ends"
    )
    history_s: int = _limit(
        round(_REALM.history_s),
        0,
        2**31 - 1,
        "how old a record of the history is at least, in seconds, when it is deleted",
    )
    lease_ms: int = _limit(
        round(1000 * _REALM.lease_s), 500, 3_600_000, "how long this gateway may go unheard before a standby takes over"
    )

    @property
    def realm(self) -> RealmLimits:
        """The part of the limits that the realm keeps."""
        lease_s = self.lease_ms / 1000
        look_s = min(_REALM.lease_look_s, lease_s / 5)
        return RealmLimits(
            window_bytes=self.window_bytes,
            readers=self.readers,
            lease_s=lease_s,
            lease_look_s=look_s,
            retain_s=float(self.retain_s),
            evidence_s=float(self.evidence_s),
            history_s=float(self.history_s),
        )


def limit_fields() -> tuple[Field[int], ...]:
    """Each limit with its default, and `low`, `high`, `about` in its metadata."""
    return fields(Limits)
