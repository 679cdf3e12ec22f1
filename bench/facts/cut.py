"""Functions of the product without some of their statements, in this process only.

A function stays the same object and gets other code: bound methods and imports of it that exist already run that, too.
Errors: `LookupError` where what is to be taken out is not there exactly once.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Final

ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class Cut:
    """`where`: MODULE:FUNCTION. `statement`: the first line of it, as `ast.unparse` writes it; `ALL`: the whole body.
    `instead`: what takes its place."""

    fact: str
    where: str
    statement: str
    instead: str = "pass"


def codes_without(cuts: Iterable[Cut]) -> list[tuple[FunctionType, CodeType]]:
    """The functions, and what they are without these statements. Nothing is changed yet."""
    by_function: dict[str, list[Cut]] = {}
    for cut in cuts:
        by_function.setdefault(cut.where, []).append(cut)
    return [_code_without(where, some) for where, some in by_function.items()]


def install(cuts: Iterable[Cut]) -> Callable[[], None]:
    """From now on they run so. What is returned gives them back what they were."""
    codes = codes_without(cuts)
    before = [(function, function.__code__) for function, _ in codes]
    _give(codes)
    return lambda: _give(before)


def _give(codes: list[tuple[FunctionType, CodeType]]) -> None:
    for function, code in codes:
        function.__code__ = code


def _code_without(where: str, cuts: list[Cut]) -> tuple[FunctionType, CodeType]:
    try:
        function = pkgutil.resolve_name(where)
    except (AttributeError, ImportError) as error:
        raise LookupError(f"{where}: there is no such function: {error}") from error
    if not isinstance(function, FunctionType) or function.__closure__:
        raise LookupError(f"{where} is no plain function")
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    for cut in cuts:
        _take_out(definition, cut)
    flags = annotations.compiler_flag
    code = compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec", flags, dont_inherit=True)
    made: dict[str, FunctionType] = {}
    exec(code, function.__globals__, made)
    return function, made[function.__name__].__code__


def _take_out(definition: ast.FunctionDef, cut: Cut) -> None:
    replacement = ast.parse(cut.instead).body
    if cut.statement == ALL:
        definition.body = replacement
        return
    taker = _Taker(cut.statement, replacement)
    taker.visit(definition)
    if taker.count != 1:
        raise LookupError(f"{cut.where} has {taker.count} times, not once: {cut.statement}")


class _Taker(ast.NodeTransformer):
    """`count`: how many statements there were."""

    def __init__(self, first_line: str, replacement: list[ast.stmt]) -> None:
        self.count = 0
        self._first_line, self._replacement = first_line, replacement

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        if isinstance(node, ast.stmt) and ast.unparse(node).partition("\n")[0] == self._first_line:
            self.count += 1
            return self._replacement
        return self.generic_visit(node)
