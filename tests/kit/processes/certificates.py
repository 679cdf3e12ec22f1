"""Certificates for tests, made on the spot by OpenSSL's command: an authority, and what it signs.

    authority = Authority(tmp_path / "ours")
    server = authority.sign("server", "/CN=localhost", "IP:127.0.0.1")       # server.certificate, server.key: paths

Errors: `RuntimeError` with OpenSSL's own words.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.kit.patience import HANG_S

DAYS = "2"
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs for its directory. `certificate`: what the one who trusts it needs."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._directory = directory
        self.certificate, self._key = directory / "ca.pem", directory / "ca.key"
        made = ["-x509", *_CURVE, "-keyout", str(self._key), "-out", str(self.certificate), "-days", DAYS]
        openssl("req", *made, "-subj", "/CN=authority")

    def sign(self, name: str, subject: str, alternative: str = "", days: str = DAYS) -> Pair:
        """`alternative` as OpenSSL writes a subjectAltName: DNS:..., IP:..., email:..., URI:..."""
        pair = Pair(self._directory / f"{name}.pem", self._directory / f"{name}.key")
        extensions = ["-addext", "basicConstraints=critical,CA:FALSE"]
        if alternative:
            extensions += ["-addext", f"subjectAltName={alternative}"]
        by = ["-CA", str(self.certificate), "-CAkey", str(self._key)]
        out = ["-keyout", str(pair.key), "-out", str(pair.certificate), "-days", days]
        openssl("req", "-x509", *_CURVE, *out, *by, "-subj", subject, "-utf8", *extensions)
        return pair


def openssl(*arguments: str) -> str:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=HANG_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(arguments)} failed ({done.returncode}):\n{done.stderr}")
    return done.stdout
