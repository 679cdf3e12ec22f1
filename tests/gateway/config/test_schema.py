"""The JSON Schema of a configuration, by another implementation of JSON Schema: it is made of the table of keys, takes
what is legal, and refuses a wrong key and a wrong type as the reader does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gateway.cli.configuration.first_file import first_file
from gateway.config.field import REQUIRED, Field
from gateway.config.fields import FIELDS
from gateway.config.schema import configuration_schema, schema_text
from tests.gateway.cli.command_line import Run, config, run
from tests.gateway.config.configuration import problems

__all__ = ["config", "run"]
ROOT = Path(__file__).parents[3]
SCHEMA = jsonschema.Draft7Validator(configuration_schema())
REALMS = {"embedded": {"kind": "embedded"}, "kafka": {"kind": "kafka", "bootstrap": "one:9092"}}
FENCE = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def refused(document: Any) -> list[str]:
    return [error.message for error in SCHEMA.iter_errors(document)]


def shipped() -> Iterator[tuple[str, str]]:
    """Whole configurations: files of deploy/, and what the documents show."""
    for path in sorted((ROOT / "deploy").rglob("*.yaml")):
        if path.name in ("embedded.yaml", "kafka.yaml", "realmgate.yaml"):
            yield str(path.relative_to(ROOT)), path.read_text()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for number, snippet in enumerate(FENCE.findall(path.read_text())):
            if isinstance(content := yaml.safe_load(snippet), dict) and "realm" in content:
                yield f"{path.relative_to(ROOT)} {number}", snippet
    yield "config init", first_file(None, [])
    yield "config init --kafka", first_file("one:9092,two:9092", [])


SHIPPED = dict(shipped())


def with_value(field: Field, value: Any) -> dict[str, Any]:
    """A configuration that is legal but for that value."""
    document: dict[str, Any] = {"realm": dict(REALMS[field.only or "embedded"])}
    section = document.setdefault(field.section, {}) if field.section else document
    section[field.name] = value
    return document


def test_it_is_a_schema_and_the_copy_is_this_one(run: Run) -> None:
    jsonschema.Draft7Validator.check_schema(configuration_schema())
    assert run("config", "schema", configured=False) == (0, schema_text(), "")
    assert (ROOT / "docs" / "configuration.schema.json").read_text() == schema_text(), (
        "write it again: realmgate config schema > docs/configuration.schema.json"
    )


def test_there_are_examples() -> None:
    assert len(SHIPPED) > 8
    for name in ("deploy/kafka.yaml", "deploy/image/realmgate.yaml", "docs/configuration.md 0"):
        assert name in SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_it_takes_every_example(name: str) -> None:
    assert refused(yaml.safe_load(SHIPPED[name])) == []


@pytest.mark.parametrize("field", FIELDS, ids=[field.key for field in FIELDS])
def test_each_key_takes_its_example_and_no_wrong_type(field: Field, tmp_path: Path) -> None:
    assert refused(with_value(field, yaml.safe_load(field.shape.example))) == []
    if field.default not in (None, REQUIRED):
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        assert refused(with_value(field, default)) == []
    mistakes: tuple[Any, ...] = ([[]], {"no-such": []})
    for wrong in mistakes:
        document = with_value(field, wrong)
        assert refused(document), wrong
        assert problems(tmp_path, yaml.safe_dump(document)), wrong


@pytest.mark.parametrize("section", ["", *dict.fromkeys(field.section for field in FIELDS if field.section)])
def test_a_wrong_key_is_refused_as_by_the_reader(section: str, tmp_path: Path) -> None:
    document: dict[str, Any] = {"realm": dict(REALMS["embedded"])}
    (document.setdefault(section, {}) if section else document)["no-such"] = 1
    assert any("no-such" in message for message in refused(document))
    assert any("unknown key no-such" in problem for problem in problems(tmp_path, yaml.safe_dump(document)))


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[]", "realm: {}", "realm: {kind: nowhere}", "realm: {kind: kafka}", "realm: embedded",
        "realm: {kind: embedded, bootstrap: 'a:1'}", "realm: {kind: kafka, bootstrap: 'a:1', path: x}",
        "{realm: {kind: embedded}, listen: []}", "{realm: {kind: embedded}, listen: ['tcp://x']}",
        "{realm: {kind: embedded}, listen: ['amqp://a:1', 'amqp://a:1']}",
        "{realm: {kind: embedded}, limits: {links: 0}}",
        "{realm: {kind: embedded}, admin: {listen: '127.0.0.1:1'}}", "{realm: {kind: embedded}, limits: 5}",
        "{realm: {kind: embedded}, listen: null}", "{realm: {kind: embedded}, limits: {links: null}}",
        "realm: {kind: kafka, bootstrap: 'a:1', client: {acks: '0'}}",
        "realm: {kind: kafka, bootstrap: 'a:1', client: {sasl.password: x}}",
    ],
)  # fmt: skip
def test_what_is_wrong_is_wrong_for_both(text: str, tmp_path: Path) -> None:
    assert refused(yaml.safe_load(text))
    assert problems(tmp_path, text)
