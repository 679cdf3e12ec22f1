"""`realmgate import um realm.xml`: channels and queues with their attributes and access lists.

The format is what Universal Messaging's Enterprise Manager and `runUMTool ExportRealmXML` write. Source of the format
of a channel: a published export of release 10.15 (attributes, store properties, permissions). That of a queue is taken
to be alike, with `Queue` for `Channel`; no real realm was at hand to verify it. What is not known is a note, never a
guess. Words of grants: docs/how-to/security.md. Errors: `ImportProblem`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.cli.imports.imported import Imported, ImportedNode, ImportProblem
from gateway.cli.imports.plain_xml import Element, read_xml
from native_backend.nodes.words import NodeKind

_ROOT: Final = "NirvanaRealm"
_SETS: Final[dict[str, NodeKind]] = {"ChannelSet": "channel", "QueueSet": "queue"}
_TYPES: Final = {"RELIABLE_TYPE": "reliable", "PERSISTENT_TYPE": "persistent", "MIXED_TYPE": "mixed"}
_EVERYONE: Final = "Everyone"
_OPERATIONS: Final = {
    "publish": "publish",
    "push": "publish",
    "subscribe": "subscribe",
    "pop": "subscribe",
    "peek": "peek",
    "useNamedSubcription": "durable",
    "useNamedSubscription": "durable",
    "purgeEvents": "purge",
    "purge": "purge",
}
_OF_ADMINISTRATION: Final = {"listACLEntries", "modifyACLEntries", "getLastEID"}
_ATTRIBUTES: Final = {
    "jmsEngine": "a channel here gives each subscriber every event, as the JMS engine does",
    "mergeEngine": "the last event of each key is not kept by itself; a compacted topic of Kafka can be adopted",
}
_STORE: Final = {
    "SyncOnEachWrite",
    "SyncMaxBatchSize",
    "SyncBatchTime",
    "PerformAutomaticMaintenance",
    "EnableCaching",
    "CacheOnReload",
    "EnableReadBuffering",
    "ReadBufferSize",
    "MultiFileEventsPerSpindle",
    "HonorCapacityWhenFull",
}
_STORE_DEFAULTS: Final = {"Priority": "4", "EnableMulticast": "false", "StampDictionary": "0"}
_REMEDIES: Final = {
    "Join": "there are no joins; let a consumer send on, or the producer send to both",
    "Durable": "it begins when its subscriber attaches: start each subscriber once before the producers change",
    "NamedObject": "it begins when its subscriber attaches: start each subscriber once before the producers change",
    "RealmPermission": "grant on the realm: realmgate acl grant WHO OPERATIONS --realm",
    "RealmACL": "grant on the realm: realmgate acl grant WHO OPERATIONS --realm",
    "Interface": "write listen into the configuration, see docs/configuration.md",
    "Configuration": "limits stand in the configuration, see docs/configuration.md",
    "Cluster": "a second gateway is a standby, see docs/how-to/run-two-gateways.md",
    "Group": "groups stand in the users file, see docs/how-to/security.md",
    "DataGroup": "there are no data groups; use a channel",
    "JNDI": "JMS clients name factories and destinations themselves, see docs/how-to/migrate-a-jms-application.md",
}
_NO_COUNTERPART: Final = "there is no counterpart here; look at what it did"


def import_um(path: Path) -> Imported:
    root = read_xml(path)
    if root.name != _ROOT:
        words = f"the root is <{root.name}>, that of an exported realm is <{_ROOT}>"
        raise ImportProblem(f"{path}:{root.line}: {words}: export it by runUMTool ExportRealmXML -exportall=true")
    draft = Imported(f"Universal Messaging {root.attributes.get('version', '')}".strip())
    for element in root.children:
        if element.name in _SETS:
            for entry in element.children:
                _entry(entry, _SETS[element.name], draft)
        else:
            draft.note(element.line, f"<{element.name}>", _remedy(element.name))
    return draft


def _entry(entry: Element, kind: NodeKind, draft: Imported) -> None:
    attributes = next((child for child in entry.children if child.name.endswith("AttributesEntry")), None)
    name = attributes.attributes.get("name", "") if attributes is not None else ""
    if attributes is None or not name:
        draft.note(entry.line, f"<{entry.name}> without attributes or a name", "make its node: realmgate node create")
        return
    node = draft.node(name, kind)
    store = next((child for child in entry.children if child.name == "StorePropertiesEntry"), None)
    _properties(node, attributes, store, draft)
    for element in entry.children:
        if element is attributes or element is store:
            continue
        if element.name.endswith("PermissionSet"):
            for grant in element.children:
                _grant(node, grant, draft)
        else:
            draft.note(element.line, f"<{element.name}> of {name}", _remedy(element.name))


def _remedy(name: str) -> str:
    remedies = [remedy for word, remedy in _REMEDIES.items() if word.lower() in name.lower()]
    return remedies[0] if remedies else _NO_COUNTERPART


def _properties(node: ImportedNode, attributes: Element, store: Element | None, draft: Imported) -> None:
    kind = attributes.attributes.get("type", "MIXED_TYPE")
    if kind in _TYPES:
        node.properties |= {"type": _TYPES[kind]} if kind != "MIXED_TYPE" else {}
    else:
        remedy = "it is made as mixed, which keeps what its publisher calls durable"
        draft.note(attributes.line, f"type {kind} of {node.name}", remedy)
    if (ttl := attributes.attributes.get("TTL", "0")).isdigit() and int(ttl):
        node.properties["ttl"] = f"{ttl}ms"
    capacity = attributes.attributes.get("capacity", "0")
    bounded = capacity.isdigit() and int(capacity) > 0
    if bounded:
        node.properties["capacity-events"] = capacity
    stored = store.attributes if store is not None else {}
    if bounded and stored.get("HonorCapacityWhenFull", "false") == "true":
        node.properties["honour-capacity"] = "true"
    for word, remedy in _ATTRIBUTES.items():
        if attributes.attributes.get(word) == "true":
            draft.note(attributes.line, f"{word} of {node.name}", remedy)
    if store is not None:
        _store(node, store, draft)


def _store(node: ImportedNode, store: Element, draft: Imported) -> None:
    for word, value in store.attributes.items():
        if word in _STORE or value == _STORE_DEFAULTS.get(word):
            continue
        remedy = "the publisher says the priority of each message" if word == "Priority" else _NO_COUNTERPART
        draft.note(store.line, f"{word} {value} of {node.name}", remedy)


def _grant(node: ImportedNode, entry: Element, draft: Imported) -> None:
    who = _who(entry)
    if who is None:
        draft.note(entry.line, f"<{entry.name}> of {node.name}", _NO_COUNTERPART)
        return
    operations = set(_operations(entry))
    for word in sorted(_OF_ADMINISTRATION & {key for key, value in entry.attributes.items() if value == "true"}):
        remedy = "that is for the command line, which is above grants"
        draft.note(entry.line, f"{word} of {who} on {node.name}", remedy)
    if operations:
        node.acl.setdefault(who, set()).update(operations)
    if (host := entry.attributes.get("host", "*")) not in ("*", "") and who.startswith("user:"):
        remedy = "a user is who logs in, from any host; narrow it by a certificate or a firewall"
        draft.note(entry.line, f"{who} is granted at host {host} only", remedy)


def _who(entry: Element) -> str | None:
    """UM's group Everyone is `*`, and so is the user `*` at any host."""
    group, name = entry.attributes.get("groupname"), entry.attributes.get("name")
    if group is not None:
        return "*" if group == _EVERYONE else f"group:{group}"
    if name is not None:
        return "*" if name == "*" else f"user:{name}"
    return None


def _operations(entry: Element) -> Iterator[str]:
    if entry.attributes.get("fullControl") == "true":
        yield "full"
        return
    for word, operation in _OPERATIONS.items():
        if entry.attributes.get(word) == "true":
            yield operation
