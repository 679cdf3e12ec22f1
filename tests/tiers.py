"""Which tests are in the long tier; all others are the gate, which every landing passes.

`make test` runs the gate, in 12 minutes on two cores that others share. `make test-long` runs the rest, each night and
before a release. A test is in exactly one. Nothing that is promised is without a test in the gate: each entry of `LONG`
says which test there keeps the promise. Order: by room, then by file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

LONG: dict[str, str] = {
    # -- bench
    r"bench/test_hostile\.py::test_each_kind.*\[(?!attach)": "test_each_kind_reaches_the_gateway[attach/detach]",
    # -- console
    r"console/test_browser\.py": "tests/console/test_console.py and test_documents.py",
    # -- contract: every sentence of the log port, and the main contracts of the realm, stay on a real broker
    r"contract/(access|dispatch|journal|nodes|subscriptions)/.*[\[-]kafka": "the same on SQLite and simulated logs",
    r"contract/access/test_durable_owners\.py::.*(uneven.*on-[13]|on-[13].*uneven)": "the same on two stores",
    r"contract/nodes/test_(capacity|reservation)\.py::.*on-2": "on one store and on three",
    r"contract/shard/test_projection_waits\.py::.*[\[-]kafka": "the same on SQLite and simulated logs",
    r"contract/(test_realm\.py::|publish/|recovery/).*(kafka.*on-[13]|on-[13].*kafka)": "on two partitions",
    r"contract/recovery/test_truncated\.py::test_kafka_loses": "the same on the other logs; native_backend/log/kafka",
    r"contract/recovery/test_unclean_election\.py": "test_truncated.py, on the other logs",
    r"contract/recovery/test_recovery\.py::test_group_offsets.*\[sqlite-on-[13]": "on two stores; other logs",
    r"contract/journal/test_counts\.py::test_numbers_are.*\[(\w+-1-\d|\w+-2-2)\]": "seed 2, on one store and on three",
    # -- deploy
    r"deploy/test_(demo|readme_kafka)\.py": "tests/reconciliation/jobs/test_clean.py",
    r"deploy/test_readme\.py::test_(the_first_edit|the_rule_that|what_explain)": "tests/mappings/tools/test_how_to.py",
    r"deploy/test_(compose|image|systemd|wheels)\.py": "test_setup.py",
    r"deploy/previous/": "contract/recovery/test_truncated.py; gateway/serve/test_standby.py; `the_version_before`",
    r"deploy/test_copied_kafka\.py": "tests/gateway/test_copied_realm.py",
    r"deploy/helm/test_chart\.py": "tests/deploy/helm/test_values_schema.py; tests/gateway/admin/test_probes.py",
    r"deploy/test_rules\.py::(?!test_an_alert_is_expected)": "tests/gateway/admin/test_alerts.py",
    r"deploy/test_secured_kafka\.py": "tests/native_backend/log/kafka/test_login_errors.py",
    r"deploy/test_kafka\.py::test_a_(jvm_without|node_loads)": "test_the_node_does_not_stop_to_collect",
    # -- fuzz
    r"fuzz/test_examples\.py": "the same tests, with the same examples each time",
    r"fuzz/test_sanitized\.py": "test_fuzz.py: the same cases, without a sanitizer",
    # -- gateway
    r"gateway/admin/.*[\[-]kafka": "the same on the embedded realm",
    r"gateway/admin/test_history_kills\.py": "test_history.py: one kill, on the embedded realm",
    r"gateway/admin/test_(alerts|dashboard)\.py::.*prometheus": "the same, evaluated by promql.py there",
    r"gateway/cli/.*[\[-]kafka": "the same on the embedded realm",
    r"gateway/serve/test_topic_settings\.py::test_what_is_set_back": "native_backend/publish/test_settings_watch.py",
    r"gateway/admin/test_alerts\.py::test_errors_of_a_kafka": "test_kafka_stopped_fires_and_is_over_when_it_goes_on",
    r"gateway/admin/test_turn_fails\.py::test_a_step_that_fails.*\[(?!journal)": "the step `journal`",
    r"gateway/serve/test_backup\.py": "test_copied_realm.py",
    r"gateway/test_broken_node\.py::.*[\[-]kafka": "the same on the embedded realm",
    r"gateway/test_broken_node\.py::.*\[embedded(-True|-False)?-1\]": "on three partitions",
    r"gateway/test_broken_node\.py::test_it_can_be_deleted.*\[embedded-True": "admin/test_problems.py",
    r"gateway/cli/drain/.*(\[posted|\[settled|without_an_id)": "test_a_kill_loses_nothing[stored]",
    r"gateway/cli/test_resend\.py::test_(a_killed_|messages_go_back).*on-[12]": "on three partitions",
    r"gateway/cli/test_resend\.py::test_a_kill.*\[(journal begun|settled)-on-3": "[before ..., [journal has ...",
    r"gateway/cli/test_(dead_letters|trace)\.py::.*\[(on-)?1\]": "on three partitions",
    r"gateway/cli/test_message_numbers\.py::.*\[embedded-1": "on three partitions",
    r"gateway/serve/test_bad_worlds\.py::test_a_wrong_bootstrap.*does-not-resolve": "an address that refuses",
    r"gateway/serve/test_standby\.py::test_two_gateways_.*\[kafka": "the same on the embedded realm",
    # -- interop: two foreign clients against each other, transactions, a durable over a restart, Kafka's own client
    r"interop/test_(c_proton|cli_proton|fe2o3|go_amqp|first_message|sessions)\.py": "test_qpid_jms.py and test_rhea.py",
    r"interop/test_drain_artemis\.py": "tests/gateway/cli/drain/test_drain.py",
    r"interop/test_(transports|rabbitmq_shovel|drain_rabbitmq|import_rabbitmq)\.py": "test_qpid_jms.py; tests/wire",
    r"interop/spring/": "test_qpid_jms.py",
    r"interop/jms/test_(contexts|delivery|request_reply|selectors|subscriptions)\.py": "test_qpid_jms.py",
    r"interop/jms/test_ledger\.py": "tests/reconciliation/mutants/test_mutants.py",
    r"interop/jms/test_redelivery\.py": "test_qpid_jms.py; for plain topics tests/wire/deliveries/test_plain.py",
    r"interop/test_proton_container\.py::.*kafka": "the same on the embedded realm",
    r"interop/jms/test_qpid_jms\.py::test_(a_transacted|a_durable|priorities).*kafka": "the same on the embedded realm",
    r"interop/test_rhea\.py::.*kafka": "the same on the embedded realm",
    # -- mappings
    r"mappings/compiler/test_mutations\.py::\w+\[(?!gate-)": "every fourth rule",
    r"mappings/compiler/test_tables\.py::test_every_slice_.*\[um-9\.(9|10)-": "the profiles extended and um-9.12",
    r"mappings/tools/test_how_to\.py::test_some_nodes": "test_the_rule_of_the_document_can_be_put_in_its_place",
    # -- native_backend
    r"native_backend/\w+/test_\w+\.py::test_a_million_delayed": "the other tests of the file",
    r"native_backend/log/kafka/test_kill\.py::test_what_was": "test_kill_9_of_the_broker",
    r"native_backend/log/kafka/test_leaderless\.py": "test_watch.py, and test_retry.py in the folder above",
    r"native_backend/log/kafka/test_ranges\.py::test_brokers": "test_a_consumer_that_reaches_no_broker_is_replaced",
    r"native_backend/log/kafka/test_reports\.py::test_a_completion_says.*-[1-4]\]": "the first seed of each way",
    r"native_backend/log/kafka/test_stall\.py::test_completions.*\[0\]": "the second seed",
    # -- reconciliation: every class of anomaly is planted in the gate on the embedded realm; some tests are on Kafka
    r"reconciliation/cli/test_cluster\.py": "test_spark_settings.py; transforms/test_transforms.py::test_a_small_table",
    r"reconciliation/cli/test_progress\.py::test_a_(run|what_if)_names": "the other tests of the file",
    r"reconciliation/cli/test_jars\.py::test_fetch": "test_one_that_is_",
    r"reconciliation/cli/test_class_archive\.py::test_(a_session|without)": "test_another_java_has_none",
    r"reconciliation/cli/test_(every\.py|rounds\.py::test_each_round)": "test_listening.py; the rest of test_rounds.py",
    r"reconciliation/cli/test_verdict_alerts\.py": "deploy/prometheus/rules_test.yml; test_listening.py",
    r"reconciliation/cli/test_since_last\.py": "test_history.py; jobs/test_planted.py::test_each_is_a_finding",
    r"reconciliation/jobs/test_(complete|partitions|shared|selected|transactions)\.py": "variants/test_variants.py",
    r"reconciliation/jobs/test_(commanded|given_up|copies|decisions|stores)\.py": "variants/test_variants.py",
    r"reconciliation/variants/.*::test_(it_is_found_alone|what_has_its_reason)": "test_it_is_found_among_all",
    r"reconciliation/variants/.*\[kafka": "the same on the embedded realm; read/test_incomplete.py, on Kafka",
    r"reconciliation/jobs/test_order\.py::(?!test_what_a_later)": "test_what_a_later_run_stored",
    r"reconciliation/read/test_(cut_evidence|incomplete)\.py::(?!test_no_outcome).*\[kafka": "test_no_outcome_record",
    r"reconciliation/read/test_at_once\.py::test_another_one_that_runs": "the other tests of the file",
    r"reconciliation/read/test_increments\.py::(?!test_what_was_landed)": "test_what_was_landed; ../test_state.py",
    r"reconciliation/read/test_incomplete\.py::test_(a_batch_in|metadata_|without_|topics_)": "test_no_outcome_record",
    r"reconciliation/read/test_incomplete\.py::test_(a_run_without|no_outcome_).*\[embedded": "test_the_end_of_the",
    r"reconciliation/read/test_incomplete\.py::test_(what_is_missing_|a_journal_).*\[embedded": "test_the_end_of_the",
    r"reconciliation/read/test_incomplete\.py::test_records_that_cannot_be_read": "test_no_outcome_record",
    r"reconciliation/read/test_adopted\.py::.*\[kafka": "the same on the embedded realm",
    r"reconciliation/read/test_merging\.py::test_a_chain": "test_each_record_counts_once",
    r"reconciliation/summing/test_by_columns\.py::test_(both.*seed|several|rec|the_par)": "test_both_make_the_same",
    r"reconciliation/ledgers/test_checks\.py::test_(each_lie|what_|lines_)": "test_all_lies_at_once",
    r"reconciliation/histories/": "mutants/test_mutants.py::test_an_unchanged_gateway_is_clean",
    r"reconciliation/mutants/test_mutants\.py::.*\[(?!embedded-basic)": "this; ledgers/test_checks.py",
    r"reconciliation/read/test_sums_at_random\.py": "tests/reconciliation/read/test_sums.py",
    r"reconciliation/read/test_sums_of_trimmed\.py::test_trimmed_stores": "test_a_store_that_lost; test_by_columns.py",
    r"reconciliation/read/test_sums\.py::test_(days|where|what_was|a_r|what_is.*_of_no)": "test_what_is_wrong",
    r"reconciliation/read/test_sums\.py::test_sums_that": "the other tests of the file",
    r"reconciliation/read/test_vanished\.py": "variants/test_variants.py: another topic of that name",
    r"reconciliation/read/test_adopted\.py::test_a_node_that_was_deleted": "test_an_adopted_topic_is_reconciled",
    r"reconciliation/read/test_cut_evidence\.py::test_the_end_of_the_outcomes_of_a_killed": "test_incomplete.py",
    r"reconciliation/read/test_trimmed\.py::test_(what_(is|a)_|a_tri|the_rep|evidence_that_was)": "variants/, Q1",
    r"reconciliation/read/test_open_transactions\.py": "tests/reconciliation/test_absence.py",
    r"reconciliation/report/test_page_in_a_browser\.py": "test_page.py",
    r"reconciliation/what_if/test_what_if\.py::test_(\w+\[kafka|the_command_)": "the same on the embedded realm",
    r"reconciliation/what_if/test_verdicts\.py::test_every_fact": "test_other_tables_decide_as_a_gateway_with_them",
    # -- shake
    r"shake/test_shake\.py::test_shaken": "the tests themselves, unshaken",
    # -- simulation
    r"simulation/test_worlds\.py::test_no_checker_objects\[\d*[13579]0\]": "every other seed",
    # -- layers
    r"test_layers\.py::test_what_breaks_them.*\[(\w+-in-|circle-of|templates|console-to|kit-to-tests|bench-)": "others",
    # -- torture
    r"torture/test_torture\.py::test_(embedded|kafka)": "its checkers, and tests/wire/connections/test_ends.py",
    r"torture/test_torture\.py::test_cluster": "tests/torture/test_networks.py, and the checkers",
    # -- wire
    r"wire/test_every_rule\.py::.*\[again-": "the same rule in the profile extended",
    r"wire/attach/test_durable_owners\.py::.*[\[-]kafka": "the same on the embedded realm",
    r"wire/attach/test_durable_owners\.py::test_in_a_documented": "contract/access/test_durable_owners.py",
    r"wire/attach/test_durables\.py::test_who_closes_the_last.*\[2-topic\]": "shared on two, both on one and on three",
    r"wire/attach/test_durable_names\.py::test_each_subscriber.*\[1-": "on three stores",
    r"wire/attach/test_durable_names\.py::test_a_durable_of_an_earlier.*\[app(:|-1)": "[app-plain and two more",
    r"wire/attach/test_stores_read\.py::test_on_kafka": "the limit itself, on the embedded realm",
    r"wire/connections/test_scale\.py": "tests/wire/deliveries/test_pressure.py, amqp/test_floods.py",
    r"wire/connections/test_held_bytes\.py::(.*[\[-]kafka|test_(a_flood|who_reads))": "the others; test_memory.py",
    r"wire/connections/test_deleted_nodes\.py::.*[\[-]kafka": "the same on the embedded realm",
    r"wire/connections/test_deleted_nodes\.py::test_O_5.*was_deleted\[embedded-\w+-[12]\]": "on three stores",
    r"wire/deliveries/test_(consumer_errors|plain)\.py::.*[\[-]kafka": "the same on the embedded realm",
    r"wire/deliveries/test_plain\.py::test_H_7.*\[(levels|three)-modified": "on one store, and what is released on all",
    r"wire/deliveries/test_plain\.py::test_H_12.*\[(levels|three)-[ru]": "on one store, and what is accepted on all",
    r"wire/deliveries/test_message_sizes\.py::test_a_(dur|que|dra).*\[kafka-(\w+-)?[13]\]": "on two partitions",
    r"wire/deliveries/test_message_sizes\.py::test_on_kafka_.*\[[13]": "on two partitions",
    r"wire/deliveries/test_message_sizes\.py::test_the_largest.*\[kafka-[13]": "on two partitions",
    r"wire/um/test_rows_real\.py::.*\[Kafka (?!um-9\.12)": "the embedded realm; profile um-9.12 on Kafka",
    r"wire/amqp/test_multi_transfer\.py::test_all_(scenarios|that_consumers)": "its other tests, of the same cells",
    r"wire/amqp/test_floods\.py::test_who_does_not_read_answers": "the other floods; test_pressure.py",
    r"wire/connections/test_ends\.py::test_D_1_.*\[kafka": "the same on the embedded realm",
}


_LONG = re.compile(f"tests/(?:{'|'.join(f'(?:{pattern})' for pattern in LONG)})")


def is_long(node_id: str) -> bool:
    return _LONG.match(node_id) is not None


def mark(items: Sequence[pytest.Item]) -> None:
    """`-m long` and `-m "not long"` choose by it."""
    for item in items:
        if is_long(item.nodeid):
            item.add_marker(pytest.mark.long)
