"""Passwords: made into what a server keeps, and compared with it (PLAIN; `scram.py` has SCRAM's exchange). Each
call takes milliseconds, by design.

Source: RFC 5802, RFC 7677, RFC 5803, SASLprep (RFC 4013), all by scramp. May be called from any thread.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64encode

from scramp import ScramException, ScramMechanism

from gateway.auth.users import ITERATIONS, Users


def is_password(users: Users, name: str, password: str) -> bool:
    """One that was right before is known, and takes no time."""
    if (name, password) in users.known_passwords:
        return True
    mechanism = users.mechanism(name)
    keys = users.keys(name, mechanism)
    try:
        _, stored, _, _ = ScramMechanism(mechanism).make_auth_info(password, keys.iterations, keys.salt)
    except ScramException:  # no user has a password that SASLprep forbids
        return False
    is_right = hmac.compare_digest(stored, keys.stored)
    if is_right:
        users.known_passwords.add(name, password)
    return is_right


def hash_password(password: str, mechanism: str, iterations: int = ITERATIONS) -> str:
    """An entry for `scram` in the users file. Raises `ValueError` for a password that SASLprep forbids."""
    try:
        salt, stored, server, _ = ScramMechanism(mechanism).make_auth_info(
            password, iterations, secrets.token_bytes(16)
        )
    except ScramException as error:
        raise ValueError(f"the password cannot be used: {error.args[0]}") from None
    salt_text, stored_text, server_text = (b64encode(part).decode() for part in (salt, stored, server))
    return f"{mechanism}${iterations}:{salt_text}${stored_text}:{server_text}"
