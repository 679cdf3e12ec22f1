"""Security settings of Artemis onto grants: a role is a group. Of all matches of an address the most specific one
counts, alone; so a realm-wide grant is made only where one match is for all addresses.

Source: Artemis' user manual, "Role-Based Authorization".
"""

from __future__ import annotations

from typing import Final

from gateway.cli.imports.imported import Allowed, Imported
from gateway.cli.imports.plain_xml import Element
from gateway.cli.imports.wildcards import specific_first

_OPERATIONS: Final = {
    "send": "publish",
    "consume": "subscribe",
    "browse": "peek",
    "createDurableQueue": "durable",
    "deleteDurableQueue": "durable",
    "createNonDurableQueue": "temporary",
    "deleteNonDurableQueue": "temporary",
    "createAddress": "manage",
    "deleteAddress": "manage",
    "manage": "manage",
}
_OF_THE_REALM: Final = {"temporary", "manage"}
_ALL: Final = "#"


def grant_all(core: Element, draft: Imported) -> None:
    enabled = core.first("security-enabled")
    if enabled is not None and enabled.text == "false":
        draft.note(
            enabled.line, "security is off: every user may do everything", "nothing is granted, which means the same"
        )
        return
    elements = [child for settings in core.all("security-settings") for child in settings.children]
    by_match: dict[str, Element] = {}
    for element in elements:
        if element.name == "security-setting":
            by_match[element.attributes.get("match", _ALL)] = element
        else:
            draft.note(
                element.line, element.name, "users and groups stand in the users file, see docs/how-to/security.md"
            )
    if not by_match:
        line = core.line
        draft.note(
            line,
            "no security-settings: nothing is granted",
            "Artemis lets no user in then; here every user may do everything",
        )
        return
    allowed = {match: _allowed(element, draft) for match, element in by_match.items()}
    _grant(allowed, {match: element.line for match, element in by_match.items()}, draft)
    roles = sorted({role.removeprefix("group:") for of_match in allowed.values() for role in of_match})
    what = f"the users of the roles {', '.join(roles)} stand in other files"
    draft.note(next(iter(by_match.values())).line, what, "for each user: realmgate user hash NAME --group ROLE")


def _grant(by_match: dict[str, Allowed], lines: dict[str, int], draft: Imported) -> None:
    """`lines`: where each match stands."""
    general = by_match.get(_ALL)
    special = [match for match in by_match if match != _ALL and not match.startswith("activemq.management")]
    if general is not None:
        draft.realm = {who: words if not special else words & _OF_THE_REALM for who, words in general.items()}
        draft.realm = {who: words for who, words in draft.realm.items() if words}
    if not special:
        return
    for node in draft.nodes.values():
        best = specific_first([*special, *([_ALL] if general is not None else [])], node.name)
        allowed = by_match[best[0]] if best else {}
        node.acl = {who: words - _OF_THE_REALM for who, words in allowed.items() if words - _OF_THE_REALM}
        if not node.acl and not draft.realm:
            remedy = (
                f"every user may use it here until it has one: realmgate acl grant WHO OPERATIONS --node {node.name}"
            )
            draft.note(next(iter(lines.values())), f"no role may use {node.name}", remedy)
    for match in special:
        if match not in draft.nodes:
            what = f"the roles of {match} hold for addresses to come, too"
            draft.note(lines[match], what, "grant them to each node of that name when it is made")


def _allowed(setting: Element, draft: Imported) -> Allowed:
    """Operations by WHO of one setting; what has no operation here is a note."""
    allowed: Allowed = {}
    for permission in setting.all("permission"):
        kind, roles = permission.attributes.get("type", ""), permission.attributes.get("roles", "")
        operation = _OPERATIONS.get(kind)
        if operation is None:
            draft.note(permission.line, f"permission {kind} of {setting.attributes.get('match', _ALL)}", _OTHERS)
            continue
        for role in filter(None, (name.strip() for name in roles.split(","))):
            allowed.setdefault(f"group:{role}", set()).add(operation)
    return allowed


_OTHERS: Final = "management is for the command line and the admin pages here, not for AMQP users"
