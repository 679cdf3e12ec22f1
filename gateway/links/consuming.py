"""A link on which a peer consumes: events out within its credit, dispositions to native operations, their answers back.

The tables `default`, `settle` and `settled` decide what a disposition means; this module carries it out. A delivery is
known by its packed EID, partition and EID in one number; tags and outcome records name the store itself (ADR 0041).
Source: seed 000, rows S-A1 to S-A7, S-R1, S-R2, S-REL, S-MOD.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.amqp.error_description import describe_error
from gateway.amqp.link_ends import Outgoing
from gateway.amqp.link_owner import DispositionRun, LinkOwner
from gateway.evidence.notices import key_of, peer_of
from gateway.evidence.outcome_key import TOO_LARGE, TOO_LARGE_FAULT, LinkIdentity
from gateway.links.batches import SettledBatch
from gateway.links.event_to_message import marked
from gateway.links.peer import Peer
from gateway.links.store_outcomes import of_each_store
from gateway.links.without_credit import WithoutCredit
from gateway.terminus.termini import Terminus
from mappings import Decision, NodeTables, TableSet
from mappings.language.vocabulary import TABLES
from native_backend.events.batch import DeliveryBatch
from native_backend.journal.settlement import SettlementRequest
from native_backend.nodes.answers import Settled
from native_backend.state.outcome_detail import OutcomeDetail
from native_backend.subscriptions.partitioned import by_partition, eids_of, packed_eids, partition_of
from native_backend.subscriptions.subscription import Subscription

_YES_NO = ("no", "yes")
_OUTCOMES = TABLES["default"].axes["default_outcome"]
_ECHOED = ("rejected", "modified")  # states that may say more than their names
_STATED = ("disposition", "unstated", "silent")  # causes that come with a disposition
_WITHOUT_PEER = ("lost", "cut-off", "stopped")  # causes after which the peer cannot get a frame


class ConsumingLink(LinkOwner):
    """The session's side of an `Outgoing` link that is confirmed."""

    def __init__(
        self,
        connection: Peer,
        link: Outgoing,
        terminus: Terminus,
        subscription: Subscription,
        facts: LinkIdentity,
        retire: Retire,
    ) -> None:
        """`retire` keeps outcomes for the discharge of their transaction."""
        self.connection = connection
        self.link, self.facts = link, facts
        self.subscription, self.node_name = subscription, subscription.node.name
        self.ends_on_close = False  # a closing DETACH ends its durable
        self._gateway = connection.gateway
        self._retire = retire
        self._terminus = terminus
        self._outcomes = of_each_store(facts, subscription.node)
        self._tag_prefixes = [b"%d:" % part.store for part in subscription.node.parts]
        self.use(self._gateway.tables)
        self._agreed = terminus.outcomes
        self._sends_settled = link.sender_settle_mode == "settled"
        self._limits = self._gateway.limits
        self._full = False  # it may leave no more unsettled
        self._read_s = 0.0  # when its peer's latest dispositions came
        self._size_max, self._transfer_bytes = link.message_size_max, link.transfer_bytes
        self.without_credit = WithoutCredit(self._gateway.clock)
        self._gateway.store_share.join(subscription.node, connection.holder)

    def use(self, tables: TableSet) -> None:
        """Decide by these tables from the next disposition on, as they are for this node."""
        self._decide_by(tables.for_node(self.subscription.node.name))

    def _decide_by(self, tables: NodeTables) -> None:
        self.tables = tables
        for store in self._outcomes:
            store.clear()
        self._settle = (
            tables["settle"]
            .slice(
                subscription=self.subscription.mode,
                source_durability=self._terminus.source_durability,
                receiver_settle_mode=self.link.receiver_settle_mode,
            )
            .decisions
        )
        self._default = tables["default"].slice(default_outcome=self._terminus.default_outcome).decisions
        silence = self._default["silent"].then["state"]
        self.link.silence = None if silence == "received" else silence

    # -- out

    def wake(self) -> None:
        """To be visited in the next turn: there may be something for it."""
        self._gateway.ready[self] = None

    def pump(self) -> bool:
        """Send what there is within credit; True when something went out."""
        link = self.link
        if (credit := link.credit) <= 0 or not link.alive:
            self.without_credit.begin()
            return False  # until the peer grants credit
        self.without_credit.end()
        count = min(credit, self._limits.unsettled_per_link - len(link.unsettled))
        if count <= 0:
            self._full = True  # until the peer states something
            self._answer_drain()
            return False
        write_pressure = self.connection.write_pressure
        room_bytes = min(write_pressure.room, self._limits.take_bytes)
        if room_bytes <= 0:
            if write_pressure.is_full_when_read:
                self._answer_drain()
            write_pressure.wait_for_room(self)
            return False
        window = link.window
        if (window <= 0 or write_pressure.lines) and (window := self._share_of(window)) <= 0:
            return False
        further = window >> 3  # transfers for messages that need several, behind their first ones
        count = min(count, window - further, write_pressure.deliveries)
        delivered = write_pressure.release(self) if write_pressure.kept else None
        if delivered is None:
            delivered = self.subscription.take(count, min(room_bytes, (further + 1) * self._transfer_bytes))
        if delivered is None:
            self._rest()
            return False
        self._send(delivered)
        if link.draining and link.credit <= 0:
            link.tell_flow()  # all of the credit is used up: proton has nothing to say to that
        self.connection.touch()
        return True

    def _share_of(self, window: int) -> int:
        """Transfers that it may send of those that its session takes now. 0: it waits for them, but for its drain where
        there is nothing to send: to know that, an event is taken, and kept."""
        write_pressure = self.connection.write_pressure
        if (share := write_pressure.window_share(self, window)) > 0:
            return share
        if self.link.draining and self not in write_pressure.kept:
            if (delivered := self.subscription.take(1, 1)) is not None:
                write_pressure.keep(self, delivered)
            else:
                self._rest()
        return 0

    def _rest(self) -> None:
        """There was nothing for it."""
        if self.link.draining and self.subscription.is_searched():
            self._answer_drain()
        elif self.link.draining or not self.subscription.park(self.wake):
            self.wake()

    def _answer_drain(self) -> None:
        """Nothing more is available to a peer that drains, if it does: what it has to settle first is not (U-4)."""
        if self.link.draining:
            self.subscription.search_anew()
            self.link.drained()
            self.connection.touch()

    def _send(self, delivered: DeliveryBatch) -> None:
        eids, values = self._fitting(delivered)
        if not eids or not self.link.alive:
            return
        prefix, packed = self._tag_prefixes[delivered.partition], packed_eids(delivered.partition, eids)
        first_seq = self._gateway.outcomes.number(len(eids))
        if self._sends_settled:
            self.link.send_settled(prefix, eids, values)
            seqs = list(range(first_seq, first_seq + len(eids)))
            self._carry_out("sent-settled", "sent-settled", True, seqs, packed)
        elif packed is eids:
            self.link.send(prefix, first_seq, eids, values)
        else:
            self.link.send_as(prefix, first_seq, eids, packed, values)
        self.connection.write_pressure.given(0 if self._sends_settled else len(eids))

    def _fitting(self, delivered: DeliveryBatch) -> tuple[list[int], list[bytes]]:
        """EIDs and messages, but for those that are larger than the peer takes: they must not be sent to it (2.7.3),
        and table `settle` says what becomes of them."""
        eids, values = delivered.eids, marked(delivered)
        size_max = self._size_max
        if not size_max or max(map(len, values)) <= size_max:
            return eids, values
        large = [eid for eid, value in zip(eids, values, strict=True) if len(value) > size_max]
        first_seq = self._gateway.outcomes.number(len(large))
        seqs = list(range(first_seq, first_seq + len(large)))
        self._carry_out("too-large", TOO_LARGE, True, seqs, packed_eids(delivered.partition, large))
        words = f"{self.facts.node!a}: {self.link.name[:200]!a} takes {size_max} octets; {peer_of(self.connection)}"
        self._gateway.count_fault(TOO_LARGE_FAULT, words, key_of(self.connection), **self._named())
        fitting = [(eid, value) for eid, value in zip(eids, values, strict=True) if len(value) <= size_max]
        return [eid for eid, _ in fitting], [value for _, value in fitting]

    def _named(self) -> dict[str, str]:
        """For programs that read the log."""
        who = {"user": self.facts.user, "container": self.facts.container[:200], "address": self.facts.address}
        return {**who, "node": self.node_name, "link": self.facts.name[:200]}

    # -- dispositions

    def on_dispositions(self, dispositions: DispositionRun) -> None:
        """Deliveries of one state."""
        self._read_s = self._gateway.clock.monotonic_s()
        if self._full:
            self._full = False
            self.wake()
        if dispositions.transaction is not None:
            self._retire(self, dispositions)
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

    def decide(self, state: str, attempts: str = "below") -> Decision:
        decision: Decision = self._settle[state]["no"][attempts]
        return decision

    def repeat(self, dispositions: DispositionRun) -> None:
        """The peer says again what it has said before."""
        answer_words = self._settle[dispositions.state]["yes"]["below"]
        self._apply(answer_words, dispositions.seqs)

    def outcome_of(self, dispositions: DispositionRun) -> tuple[str | None, str]:
        """What was stated, or is taken for it, and the cause. None where it was not agreed on: then the link closes."""
        if dispositions.state in ("unstated", "received"):  # no outcome named
            settled = dispositions.peer_settled or dispositions.transaction is not None
            cause = "unstated" if settled or self.link.silence is None else "silent"
            return self._default[cause].then["state"], cause
        if self._forbids(dispositions.state):
            self._refuse_outcome(dispositions)
            return None, ""
        return dispositions.state, "disposition"

    def _forbids(self, state: str) -> bool:
        return self._agreed is not None and state in _OUTCOMES and state.partition("-")[0] not in self._agreed

    def _refuse_outcome(self, dispositions: DispositionRun) -> None:
        """What was not agreed on is no outcome (I-7): the deliveries are lost like all that the link leaves behind."""
        state = self._default["lost"].then["state"]
        self._carry_out(state, "lost", True, dispositions.seqs, dispositions.eids)
        self.connection.fault("outcome-not-agreed", dispositions.state, self.link)

    def carry_out(self, state: str, cause: str, dispositions: DispositionRun) -> None:
        seqs, eids, detail = dispositions.seqs, dispositions.eids, dispositions.detail
        self._carry_out(state, cause, dispositions.peer_settled, seqs, eids, detail)

    def _carry_out(
        self,
        state: str,
        cause: str,
        peer_settled: bool,
        seqs: list[int],
        eids: list[int],
        detail: OutcomeDetail | None = None,
    ) -> None:
        for decision, some, events in self.rules(state, seqs, eids):
            self._settle_by(decision, state, cause, peer_settled, some, events, detail=detail)

    def rules(self, state: str, seqs: list[int], eids: list[int]) -> list[tuple[Decision, list[int], list[int]]]:
        """What each delivery of that state meets, store by store: one rule, or another where an attempt is the last
        one."""
        decision = self.decide(state)
        last = self.decide(state, "last")
        counts = last.rule != decision.rule
        if not counts and len(self._outcomes) == 1:
            return [(decision, seqs, eids)]
        met = []
        for some, events in self._by_store(seqs, eids):
            ends = self.subscription.last_attempts(events) if counts else None
            if ends is None:
                met.append((decision, some, events))
                continue
            for rule, is_last in ((decision, False), (last, True)):
                places = [at for at, end in enumerate(ends) if end is is_last]
                if places:
                    met.append((rule, [some[at] for at in places], [events[at] for at in places]))
        return met

    def _by_store(self, seqs: list[int], eids: list[int]) -> list[tuple[list[int], list[int]]]:
        if len(self._outcomes) == 1:
            return [(seqs, eids)]
        stores = by_partition(eids).values()
        return [([seqs[at] for at in places], [eids[at] for at in places]) for places in stores]

    def _settle_by(
        self,
        decision: Decision,
        state: str,
        cause: str,
        peer_settled: bool,
        seqs: list[int],
        eids: list[int],
        reserved: bool = False,
        detail: OutcomeDetail | None = None,
    ) -> None:
        then = decision.then
        read_s = self._read_s if cause in _STATED else 0.0
        batch = SettledBatch(self, decision, state, cause, peer_settled, seqs, eids, self.tables, detail, read_s)
        if then["native"] == "none":
            self.subscription.forget(eids)
            self._conclude(batch, None, None)
        else:
            settling = SettlementRequest(
                then["native"], then["failed"], then["elsewhere"], cause, state, reserved, detail
            )
            self.subscription.settle(settling, eids, seqs, batch)

    def settled(self, batch: SettledBatch, answer: Settled) -> None:
        """The realm has answered: the journal holds it, or does not."""
        if batch.read_s and answer.answer == "done":
            self._gateway.settle_seconds.add(self._gateway.clock.monotonic_s() - batch.read_s, len(batch.seqs))
        settled = batch.tables["settled"].decisions
        decision = settled[batch.decision.then["native"]][answer.answer][_YES_NO[batch.peer_settled]]
        self._conclude(batch, decision, answer)

    def _conclude(self, batch: SettledBatch, answer_rule: Decision | None, answer: Settled | None) -> None:
        store = self._outcomes[partition_of(batch.eids[0])]
        key = store.settled(batch.decision, answer_rule, answer, batch.cause, batch.state, batch.peer_settled)
        self._gateway.outcomes.tell(key, batch.seqs, eids_of(batch.eids), batch.detail)
        if batch.cause in _WITHOUT_PEER:
            return  # the peer has gone
        decided = answer_rule or batch.decision
        then = decided.then
        answer_words = (answer.answer, answer.native) if answer else (None, None)
        detail = describe_error(str(self.facts.node), decided, *answer_words) if then["condition"] else ""
        if not batch.peer_settled:  # else it gets no more dispositions
            if not then["condition"] and batch.state.startswith(_ECHOED):
                self.link.tell_back(batch.seqs, key.outcome, batch.state, batch.detail)
            self.link.settle(batch.seqs, key.outcome, then["condition"], detail, then["settle"])
            self.connection.touch()
        if then["class"] == "fatal":
            self.connection.close_link(self.link, then["condition"], detail)

    def _apply(self, decision: Decision, seqs: Sequence[int]) -> None:
        """A rule that speaks of deliveries without ending them."""
        then = decision.then
        detail = describe_error(str(self.facts.node), decision) if then["condition"] else ""
        if then["outcome"] != "none":
            self.link.settle(seqs, then["outcome"], then["condition"], detail, then["settle"])
            self.connection.touch()
        if then["class"] == "fatal":
            self.connection.close_link(self.link, then["condition"], detail)

    # -- transactions

    def conclude(self, batch: SettledBatch, settled_answer: Settled | None) -> None:
        """The end of a transaction that has their outcome; `settled_answer` where the realm had something to do."""
        if settled_answer is None:
            self.subscription.forget(batch.eids)
            self._conclude(batch, None, None)
        else:
            self.settled(batch, settled_answer)

    def default(self, cause: str, seqs: list[int], eids: list[int], reserved: bool) -> None:
        """What the peer had said counts no more, and it can say nothing else."""
        state = self._default[cause].then["state"]
        for decision, some, events in self.rules(state, seqs, eids):
            self._settle_by(decision, state, cause, True, some, events, reserved)

    # -- the end

    def ended(self, cause: str) -> None:
        """The link, its session or its connection was ended (`lost`) or broke off (`cut-off`), or the gateway closes
        (`stopped`): what the peer never stated gets the default outcome (G-3)."""
        seqs, eids = self.link.lose()
        if seqs:
            state = self._default[cause].then["state"]
            self._carry_out(state, cause, True, seqs, eids)
        self.subscription.close()
        self._gateway.store_share.leave(self.subscription.node, self.connection.holder)
        if self._terminus.filters.no_local and self.subscription.mode != "durable":  # a durable goes on wanting none
            self._gateway.no_local.release(self.connection.container)
        self.connection.expiry_scopes.leave(self.subscription, self.link.session)

    def failed_later(self, decision: Decision, answer: str, native: str) -> None:
        """The subscription failed (1.3-B): what is in flight gets the outcome that the table `attached` names,
        before the link is detached."""
        outcome, condition = decision.then["in_flight"], decision.then["condition"]
        self.link.give_up()
        stated = [(pointer, *numbers) for pointer, numbers in self.link.unsettled.items()]
        for pointer, seq, _ in stated:
            self.link.stated(pointer, seq, outcome, False)
        seqs, eids = [seq for _, seq, _ in stated], [eid for _, _, eid in stated]
        if seqs:
            for some, events in self._by_store(seqs, eids):
                key = self._outcomes[partition_of(events[0])].failed(decision, answer, native)
                self._gateway.outcomes.tell(key, some, eids_of(events))
            if outcome != "none":
                self.link.settle(
                    seqs, outcome, condition, describe_error(str(self.facts.node), decision, answer, native)
                )


Retire = Callable[[ConsumingLink, DispositionRun], None]
