"""The JSON Schemas: what they allow is what is shipped, and what they refuse is refused by the reader too."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml

from mappings.compiler.load import load_table
from mappings.compiler.table_set import SHIPPED
from mappings.language.vocabulary import TABLES
from mappings.tools.schema import check_schemas, errors_schema, schema_of

FILES = {name: (SHIPPED / "tables" / f"{name}.yaml").read_text(encoding="utf-8") for name in TABLES}


def errors(schema: dict[str, Any], value: Any, root: dict[str, Any], at: str = "") -> list[str]:
    """The part of draft-07 that the schemas use; a keyword that is not known here is an error of the test."""
    if "$ref" in schema:
        return errors(root["definitions"][schema["$ref"].removeprefix("#/definitions/")], value, root, at)
    flaws: list[str] = []
    kinds: dict[str, Any] = {"object": dict, "array": list, "string": str}
    for word, rule in schema.items():
        match word:
            case "type" if isinstance(rule, list):
                assert rule == ["integer", "null"]
                if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                    return [f"{at} is none of {rule}"]
            case "type" if not isinstance(value, kinds[rule]):
                return [f"{at} is no {rule}"]
            case "const" if value != rule:
                flaws.append(f"{at} is not {rule}")
            case "enum" if not any(value is option or (isinstance(option, str) and value == option) for option in rule):
                flaws.append(f"{at} is none of {rule}")
            case "oneOf" if sum(not errors(variant, value, root, at) for variant in rule) != 1:
                flaws.append(f"{at} fits none of oneOf")
            case "pattern" if not re.search(rule, value):
                flaws.append(f"{at} does not match {rule}")
            case "maxLength" if len(value) > rule:
                flaws.append(f"{at} is too long")
            case "minLength" | "minItems" if len(value) < rule:
                flaws.append(f"{at} is too short")
            case "uniqueItems" if len(set(map(str, value))) < len(value):
                flaws.append(f"{at} repeats an item")
            case "required":
                flaws += [f"{at} has no {key}" for key in rule if key not in value]
            case "items":
                flaws += [e for n, item in enumerate(value) for e in errors(rule, item, root, f"{at}[{n}]")]
            case "properties":
                flaws += [f"{at}.{key} is unknown" for key in value if key not in rule]
                flaws += [e for key in value if key in rule for e in errors(rule[key], value[key], root, f"{at}.{key}")]
            case _:
                assert word in KNOWN, word
    return flaws


KNOWN = {
    *("$schema", "title", "description", "definitions", "additionalProperties", "type", "const", "enum", "oneOf"),
    *("pattern", "minLength", "maxLength", "minItems", "uniqueItems"),
}


def test_the_shipped_schemas_are_up_to_date() -> None:
    assert check_schemas(SHIPPED / "schemas") == []


@pytest.mark.parametrize("name", TABLES)
def test_a_table_file_names_its_schema_and_fits_it(name: str) -> None:
    assert FILES[name].split("\n", 1)[0] == f"# yaml-language-server: $schema=../schemas/{name}.json"
    schema = schema_of(TABLES[name])
    assert errors(schema, yaml.safe_load(FILES[name]), schema) == []


def test_the_native_errors_name_their_schema_and_fit_it() -> None:
    text = (SHIPPED / "errors.yaml").read_text(encoding="utf-8")
    assert text.split("\n", 1)[0] == "# yaml-language-server: $schema=schemas/errors.json"
    schema, document = errors_schema(), yaml.safe_load(text)
    assert errors(schema, document, schema) == []
    for key, wrong in (
        ("cause", "fate"),
        ("retry_after_ms", "soon"),
        ("say", "x" * 71),
        ("kafka", "UNKNOWN"),
        ("id", "A b"),
    ):
        spoilt = copy.deepcopy(document)
        spoilt["errors"][0][key] = wrong
        assert errors(schema, spoilt, schema), key
    del document["errors"][0]["because"]
    assert errors(schema, document, schema)


SPOILT = {
    "unknown-key": lambda rule: rule.update(colour="red"),
    "unknown-axis": lambda rule: rule["when"].update(colour="red"),
    "unknown-value": lambda rule: rule["when"].update({next(iter(rule["when"])): "red"}),
    "boolean-value": lambda rule: rule["when"].update({next(iter(rule["when"])): False}),
    "then-unknown": lambda rule: rule["then"].update(colour="red"),
    "then-missing": lambda rule: rule["then"].clear(),
    "no-because": lambda rule: rule.pop("because"),
    "no-source": lambda rule: rule.pop("source"),
    "odd-id": lambda rule: rule.update(id="Not A Word"),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("how", SPOILT)
def test_what_the_schema_flags_the_reader_refuses(tmp_path: Any, name: str, how: str) -> None:
    document = copy.deepcopy(yaml.safe_load(FILES[name]))
    SPOILT[how](document["profiles"]["um-9.12"]["rules"][0])
    schema = schema_of(TABLES[name])
    assert errors(schema, document, schema)
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    problems: list[Any] = []
    assert load_table(path, TABLES[name], problems) is None
    assert problems
