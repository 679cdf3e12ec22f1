"""What is wrong with an operator's client settings, each by itself, before any of them is used.

librdkafka stops at the first setting that it does not take: here each is given to it alone, followed by a name that
does not exist, so that no client comes of it.
"""

from __future__ import annotations

from confluent_kafka import KafkaException, Producer

from native_backend.log.kafka.settings import Client, one_sided

_NO_SUCH = "realmgate.no.such.setting"


def wrong_settings(client: Client) -> dict[str, tuple[str, str]]:
    """By name: what is wrong, and what to do."""
    half = one_sided(client)
    problems = dict.fromkeys(half, ("the client for admin calls knows no such setting", "remove it"))
    for name, value in client.items():
        words = "" if name in problems else _refusal(name, value)
        if words:
            problems[name] = words, "write what librdkafka's CONFIGURATION.md names, or remove it"
    return problems


def _refusal(name: str, value: object) -> str:
    try:
        Producer({name: value, _NO_SUCH: ""})
    except KafkaException as error:
        words = str(error.args[0].str())
        return "" if _NO_SUCH in words else words
    except (TypeError, ValueError) as error:  # of the Python client's own settings, which are functions
        return str(error)
    raise AssertionError(f"librdkafka knows {_NO_SUCH}")
