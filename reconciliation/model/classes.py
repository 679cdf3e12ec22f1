"""The classes of anomalies: what each means in plain words, how bad it is, and what to do about it.

Severity: C critical, M major, m minor, i informational (not an anomaly; never changes the exit code).
Source: issue 3, reconciliation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["C", "M", "m", "i"]
INCOMPLETE = "Q1"
"""The class of what could not be seen."""
SEVERITY_WORDS: dict[Severity, str] = {"C": "critical", "M": "major", "m": "minor", "i": "informational"}


@dataclass(frozen=True, slots=True)
class AnomalyClass:
    """One class. `meaning` finishes the sentence "This delivery ..."."""

    code: str
    name: str
    severity: Severity
    meaning: str
    action: str


_ALL = (
    AnomalyClass(
        "P1",
        "lost write",
        "C",
        "was answered as stored, but its event is not in the store",
        "Restore the topic from a backup; find out who deleted the record. Ask the publisher to send it again.",
    ),
    AnomalyClass(
        "P2",
        "duplicate write",
        "M",
        "is in the store more than once",
        "Check that the producer is idempotent (enable.idempotence) and that no program copied records into the topic.",
    ),
    AnomalyClass(
        "P3",
        "phantom write",
        "M",
        "is in the store, but no gateway recorded receiving it",
        "Find the foreign writer: only the gateway may have WRITE on the realm's topics.",
    ),
    AnomalyClass(
        "P4",
        "refused but stored",
        "C",
        "was refused to the publisher, but its event is in the store",
        "The publisher may send it again: expect a duplicate. Look up the native code in the error matrix.",
    ),
    AnomalyClass(
        "P5",
        "indeterminate, resolved",
        "i",
        "had no known answer (a timeout, or the gateway was killed); the log now says what became of it",
        "Nothing. The peer was told nothing, or that the result is unknown.",
    ),
    AnomalyClass(
        "P6",
        "order regression",
        "M",
        "is stored before an event that the same link had sent earlier",
        "Its consumers get the two in the wrong order. Check that one process alone writes, and that the "
        "producer is idempotent (max.in.flight, enable.idempotence).",
    ),
    AnomalyClass(
        "A1",
        "acknowledged, not committed",
        "C",
        "was settled to the consumer as acknowledged, but the journal does not hold it: it will come again",
        "Check the journal topic for deleted records; expect a redelivery of this event.",
    ),
    AnomalyClass(
        "A2",
        "committed, not acknowledged",
        "C",
        "is terminal in the journal, but no outcome record says that the consumer was told: it is lost to it",
        "Check the outcomes topic for deleted records, then whether the application has seen the event.",
    ),
    AnomalyClass(
        "A3",
        "outcome not by the rule",
        "C",
        "had another rule, operation or outcome than the mapping table under its digest prescribes, or has another end "
        "in the journal than in its outcome record",
        "Run `realmgate mappings explain` for the cell; compare the gateway's version with the stored table.",
    ),
    AnomalyClass(
        "A4",
        "redelivery after its end",
        "M",
        "was given out again after the journal had ended it: it ends there a second time, or was given back later",
        "The application may have done its work twice. Compare the two runs of the gateway: the second one "
        "had not read the end that the first one wrote.",
    ),
    AnomalyClass(
        "A5",
        "skipped",
        "C",
        "lies below the durable's low-water mark without ever having been acknowledged: no consumer will get it",
        "Look for a foreign commit on the consumer group; only the gateway may have READ on it.",
    ),
    AnomalyClass(
        "A6",
        "returned otherwise than told",
        "M",
        "was given back, and the journal has no return of it, or several, or counts the attempt otherwise than the "
        "rule says; or is in the journal as returned, and in no outcome record",
        "A wrong count makes it a dead letter too early or never. Look at the rule with `realmgate mappings "
        "explain`, and at the journal of that run.",
    ),
    AnomalyClass(
        "A7",
        "copies not as recorded",
        "C",
        "has fewer or more copies in a dead-letter node (or where it was moved to) than the journal says, or was "
        "given up and kept nowhere although its node has a dead-letter node",
        "Missing: restore the topic of that node from a backup, or send the message again. Too many: remove "
        "the surplus; find out who wrote it.",
    ),
    AnomalyClass(
        "A9",
        "state not as recorded",
        "C",
        "is in a snapshot or below a group offset that the journal does not bear out",
        "Only the gateway may write to the topic of states and to its consumer groups: find out who did. "
        "Delete the snapshot that is named; the next start then reads the journal from its beginning.",
    ),
    AnomalyClass(
        "A10",
        "mark moved back",
        "C",
        "lies above the mark of a consumer group that an older record puts higher, and no command moved it",
        "Find out who set the offset of the group (kafka-consumer-groups --reset-offsets). The gateway does "
        "not depend on it, and sets it right when it next changes.",
    ),
    AnomalyClass(
        "A13",
        "acknowledged before stored",
        "C",
        "has its end in the journal from before it was stored: the store became shorter and grew again, and the "
        "durable takes the event for an earlier one of its EID. No consumer will get it",
        "Move the durable back (`realmgate durable seek`), or copy these events from the topic to their consumers. "
        "Find out why the topic became shorter: an unclean leader election, or a restored copy.",
    ),
    AnomalyClass(
        "A12",
        "expected loss",
        "i",
        "was pre-settled (at most once) and went no further",
        "Nothing. Use unsettled deliveries where loss matters.",
    ),
    AnomalyClass(
        "C1",
        "lost for its publisher",
        "C",
        "was told to its publisher as accepted, as the publisher's own ledger says, and is in no store",
        "Ask the publisher to send it again. Where P1 names it, too, the record is gone; else the gateway has kept no "
        "evidence of it, or the answer came from elsewhere: look at what lies between client and gateway.",
    ),
    AnomalyClass(
        "C2",
        "told otherwise than recorded",
        "C",
        "has another outcome in the ledger of its publisher than in the outcome records",
        "Trust the store: look there with `realmgate trace` before the publisher sends it again.",
    ),
    AnomalyClass(
        "C3",
        "given otherwise than stored",
        "C",
        "came to a consumer under a tag that names no event or another one, as the consumer's ledger says",
        "What that consumer settles by this tag may end another message. Compare the message-ids that are named.",
    ),
    AnomalyClass(
        "C4",
        "body changed",
        "C",
        "has another body in a client's ledger than in its store",
        "Compare the stored octets (`realmgate browse`) with what the application sent or got; look for programs that "
        "rewrite messages between client and gateway.",
    ),
    AnomalyClass(
        "C5",
        "settled otherwise than recorded",
        "C",
        "was settled by its consumer with another state than the outcome records say, as the consumer's ledger says",
        "The consumer said released and the message is gone, or said accepted and it comes again: look it up with "
        "`realmgate trace`.",
    ),
    AnomalyClass(
        "G2",
        "tables changed",
        "M",
        "was decided by tables that are stored otherwise than their digest says",
        "Nothing that they decided can be checked. Find out who wrote to the topic of tables; a gateway that "
        "starts with the same tables stores them again.",
    ),
    AnomalyClass(
        "Q1",
        "evidence incomplete",
        "M",
        "cannot be judged, because records are missing, doubled, unreadable or not readable yet",
        "Make readable what is named, or restore it from a backup, and run again. What this hides is not known: look "
        "for who deleted or cut the topic. The realm itself trims outcomes and journal after limits.evidence_s only.",
    ),
    AnomalyClass(
        "S1",
        "lost by retention",
        "C",
        "was deleted from the store before the durable had acknowledged it",
        "Set retention.ms=-1 and retention.bytes=-1 on the realm's topics: the realm trims them itself.",
    ),
    AnomalyClass(
        "S2",
        "ended without a reason",
        "C",
        "was ended by the realm itself as expired, filtered, evicted or by command, and nothing shows why it had to be",
        "Its consumers did not get it. Look up the node, the durable and the command that are named; send the "
        "message again where it was due.",
    ),
    AnomalyClass(
        "S3",
        "another store",
        "C",
        "belongs to a store whose topic is not the one that the node was made with",
        "The topic was deleted and made again, or restored from elsewhere. Restore the first one from a "
        "backup, or delete the node and make it anew.",
    ),
    AnomalyClass(
        "S4",
        "over capacity",
        "m",
        "was accepted by a node that honours its capacity and was full",
        "Look for a second process that publishes to this realm; the node takes nothing more until consumers "
        "have made room.",
    ),
)

CLASSES: dict[str, AnomalyClass] = {anomaly.code: anomaly for anomaly in _ALL}
ORDER: tuple[str, ...] = tuple(CLASSES)


def is_anomaly(code: str) -> bool:
    """Does a finding of this class make the verdict anything but clean?"""
    return CLASSES[code].severity != "i"
