"""What we do where a requirement of AMQP leaves a choice, or where we depart from its letter, and why: a line each, for
`docs/conformance/amqp.md`. `OPEN`: what is binding and has no test yet.
"""

from __future__ import annotations

CHOICES: dict[str, str] = {
    "A-5": (
        "Format 0 goes out; of what comes in the sections are checked, whatever number it has: there is no "
        "other format."
    ),
    "A-7": (
        "Carried octet for octet and not looked into: decoding every map would cost each message more than "
        "its whole way."
    ),
    "A-8": "What has a section is carried as it is; what has none is rejected (`amqp:precondition-failed`).",
    "A-9": (
        "In profile `extended`. The profiles of UM reject the one message, as P-A2 documents; table `fault` says it."
    ),
    "A-10": "Not done: a second event may be meant. Who publishes again after a cut finds both (at least once).",
    "A-11": "Not done: `user-id` is the application's; who may publish is decided for the connection's user.",
    "A-13": "For records of plain producers; what an AMQP peer wrote is never touched.",
    "A-14": "For records of plain producers: no content-encoding is ever written.",
    "B-2": "No capability about annotations is offered, so none is relied on.",
    "B-7": (
        "`x-opt...`, and `rejected` of the delivery-annotations, are all that is known. Where table `fault` "
        "says `message`, the message alone is rejected."
    ),
    "C-1": "On nodes with priority levels the highest level goes first; else nothing overtakes.",
    "D-2": "Every node keeps what it is given, durable or not: no target has to refuse a durable message.",
    "D-4": "Not used: a message that is not durable is stored as any other before it is settled.",
    "E-2": (
        "The ttl goes out as it was published: a stored event is sent without being rewritten. `absolute- "
        "expiry-time` is exact."
    ),
    "E-4": "The base is the time of the record, which is its arrival.",
    "E-5": (
        "An event that is out may be settled after its time; if it comes back, it expires instead of being given again."
    ),
    "H-5": (
        "Rejected is the end of a delivery: it goes to the dead-letter node, where there is one, and is not given "
        "again, so no delivery-count rises. The error that the peer gives with it is kept in the dead letter and in "
        "the outcome record."
    ),
    "H-6": (
        "Only where a subscription fails later: in flight is rejected with the error of the detach, as UM does (1.3-P)."
    ),
    "H-8": (
        "Where the gateway stops or the realm takes a subscription away: released. In `extended`, where a connection "
        "breaks off: modified, delivery-failed; where it ends in order, not counted, whatever the default-outcome says "
        "of that (ADR 0064). There is no lock that times out."
    ),
    "H-10": (
        "delivery-failed and undeliverable-here are applied, annotations are not: an event is its "
        "publisher's, octet for octet."
    ),
    "H-14": (
        "On a durable rejected and undeliverable-here retire (to the dead letters, if there are any), "
        "released and modified return."
    ),
    "H-15": (
        "No link state is kept: an empty `unsettled` is answered with an empty one, any other with none. A consumer "
        "gets what was unsettled anew, as new deliveries; a delivery that its publisher resumes is ignored whole."
    ),
    "I-8": (
        "All four are admitted and answered. Where none is named the answer names none: silence is accepted, "
        "a lost link released, a connection that breaks off failed (in `extended`)."
    ),
    "I-9": "Optional in 1.0: what is missing is `accepted` for silence.",
    "J-5": "Not advertised: a filter is in the answer, or the link is refused (J-4), so no peer has to guess.",
    "K-2": "A preference that is the node's way is kept, any other refused (K-3).",
    "M-5": "Passed over where `dynamic` is not true: no node can come of them, and the answer has none.",
    "O-5": "The documented profiles leave a publisher attached until it publishes (P-R2d).",
    "P-3": (
        "`amqp:illegal-state`; a channel above channel-max closes the connection (framing), because no "
        "session is there to end."
    ),
    "Q-2": "An explicit disposition is sent for every delivery that did not come settled.",
    "Q-3": "`batchable` is not looked at: everything is settled as soon as it is stored.",
    "Q-5": "Not done: what is sent settled cannot be returned; a receiver asks for it by snd-settle-mode.",
    "R-1": "Property `delivery-mode`: what the link does anyway is confirmed, anything else refused.",
    "R-2": "A hint; passed over.",
    "R-3": (
        "The three steps of rcv-settle-mode second are done (X-3); duplicates are not looked for, so a resent message "
        "is stored again, and exactly-once is refused where it is forced (R-1)."
    ),
    "R-4": "Where the publisher asked for rcv-settle-mode second, it is settled when the publisher has settled (X-3).",
    "R-7": "Of these, exactly-once is refused.",
    "T-1": "Not tolerated: credit is what bounds memory.",
    "U-2": "Not tolerated.",
    "U-5": "A drain with credit left is answered where it ends, which answers its echo too.",
    "V-2": "An outcome for a browsed event changes nothing.",
    "W-1": "On Kafka by its transactions, embedded by SQLite's.",
    "W-4": (
        "Departs in `extended` for what is posted where the receiver settles first: its provisional outcome is settled "
        "(ADR 0065). To the letter with `rcv-settle-mode=second`, in the profiles of UM, and for what is retired."
    ),
    "W-11": "Refused with `amqp:not-implemented`, as part 4 asks.",
    "W-17": "Cannot arise: what we send carries no txn-id, and our outcome names the transaction of its transfer.",
    "W-20": (
        "In `extended` a session may have several (`amqp:multi-txns-per-ssn` is offered, ADR 0071); in the profiles of "
        "UM, one."
    ),
    "X-4": "Settled without a state is the default outcome (S-A1).",
}
OPEN_IDS = """
"""
OPEN = frozenset(OPEN_IDS.split())
