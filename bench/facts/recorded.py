"""What the gateway records for its operators, statement by statement: what `bench.facts` takes out of it.

| fact | what is taken out |
|---|---|
| counters | deliveries by direction, node and outcome, also of each link and connection; decisions of each rule; |
| | errors by condition, class, rule and native code; faults, refused logins, dead letters |
| refusals | the last refusals and faults, and what consumers gave up |
| last | when a link had its last outcome |
| durations | the histograms accept, settle, journal, publish, evidence; the clock that the first two and publish read |
| ages | which seq was given when, for the age of what is unsettled; which event was stored when |
| credit | how long a link has had no credit |
| depths | which EIDs are events, and the looks into the stores: how many messages a node or a durable has, how old |
| history | the record of each minute |

The refusal of a delivery and its counters are one statement, which stands under `counters`. Without `depths` there are
no group offsets, which show Kafka's tools the same numbers: so what these cost is seen as a cost of the facts.

What cannot be taken out, because the product itself decides by it, or because it is no statement of its own:

* outcome records, seqs, unsettled deliveries, credit: evidence and the protocol. Facts are read from them on request;
* `Connection.messages`: a turn is measured by it; `Gateway.turned_s`: the clock is read for heartbeats;
* capacities of nodes, troubles, alarms: what is taken, and the state in `/health`, follow from them;
* how many journal and outcome records there are: they are numbered;
* the fields `read_s` and `began_s` of a batch, and the clock that is read once for a transaction of the journal and
  for an evidence record; lines of the log, of which steady messages write none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.facts.cut import ALL, Cut

_OUTCOMES: Final = "gateway.evidence.outcomes:Outcomes"
_COUNTERS: Final = "gateway.evidence.counters:OutcomeCounters"
_RECENT: Final = "gateway.evidence.recent_errors:RecentErrors"
_PUBLISHING: Final = "gateway.links.publishing:PublishingLink"
_CONSUMING: Final = "gateway.links.consuming:ConsumingLink"
_PUBLISHER: Final = "native_backend.publish.publisher:Publisher"
_RELAY: Final = "gateway.attach.anonymous_relay:RelayLink"
_COUNTING: Final = "native_backend.shard.counting:Counting"

RECORDED: Final[Sequence[Cut]] = (
    Cut("counters", f"{_OUTCOMES}.flush", "if self.counters.add(group.key, len(group.seqs)):"),
    Cut("counters", f"{_COUNTERS}.error", ALL),
    Cut("counters", f"{_COUNTERS}.turned_away", ALL),
    Cut("counters", "gateway.links.shared:Shared.count_fault", "self.faults[fault] += 1"),
    Cut("counters", "native_backend.state.dead_letter_counts:DeadLetterCounts.add", ALL),
    Cut("refusals", f"{_RECENT}.add", ALL),
    Cut("refusals", f"{_RECENT}.decided", ALL),
    Cut("last", f"{_OUTCOMES}.flush", "group.key.link.last.at_us = now_us"),
    Cut(
        "durations",
        f"{_PUBLISHING}.published",
        "self._gateway.accept_seconds.add(self._gateway.clock.monotonic_s() - batch.read_s, len(seqs))",
    ),
    Cut("durations", f"{_PUBLISHING}.on_transfers", "self._read_s = gateway.clock.monotonic_s()"),
    Cut("durations", f"{_CONSUMING}.settled", "if batch.read_s and answer.answer == 'done':"),
    Cut("durations", f"{_CONSUMING}.on_dispositions", "self._read_s = self._gateway.clock.monotonic_s()"),
    Cut(
        "durations",
        "native_backend.journal.journal:Journal._stored",
        "self.seconds.add(self._clock.monotonic_s() - batch.began_s)",
    ),
    Cut(
        "durations",
        f"{_PUBLISHER}.completed",
        "self.seconds.add(self._context.clock.monotonic_s() - batch.began_s)",
    ),
    Cut(
        "durations",
        "native_backend.dispatch.context:append",
        "began_s = context.clock.monotonic_s()",
        instead="began_s = 0.0",
    ),
    Cut(
        "durations",
        "native_backend.publish.evidence:Evidence.completed",
        "self.seconds.add(self._stored_s - record.began_s)",
    ),
    Cut("ages", f"{_OUTCOMES}.advance", "self.seq_times.note(self._next_seq, now_s)"),
    Cut("ages", "native_backend.events.store_events:StoreEvents.stored", "if now_ms >= self.times.due_ms:"),
    Cut("ages", "native_backend.events.store_events:StoreEvents._note", "self.times.note(eids[0], now_ms)"),
    Cut("ages", "native_backend.events.store_events:StoreEvents.learn", "self.times.learn(eids, times_ms)"),
    Cut("credit", f"{_PUBLISHING}.on_transfers", "if link.credit <= 0:"),
    Cut("credit", f"{_PUBLISHING}.top_up", "self.without_credit.end()"),
    Cut("credit", f"{_RELAY}.top_up", "self.without_credit.end()"),
    Cut("credit", f"{_CONSUMING}.pump", "self.without_credit.begin()"),
    Cut("credit", f"{_CONSUMING}.pump", "self.without_credit.end()"),
    Cut("depths", f"{_PUBLISHER}._tell", "self._note(appended)"),
    Cut("depths", f"{_COUNTING}.stored", ALL),
    Cut("depths", f"{_COUNTING}._go_on", ALL),
    Cut("depths", f"{_COUNTING}.finish", ALL),
    Cut("history", "gateway.session.gateway:Gateway.advance", "self.history.advance()"),
    Cut("history", "gateway.session.gateway:Gateway.close_evidence", "self.history.close()"),
)
FACTS: Final = tuple(dict.fromkeys(cut.fact for cut in RECORDED))
TIMED: Final[Sequence[Cut]] = (
    *(cut for cut in RECORDED if "StoreEvents" not in cut.where),  # `depths` call these
    Cut("depths", "native_backend.shard.counting:_look_at", ALL),
    Cut("depths", f"{_COUNTING}._looked", ALL),
)
"""What a process times, none inside another: also what statements above make the realm's worker do."""
