"""The functions of proton that the parts in C call are declared there as proton has them, as far as cffi knows them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from cproton import ffi, lib

AMQP = Path(__file__).parents[3] / "gateway" / "amqp"
SOURCES = sorted(AMQP.glob("_*.c"))
DECLARATION = re.compile(r"^static (?P<result>[\w ]+?\**) ?\(\*(?P<name>\w+)\)\((?P<arguments>[^)]*)\);", re.MULTILINE)
PLACE = re.compile(r'\{"(?P<function>pn_\w+)", &(?P<name>\w+)\}')
UNKNOWN = {"pn_session_remote_incoming_window"}  # cffi does not declare it
OURS = {"tag_octets": "struct pn_bytes_t"}


def declared(source: str) -> dict[str, list[str]]:
    """By proton's name: the result and the arguments, as words that can be compared."""
    types = {
        match["name"]: [kind(match["result"]), *(kind(argument) for argument in match["arguments"].split(","))]
        for match in DECLARATION.finditer(source)
    }
    return {match["function"]: types[match["name"]] for match in PLACE.finditer(source)}


def kind(text: str) -> str:
    """Of `const char *start` and the like."""
    if "*" in text:
        return "pointer"
    word = text.replace("const ", "").split()[0]
    return OURS.get(word, word)


def known(function: str) -> list[str]:
    """The same, as cffi has it."""
    type_: Any = ffi.typeof(getattr(lib, function))
    return [of_cffi(type_.result), *map(of_cffi, type_.args)]


def of_cffi(type_: Any) -> str:
    if type_.kind == "enum":
        return "int"
    return {"pointer": "pointer", "void": "void"}.get(type_.kind, str(type_.cname).replace("_Bool", "bool"))


def differences(source: str) -> list[str]:
    declarations = declared(source)
    return [name for name, types in declarations.items() if name not in UNKNOWN and types != known(name)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_they_are_declared_as_proton_has_them(path: Path) -> None:
    source = path.read_text()
    assert len(declared(source)) == source.count('{"pn_') > 5
    assert differences(source) == []


def test_another_declaration_is_seen() -> None:
    [source] = [path.read_text() for path in SOURCES if path.name == "_sends.c"]
    for before, after in (
        ("static uint32_t (*remote_max_frame)", "static uint64_t (*remote_max_frame)"),
        ("(*link_send)(void *link, const char *start, size_t size)", "(*link_send)(void *link, const char *start)"),
        ("(*new_delivery)(void *link, tag_octets tag)", "(*new_delivery)(void *link, void *tag)"),
    ):
        assert before in source
        assert len(differences(source.replace(before, after))) == 1


def test_what_cffi_does_not_know_is_no_more_than_that() -> None:
    every = [name for path in SOURCES for name in declared(path.read_text())]
    assert {name for name in every if not hasattr(lib, name)} == UNKNOWN
