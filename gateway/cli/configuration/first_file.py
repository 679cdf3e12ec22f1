"""The text of a first configuration: what most need is active, every other key is a comment with its default.

It is made of the table that reading goes by (`gateway.config.fields`), so that it names every key. "#key" in it is a
key that is not active, "# " begins an explanation.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway.config.field import REQUIRED, Field
from gateway.config.fields import FIELDS, LISTEN
from mappings.language.yaml_lines import Node, Problem

_HEAD: Final = """\
# The configuration of one gateway: realmgate serve --config FILE
# "# " begins an explanation; "#" before a key shows its default, or an example: remove the "#" to write another value,
# and that of its section. Afterwards: realmgate config check --config FILE. Paths are relative to this file.
"""
_ADMIN: Final = "http://127.0.0.1:9464"
_LINK: Final = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
_WIDTH: Final = 110
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


def first_file(bootstrap: str | None, problems: list[Problem], values: Mapping[str, Any] = _NONE) -> str:
    """On Kafka at `bootstrap`, or embedded. `values`: written instead of the usual ones. What is wrong with `bootstrap`
    goes into `problems`."""
    kind = "embedded" if bootstrap is None else "kafka"
    written: dict[str, Any] = {
        "listen": [LISTEN],
        "admin.listen": _ADMIN,
        "realm.kind": kind,
        "nodes.create_on_attach": [],
    }
    fields = [field for field in FIELDS if field.only in ("", kind)]
    if bootstrap is not None:
        written["realm.bootstrap"] = bootstrap
        [field] = [field for field in fields if field.key == "realm.bootstrap"]
        field.shape.read(field.key, Node("--kafka", 1, bootstrap), problems)
    else:
        [field] = [field for field in fields if field.key == "realm.path"]
        written[field.key] = field.default
    return _HEAD + "".join(f"{line}\n" for line in _lines(fields, {**written, **values}))


def _lines(fields: list[Field], written: dict[str, Any]) -> Iterator[str]:
    section = ""
    for field in fields:
        if field.section != section or not section:
            yield ""
        if field.section not in ("", section):
            active = any(key.startswith(f"{field.section}.") for key in written)
            yield f"{field.section}:" if active else f"#{field.section}:"
        section = field.section
        yield from _key(field, written)


def _key(field: Field, written: dict[str, Any]) -> Iterator[str]:
    indent = "  " if field.section else ""
    about = _LINK.sub(r"\1: docs/\2", field.about)
    yield from (f"{indent}# {line}" for line in textwrap.wrap(about, _WIDTH))
    if field.key in written:
        yield f"{indent}{field.name}: {json.dumps(written[field.key], ensure_ascii=False)}"
    else:
        yield f"{indent}#{field.name}: {_value(field)}"


def _value(field: Field) -> str:
    """The default; an example, where there is none."""
    return field.shape.example if field.default in (None, REQUIRED) else json.dumps(field.default)
