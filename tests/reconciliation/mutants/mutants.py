"""Faults of a gateway, as changes of one place of its code: what the ledgers of clients show of each, and what records
show alone."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """`by_ledgers`: the classes C1 to C5 that are found. `by_records`: those that are found without ledgers; where
    there are none, `why` says why no record can show it."""

    module: str
    old: str
    new: str
    by_ledgers: frozenset[str]
    by_records: frozenset[str] = frozenset()
    why: str = ""


_OUTCOME = 'return dispositions.state, "disposition"'
_MISREAD = "the record has the state that the gateway took it for, and the journal what follows from that"
_CONSUMING, _PUBLISHING = "gateway.links.consuming", "gateway.links.publishing"
_TO_MESSAGE, _AS_STORED = "gateway.links.event_to_message", "        return values\n    failed ="
_TOLD = 'self.link.settle(seqs, then["outcome"], then["condition"], detail, then["settle"])\n        self._gateway'
_SEND = "            self.link.send(prefix, first_seq, eids, values)"
_SUBMIT = "            self._submit(batch.node, keys, values, batch)\n\n    def _publish_parts"
_LETTERS, _JOURNAL = "native_backend.dispatch.dead_letters", "native_backend.journal.journal_record"
_RECORDS, _RECORDS_OF = "gateway.evidence.outcomes", "gateway.evidence.outcome_key"
_COPY_KEY = "copy_key(store, eid, self._reason, kept)"
_UNSEEN = "the record has what the gateway meant to say, and not what went over the wire"
_OCTETS = "no record has a checksum of the message"


def _misread(state: str, taken: str) -> Mutant:
    new = f'return {{"{state}": "{taken}"}}.get(dispositions.state, dispositions.state), "disposition"'
    return Mutant(_CONSUMING, _OUTCOME, new, frozenset({"C5"}), why=_MISREAD)


_VALUES = {
    "container": "link.container",
    "cause": "self.cause",
    "node": "link.node",
    "store": "link.store",
    "operation": "self.operation",
    "answer": "self.answer",
    "cell": "self.rule.cell",
    "condition": "self.condition",
    "presettled": "int(self.presettled)",
    "direction": "link.direction",
}


def _recorded(name: str, value: str, by_ledgers: str = "", by_records: str = "", why: str = "") -> Mutant:
    """A group of an outcome record says another `value`. Classes are separated by blanks."""
    old, new = f'"{name}": {_VALUES[name]},', f'"{name}": {value},'
    return Mutant(_RECORDS_OF, old, new, frozenset(by_ledgers.split()), frozenset(by_records.split()), why)


MUTANTS: dict[str, Mutant] = {
    "released-taken-for-accepted": _misread("released", "accepted"),
    "rejected-taken-for-accepted": _misread("rejected", "accepted"),
    "rejected-taken-for-released": _misread("rejected", "released"),
    "modified-taken-for-released": _misread("modified-failed", "released"),
    "modified-taken-for-accepted": _misread("modified-failed", "accepted"),
    "released-taken-for-rejected": _misread("released", "rejected"),
    "told-released": Mutant(
        _PUBLISHING, _TOLD, 'self.link.settle(seqs, "released")\n        self._gateway', frozenset({"C2"}), why=_UNSEEN
    ),
    "told-rejected": Mutant(
        _PUBLISHING,
        _TOLD,
        'self.link.settle(seqs, "rejected" if then["outcome"] == "accepted" else then["outcome"])\n        '
        "self._gateway",
        frozenset({"C2"}),
        why=_UNSEEN,
    ),
    "told-accepted": Mutant(
        _PUBLISHING, _TOLD, 'self.link.settle(seqs, "accepted")\n        self._gateway', frozenset({"C1"}), why=_UNSEEN
    ),
    "tag-of-another-store": Mutant(
        _CONSUMING, 'b"%d:" % part.store', 'b"%d:" % (part.store + 1)', frozenset({"C3", "C5"}), why=_UNSEEN
    ),
    "body-changed-on-the-way-out": Mutant(
        _TO_MESSAGE,
        _AS_STORED,
        '        return [value[:-1] + b"!" for value in values]\n    failed =',
        frozenset({"C4"}),
        why=_OCTETS,
    ),
    "body-changed-where-it-is-stored": Mutant(
        _PUBLISHING,
        _SUBMIT,
        '            self._submit(batch.node, keys, [bytes(value)[:-1] + b"!" for value in values], batch)\n\n'
        "    def _publish_parts",
        frozenset({"C4"}),
        why=_OCTETS,
    ),
    "message-id-changed-on-the-way-out": Mutant(
        _TO_MESSAGE,
        _AS_STORED,
        '        return [value.replace(b"\\xa1\\x03m-", b"\\xa1\\x03n-", 1) for value in values]\n    failed =',
        frozenset({"C3"}),
        why=_OCTETS,
    ),
    "eid-recorded-one-too-high": Mutant(
        "gateway.evidence.outcomes",
        "group.eids.extend(eids)",
        "group.eids.extend([eid + (eid >= 0) for eid in eids])",
        frozenset({"C5"}),
        frozenset({"P1", "P3", "A1", "A2", "A6"}),
    ),
    "acknowledged-without-the-journal": Mutant(
        _CONSUMING,
        "            self.subscription.settle(settling, eids, seqs, batch)",
        '            self.subscription.forget(eids)\n            self.settled(batch, Settled(batch, "done"))',
        frozenset(),
        frozenset({"A1", "A6"}),
    ),
    "dead-letter-without-its-copy": Mutant(
        _LETTERS, "writes.append(Write(self._target", "(Write(self._target", frozenset(), frozenset({"A7"})
    ),
    "dead-letter-twice": Mutant(
        _LETTERS,
        "writes.append(Write(self._target.topic, self._target.partition, copy, annotated_value))",
        "writes += 2 * [Write(self._target.topic, self._target.partition, copy, annotated_value)]",
        frozenset(),
        frozenset({"A7"}),
    ),
    "journal-counts-no-attempt": Mutant(
        _JOURNAL, '"failed": int(settlement.failed)', '"failed": 0', frozenset(), frozenset({"A6"})
    ),
    "journal-leaves-out-an-end": Mutant(
        _JOURNAL,
        'entry["runs"].extend(part)',
        'entry["runs"].extend(part[1:])',
        frozenset(),
        frozenset({"A1", "A6", "A7"}),
    ),
    "journal-names-another-delivery": Mutant(
        _JOURNAL,
        'entry["runs"].extend(part)',
        'entry["runs"].extend([[first, last, seq + (seq > 0), cover] for first, last, seq, cover in part])',
        frozenset(),
        frozenset({"A1", "A2"}),
    ),
    "outcomes-not-recorded": Mutant(
        _RECORDS, '"groups": groups,', '"groups": groups[1:],', frozenset({"C5"}), frozenset({"P3", "A2", "A6", "Q1"})
    ),
    "outcome-records-skip-a-number": Mutant(
        _RECORDS, "self.records += 1", "self.records += 2", frozenset(), frozenset({"Q1"})
    ),
    "recorded-otherwise-than-told": Mutant(
        "gateway.links.store_outcomes",
        'outcome=then["outcome"],\n                condition=then["condition"],\n                klass=then["class"],\n'
        "                presettled=bool(presettled)",
        'outcome="released",\n                condition=then["condition"],\n                klass=then["class"],\n'
        "                presettled=bool(presettled)",
        frozenset({"C2"}),
        frozenset({"A3"}),
    ),
    "another-rule-recorded": Mutant(
        _RECORDS_OF, '"rule": self.rule.rule', '"rule": "x-" + self.rule.rule', frozenset(), frozenset({"A3"})
    ),
    "message-given-up-without-a-letter": Mutant(
        _LETTERS,
        "return target.twin(node) if target is not None and target.name != node.name else None",
        "return None",
        frozenset(),
        frozenset({"A7"}),
    ),
    "dead-letter-names-another-event": Mutant(
        _LETTERS, _COPY_KEY, "copy_key(store, eid + 1, self._reason, kept)", frozenset(), frozenset({"A7"})
    ),
    "dead-letter-with-another-body": Mutant(
        _LETTERS, "copy, annotated_value))", 'copy, annotated_value[:-1] + b"!"))', frozenset({"C4"}), why=_OCTETS
    ),
    "journal-keeps-letters-where-they-were": Mutant(
        _LETTERS, "self._target.store, self._writes", "self._node.store, self._writes", frozenset(), frozenset({"A7"})
    ),
    "journal-acknowledges-what-was-given-back": Mutant(
        _JOURNAL,
        '"operation": settlement.operation',
        '"operation": "acknowledge"',
        frozenset(),
        frozenset({"A2", "A3", "A4", "Q1"}),
    ),
    "journal-names-another-store": Mutant(
        _JOURNAL, '"store": store', '"store": store + 1', frozenset(), frozenset({"A1", "A2", "A6", "A7", "Q1"})
    ),
    "journal-has-each-end-twice": Mutant(
        _JOURNAL,
        'entry["runs"].extend(part)',
        'entry["runs"].extend(part + part)',
        frozenset(),
        frozenset({"A4", "A6", "A7"}),
    ),
    "journal-numbered-one-too-high": Mutant(
        _JOURNAL, '"run": run, "n": n,', '"run": run, "n": n + 1,', frozenset(), frozenset({"Q1"})
    ),
    "stored-as-one-too-high": Mutant(
        "native_backend.publish.publisher",
        "appended.first, appended.offsets, answer",
        "appended.first, [eid + 1 for eid in appended.offsets], answer",
        frozenset(),
        frozenset({"P1", "P3"}),
    ),
    "another-container-recorded": _recorded(
        "container", '"x" + link.container', "C5", why="the container stands in outcome records alone"
    ),
    "another-cause-recorded": _recorded("cause", '"lost"', "C5", why="no other record is held against the cause"),
    "another-node-recorded": _recorded("node", '"dead"', "", "A3"),
    "another-store-recorded": _recorded("store", "link.store and link.store + 1", "C5", "A1 A2 P1 P3"),
    "another-operation-recorded": _recorded("operation", '"discard"', "", "A1 A3"),
    "another-answer-recorded": _recorded("answer", '"done"', "", "A3 P4"),
    "another-cell-recorded": _recorded("cell", "self.rule.cell + 1", "", "A3 A6"),
    "no-condition-recorded": _recorded("condition", "None", "", "A3"),
    "another-settlement-recorded": _recorded("presettled", "int(not self.presettled)", "", "A12 A3"),
    "another-direction-recorded": _recorded("direction", '"subscribe"', "", "P3"),
    "outcomes-claimed-that-are-not-there": Mutant(
        _RECORDS, '"low": low', '"low": low + 1', frozenset(), frozenset({"Q1"})
    ),
    "tables-that-are-not-stored": Mutant(
        _RECORDS, '"digest": origin.digest', '"digest": origin.digest[::-1]', frozenset(), frozenset({"Q1"})
    ),
    "attempt-not-counted": Mutant(
        _CONSUMING, 'then["native"], then["failed"],', 'then["native"], False,', frozenset(), frozenset({"A6"})
    ),
}
