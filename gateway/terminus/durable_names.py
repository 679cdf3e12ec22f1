"""What the durable of a subscriber is called, so that each has its own: no two subscribers make the same name.

| subscriber | name |
|---|---|
| container `app`, subscription `orders` | `app:orders` |
| all containers (the capability `global`), subscription `orders` | `:orders` |
| a colon in either, or an empty container-id | `app%3A1:orders|escaped`; `%:orders|escaped` |
| a shared subscription without durability | the same, and `|volatile` |

A subscription is called as its link is, up to a bar, so nothing that is not escaped ends in `|escaped` or `|volatile`.
Releases before this one escaped nothing: `app:1:orders` was the name of two subscribers, and is known as their earlier
one. Source: semantics.md 2.L, 3.3 (Qpid JMS); ADR 0074.
"""

from __future__ import annotations

from native_backend.nodes.durable import Durable, DurableName

Subscriber = tuple[str | None, str]
"""Container-id, None where all containers share it; and subscription."""
_ESCAPED = "|escaped"
_VOLATILE = "|volatile"
_NO_CONTAINER = "%"  # an empty container-id; no container-id is escaped to this


def subscriber(container: str, link: str, all_containers: bool) -> Subscriber:
    """The subscriber of a link of that name. `all_containers`: all containers share it."""
    return None if all_containers else container, link.split("|")[0]


def durable_name(of: Subscriber, volatile: bool = False) -> DurableName:
    """With the name that an earlier release gave it. (A volatile one has none: it did not outlive that.)"""
    container, subscription = of
    shared = True if container is None else False if container == "" else None  # of both, an earlier name began so: `:`
    if container != "" and ":" not in (container or "") + subscription:
        plain = f"{container or ''}:{subscription}"
        return DurableName(plain + _VOLATILE if volatile else plain, shared=shared)
    escaped = _NO_CONTAINER if container == "" else _escaped(container or "")
    name = f"{escaped}:{_escaped(subscription)}{_ESCAPED}"
    if volatile:
        return DurableName(name + _VOLATILE)
    return DurableName(name, f"{container or ''}:{subscription}", of, shared)


def containers_of(durable: Durable) -> list[str]:
    """Whose it may be: several only where an earlier release has named it, and none of them has come back to it."""
    if durable.terms.subscriber is not None:
        container = durable.terms.subscriber[0]
        return [] if container is None else [container]
    name = durable.name.removesuffix(_VOLATILE)
    if not name.endswith(_ESCAPED):
        everybodys = durable.terms.shared and name.startswith(":")
        return [name[:at] for at, sign in enumerate(name) if sign == ":" and (at or not everybodys)]
    escaped = name.partition(":")[0]
    return (
        [] if not escaped else [""] if escaped == _NO_CONTAINER else [escaped.replace("%3A", ":").replace("%25", "%")]
    )


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace(":", "%3A")
