"""Users, their groups, and what proves who they are: the file that `security.users` names.

    users: {alice: {groups: [traders], scram: ["SCRAM-SHA-256$100000:SALT$STORED:SERVER"]},
            feed: {certificates: ["subject:CN=feed,O=Example", "dns:feed.example"]}}

An entry under `scram` is what RFC 5803 has a server keep: the password cannot be read from it, and one entry serves its
SCRAM mechanism and PLAIN. `realmgate user hash` makes entries. Nothing here shows a key: no repr, no message.
Under `certificates` stand names of client certificates (`gateway.auth.certificate_names`): who shows one of them is it.
Source: RFC 5802, RFC 7677 (SCRAM), RFC 5803 (its stored form). Errors: every problem of a file as FILE:LINE.
"""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final

from gateway.auth.certificate_names import KINDS
from gateway.auth.known_passwords import KnownPasswords
from mappings.language.yaml_lines import Document, Node, Problem, load_document, refuse_unknown_keys, suggest
from native_backend.nodes.grants import ANONYMOUS, Subject

SCRAM: Final = {"SCRAM-SHA-256": 32, "SCRAM-SHA-512": 64}  # octets of a key
MECHANISMS: Final = ("ANONYMOUS", "PLAIN", *SCRAM, "EXTERNAL")
ASKS_WHO: Final = frozenset({"PLAIN", *SCRAM, "EXTERNAL"})  # needs users
BY_CERTIFICATE: Final = frozenset({"EXTERNAL"})  # of the peer's own, so on TLS only
IN_THE_CLEAR: Final = frozenset({"PLAIN"})  # who listens on the wire learns the password
ITERATIONS: Final = 100_000  # some 20 ms of one processor with SHA-256, 40 ms with SHA-512
ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 1_000_000  # RFC 7677; about half a second of one processor
SALT_MIN: Final = 12  # octets
NAME_MAX: Final = 255  # octets; more would not fit into a SASL frame with the rest of SCRAM's message
_NAMED = 5  # in a warning
_ENTRY = re.compile(r"(SCRAM-SHA-(?:256|512))\$([0-9]{1,8}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")
_EXAMPLE = "make it with: realmgate user hash NAME"
_KINDS = tuple(f"{kind}:" for kind in KINDS)
_NAMES = "write subject:CN=..., dns:..., email:... or uri:..."


@dataclass(frozen=True, slots=True)
class Keys:
    """What a server keeps of one password for one SCRAM mechanism."""

    iterations: int
    salt: bytes = field(repr=False)
    stored: bytes = field(repr=False)
    server: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class User:
    """One user of the file. Passwords only as keys, by mechanism; certificates by name."""

    name: str
    groups: frozenset[str]
    keys: Mapping[str, Keys] = field(repr=False)
    certificates: frozenset[str] = frozenset()


class Users:
    """All users. An unknown name is treated as a user with an unknown password: neither an answer nor its time shows
    which users exist."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = users
        self._iterations = {
            mechanism: sorted({user.keys[mechanism].iterations for user in users.values() if mechanism in user.keys})
            for mechanism in SCRAM
        }
        self._by_certificate = {name: user.name for user in users.values() for name in user.certificates}
        self._secret = secrets.token_bytes(32)
        self.known_passwords = KnownPasswords()

    def __len__(self) -> int:
        return len(self._users)

    def __contains__(self, name: str) -> bool:
        return name in self._users

    def is_as(self, other: Users) -> bool:
        """Their names, groups, keys and certificates are the same."""
        return self._users == other._users

    def subject(self, name: str) -> Subject:
        return Subject(name, self._users[name].groups)

    def keys(self, name: str, mechanism: str) -> Keys:
        """The user's; for an unknown name, keys that fit no password."""
        user = self._users.get(name)
        return (user.keys.get(mechanism) if user else None) or self._keys_of_unknown(name, mechanism)

    def mechanism(self, name: str) -> str:
        """One that the user has keys for."""
        user = self._users.get(name)
        return next(iter(user.keys), "SCRAM-SHA-256") if user else "SCRAM-SHA-256"

    def with_certificate(self, names: Iterable[str]) -> str | None:
        """The user whose certificate that is; None where its names belong to no user, or to several."""
        users = {self._by_certificate[name] for name in names if name in self._by_certificate}
        return users.pop() if len(users) == 1 else None

    def _keys_of_unknown(self, name: str, mechanism: str) -> Keys:
        """The same salt and rounds for the same name, as users have them; keys that fit no password."""
        salt = hmac.digest(self._secret, f"{mechanism}:{name}".encode(), sha256)[:16]
        key = secrets.token_bytes(SCRAM[mechanism])
        counts = self._iterations.get(mechanism) or [ITERATIONS]
        return Keys(counts[salt[0] % len(counts)], salt, key, key)

    @cached_property
    def weakness(self) -> str:
        """Whose entries have fewer rounds than new ones get, in words, with the remedy behind the last colon; or
        nothing. They are valid."""
        weak = [user.name for user in self._users.values() if any(map(_is_weak, user.keys.values()))]
        if not weak:
            return ""
        named = ", ".join(ascii(name[:80]) for name in weak[:_NAMED]) + ", ..." * (len(weak) > _NAMED)
        what = f"{len(weak)} users have passwords with fewer than {ITERATIONS:,} rounds, easier to guess from the file"
        return f"{what} ({named}): realmgate user hash NAME makes an entry anew"


