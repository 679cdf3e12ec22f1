"""A link on which a peer consumes: events out within its credit, dispositions to native operations, their answers back.

What a disposition means is said by the tables `default`, `settle` and `settled`; here it is only carried out.
Source: seed 000, rows S-A1 to S-A7, S-R1, S-R2, S-REL, S-MOD.
May import: `gateway`, `mappings`, `native_backend`, `transformers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.complaint import complaint
from gateway.engine_links import Outgoing
from gateway.enlisting import enlist
from gateway.facts import Dispositions
from gateway.outcomes import LinkFacts, Verdict
from gateway.termini import Terminus
from mappings import Decision, NodeTables, TableSet
from mappings.vocabulary import TABLES
from native_backend.answers import Settled
from native_backend.settlement import Settling
from transformers import redelivered_header

if TYPE_CHECKING:
    from gateway.connection import Connection
    from native_backend.delivery import Delivered
    from native_backend.subscription import Subscription

_YES_NO = ("no", "yes")
_SETTLES_AS = {"browse": "plain"}  # a copy link like any other (V-2)
_OUTCOMES = TABLES["default"].axes["default_outcome"]
_NOBODY = ("lost", "cut-off", "stopped")  # causes with nobody left to tell


class ConsumingLink:
    """The session's side of an `Outgoing` link that is confirmed."""

    def __init__(
        self, connection: Connection, link: Outgoing, terminus: Terminus, subscription: Subscription, facts: LinkFacts
    ) -> None:
        self.connection = connection
        self.link = link
        self.facts = facts
        self.subscription = subscription
        self._house = connection.gateway
        self._terminus = terminus
        self._verdicts: dict[tuple[object, ...], Verdict] = {}
        self.use(self._house.tables)
        self._agreed = terminus.outcomes
        self._sends_settled = link.sender_settle_mode == "settled"
        self._tag_prefix = b"%d:" % subscription.node.store
        self._limits = self._house.limits
        self._full = False  # it may leave no more unsettled

    def use(self, tables: TableSet) -> None:
        """Decide by these tables from the next disposition on, as they are for this node."""
        self._decide_by(tables.for_node(self.subscription.node.name))

    def _decide_by(self, tables: NodeTables) -> None:
        self.tables = tables
        self._verdicts.clear()
        self._settle = tables["settle"].slice(
            subscription=_SETTLES_AS.get(self.subscription.mode, self.subscription.mode),
            source_durability=self._terminus.source_durability,
            receiver_settle_mode=self.link.receiver_settle_mode,
        )
        self._default = tables["default"].slice(default_outcome=self._terminus.default_outcome)
        silence = self._default.decide(cause="silent").then["state"]
        self.link.silence = None if silence == "received" else silence

    # -- out

    def wake(self) -> None:
        """To be visited in the next turn: there may be something for it."""
        self._house.ready[self] = None

    def pump(self) -> bool:
        """Send what there is within credit; True when something went out."""
        link = self.link
        credit = link.credit
        if credit <= 0 or not link.alive:
            return False  # until the peer grants credit
        count = min(credit, self._limits.unsettled_per_link - len(link.unsettled))
        if count <= 0:
            self._full = True  # until the peer states something
            return False
        unread = self.connection.unread
        room_bytes = min(unread.room, self._limits.take_bytes)
        if room_bytes <= 0:
            unread.block(self)
            return False
        delivered = self.subscription.take(count, room_bytes)
        if delivered is None:
            if link.draining and self.subscription.is_searched():
                self.subscription.search_anew()
                link.drained()
                self.connection.touch()
            elif link.draining or not self.subscription.park(self.wake):
                self.wake()
            return False
        self._send(delivered)
        if link.draining and link.credit <= 0:
            link.tell_flow()  # all of the credit is used up: proton has nothing to say to that
        self.connection.touch()
        return True

    def _send(self, delivered: Delivered) -> None:
        eids, values = delivered.eids, marked(delivered)
        first_seq = self._house.outcomes.number(len(eids))
        if self._sends_settled:
            self.link.send_settled(self._tag_prefix, eids, values)
            seqs = list(range(first_seq, first_seq + len(eids)))
            self._carry_out("sent-settled", "sent-settled", True, seqs, eids)
        else:
            self.link.send(self._tag_prefix, first_seq, eids, values)

    # -- dispositions

    def on_dispositions(self, dispositions: Dispositions) -> None:
        """Deliveries of one state."""
        if self._full:
            self._full = False
            self.wake()
        if dispositions.transaction is not None:
            enlist(self, dispositions)
            return
        if dispositions.repeated:
            self.repeat(dispositions)
            return
        if dispositions.state == "received" and not dispositions.peer_settled:
            self._apply(self.decide("received"), dispositions.seqs)
            return
        state, cause = self.outcome_of(dispositions)
        if state is not None:
            self.carry_out(state, cause, dispositions)

    def decide(self, state: str) -> Decision:
        return self._settle.decide(state=state, already_settled="no", attempts="below")

    def repeat(self, dispositions: Dispositions) -> None:
        """The peer says again what it has said before."""
        said = self._settle.decide(state=dispositions.state, already_settled="yes", attempts="below")
        self._apply(said, dispositions.seqs)

    def outcome_of(self, dispositions: Dispositions) -> tuple[str | None, str]:
        """What was stated, or is taken for it, and the cause. None where it was not agreed on: then the link closes."""
        if dispositions.state in ("unstated", "received"):  # no outcome named
            settled = dispositions.peer_settled or dispositions.transaction is not None
            cause = "unstated" if settled or self.link.silence is None else "silent"
            return self._default.decide(cause=cause).then["state"], cause
        if self._forbids(dispositions.state):
            self._refuse_outcome(dispositions)
            return None, ""
        return dispositions.state, "disposition"

    def _forbids(self, state: str) -> bool:
        return self._agreed is not None and state in _OUTCOMES and state.partition("-")[0] not in self._agreed

    def _refuse_outcome(self, dispositions: Dispositions) -> None:
        """What was not agreed on is no outcome (I-7): the deliveries are lost like all that the link leaves behind."""
        state = self._default.decide(cause="lost").then["state"]
        self._carry_out(state, "lost", True, dispositions.seqs, dispositions.eids)
        self.connection.fault("outcome-not-agreed", dispositions.state, self.link)

    def carry_out(self, state: str, cause: str, dispositions: Dispositions) -> None:
        self._carry_out(state, cause, dispositions.peer_settled, dispositions.seqs, dispositions.eids)

    def _carry_out(self, state: str, cause: str, peer_settled: bool, seqs: list[int], eids: list[int]) -> None:
        for decision, some, events in self.rules(state, seqs, eids):
            self._settle_by(decision, state, cause, peer_settled, some, events)

    def rules(self, state: str, seqs: list[int], eids: list[int]) -> list[tuple[Decision, list[int], list[int]]]:
        """What each delivery of that state meets: one rule, or another where an attempt is the last one."""
        decision = self.decide(state)
        last = self._settle.decide(state=state, already_settled="no", attempts="last")
        ends = self.subscription.last_attempts(eids) if last.rule != decision.rule else None
        if ends is None:
            return [(decision, seqs, eids)]
        met = []
        for each, of in ((decision, False), (last, True)):
            places = [at for at, end in enumerate(ends) if end is of]
            if places:
                met.append((each, [seqs[at] for at in places], [eids[at] for at in places]))
        return met

    def _settle_by(
        self,
        decision: Decision,
        state: str,
        cause: str,
        peer_settled: bool,
        seqs: list[int],
        eids: list[int],
        held: bool = False,
    ) -> None:
        then = decision.then
        batch = SettledBatch(self, decision, cause, peer_settled, seqs, eids, self.tables)
        if then["native"] == "none":
            self._conclude(batch, None, None)
        else:
            settling = Settling(then["native"], then["failed"], then["elsewhere"], cause, state, held)
            self.subscription.settle(settling, eids, seqs, batch)

    def settled(self, batch: SettledBatch, answer: Settled) -> None:
        """The realm has answered: the journal holds it, or does not."""
        decision = batch.tables["settled"].decide(
            operation=batch.decision.then["native"],
            answer=answer.answer,
            peer_settled=_YES_NO[batch.peer_settled],
        )
        self._conclude(batch, decision, answer)

    def _conclude(self, batch: SettledBatch, answer_rule: Decision | None, answer: Settled | None) -> None:
        verdict = self._verdict(batch, answer_rule, answer)
        self._house.outcomes.tell(verdict, batch.seqs, batch.eids)
        if batch.cause in _NOBODY:
            return  # nobody to tell
        then = (answer_rule or batch.decision).then
        said = (answer.answer, answer.native) if answer else (None, None)
        detail = complaint(str(self.facts.node), answer_rule or batch.decision, *said) if then["condition"] else ""
        if not batch.peer_settled:  # else nothing may be said to it any more
            self.link.settle(batch.seqs, verdict.outcome, then["condition"], detail, then["settle"])
            self.connection.touch()
        if then["class"] == "fatal":
            self.connection.close_link(self.link, then["condition"], detail)

    def _apply(self, decision: Decision, seqs: Sequence[int]) -> None:
        """A rule that speaks of deliveries without ending them."""
        then = decision.then
        detail = complaint(str(self.facts.node), decision) if then["condition"] else ""
        if then["outcome"] != "none":
            self.link.settle(seqs, then["outcome"], then["condition"], detail, then["settle"])
            self.connection.touch()
        if then["class"] == "fatal":
            self.connection.close_link(self.link, then["condition"], detail)

    def _verdict(self, batch: SettledBatch, answer_rule: Decision | None, answer: Settled | None) -> Verdict:
        key = (id(batch.decision), id(answer_rule), batch.cause, batch.peer_settled, answer.native if answer else "")
        verdict = self._verdicts.get(key)
        if verdict is None:
            asked, then = batch.decision.then, (answer_rule or batch.decision).then
            verdict = self._verdicts[key] = Verdict(
                link=self.facts,
                rule=batch.decision,
                answer_rule=answer_rule,
                operation=asked["native"],
                cause=batch.cause,
                answer=answer.answer if answer else None,
                native=(answer.native or None) if answer else None,
                outcome=asked["outcome"] if then["outcome"] == "asked" else then["outcome"],
                condition=then["condition"],
                klass=then["class"],
                presettled=batch.cause == "sent-settled",
            )
        return verdict

    # -- transactions

    def conclude(
        self,
        rule: Decision,
        cause: str,
        peer_settled: bool,
        seqs: list[int],
        eids: list[int],
        told: Settled | None,
        tables: NodeTables,
    ) -> None:
        """The end of a transaction that has their outcome; `told` where the realm had something to do."""
        batch = SettledBatch(self, rule, cause, peer_settled, seqs, eids, tables)
        if told is None:
            self._conclude(batch, None, None)
        else:
            self.settled(batch, told)

    def default(self, cause: str, seqs: list[int], eids: list[int], held: bool) -> None:
        """What the peer had said counts no more, and it can say nothing else."""
        state = self._default.decide(cause=cause).then["state"]
        for decision, some, events in self.rules(state, seqs, eids):
            self._settle_by(decision, state, cause, True, some, events, held)

    # -- the end

    def ended(self, cause: str) -> None:
        """The link, its session or its connection was ended (`lost`) or broke off (`cut-off`), or the gateway closes
        (`stopped`): what the peer never stated gets the default outcome (G-3)."""
        seqs, eids = self.link.lose()
        if seqs:
            state = self._default.decide(cause=cause).then["state"]
            self._carry_out(state, cause, True, seqs, eids)
        self.subscription.close()
        if self._terminus.filters.no_local and self.subscription.mode != "durable":  # a durable goes on wanting none
            self._house.origins.release(self.connection.container)
        self.connection.scopes.leave(self.subscription, self.link.session)

    def failed_later(self, decision: Decision, answer: str, native: str) -> None:
        """The subscription failed (1.3-B): what is in flight gets the outcome that the table `attached` names,
        before the link is detached."""
        outcome, condition = decision.then["in_flight"], decision.then["condition"]
        stated = [(pointer, *numbers) for pointer, numbers in self.link.unsettled.items()]
        for pointer, seq, _ in stated:
            self.link.stated(pointer, seq, outcome, False)
        seqs, eids = [seq for _, seq, _ in stated], [eid for _, _, eid in stated]
        if seqs:
            self._tell_failed(decision, answer, native, seqs, eids)
            if outcome != "none":
                self.link.settle(seqs, outcome, condition, complaint(str(self.facts.node), decision, answer, native))

    def _tell_failed(self, decision: Decision, answer: str, native: str, seqs: list[int], eids: list[int]) -> None:
        verdict = Verdict(
            link=self.facts,
            rule=decision,
            answer_rule=None,
            operation="none",
            cause="lost",
            answer=answer,
            native=native or None,
            outcome=decision.then["in_flight"],
            condition=decision.then["condition"],
            klass=decision.then["class"],
            presettled=False,
        )
        self._house.outcomes.tell(verdict, seqs, eids)


def marked(delivered: Delivered) -> list[bytes]:
    """The messages, with what their headers have to say of earlier attempts."""
    values = delivered.values
    if delivered.failed is None and delivered.again is None:
        return values
    failed = delivered.failed or [0] * len(values)
    again = delivered.again or [False] * len(values)
    return [
        redelivered_header(value, count, seen) if count or seen else value
        for value, count, seen in zip(values, failed, again, strict=True)
    ]


@dataclass(slots=True, eq=False)
class SettledBatch:
    """Deliveries of one link that met the same cell."""

    link: ConsumingLink
    decision: Decision
    cause: str
    peer_settled: bool
    seqs: list[int]
    eids: list[int]
    tables: NodeTables  # under which they were stated

    def answered(self, answer: Settled) -> None:
        self.link.settled(self, answer)
