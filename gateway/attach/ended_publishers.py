"""A link whose node was deleted: table `attached` says what becomes of it (moment `later`). What is under way on it has
its outcomes first. Source: semantics.md O-5, P-R2d.
"""

from __future__ import annotations

from functools import partial

from gateway.amqp.error_description import describe_error
from gateway.attach.refused_attaches import tell_ended
from gateway.links.publishing import PublishingLink
from mappings import Decision, ImpossibleFacts

_ANSWER, _NATIVE = "not-found", "deleted"


def end_publisher(link: PublishingLink) -> None:
    """Its node was deleted."""
    decision = _decision(link)
    if decision is None or decision.then["attach"] != "detach":
        return
    if link.under_way:
        link.after_published(partial(_end, link, decision))
    else:
        _end(link, decision)


def _decision(link: PublishingLink) -> Decision | None:
    """None: tables of one's own that are from before such links were ended."""
    try:
        return link.tables["attached"].decide(direction="publish", answer=_ANSWER, moment="later")
    except ImpossibleFacts:
        return None


def _end(link: PublishingLink, decision: Decision) -> None:
    if link.link.alive and link.link.owner is link:  # it may have ended by what was answered meanwhile
        tell_ended("publisher", link.connection, decision, link.facts.node or "", _ANSWER, _NATIVE)
        detail = describe_error(link.node.name, decision, _ANSWER, _NATIVE)
        link.connection.close_link(link.link, decision.then["condition"], detail)
