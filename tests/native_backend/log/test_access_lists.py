"""What the log's own access lists say of someone: each line of the authorizer's reading, and what is not known."""

from __future__ import annotations

import pytest

from native_backend.log.access_lists import AccessEntry, AccessLists

TOPIC = "um.node.orders"


def allow(who: str, operation: str, name: str = TOPIC, prefixed: bool = False, host: str = "*") -> AccessEntry:
    return AccessEntry(f"User:{who}", name, prefixed, operation, True, host)


def deny(who: str, operation: str, name: str = TOPIC, prefixed: bool = False, host: str = "*") -> AccessEntry:
    return AccessEntry(f"User:{who}", name, prefixed, operation, False, host)


CASES = [
    ("nothing is listed", [], False),
    ("this user, this topic", [allow("alice", "READ")], True),
    ("everybody", [allow("*", "READ")], True),
    ("all operations", [allow("alice", "ALL")], True),
    ("every topic", [allow("alice", "READ", "*")], True),
    ("a prefix", [allow("alice", "READ", "um.", prefixed=True)], True),
    ("a star is no prefix", [allow("alice", "READ", "*", prefixed=True)], False),
    ("another prefix", [allow("alice", "READ", "om.", prefixed=True)], False),
    ("a name is no prefix", [allow("alice", "READ", "um.")], False),
    ("another user", [allow("bob", "READ")], False),
    ("another operation", [allow("alice", "WRITE"), allow("alice", "DESCRIBE")], False),
    ("denied though allowed", [allow("alice", "READ"), deny("alice", "READ")], False),
    ("everybody denied", [allow("alice", "READ"), deny("*", "ALL", "um.", prefixed=True)], False),
    ("another is denied", [allow("*", "READ"), deny("bob", "READ")], True),
    ("another operation is denied", [allow("alice", "ALL"), deny("alice", "WRITE")], True),
    ("allowed from one host", [allow("alice", "READ", host="192.0.2.1")], False),
    ("denied from one host", [allow("alice", "READ"), deny("alice", "READ", host="192.0.2.1")], False),
]


@pytest.mark.parametrize(("entries", "allowed"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_reading(entries: list[AccessEntry], allowed: bool) -> None:
    assert AccessLists(frozenset(entries)).allow("alice", "READ", TOPIC) is allowed
