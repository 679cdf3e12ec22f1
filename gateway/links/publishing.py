"""A link on which a peer publishes: transfers in, events to the realm, the realm's answers back as dispositions.

What is done is said by the tables `publish` (a transfer is here) and `published` (the realm has answered); here it
is only carried out. Inside a transaction: `gateway/posting.py`. Source: seed 000, rows P-A1 to P-A5, P-R1, P-R2.
May import: `gateway`, `mappings`, `native_backend`, `transformers`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.complaint import complaint
from gateway.engine_incoming import Incoming
from gateway.facts import Transfers
from gateway.outcomes import LinkFacts, Verdict
from gateway.posting import Posted, post
from mappings import Decision, NodeTables, Slice, TableSet
from native_backend.answers import PostAnswer, Published
from transformers.annotation_keys import fault_of

if TYPE_CHECKING:
    from gateway.connection import Connection
    from gateway.relay import RelayLink
    from native_backend.nodes import Node

_YES_NO = ("no", "yes")


class PublishingLink:
    """The session's side of an `Incoming` link that is confirmed."""

    def __init__(
        self, connection: Connection, link: Incoming, node: Node, facts: LinkFacts, relay: RelayLink | None = None
    ) -> None:
        """`relay`: the link has other nodes, too, and its credit is the relay's."""
        self.connection = connection
        self.link = link
        self.node = node
        self.facts = facts
        house = connection.gateway
        self._house = house
        self._mode = link.sender_settle_mode
        self.under_way = 0  # messages handed to the realm and not answered
        self._waiting: list[tuple[int, Callable[[], None]]] = []  # (messages to be answered before, whom to tell)
        # Behind each commit under way:
        self._later: deque[list[tuple[PublishedBatch, Sequence[bytes], Sequence[bytes]]]] = deque()
        self._relay = relay
        self._account = house.credit.open_account() if relay is None else relay.account
        self._submit = house.realm.publish
        self._verdicts: dict[tuple[int, int, str, str], Verdict] = {}
        self.use(house.tables)
        if relay is None:
            self.top_up()

    def use(self, tables: TableSet) -> None:
        """Decide by these tables from the next transfer on, as they are for this node."""
        self._convert = self._house.conversion(self.node.name, tables, self.connection.container)
        self._decide_by(tables.for_node(self.node.name))

    def _decide_by(self, tables: NodeTables) -> None:
        self.tables = tables
        self._verdicts.clear()
        # What a transfer meets depends on three bits once the link's mode is known; a peer that breaks its own mode
        # is taken as mixed.
        self._publish = {mode: tables["publish"].slice(sender_settle_mode=mode) for mode in {self._mode, "mixed"}}
        self._published = self._published_by(tables)
        self.posted = tables["posted"].slice(receiver_settle_mode="second" if self.link.settles_second else "first")
        self._common = [self.decide("event", "no", presettled) for presettled in (0, 1)]
        if self._relay is not None:
            return  # a message says where it goes when all of it is here
        unsettled, settled = (self.decide("null", "no", presettled, "partial") for presettled in (0, 1))
        self.link.reports_partial = (unsettled.then["native"] != "reassemble", settled.then["native"] != "reassemble")

    def decide(self, transformed: str, transactional: str, presettled: int, framing: str = "whole") -> Decision:
        mode = self._mode_of(presettled)
        return self._publish[mode].decide(
            framing=framing, transformed=transformed, transactional=transactional, presettled=_YES_NO[presettled]
        )

    def _published_by(self, tables: NodeTables) -> dict[str, Slice]:
        return {mode: tables["published"].slice(sender_settle_mode=mode) for mode in {self._mode, "mixed"}}

    def _mode_of(self, presettled: int) -> str:
        return "mixed" if self._mode == ("unsettled", "settled")[1 - presettled] else self._mode

    def top_up(self) -> None:
        count = self._account.top_up()
        if count:
            self.link.grant(count)

    # -- transfers

    def on_transfers(self, transfers: Transfers) -> None:
        """One run of messages: transformed, decided, published as columns."""
        link, house = self.link, self._house
        if link.credit < 0:
            self.connection.fault("over-credit", f"{-link.credit} more than granted", link)
            return
        messages = transfers.messages
        first_seq = house.outcomes.number(len(messages))
        link.number(first_seq, len(messages))
        size_bytes = messages.size
        house.hold_bytes(size_bytes)
        if transfers.transaction is None and self._publish_column(transfers, first_seq, size_bytes):
            return
        keys, values = self._convert.columns(messages, first_seq)
        refused = None in keys
        if transfers.transaction is not None:
            house.release_bytes(size_bytes)  # the transaction counts them
            post(self, keys, values, transfers, first_seq)
        elif refused or _is_mixed(transfers):
            self._one_by_one(keys, values, transfers, first_seq)
        else:
            self._all_at_once(keys, values, transfers, first_seq, size_bytes)  # type: ignore[arg-type]
        if refused:
            self._look_at_refused(keys, messages)

    def _look_at_refused(self, keys: list[bytes | None], messages: Sequence[bytes]) -> None:
        """What is no event has its outcome; some of it is a fault of its sender, too (A-9, B-7)."""
        for at, key in enumerate(keys):
            found = fault_of(messages[at]) if key is None and self.link.alive else None
            if found is not None:
                self.connection.fault(*found, self.link)

    def _publish_column(self, transfers: Transfers, first_seq: int, size_bytes: int) -> bool:
        """What mostly comes: all of one run meet the same cell, and are events as they are."""
        if self._convert.column is None or _is_mixed(transfers):
            return False
        keys = self._convert.column(transfers.messages, first_seq)
        if keys is None:
            return False
        self._all_at_once(keys, transfers.messages, transfers, first_seq, size_bytes)
        return True

    def _all_at_once(
        self, keys: Sequence[bytes], values: Sequence[bytes], transfers: Transfers, first_seq: int, size_bytes: int
    ) -> None:
        settled = int(any(transfers.presettled))
        batch = PublishedBatch(
            self, first_seq, settled, self._common[settled], len(keys), size_bytes, self.tables, self.node
        )
        self._carry_out(batch, keys, values)

    def _one_by_one(
        self, keys: list[bytes | None], values: list[bytes | None], transfers: Transfers, first_seq: int
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
                batch = PublishedBatch(
                    self, first_seq + offset, int(settled), decision, 1, size, self.tables, self.node
                )
                run = ([], [])
            run[0].append(key or b"")
            run[1].append(value or b"")
        if batch is not None:
            self._carry_out(batch, *run)

    def _carry_out(self, batch: PublishedBatch, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        if batch.decision.then["native"] == "publish":
            self.under_way += len(keys)
            if self._later:
                self._later[-1].append((batch, keys, values))
            else:
                self._submit(batch.node, keys, values, batch)
        else:
            seqs = range(batch.first_seq, batch.first_seq + len(keys))
            self._conclude(batch, batch.decision, None, seqs, [-1] * len(keys), None)

    def on_partial(self, presettled: int) -> None:
        """A message in several frames, and the tables do not reassemble."""
        first_seq = self._house.outcomes.number(1)
        self.link.number(first_seq, 1)
        decision = self.decide("null", "no", presettled, "partial")
        batch = PublishedBatch(self, first_seq, presettled, decision, 1, 0, self.tables, self.node)
        self._conclude(batch, batch.decision, None, range(first_seq, first_seq + 1), [-1], None)

    # -- answers

    def published(self, batch: PublishedBatch, answer: Published) -> None:
        """The realm has answered a part of a batch."""
        seqs = batch.seqs(answer.first, len(answer.eids))
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
        verdict = self._verdict(rule, answer_rule, batch.presettled, answer)
        then = (answer_rule or rule).then
        said = (answer.answer, answer.native) if answer else (None, None)
        detail = complaint(self.node.name, answer_rule or rule, *said) if then["condition"] else ""
        if batch.presettled:
            self.link.settle(seqs, "none")  # no frame: the peer has settled it
        else:
            self.link.settle(seqs, then["outcome"], then["condition"], detail, then["settle"])
        self._house.outcomes.tell(verdict, seqs, eids)
        batch.open -= len(seqs)
        if not batch.open:
            self._house.release_bytes(batch.size_bytes)
        if self.link.settles_second and not batch.presettled:
            self._account.withhold(len(seqs))
        else:
            self._account.complete(len(seqs))
        self.connection.touch()
        if then["class"] == "fatal":
            self.close(then["condition"], detail, batch.presettled)
        if self.link.alive:
            self.top_up()

    def on_confirmed(self, count: int) -> None:
        """Its publisher has settled so many that had their outcome: they are forgotten, and make room for others."""
        self._account.confirm(count)
        self.top_up()

    def _verdict(
        self, rule: Decision, answer_rule: Decision | None, presettled: int, answer: Published | None
    ) -> Verdict:
        native = answer.native if answer else ""
        key = (id(rule), id(answer_rule), native, str(presettled))
        verdict = self._verdicts.get(key)
        if verdict is None:
            then = (answer_rule or rule).then
            verdict = self._verdicts[key] = Verdict(
                link=self.facts,
                rule=rule,
                answer_rule=answer_rule,
                operation="publish" if rule.then["native"] == "publish" else "none",
                cause="transfer",
                answer=answer.answer if answer else None,
                native=native or None,
                outcome=then["outcome"],
                condition=then["condition"],
                klass=then["class"],
                presettled=bool(presettled),
            )
        return verdict

    def close(self, condition: str, detail: str, presettled: int) -> None:
        """Nothing can be published here any more. Of a relay only this node is given up, unless the peer could not be
        told otherwise."""
        if self._relay is None or presettled or not self._relay.rejects:
            self.connection.close_link(self.link, condition, detail)
        else:
            self._relay.forget(self)

    def may_publish(self) -> PostAnswer:
        """What a message would be answered now, as far as that is known before."""
        return self._house.realm.may_publish(self.node, self.connection.subject)

    @property
    def idle(self) -> bool:
        """Nothing of it is under way."""
        return not self.under_way and not self._later

    def access_changed(self) -> None:
        """Whether its peer may publish is asked now and not for each message: the next one meets the answer (P-R2a)."""
        realm = self._house.realm
        denied = realm.may_publish(self.node, self.connection.subject) == "access-denied"
        self._submit = realm.refuse if denied else realm.publish

    # -- transactions

    def published_rule(self, answer: Published, presettled: int, tables: NodeTables) -> Decision:
        slices = self._published if tables is self.tables else self._published_by(tables)
        return slices[self._mode_of(presettled)].decide(answer=answer.answer, presettled=_YES_NO[presettled])

    def complete(self, count: int) -> None:
        """So many messages need no credit any more: their transaction has them."""
        self._account.complete(count)
        if self.link.alive:
            self.top_up()

    def record(
        self, rule: Decision, answer_rule: Decision | None, presettled: int, answer: str | None, seqs: Sequence[int]
    ) -> None:
        """Messages that their transaction did not take have their outcome."""
        told = Published(None, 0, [], answer) if answer else None  # type: ignore[arg-type]
        self._house.outcomes.tell(self._verdict(rule, answer_rule, presettled, told), seqs, [-1] * len(seqs))

    def posted_as(
        self, seqs: range, presettled: int, decision: Decision, keys: list[bytes], values: list[bytes]
    ) -> list[Posted]:
        """What a transaction keeps of them."""
        return [Posted(self, seqs, presettled, decision, keys, values, self.tables, self.node)]

    def tell(self, rule: Decision, answer_rule: Decision, posted: Posted, answer: Published) -> None:
        """The end of a transaction, for messages that it held."""
        then = answer_rule.then
        detail = complaint(self.node.name, answer_rule, answer.answer, answer.native) if then["condition"] else ""
        if posted.presettled:
            self.link.settle(posted.seqs, "none")
        else:
            self.link.settle(posted.seqs, then["outcome"], then["condition"], detail, then["settle"])
        verdict = self._verdict(rule, answer_rule, posted.presettled, answer)
        self._house.outcomes.tell(verdict, posted.seqs, answer.eids)
        self.connection.touch()
        if then["class"] == "fatal":
            self.close(then["condition"], detail, posted.presettled)

    def after_published(self, told: Callable[[], None]) -> None:
        """Call it once all that is under way now has been answered; there is something."""
        self._waiting.append((self.under_way, told))

    def _count_down(self, count: int) -> None:
        due = [told for left, told in self._waiting if left <= count]
        self._waiting = [(left - count, told) for left, told in self._waiting if left > count]
        for told in due:
            told()

    def hold_back(self) -> None:
        """A transaction with messages of this link is being committed: what comes now comes behind it."""
        self._later.append([])

    def let_go(self) -> None:
        """The first of those commits has ended."""
        if self._later:
            for batch, keys, values in self._later.popleft():
                self._submit(batch.node, keys, values, batch)

    def ended(self, cause: str) -> None:
        """The link has gone. What is in flight completes unheard, and leaves its records. Not called of a relay's."""
        self._house.credit.close_account(self._account)


def _is_mixed(transfers: Transfers) -> bool:
    """Some came settled, and some did not."""
    return 0 < sum(transfers.presettled) < len(transfers.presettled)


@dataclass(slots=True, eq=False)
class PublishedBatch:
    """One run of messages of one link that met the same cell."""

    link: PublishingLink
    first_seq: int
    presettled: int
    decision: Decision
    open: int  # messages without an outcome
    size_bytes: int
    tables: NodeTables  # under which they came
    node: Node

    def seqs(self, first: int, count: int) -> Sequence[int]:
        return range(self.first_seq + first, self.first_seq + first + count)

    def answered(self, answer: Published) -> None:
        self.link.published(self, answer)