NO_USERS: Final = Users({})


def load_users(path: Path, problems: list[Problem]) -> Users:
    """Read a users file; what is wrong is added to `problems`."""
    return read_users(*load_document(path), problems)


def read_users(document: Document, unreadable: list[Problem], problems: list[Problem]) -> Users:
    """The same of a document, and `unreadable`: what is wrong with it as YAML."""
    problems += unreadable
    root = document.root
    users: dict[str, User] = {}
    if not unreadable and root.is_mapping:
        refuse_unknown_keys(root, ["users"], problems)
    listed = root.get("users")
    if listed is not None and listed.is_mapping:
        for name, node in listed.items():
            user = _user(name, node, listed, problems)
            if user is not None:
                users[name] = user
        _refuse_shared(listed, users, problems)
    elif not unreadable:
        problems.append((listed or root).problem("there is no mapping of users", "write users: {NAME: {scram: [...]}}"))
    return Users(users)


def _user(name: str, node: Node, listed: Node, problems: list[Problem]) -> User | None:
    count = len(problems)
    where = listed.key_line(name)
    wrong = _wrong_name(name)
    if wrong:
        problems.append(Problem(node.file, where, f"user {name[:80]!a} {wrong}", "give it another name"))
    if not node.is_mapping:
        problems.append(node.problem(f"user {name[:80]!a} is a {node.kind}", "write {scram: [...], groups: [...]}"))
        return None
    refuse_unknown_keys(node, ["scram", "groups", "certificates"], problems)
    groups = _texts(node.get("groups"), "groups", problems)
    certificates = [entry.value for entry in _texts(node.get("certificates"), "certificates", problems)]
    for entry in certificates:
        if not entry.startswith(_KINDS) or entry in _KINDS:
            complaint = f"certificates: {entry[:80]!a} is no name of a certificate"
            problems.append(node["certificates"].problem(complaint, _NAMES))
    keys = {}
    for entry in _texts(node.get("scram"), "scram", problems):
        read = _keys(entry, problems)
        if read is not None and read[0] in keys:
            problems.append(entry.problem(f"a second entry for {read[0]}", "keep one"))
        elif read is not None:
            keys[read[0]] = read[1]
    if not keys and not certificates and len(problems) == count:
        problems.append(Problem(node.file, where, f"user {name!a} has neither password nor certificate", _EXAMPLE))
    if len(problems) > count:
        return None
    return User(name, frozenset(group.value for group in groups), keys, frozenset(certificates))


def _refuse_shared(listed: Node, users: Mapping[str, User], problems: list[Problem]) -> None:
    """A certificate is one user's."""
    whose: dict[str, str] = {}
    for user in users.values():
        for entry in sorted(user.certificates):
            other = whose.setdefault(entry, user.name)
            if other != user.name:
                message = f"certificates: {entry[:80]!a} is the name of {other[:80]!a}, too"
                problems.append(Problem(listed.file, listed.key_line(user.name), message, "keep one"))


def _is_weak(keys: Keys) -> bool:
    return keys.iterations < ITERATIONS


def _wrong_name(name: str) -> str | None:
    if name == ANONYMOUS.user:
        return "is reserved for clients without a user name"
    if not name.isprintable() or not name or name != name.strip():
        return "is empty, not printable, or begins or ends with a space"
    return f"has more than {NAME_MAX} octets" if len(name.encode()) > NAME_MAX else None


def _texts(node: Node | None, key: str, problems: list[Problem]) -> list[Node]:
    if node is None:
        return []
    if not node.is_sequence or not all(item.kind == "text" and item.value for item in node.sequence()):
        problems.append(node.problem(f"{key} must be a list of texts", f"write {key}: [...]"))
        return []
    return node.sequence()


def _keys(entry: Node, problems: list[Problem]) -> tuple[str, Keys] | None:
    """Mechanism and keys. No message repeats what was written."""
    match = _ENTRY.fullmatch(entry.value)
    if match is None:
        mechanism = entry.value.partition("$")[0]
        about = f"mechanism {mechanism[:20]!a}" if "$" in entry.value and mechanism not in SCRAM else "the entry"
        remedy = suggest(mechanism, SCRAM) if about != "the entry" else _EXAMPLE
        problems.append(entry.problem(f"scram: {about} cannot be read", remedy))
        return None
    mechanism, iterations = match[1], int(match[2])
    try:
        salt, stored, server = (b64decode(part, validate=True) for part in match.groups()[2:])
    except ValueError:
        salt = stored = server = b""
    if len(salt) < SALT_MIN or {len(stored), len(server)} != {SCRAM[mechanism]}:
        problems.append(entry.problem("scram: the entry is cut short or was changed", _EXAMPLE))
        return None
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        remedy = f"make it anew with {ITERATIONS_MIN} to {ITERATIONS_MAX}"
        problems.append(entry.problem(f"scram: {iterations} iterations", remedy))
        return None
    return mechanism, Keys(iterations, salt, stored, server)
