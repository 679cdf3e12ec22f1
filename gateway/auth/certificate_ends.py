"""When the certificates of a PEM file end: read out of their DER, for Python's ssl says it only of what it verified.

Source: RFC 5280, 4.1.2.5.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

_VALIDITY = re.compile(rb"\x30[\x1e\x20\x22](?:\x17\x0d|\x18\x0f)[0-9]{12,14}Z(?:\x17\x0d|\x18\x0f)([0-9]{12,14})Z")
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def ends(path: Path) -> Iterator[float]:
    """Of each certificate in the file that can be read, seconds since 1970. Raises OSError."""
    for part in path.read_text(errors="replace").split(_BEGIN)[1:]:
        try:
            match = _VALIDITY.search(ssl.PEM_cert_to_DER_cert(_BEGIN + part.partition(_END)[0] + _END))
        except ValueError:
            continue
        if match is not None:
            digits = match[1].decode()
            if len(digits) == 12:
                digits = ("20" if digits < "50" else "19") + digits
            yield datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
