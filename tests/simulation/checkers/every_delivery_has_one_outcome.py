"""Outcomes on the wire against the evidence: one each, and the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.evidence import Told, column
from tests.simulation.observation.facts import Given, Publish, WireLink

if TYPE_CHECKING:
    from tests.simulation.world import World


_CAUSES = {
    None: ("lost", "cut-off", "stopped"),
    "unstated": ("unstated",),
    "rolled-back": ("rolled-back", "lost", "cut-off", "stopped"),  # or the link had gone before its transaction
}


class EveryDeliveryHasOneOutcome(Checker):
    """A delivery is told one outcome at most, a settled one none; the evidence has one for each, and it is the same.
    What a transaction takes is told and settled at once, and nothing after that: its discharge says what it came to."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._unasked: list[tuple[Given, str]] = []
        self._promised: set[Publish] = set()

    def promised(self, publish: Publish) -> None:
        self.require(not publish.settled, f"{publish.marker} came settled, and was told {publish.promised} inside")
        self.require(publish.closed, f"{publish.marker} was told {publish.promised} inside, and not settled")
        self.require(publish not in self._promised, f"{publish.marker} was told inside its transaction twice")
        self._promised.add(publish)

    def told(self, publish: Publish, state: str) -> None:
        self.require(not publish.settled, f"{publish.marker} came settled, and was told {state}")
        self.require(not publish.closed, f"{publish.marker} was settled inside its transaction, and was told {state}")
        self.require(len(publish.told) == 1, f"{publish.marker} was told {publish.told}")

    def echoed(self, given: Given, state: str) -> None:
        self.require(not given.settled, f"event {given.eid} was sent settled, then answered {state}")
        if given.stated is None:
            self._unasked.append((given, state))
        self.require(not given.peer_settled, f"event {given.eid} was settled by the peer, then answered {state}")
        self.require(len(given.told) == 1, f"event {given.eid} was answered {given.told}")

    def flushed(self) -> None:
        """Only a link that is closed is told what no one asked."""
        unasked, self._unasked = self._unasked, []
        for given, state in unasked:
            self.require(
                given.link.condition is not None, f"event {given.eid} was answered {state} before the peer spoke"
            )

    def at_quiet(self) -> None:
        for link in self.world.links:
            if not link.gone and link.run == self.world.process.run:
                waiting = [post.marker for post in link.published if _wants_an_outcome(post)]
                self.require(not waiting, f"nothing was told of {waiting} on {link}")
                stated = [sent.eid for sent in link.given if sent.stated and not sent.peer_settled and not sent.told]
                self.require(not stated, f"nothing was answered about {stated} on {link}")

    def at_end(self) -> None:
        evidence = self.world.evidence
        for run, seqs in evidence.doubled_seqs().items():
            self.fail(f"seqs {seqs} of run {run} have two outcomes")
        records = evidence.by_link()
        for key, links in _by_name(self.world.links).items():
            if evidence.complete(key[0]):
                self._compare(links, records.get(key, []))

    def _compare(self, links: list[WireLink], records: list[Told]) -> None:
        """What the witness saw on links of one name, beside what was recorded, both in the order of the seqs."""
        seen: list[Any] = [delivery for link in links for delivery in (link.published or link.given)]
        unprocessed = len(seen) - len(
            records
        )  # in one burst with what the link, its session or its connection was ended for
        is_cut = unprocessed > 0 and links[-1].shut and links[-1].publishing
        if is_cut and not any(_is_heard(delivery) for delivery in seen[-unprocessed:]):
            del seen[-unprocessed:]
        self.require(len(seen) == len(records), f"{links[0]}: {len(seen)} deliveries seen, {len(records)} recorded")
        for delivery, record in zip(seen, records, strict=True):
            if isinstance(delivery, Given):
                self._compare_given(delivery, record)
            else:
                self._compare_published(delivery, record)

    def _compare_published(self, post: Publish, record: Told) -> None:
        shown = post.told[0].split(":")[0] if post.told else None
        self.require(
            bool(record.group["presettled"]) == post.settled, f"{post.marker}: settled {post.settled}, {record}"
        )
        self.require(shown in (None, record.group["outcome"]), f"{post.marker} was told {shown}, recorded is {record}")
        if post.closed and post.transaction is not None and post.transaction.done is not None:
            promised = post.promised.split(":")[0]
            kept = promised != "accepted" or post.transaction.done
            wanted = {promised} if kept else {"released", "rejected"}
            self.require(record.group["outcome"] in wanted, f"{post.marker}, promised {promised}: recorded is {record}")
        stored = self.ledger.eid(post.link.node, post.marker)
        self.require(record.eid in (-1, stored), f"{post.marker} is stored at {stored}, recorded is {record}")

    def _compare_given(self, sent: Given, record: Told) -> None:
        self.require(sent.eid == record.eid, f"event {sent.eid} was given on {sent.link}, recorded is {record}")
        echo = sent.told[0].split(":")[0] if sent.told else None
        name = echo and echo.split("-")[0]
        self.require(name in (None, record.group["outcome"]), f"event {sent.eid} was told {echo}, recorded is {record}")
        if name == "modified" and (sent.stated or "").startswith(name):
            self.require(echo == sent.stated, f"event {sent.eid}, peer said {sent.stated}: told back {echo}")
        unprocessed = sent.link.shut and not sent.told and record.group["cause"] == "lost"  # stated in that burst, too
        if sent.link.conflict or unprocessed:
            return  # what came behind a contradiction, in the same bytes, was not listened to
        cause = ("sent-settled",) if sent.settled else _CAUSES.get(sent.stated, ("disposition",))
        if sent.transaction is not None and sent.stated is None:
            cause = _CAUSES["rolled-back"] + (("disposition",) if sent.transaction.done is None else ())
        self.require(record.group["cause"] in cause, f"event {sent.eid}, peer said {sent.stated}: recorded is {record}")
        if record.group["cause"] in ("lost", "cut-off") and not sent.link.shut and sent.transaction is None:
            is_cut_off = record.group["cause"] == "cut-off"
            self.require(is_cut_off == sent.link.broken, f"{sent.link} broke off: {sent.link.broken}, {record}")
        expected = (sent.stated or "").split("-")[0]
        if sent.stated not in (None, "unstated", "rolled-back") and column(record, "answer") in ("done", None):
            self.require(
                record.group["outcome"] == expected, f"event {sent.eid}, peer said {sent.stated}: recorded is {record}"
            )


def _wants_an_outcome(publish: Publish) -> bool:
    """Not inside a transaction that goes on."""
    goes_on = publish.transaction is not None and not publish.transaction.over
    return not publish.settled and not publish.closed and not publish.told and not goes_on


def _is_heard(delivery: Publish | Given) -> bool:
    return bool(delivery.told) or (isinstance(delivery, Publish) and delivery.closed)


def _by_name(links: list[WireLink]) -> dict[tuple[str, str, str], list[WireLink]]:
    by_name: dict[tuple[str, str, str], list[WireLink]] = {}
    for link in links:
        if link.published or link.given:
            by_name.setdefault((link.run, link.container, link.name), []).append(link)
    return by_name
