"""The configuration of TLS: what is refused, with its line, before anything starts; names in certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.certificate_names import names
from gateway.config.settings import load_settings
from tests.gateway.auth.user_entry import ENTRY
from tests.gateway.config.configuration import REALM, problems
from tests.kit.processes.certificates import Authority, openssl

SECURE = 'listen: ["amqps://a", "amqp://b:1"]\n' + REALM
PAIR = "tls: {certificate: ours/a.pem, key: ours/a.key"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("settings")
    authority = Authority(directory / "ours")
    authority.sign("a", "/CN=a")
    other = authority.sign("b", "/CN=b")
    openssl("ec", "-in", str(other.key), "-aes128", "-passout", "pass:sesame", "-out", str(directory / "ours/p.key"))
    (directory / "password").write_text("sesame\n")
    (directory / "users.yaml").write_text(f'users: {{a: {{certificates: ["dns:a"], scram: ["{ENTRY}"]}}}}\n')
    yield directory


def load(directory: Path, text: str) -> Any:
    path = directory / "gateway.yaml"
    path.write_text(text)
    return load_settings(path)


def test_what_is_read(directory: Path) -> None:
    settings = load(
        directory,
        SECURE
        + "tls: {certificate: ours/b.pem, key: ours/p.key, key_password: {file: password}, client_ca: ours/ca.pem,"
        ' require_client_certificate: true, minimum_version: "1.3"}\n'
        "security: {sasl: [EXTERNAL, PLAIN, SCRAM-SHA-256], users: users.yaml}\n",
    )
    assert [(listener.port, listener.scheme, listener.secure) for listener in settings.listen] == [
        (5671, "amqps", True),
        (1, "amqp", False),
    ]
    assert settings.tls.key == directory / "ours/p.key"
    assert (settings.tls.require_client_certificate, settings.tls.minimum_version) == (True, "1.3")
    assert "sesame" not in repr(settings)
    assert settings.security.offered(True) == ("EXTERNAL", "PLAIN", "SCRAM-SHA-256")
    assert settings.security.offered(False) == ("SCRAM-SHA-256",)


WRONG = [
    (SECURE + "tls: {certificate: ours/none.pem, key: ours/a.key}\n", "none.pem cannot be read: No such file"),
    (SECURE + "tls: {certificate: ours/a.pem, key: ours/b.key}\n", "cannot be used: key values mismatch"),
    (SECURE + "tls: {certificate: ours/b.pem, key: ours/p.key}\n", "cannot be used"),
    (SECURE + "tls: {certificate: password, key: ours/a.key}\n", "cannot be used"),
    (SECURE + PAIR + ", client_ca: password}\n", "password cannot be used"),
    (SECURE + PAIR + ", key_password: sesame}\n", "is a secret and stands in the configuration"),
    (SECURE + PAIR + ", require_client_certificate: true}\n", "no client_ca is named; write client_ca"),
    (SECURE + PAIR + ", minimum_version: 1.2}\n", '"1.2" in quotes'),
    (SECURE + PAIR + ', minimum_version: "1.1"}\n', 'there is no "1.1"'),
    (SECURE + "tls: {key: ours/a.key}\n", "3: tls.certificate is missing"),
    (REALM + PAIR + "}\n", "no listener uses TLS; write listen"),
    (
        SECURE + PAIR + "}\nsecurity: {sasl: [EXTERNAL], users: users.yaml, bare_amqp: true}\n",
        "EXTERNAL needs tls.client_ca",
    ),
    (REALM + "security: {sasl: [EXTERNAL, SCRAM-SHA-256], users: users.yaml}\n", "EXTERNAL needs TLS"),
    (REALM + "security: {sasl: [PLAIN], users: users.yaml, bare_amqp: true}\n", "PLAIN sends passwords"),
    (SECURE + PAIR + "}\nsecurity: {sasl: [PLAIN], users: users.yaml}\n", "no client can authenticate without TLS"),
    (SECURE + PAIR + ", client_ca: ours/ca.pem}\nsecurity: {sasl: [EXTERNAL, ANONYMOUS]}\n", "EXTERNAL needs users"),
]


@pytest.mark.parametrize(("text", "expected"), WRONG, ids=[expected for _, expected in WRONG])
def test_what_is_wrong(directory: Path, text: str, expected: str) -> None:
    listed = problems(directory, text)
    assert len(listed) == 1 and expected in listed[0], listed


def test_the_names_in_a_certificate() -> None:
    certificate = {
        "subject": (
            (("countryName", "DE"),),
            (("organizationName", 'A, "B" + <C>; \\ D'),),
            (("commonName", " #x "), ("userId", "u")),
            (("emailAddress", "a@b"),),
        ),
        "subjectAltName": (("DNS", "a.example"), ("IP Address", "1.2.3.4"), ("email", "é@x"), ("URI", "spiffe://a/b")),
    }
    assert names(certificate) == (
        'subject:emailAddress=a@b,CN=\\ #x\\ +UID=u,O=A\\, \\"B\\" \\+ \\<C\\>\\; \\\\ D,C=DE',
        "dns:a.example",
        "email:é@x",
        "uri:spiffe://a/b",
    )
    assert names(None) == names({}) == ()
    assert names({"subjectAltName": (("DNS", "only"),)}) == ("dns:only",)
