"""The JSON Schema of a configuration file, for editors, made of the table that reading goes by (`fields`).

It sees what one key alone can be. `realmgate config check` reads the rest: whether keys fit together, files, ports.
A file names it in its first line: `# yaml-language-server: $schema=...`.
Source: JSON Schema draft-07 (what the YAML language server reads).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from gateway.config.field import REQUIRED, Field
from gateway.config.fields import FIELDS

_LINK: Final = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
_REALM: Final = "realm"


def configuration_schema() -> dict[str, Any]:
    sections = dict.fromkeys(field.section for field in FIELDS if field.section)
    properties = {field.name: _property(field) for field in FIELDS if not field.section}
    for section in sections:
        fields = [field for field in FIELDS if field.section == section]
        properties[section] = _realm(fields) if section == _REALM else _mapping(fields)
    required = [name for name in properties if properties[name].get("required")]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "the configuration of a realmgate gateway",
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


def schema_text() -> str:
    return json.dumps(configuration_schema(), indent=2, ensure_ascii=False) + "\n"


def _mapping(fields: Sequence[Field]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _property(field) for field in fields},
    }
    required = _required(fields)
    return {**document, "required": required} if required else document


def _realm(fields: Sequence[Field]) -> dict[str, Any]:
    """Which keys it has depends on its kind."""
    document = {**_mapping(fields), "required": _required([field for field in fields if not field.only])}
    kinds = dict.fromkeys(field.only for field in fields if field.only)
    return {**document, "allOf": [_kind(fields, kind) for kind in kinds]}


def _kind(fields: Sequence[Field], kind: str) -> dict[str, Any]:
    others = {field.name: False for field in fields if field.only not in ("", kind)}
    required = _required([field for field in fields if field.only == kind])
    return {
        "if": {"properties": {"kind": {"const": kind}}},
        "then": {"properties": others, **({"required": required} if required else {})},
    }


def _required(fields: Sequence[Field]) -> list[str]:
    return [field.name for field in fields if field.default is REQUIRED]


def _property(field: Field) -> dict[str, Any]:
    about = _LINK.sub(r"\1: docs/\2", field.about)
    document = {**field.shape.schema, "description": f"{about} (kind {field.only})" if field.only else about}
    return document if field.default in (None, REQUIRED) else {**document, "default": field.default}
