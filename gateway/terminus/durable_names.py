"""What the durable of a subscriber is called, so that each has its own: no two subscribers make the same name.

| subscriber | name |
|---|---|
| container `app`, subscription `orders` | `app:orders` |
| all containers (the capability `global`), subscription `orders` | `:orders` |
| a colon in either, or an empty container-id | `app%3A1:orders|escaped`; `%:orders|escaped` |
| a bar in the subscription | `app:orders%7Ceu|escaped` |
| a shared subscription without durability | the same, and `|volatile` |

A subscription is called as its link is. The links of one shared subscription have one name up to a bar, as Qpid JMS
numbers them. So nothing that is not escaped ends in `|escaped` or `|volatile`. Releases before this one escaped
nothing, and cut every name at its bar: `app:1:orders` and `app:orders` were names of several subscribers, and are known
as their earlier ones. Source: semantics.md 2.L, 3.3 (Qpid JMS); ADR 0074, ADR 0099.
"""

from __future__ import annotations

from dataclasses import replace

from native_backend.nodes.durable import Durable, DurableName

Subscriber = tuple[str | None, str]
"""Container-id, None where all containers share it; and subscription."""
_ESCAPED = "|escaped"
_VOLATILE = "|volatile"
_BAR = "%7C"
_NO_CONTAINER = "%"  # an empty container-id; no container-id is escaped to this


def subscriber(container: str, link: str, shared: bool, all_containers: bool = False) -> Subscriber:
    """The subscriber of a link of that name. `shared`: by several links; `all_containers`: of all containers."""
    return None if all_containers else container, _cut(link) if shared or all_containers else link


def recalled_names(container: str, link: str, all_containers: bool) -> list[DurableName]:
    """What a link without a source may mean, which does not say whether that is shared: what has all of its name, then
    what is shared by links of its name up to a bar."""
    names = [durable_name(subscriber(container, link, False, all_containers))]
    if "|" in link and not all_containers:
        names.append(replace(durable_name(subscriber(container, link, True)), shared_only=True))
    return names


def durable_name(subscriber: Subscriber, volatile: bool = False) -> DurableName:
    """With the name that an earlier release gave it. (A volatile one has none: it did not outlive that.)"""
    container, subscription = subscriber
    shared = True if container is None else False if container == "" else None  # of both, an earlier name began so: `:`
    barred = "|" in subscription
    is_plain = container != "" and not barred and ":" not in (container or "") + subscription
    plain = f"{container or ''}:{_cut(subscription)}"
    if is_plain and (volatile or container is None):
        return DurableName(plain + _VOLATILE if volatile else plain, shared=shared)
    escaped = _NO_CONTAINER if container == "" else _escaped(container or "")
    name = f"{escaped}:{_escaped(subscription).replace('|', _BAR)}{_ESCAPED}"
    if volatile:
        return DurableName(name + _VOLATILE)
    return DurableName(name, plain, subscriber, False if barred else shared, stays=is_plain)


def containers_of(durable: Durable) -> list[str]:
    """Whose it may be: several only where an earlier release has named it, and none of them has come back to it."""
    if durable.terms.subscriber is not None:
        container = durable.terms.subscriber[0]
        return [] if container is None else [container]
    name = durable.name.removesuffix(_VOLATILE)
    if not name.endswith(_ESCAPED):
        is_global = durable.terms.shared and name.startswith(":")
        return [name[:at] for at, sign in enumerate(name) if sign == ":" and (at or not is_global)]
    escaped = name.partition(":")[0]
    return (
        [] if not escaped else [""] if escaped == _NO_CONTAINER else [escaped.replace("%3A", ":").replace("%25", "%")]
    )


def _cut(link: str) -> str:
    return link.partition("|")[0]


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace(":", "%3A")
