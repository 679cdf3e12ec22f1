"""What the file of users holds of a password."""

from __future__ import annotations

from gateway.auth.passwords import hash_password

PASSWORD = "correct horse, battery=staple €"


ENTRY = hash_password(PASSWORD, "SCRAM-SHA-256", 4096)
