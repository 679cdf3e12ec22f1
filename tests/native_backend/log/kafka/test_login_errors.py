"""What the Kafka driver knows of getting in, without a Kafka: settings for both clients, refusals that only `error_cb`
hears, and that they are not logged at every attempt."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import KafkaError
from kafka.errors import InvalidReplicationFactorError

from native_backend.log.kafka import settings
from native_backend.log.kafka.causes import control_failure_of
from native_backend.log.kafka.driver import KafkaLog
from native_backend.log.kafka.login_errors import LoginErrors, silence_client_log
from native_backend.log.port import Failure, LogError


def test_both_clients_get_the_same_entry() -> None:
    client = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "gw",
        "sasl.password": "pw",
        "ssl.ca.location": "/ca",
        "ssl.endpoint.identification.algorithm": "none",
        "group.id": "um.reader",
    }
    admin = settings.admin("a:1,b:2", client)
    assert admin["bootstrap_servers"] == ["a:1", "b:2"]
    assert (admin["security_protocol"], admin["sasl_mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (admin["sasl_plain_username"], admin["sasl_plain_password"]) == ("gw", "pw")
    assert (admin["ssl_cafile"], admin["ssl_check_hostname"]) == ("/ca", False)
    for config in (settings.tail("a:1", client, print), settings.ranges("a:1", client, print)):
        assert config["group.id"] == "um.reader"
        assert config["sasl.password"] == "pw"
    assert "group.id" not in settings.publish("a:1", client, print)
    assert settings.one_sided(client) == []


@pytest.mark.parametrize("name", ["ssl.ca.pem", "enable.ssl.certificate.verification", "sasl.oauthbearer.config"])
def test_what_one_client_does_not_know_is_refused(name: str) -> None:
    with pytest.raises(LogError, match=f"realm.client: {name}: the client for admin calls knows no such setting"):
        KafkaLog("127.0.0.1:1", {name: "x"})


def test_a_refusal_explains_what_timed_out_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("native_backend.log.kafka.login_errors.time.monotonic", lambda: now_s)
    errors = LoginErrors()
    overdue, gone = Failure("unavailable", "timed out"), Failure("not-found", "no topic")
    assert errors.refusal is None and errors.explained(overdue) == overdue
    errors.on_error(KafkaError(KafkaError._TRANSPORT, "a connection was lost"))
    assert errors.refusal is None
    errors.on_error(KafkaError(KafkaError._SSL, "handshake failed: Disconnected"))
    assert errors.refusal is None, "a node that restarts"
    errors.on_error(KafkaError(KafkaError._AUTHENTICATION, "invalid credentials"))
    assert errors.explained(overdue) == Failure("refused", "invalid credentials", "_AUTHENTICATION")
    assert errors.explained(gone) == gone
    now_s = 111.0
    assert errors.refusal is None, "it logged in since, or no client tries"
    errors.on_error(KafkaError(KafkaError._SSL, "certificate verify failed"))
    assert errors.refusal is not None


def test_errors_are_counted_and_logged_seldom(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = 100.0
    monkeypatch.setattr("native_backend.log.kafka.login_errors.time.monotonic", lambda: now_s)
    errors = LoginErrors()
    for _ in range(100):
        errors.on_error(KafkaError(KafkaError._AUTHENTICATION, "invalid credentials"))
        now_s += 0.5
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert messages[1] == "kafka: _AUTHENTICATION: invalid credentials (and 59 more such since)"


def test_the_clients_own_lines_about_it_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    silence_client_log()
    silence_client_log()
    caplog.set_level(logging.INFO)
    logging.getLogger("librdkafka").warning("FAIL [rdkafka#producer-1] SASL authentication error")
    logging.getLogger("librdkafka").warning("GETPID [rdkafka#producer-1] retrying")
    logging.getLogger("kafka").error("Connection failed")
    assert [record.getMessage() for record in caplog.records] == ["GETPID [rdkafka#producer-1] retrying"]


def test_too_few_brokers_for_a_new_topic_are_waited_for() -> None:
    """A broker that has just come up is fenced for a moment, and Kafka says this."""
    failure = control_failure_of(InvalidReplicationFactorError("All brokers are currently fenced"))
    assert failure.cause == "unavailable"
