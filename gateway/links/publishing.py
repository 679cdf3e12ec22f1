"""A link on which a peer publishes: transfers in, events to the realm, the realm's answers back as dispositions.

The tables `publish` (a transfer has come) and `published` (the realm has answered) decide; this module carries it out.
Inside a transaction: `gateway/transactions/posting.py`. Source: seed 000, rows P-A1 to P-A5, P-R1, P-R2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from gateway.amqp.error_description import ErrorDescription, describe_error
from gateway.amqp.incoming_link import Incoming
from gateway.amqp.link_owner import LinkOwner, TransferRun
from gateway.evidence.outcome_key import LinkIdentity
from gateway.evidence.outcomes import Unstored
from gateway.links.batches import PublishedBatch
from gateway.links.credit import CreditAccount
from gateway.links.partitioner import Part, Partitioner
from gateway.links.peer import Peer
from gateway.links.sent_messages import KEPT_BYTES, SentEvents, SentMessages
from gateway.links.store_outcomes import of_each_store
from gateway.links.without_credit import WithoutCredit
from gateway.terminus.termini import agreed_outcomes
from mappings import Decision, NodeTables, TableSet
from mappings.language.words import LISTED
from native_backend.nodes.answers import Published
from native_backend.nodes.node import Node
from native_backend.nodes.words import PostAnswer
from transformers.message.annotation_keys import fault_of

_YES_NO = ("no", "yes")
Columns = list[bytes | None]


class Relay(Protocol):
    """A link that has other nodes, too: its credit is theirs, and it finds a node anew that is forgotten."""

    @property
    def account(self) -> CreditAccount: ...

    @property
    def without_credit(self) -> WithoutCredit: ...

    def forget(self, place: PublishingLink) -> None: ...


class PublishingLink(LinkOwner):
    """The session's side of an `Incoming` link that is confirmed."""

    def __init__(
        self, connection: Peer, link: Incoming, node: Node, facts: LinkIdentity, post: Post, relay: Relay | None = None
    ) -> None:
        """`post` keeps messages for the discharge of their transaction."""
        self.connection = connection
        self.link = link
        self.node, self.node_name = node, node.name
        self.facts = facts
        gateway = connection.gateway
        self._gateway = gateway
        self._mode = link.sender_settle_mode
        outcomes = agreed_outcomes(link.attach)
        listed = {word: LISTED[outcomes is not None and word not in outcomes] for word in ("rejected", "released")}
        self._listed, self._rejected = listed, listed["rejected"]
        self.under_way = 0  # messages handed to the realm and not answered
        self._read_s = 0.0  # when its latest transfers came
        self._sent: SentMessages | None = None  # those transfers, while they are carried out
        self._waiting: list[tuple[int, Callable[[], None]]] = []  # (messages to be answered before, whom to tell)
        # Behind each commit under way:
        self._later: deque[list[tuple[PublishedBatch, Sequence[bytes], Sequence[bytes]]]] = deque()
        self._relay = relay
        self._post = post
        self._account = gateway.credit.open_account(connection.holder, self) if relay is None else relay.account
        self.without_credit = WithoutCredit(gateway.clock) if relay is None else relay.without_credit
        self._submit = gateway.realm.publish
        self.partitioner = Partitioner(node, facts.number)
        self._outcomes = of_each_store(facts, node)
        self.use(gateway.tables)
        if relay is None:
            self.top_up()

    def use(self, tables: TableSet) -> None:
        """Decide by these tables from the next transfer on, as they are for this node."""
        self._convert = self._gateway.conversion(self.node.name, tables, self.connection.container)
        self._decide_by(tables.for_node(self.node.name))

    def _decide_by(self, tables: NodeTables) -> None:
        self.tables = tables
        for store in self._outcomes:
            store.clear()
        # What a transfer meets depends on three bits once the link's mode is known; a peer that breaks its own mode
        # is taken as mixed.
        modes = {self._mode, "mixed"}
        publish = tables["publish"]
        self._publish = {mode: publish.slice(sender_settle_mode=mode, **self._listed).decisions for mode in modes}
        self._published = self._published_by(tables)
        settles = "second" if self.link.settles_second else "first"
        self.posted = tables["posted"].slice(receiver_settle_mode=settles, rejected=self._rejected).decisions
        self._common = [self.decide("event", "no", presettled) for presettled in (0, 1)]
        if self._relay is not None:
            return  # a message says where it goes when all of it is here
        unsettled, settled = (self.decide("null", "no", presettled, "partial") for presettled in (0, 1))
        self.link.reports_partial = (unsettled.then["native"] != "reassemble", settled.then["native"] != "reassemble")

    def decide(self, transformed: str, transactional: str, presettled: int, framing: str = "whole") -> Decision:
        decisions = self._publish[self._mode_of(presettled)]
        decision: Decision = decisions[framing][transformed][transactional][_YES_NO[presettled]]
        return decision

    def _published_by(self, tables: NodeTables) -> dict[str, Any]:
        published, modes = tables["published"], {self._mode, "mixed"}
        return {mode: published.slice(sender_settle_mode=mode, **self._listed).decisions for mode in modes}

    def _mode_of(self, presettled: int) -> str:
        return "mixed" if self._mode == ("unsettled", "settled")[1 - presettled] else self._mode

    def top_up(self) -> None:
        count = self._account.top_up(self.link.unconfirmed)
        if count:
            self.link.grant(count)
            self.without_credit.end()

    # -- transfers

    def on_transfers(self, transfers: TransferRun) -> None:
        """One run of messages: transformed, decided, published as columns."""
        link, gateway = self.link, self._gateway
        self._read_s = gateway.clock.monotonic_s()
        if link.credit <= 0:
            self.without_credit.begin()
        messages = transfers.messages
        first_seq = gateway.outcomes.number(len(messages))
        link.number(first_seq, len(messages))
        self.partitioner.begin(first_seq, messages)
        size_bytes = messages.size
        gateway.waiting_bytes.count(self.connection.holder, size_bytes)
        self._sent = SentMessages(messages, first_seq, self._relay is None, self._convert.as_messages)
        if transfers.transaction is not None or not self._publish_column(transfers, first_seq, size_bytes):
            self._publish_mixed(transfers, first_seq, size_bytes)
        self._sent = None

    def _publish_mixed(self, transfers: TransferRun, first_seq: int, size_bytes: int) -> None:
        """Any run of messages: some may be no events, came settled, or belong to a transaction."""
        keys, values = self._convert.columns(transfers.messages, first_seq)
        refused = None in keys
        faults = self._faults_in(keys, transfers.messages, first_seq) if refused else []
        if transfers.transaction is not None:
            self._gateway.waiting_bytes.release(self.connection.holder, size_bytes)  # the transaction counts them
            self._post(self, keys, values, transfers, first_seq)
        elif refused or transfers.is_mixed:
            self._one_by_one(keys, values, transfers, first_seq)
        else:
            self._all_at_once(keys, values, transfers, first_seq, size_bytes)  # type: ignore[arg-type]
        for fault, words in faults:  # what is no event has its outcome
            if self.link.alive:
                self.connection.fault(fault, words, self.link)

    def _faults_in(self, keys: list[bytes | None], messages: Sequence[bytes], first_seq: int) -> list[tuple[str, str]]:
        """Of what is no event some is a fault of its sender, too (A-9, B-7): which, and words that name the message as
        long as it is known."""
        wrong = [(at, fault_of(messages[at])) for at, key in enumerate(keys) if key is None]
        return [(fault[0], self.link.about(first_seq + at, ErrorDescription(fault[1]))) for at, fault in wrong if fault]

    def _publish_column(self, transfers: TransferRun, first_seq: int, size_bytes: int) -> bool:
        """What mostly comes: all of one run meet the same cell, and are events as they are."""
        if self._convert.column is None or transfers.is_mixed:
            return False
        keys = self._convert.column(transfers.messages, first_seq)
        if keys is None:
            return False
        self._all_at_once(keys, transfers.messages, transfers, first_seq, size_bytes)
        return True

    def _all_at_once(
        self, keys: Sequence[bytes], values: Sequence[bytes], transfers: TransferRun, first_seq: int, size_bytes: int
    ) -> None:
        settled = int(any(transfers.presettled[:1]))  # as all of them
        batch = self._batch(first_seq, settled, self._common[settled], len(keys), size_bytes)
        self._carry_out(batch, keys, values)

    def _batch(
        self, first_seq: int, presettled: int, decision: Decision, count: int, size_bytes: int
    ) -> PublishedBatch:
        facts = first_seq, presettled, decision, count, size_bytes, self.tables, self.node, self._read_s
        return PublishedBatch(self, *facts)

    def _one_by_one(
        self, keys: list[bytes | None], values: list[bytes | None], transfers: TransferRun, first_seq: int
    ) -> None:
        """Messages that do not all meet the same cell: in order, in runs that do."""
        batch: PublishedBatch | None = None
        run: tuple[list[bytes], list[bytes]] = ([], [])
        for offset, (key, value, settled) in enumerate(zip(keys, values, transfers.presettled, strict=True)):
            transformed = "null" if key is None else "event"
            decision = self.decide(transformed, "no", int(settled))
            size = len(transfers.messages[offset])
            if batch is not None and batch.decision is decision and batch.presettled == settled:
                batch.size_bytes += size
                batch.open += 1
            else:
                if batch is not None:
                    self._carry_out(batch, *run)
                batch = self._batch(first_seq + offset, int(settled), decision, 1, size)
                run = ([], [])
            run[0].append(key or b"")
            run[1].append(value or b"")
        if batch is not None:
            self._carry_out(batch, *run)

    def _carry_out(self, batch: PublishedBatch, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        seqs = range(batch.first_seq, batch.first_seq + len(keys))
        if batch.decision.then["native"] != "publish":
            batch.sent = self._sent
            self._conclude(batch, batch.decision, None, seqs, [-1] * len(keys), None)
            return
        self.under_way += len(keys)
        if len(self._outcomes) == 1:
            batch.sent = self._kept(seqs, values)
            self._publish_batch(batch, keys, values)
        else:
            self._publish_parts(batch, seqs, keys, values)

    def _kept(self, seqs: Sequence[int], values: Sequence[bytes]) -> Unstored | None:
        if self._sent is None or self._gateway.in_flight_bytes > KEPT_BYTES:
            return None
        return self._sent.kept(seqs, values)

    def _publish_batch(self, batch: PublishedBatch, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        if self._later:
            self._later[-1].append((batch, keys, values))
        else:
            self._submit(batch.node, keys, values, batch)

    def _publish_parts(
        self, batch: PublishedBatch, seqs: range, keys: Sequence[bytes], values: Sequence[bytes]
    ) -> None:
        """One batch for each store; the last one has the octets that are left."""
        parts = self.partitioner.parts(seqs, keys, values)
        for part in parts:
            size = batch.size_bytes if part is parts[-1] else sum(map(len, part.values))
            batch.size_bytes -= size
            share = replace(batch, open=len(part.seqs), size_bytes=size, node=part.node, numbers=part.seqs)
            share.sent = self._kept(part.seqs, part.values)
            self._publish_batch(share, part.keys, part.values)

    def on_partial(self, presettled: int) -> None:
        """A message in several frames, and the tables do not reassemble."""
        first_seq = self._gateway.outcomes.number(1)
        self.link.number(first_seq, 1)
        decision = self.decide("null", "no", presettled, "partial")
        batch = self._batch(first_seq, presettled, decision, 1, 0)
        self._conclude(batch, batch.decision, None, range(first_seq, first_seq + 1), [-1], None)

    # -- answers

    def published(self, batch: PublishedBatch, answer: Published) -> None:
        """The realm has answered a part of a batch."""
        seqs = batch.seqs(answer.first, len(answer.eids))
        self._gateway.accept_seconds.add(self._gateway.clock.monotonic_s() - batch.read_s, len(seqs))
        decision = self.published_rule(answer, batch.presettled, batch.tables)
        self._conclude(batch, batch.decision, decision, seqs, answer.eids, answer)
        self.under_way -= len(answer.eids)
        if self._waiting:
            self._count_down(len(answer.eids))

    def _conclude(
        self,
        batch: PublishedBatch,
        rule: Decision,
        answer_rule: Decision | None,
        seqs: Sequence[int],
        eids: list[int],
        answer: Published | None,
    ) -> None:
        key = self._outcomes[batch.node.partition].published(rule, answer_rule, batch.presettled, answer)
        then = (answer_rule or rule).then
        answer_words = (answer.answer, answer.native) if answer else (None, None)
        detail = describe_error(self.node.name, answer_rule or rule, *answer_words) if then["condition"] else ""
        ending, unconfirmed = self.ending(then, detail, seqs[0]), self.link.unconfirmed
        if batch.presettled:
            self.link.settle(seqs, "none")  # no frame: the peer has settled it
        else:
            self.link.settle(seqs, then["outcome"], then["condition"], detail, then["settle"])
        self._gateway.outcomes.tell_published(key, seqs, eids, batch.sent)
        batch.open -= len(seqs)
        if not batch.open:
            self._gateway.waiting_bytes.release(self.connection.holder, batch.size_bytes)
        self._account.complete(len(seqs), self.link.unconfirmed - unconfirmed)
        self.connection.touch()
        if ending is not None:
            ending()
        if self.link.alive:
            self.top_up()

    def on_confirmed(self) -> None:
        """Its publisher has settled some that had their outcome: they are forgotten, and make room for others."""
        self._account.confirm(self.link.unconfirmed)
        self.top_up()

    def on_withdrawn(self, count: int) -> None:
        """No outcome gives their credit back."""
        self.complete(count)

    def ending(self, then: Mapping[str, Any], detail: str, seq: int) -> Callable[[], None] | None:
        """What to do after the outcome of the message with that seq was sent, where nothing can be published here any
        more. A relay gives up only this node, unless the peer got no outcome."""
        if then["class"] != "fatal":
            return None
        if self._relay is not None and then["outcome"] != "none":
            return partial(self._relay.forget, self)
        return partial(self.connection.close_link, self.link, then["condition"], self.link.about(seq, detail))

    def may_publish(self) -> PostAnswer:
        """What a message would be answered now, as far as that is known before."""
        return self._gateway.realm.may_publish(self.node, self.connection.subject)

    @property
    def idle(self) -> bool:
        """Nothing of it is under way."""
        return not self.under_way and not self._later

    def access_changed(self) -> None:
        """Whether its peer may publish is asked now and not for each message: the next one meets the answer (P-R2a)."""
        realm = self._gateway.realm
        denied = realm.may_publish(self.node, self.connection.subject) == "access-denied"
        self._submit = realm.refuse if denied else realm.publish

    # -- transactions

    def published_rule(self, answer: Published, presettled: int, tables: NodeTables) -> Decision:
        published = self._published if tables is self.tables else self._published_by(tables)
        decision: Decision = published[self._mode_of(presettled)][answer.answer][_YES_NO[presettled]]
        return decision

    def complete(self, count: int) -> None:
        """So many deliveries need no credit any more: a transaction has them, or their sender has taken them back."""
        self._account.complete(count)
        if self.link.alive:
            self.top_up()

    def record(
        self, rule: Decision, answer_rule: Decision | None, presettled: int, answer: str | None, seqs: Sequence[int]
    ) -> None:
        """Messages that their transaction did not take have their outcome."""
        published = Published(None, 0, [], answer) if answer else None  # type: ignore[arg-type]
        key = self._outcomes[0].published(rule, answer_rule, presettled, published)
        self._gateway.outcomes.tell_published(key, seqs, [-1] * len(seqs), self._sent)

    def tell(self, part: Part, presettled: int, rule: Decision, answer_rule: Decision, answer: Published) -> None:
        """The end of a transaction, for messages that it held."""
        then = answer_rule.then
        detail = describe_error(self.node.name, answer_rule, answer.answer, answer.native) if then["condition"] else ""
        ending = self.ending(then, detail, part.seqs[0])
        if presettled:
            self.link.settle(part.seqs, "none")
        else:
            self.link.settle(part.seqs, then["outcome"], then["condition"], detail, then["settle"])
        key = self._outcomes[part.node.partition].published(rule, answer_rule, presettled, answer)
        events = SentEvents(part.seqs, part.keys, part.values, self._gateway.restoring)
        self._gateway.outcomes.tell_published(key, part.seqs, answer.eids, events)
        self.connection.touch()
        if ending is not None:
            ending()

    def after_published(self, done: Callable[[], None]) -> None:
        """Call it once all that is under way now has been answered; there is something."""
        self._waiting.append((self.under_way, done))

    def _count_down(self, count: int) -> None:
        due = [done for left, done in self._waiting if left <= count]
        self._waiting = [(left - count, done) for left, done in self._waiting if left > count]
        for done in due:
            done()

    def suspend(self) -> None:
        """A transaction with messages of this link is being committed: what comes now comes behind it."""
        self._later.append([])

    def resume_publishing(self) -> None:
        """The first of those commits has ended."""
        if self._later:
            for batch, keys, values in self._later.popleft():
                self._submit(batch.node, keys, values, batch)

    def ended(self, cause: str) -> None:
        """The link has gone. What is in flight completes unheard, and leaves its records. Not called of a relay's."""
        self._gateway.credit.close_account(self._account)
        self._gateway.publishers.left(self)


Post = Callable[[PublishingLink, Columns, Columns, TransferRun, int], None]
"""Link, keys and values (None where a message is no event), transfers, the seq of the first."""
