"""Attaches that were refused, and links that the realm ended: counted, named in the log, recorded."""

from __future__ import annotations

from gateway.evidence.notices import key_of, peer_of
from gateway.links.peer import Peer
from gateway.terminus.termini import Terminus
from mappings import Decision


def tell_refused(
    peer: Peer,
    terminus: Terminus,
    link: str,
    node: str,
    decision: Decision,
    condition: str,
    answer: str,
    native: str,
    cause: str = "",
) -> None:
    """To the operator. `link`: its name; `node`: of one that there is."""
    gateway, node_asked = peer.gateway, terminus.node
    gateway.outcomes.counters.error(decision, answer, native, node)
    cause_text = f"{decision.table}.{decision.rule}: {condition} {native or answer}".rstrip()
    cause_text = f"{cause_text} ({cause:.200})" if cause else cause_text
    words = f"{terminus.direction} node {node_asked!a:.200}: {cause_text}; {peer_of(peer)}"
    who = (key_of(peer), node_asked, decision.rule)
    denied = answer == "access-denied"
    facts = {
        "user": peer.subject.user, "container": peer.container[:200], "address": peer.address, "node": node_asked[:200],
        "link": link[:200], "condition": condition, "rule": f"{decision.table}.{decision.rule}",
    }  # fmt: skip
    if denied:
        has_line = gateway.count_fault(answer, words, who, **facts)
    else:
        has_line = gateway.notices.tell("refused attach", who, words, facts)
    named = {"direction": terminus.direction, "link": link, "node": node_asked}
    refusal = {"condition": condition, "answer": answer, "native": native, "detail": cause}
    gateway.outcomes.decisions.refused(has_line, "attach", decision, peer, **named, **refusal)


def tell_ended(what: str, peer: Peer, decision: Decision, node: str, answer: str, native: str) -> None:
    """A link that was attached is ended by the realm: its subscription, or the node that it publishes to."""
    outcomes = peer.gateway.outcomes
    outcomes.counters.error(decision, answer, native, node)
    columns = {"node": node, "answer": answer, "native": native}
    outcomes.decisions.counted(what, decision, None, peer, **columns)
