"""The names in a certificate that was verified, as they are written in the users file.

    names(transport.get_extra_info("peercert"))
    -> ("subject:CN=alice,OU=Trading,O=Example", "dns:alice.example", "email:alice@example.org", "uri:spiffe://a/b")

Source: RFC 4514 (a subject, the most specific part first), RFC 5280 4.2.1.6 (alternative names). Errors: none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_ALTERNATIVES: Final = {"DNS": "dns", "email": "email", "URI": "uri"}
KINDS: Final = ("subject", *_ALTERNATIVES.values())
_SPECIAL = re.compile(r'[,+"\\<>;]')


def names(certificate: Mapping[str, Any] | None) -> tuple[str, ...]:
    """None, without a certificate or with one that was not verified."""
    if not certificate:
        return ()
    subject = ",".join(map(_part, reversed(certificate.get("subject", ()))))
    of_certificate = [f"subject:{subject}"] if subject else []
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in _ALTERNATIVES:
            of_certificate.append(f"{_ALTERNATIVES[kind]}:{value}")
    return tuple(of_certificate)


def _part(pairs: tuple[tuple[str, str], ...]) -> str:
    return "+".join(f"{_SHORT.get(kind, kind)}={_escaped(value)}" for kind, value in pairs)


def _escaped(value: str) -> str:
    escaped = _SPECIAL.sub(lambda match: f"\\{match[0]}", value).replace("\0", "\\00")
    if escaped[:1] in (" ", "#"):
        escaped = f"\\{escaped}"
    if len(value) > 1 and escaped.endswith(" "):
        escaped = f"{escaped[:-1]}\\ "
    return escaped
