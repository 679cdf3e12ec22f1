"""The JSON Schema of each table file, for editors: what they complete and flag while a rule is written.

`schemas/TABLE.json`, and `schemas/errors.json` of native errors, generated from the vocabulary (`realmgate mappings
expand` writes them too), named in the first line of each file: `# yaml-language-server: $schema=../schemas/TABLE.json`.
A schema sees one rule at a time; `realmgate mappings check` checks whether rules fit together.

Source: JSON Schema draft-07 (what the YAML language server reads).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mappings.compiler.classify_file import TABLE as CLASSIFY
from mappings.compiler.errors import LOGS, RETRIES, SAY_BYTES_MAX, SCOPES, WAITED
from mappings.language.causes import CAUSES
from mappings.language.vocabulary import CONDITIONS, HIT_POLICY, NODE_CLASS, PROFILES, TABLES, TableWords
from mappings.language.yaml_lines import Problem

_ID = "^[a-z0-9]+(-[a-z0-9]+)*$"
_TEXT = {"type": "string", "minLength": 1}
_BECAUSE = {**_TEXT, "description": "why, in plain words"}
_SOURCE = {**_TEXT, "description": "where it is written that it must be so, ids separated by commas"}
_NAME = {"type": "string", "pattern": _ID, "description": "its name for ever: it stands in the evidence"}
_CLASS = {"type": "string", "pattern": _ID, "description": "a class of classify.yaml"}
_PATTERNS = {"type": "array", "items": {"type": "string", "pattern": "^[^?[]+$"}, "minItems": 1, "uniqueItems": True}


def schema_of(words: TableWords) -> dict[str, Any]:
    """The schema of one table file."""
    profile = {
        "type": "object",
        "additionalProperties": False,
        "required": ["rules"],
        "properties": {
            "extends": {"enum": list(PROFILES), "description": "the profile that this one differs from"},
            "without": {"type": "array", "items": _TEXT, "description": "ids of its rules that do not hold here"},
            "rules": {"type": "array", "items": {"$ref": "#/definitions/rule"}},
        },
    }
    axes: dict[str, Any] = {axis: {"const": list(values)} for axis, values in words.axes.items()}
    if words.of_node:
        axes[NODE_CLASS] = {"type": "array", "items": _CLASS, "minItems": 1, "uniqueItems": True}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"mapping table {words.name}",
        "type": "object",
        "additionalProperties": False,
        "required": ["table", "hit_policy", "axes", "profiles"],
        "properties": {
            "table": {"const": words.name},
            "hit_policy": {"const": HIT_POLICY},
            "axes": {**_object(axes), "required": list(words.axes)},
            "impossible": {"type": "array", "items": {"$ref": "#/definitions/impossible"}},
            "profiles": _object(dict.fromkeys(PROFILES, profile)),
        },
        "definitions": {
            "when": _when(words),
            "then": _then(words),
            "impossible": {
                **_object({"when": {"$ref": "#/definitions/when"}, "because": _TEXT}),
                "required": ["when", "because"],
            },
            "rule": _rule(),
        },
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _when(words: TableWords) -> dict[str, Any]:
    """An axis that is left out means any of its values."""
    axes: dict[str, dict[str, Any]] = {axis: {"enum": list(values)} for axis, values in words.axes.items()}
    if words.of_node:
        axes[NODE_CLASS] = _CLASS
    return _object(
        {
            axis: {"oneOf": [schema, {"type": "array", "items": schema, "minItems": 1, "uniqueItems": True}]}
            for axis, schema in axes.items()
        }
    )


def _then(words: TableWords) -> dict[str, Any]:
    keys = {key: {"enum": list(word.values)} for key, word in words.then.items()}
    return {**_object(keys), "required": [key for key, word in words.then.items() if word.required]}


def _rule() -> dict[str, Any]:
    parts = {
        "id": _NAME,
        "when": {"$ref": "#/definitions/when"},
        "then": {"$ref": "#/definitions/then"},
        "because": _BECAUSE,
        "source": _SOURCE,
    }
    return {**_object(parts), "required": list(parts)}


def classify_schema() -> dict[str, Any]:
    """The schema of `classify.yaml`."""
    rule = _object(
        {
            "id": _NAME,
            "names": {**_PATTERNS, "description": "whole names; * stands for any characters, none included"},
            "unless": {**_PATTERNS, "description": "names that it is not for"},
            "node_class": {**_CLASS, "description": "one of node_classes; default when it is left out"},
            "transformer": {**_TEXT, "description": "none, basic, complete, or an entry point's name"},
            "because": _BECAUSE,
            "source": _SOURCE,
        }
    )
    fields = {
        "table": {"const": CLASSIFY},
        "node_classes": {"type": "array", "items": _CLASS, "minItems": 1, "uniqueItems": True},
        "rules": {"type": "array", "items": {"$ref": "#/definitions/rule"}},
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"mapping table {CLASSIFY}",
        **_object(fields),
        "required": list(fields),
        "definitions": {"rule": {**rule, "required": ["id", "names", "because", "source"]}},
    }


def errors_schema() -> dict[str, Any]:
    """The schema of `errors.yaml`."""
    codes = {"type": "array", "items": _TEXT, "uniqueItems": True}
    say = {**_TEXT, "maxLength": SAY_BYTES_MAX, "description": "what to do about it; the node's name stands before it"}
    texts = {"oneOf": [say, {**_object(dict.fromkeys(WAITED, say)), "required": list(WAITED)}]}
    error = {
        "id": _NAME,
        **{log: {**codes, "description": f"names of codes of {log}"} for log in LOGS},
        "cause": {"enum": list(CAUSES), "description": "what it is to the realm; the tables decide what a peer gets"},
        "scope": {"enum": list(SCOPES), "description": "how much it concerns"},
        "retry": {"enum": list(RETRIES), "description": "inside: a control call asks again within its deadline"},
        "retry_after_ms": {"type": ["integer", "null"], "description": "how long a peer should wait, if that helps"},
        "say": texts,
        "because": _BECAUSE,
    }
    answers = sorted({answer for words in TABLES.values() for answer in words.axes.get("answer", ())})
    fields = {
        "version": {"const": 1},
        "errors": {"type": "array", "items": {"$ref": "#/definitions/error"}},
        "no_error": {**_object(dict.fromkeys(LOGS, codes)), "required": list(LOGS)},
        "answers": _object(dict.fromkeys(answers, texts)),
        "refusals": _object(dict.fromkeys(CONDITIONS, say)),
        "waits": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "native errors",
        **_object(fields),
        "required": [field for field in fields if field not in ("refusals", "waits")],
        "definitions": {"error": {**_object(error), "required": list(error)}},
    }


def write_schemas(directory: Path) -> list[Path]:
    """Write the files that are out of date; returns them."""
    directory.mkdir(parents=True, exist_ok=True)
    touched = []
    for path, text in _wanted(directory).items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            touched.append(path)
    return touched


def check_schemas(directory: Path) -> list[Problem]:
    return [
        Problem(str(path), 1, "the schema is missing or out of date", "run realmgate mappings expand")
        for path, text in _wanted(directory).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def _wanted(directory: Path) -> dict[Path, str]:
    schemas = {
        CLASSIFY: classify_schema(),
        "errors": errors_schema(),
        **{name: schema_of(words) for name, words in TABLES.items()},
    }
    return {directory / f"{name}.json": _text(schema) for name, schema in schemas.items()}


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
