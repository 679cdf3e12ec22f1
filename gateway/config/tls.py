"""The section `tls` of a configuration: which files prove who the gateway is, and whose clients' certificates count.

    tls: {certificate: server.pem, key: server.key, client_ca: clients.pem, require_client_certificate: false}

Files are PEM; their paths are relative to the configuration. Errors: `Problem`s, each FILE:LINE; `ValueError` of
`context`, in words. Source: RFC 8446, RFC 7525 (no TLS below 1.2).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gateway.auth import certificate_ends
from mappings.language.yaml_lines import Node, Problem
from native_backend.log.client_settings import elsewhere

VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """One for all listeners that speak TLS."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    require_client_certificate: bool = False
    minimum_version: str = "1.2"
    key_password: str | None = field(default=None, repr=False)

    @property
    def files(self) -> tuple[Path, ...]:
        paths = (self.certificate, self.key, self.client_ca)
        return tuple(path for path in paths if path is not None)


def read_tls(values: dict[str, Any], base: Path, root: Node, problems: list[Problem]) -> TlsSettings | None:
    """None where the section is not written, or wrong. What `fields` read is in `values`."""
    section = root.get("tls")
    if section is None:
        return None
    count = len(problems)
    named = {name: values[f"tls.{name}"] for name in ("certificate", "key", "client_ca")}
    missing = [name for name in ("certificate", "key") if named[name] is None]
    problems += [section.problem(f"tls.{name} is missing", f"write {name}: PATH") for name in missing]
    required = values["tls.require_client_certificate"]
    if required and named["client_ca"] is None:
        message = "tls.require_client_certificate: no client_ca is named"
        problems.append(section.problem(message, "write client_ca: PATH"))
    written = values["tls.key_password"]
    password = elsewhere("tls.key_password", written, base, problems) if written is not None else None
    if len(problems) > count:
        return None
    paths = {name: base / path for name, path in named.items() if path is not None}
    settings = TlsSettings(
        **paths,
        require_client_certificate=required,
        minimum_version=values["tls.minimum_version"],
        key_password=password,
    )
    try:
        context(settings)
    except ValueError as error:
        problems.append(section.problem(f"tls: {error}", "name PEM files that belong together"))
    return settings


def context(settings: TlsSettings) -> ssl.SSLContext:
    """From the files as they are now. Raises ValueError."""
    for path in settings.files:
        try:
            path.read_bytes()
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = VERSIONS[settings.minimum_version]
    made.options |= ssl.OP_NO_RENEGOTIATION
    made.num_tickets = 0  # no session is resumed: connections live long, and each one's certificate is checked
    try:
        # never None: OpenSSL would ask for a password on the terminal
        made.load_cert_chain(settings.certificate, settings.key, settings.key_password or "")
    except ssl.SSLError as error:
        raise ValueError(f"{settings.certificate} and {settings.key} cannot be used: {_reason(error)}") from None
    if settings.client_ca is not None:
        made.verify_mode = ssl.CERT_REQUIRED if settings.require_client_certificate else ssl.CERT_OPTIONAL
        try:
            made.load_verify_locations(settings.client_ca)
        except ssl.SSLError as error:
            raise ValueError(f"{settings.client_ca} cannot be used: {_reason(error)}") from None
    return made


def ends(settings: TlsSettings) -> dict[str, float]:
    """When the first certificate of each file ends, by its field of the section; seconds since 1970. A file in which
    none can be read is not in it."""
    files = {"certificate": settings.certificate, "client_ca": settings.client_ca}
    read = {name: [*certificate_ends.ends(path)] for name, path in files.items() if path is not None}
    return {name: min(of_file) for name, of_file in read.items() if of_file}


def _reason(error: ssl.SSLError) -> str:
    """OpenSSL's word, such as KEY_VALUES_MISMATCH, in small letters."""
    return (error.reason or "no PEM, or another password").replace("_", " ").lower()
