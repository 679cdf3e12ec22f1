"""Which tests are in the long tier; all others are the gate, which every landing passes.

`make test` runs the gate, in 12 minutes on two cores that others share. `make test-long` runs the rest, each night and
before a release. A test is in exactly one. Nothing that is promised is without a test in the gate: each entry of `LONG`
says which test there keeps the promise. Order: by room, then by file. May import: the standard library, pytest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

LONG: dict[str, str] = {
    # -- contract: every sentence of the log port, and the main contracts of the realm, stay on a real broker
    r"contract/test_realm_(?!recovery|units)\w+\.py::.*[\[-]kafka": "the same on SQLite and both simulated logs",
    # -- deploy
    r"deploy/test_demo\.py": "tests/reconciliation/test_clean.py: served, killed and reconciled",
    r"deploy/test_secured_kafka\.py": "tests/native_backend/logs/test_kafka_entry.py",
    r"deploy/test_kafka\.py::test_a_jvm_without_shenandoah": "test_the_node_does_not_stop_to_collect",
    # -- fuzz
    r"fuzz/test_examples\.py": "the same tests, with the same examples each time",
    # -- gateway
    r"gateway/test_admin\.py::test_what_happened_.*\[kafka": "the same on the embedded realm",
    r"gateway/test_bad_worlds\.py::test_a_wrong_bootstrap": "test_a_gateway_waits_for_a_kafka_that_is_not_there_yet",
    r"gateway/test_standby\.py::test_two_gateways_.*\[kafka": "the same on the embedded realm",
    # -- interop: two foreign clients against each other, transactions, a durable over a restart, Kafka's own client
    r"interop/test_(c_proton|cli_proton|delivering|fe2o3|go_amqp)\.py": "test_qpid_jms.py and test_rhea.py",
    r"interop/test_(jms_contexts|jms_subscriptions|selecting|transports)\.py": "test_qpid_jms.py; tests/wire",
    r"interop/test_(migration|rabbitmq_shovel|spring_jms)\.py": "test_qpid_jms.py",
    r"interop/test_(asking|proton_container)\.py::.*kafka": "the same on the embedded realm",
    r"interop/test_asking\.py": "test_rhea.py asks and is answered",
    r"interop/test_qpid_jms\.py::test_(a_transacted|a_durable|priorities).*kafka": "the same on the embedded realm",
    r"interop/test_qpid_jms\.py::test_priorities": "tests/wire/test_partitions.py",
    r"interop/test_rhea\.py::.*kafka": "the same on the embedded realm",
    # -- mappings
    r"mappings/test_mutations\.py::\w+\[(?!gate-)": "every fourth rule",
    # -- native_backend
    r"native_backend/test_delays\.py::test_a_million": "the other tests of the file",
    # -- reconciliation: every class of anomaly is planted in the gate, one Spark on each realm
    r"reconciliation/test_(complete|partitions|shared|selected|transactions)\.py": "test_planted.py, test_kafka.py",
    r"reconciliation/test_(trimmed|commanded|given_up|node_classes)\.py": "test_planted.py, test_kafka.py",
    # -- shake
    r"shake/test_shake\.py::test_shaken": "the tests themselves, unshaken",
    # -- torture
    r"torture/test_torture\.py::test_(embedded|kafka)": "its checkers, and tests/wire/test_ends.py: kill -9",
    # -- wire
    r"wire/test_scale\.py": "tests/wire/test_pressure.py, test_floods.py",
    r"wire/test_floods\.py::test_who_does_not_read_answers": "the other floods; test_pressure.py",
    r"wire/test_ends\.py::test_D_1_.*\[kafka": "the same on the embedded realm",
}


def is_long(node_id: str) -> bool:
    return any(re.match(f"tests/{pattern}", node_id) for pattern in LONG)


def mark(items: Sequence[pytest.Item]) -> None:
    """`-m long` and `-m "not long"` choose by it."""
    for item in items:
        if is_long(item.nodeid):
            item.add_marker(pytest.mark.long)
