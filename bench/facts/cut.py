"""Functions of the product without some of their statements, or with a clock about them, in this process only.

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


Replace = Callable[[Cut, list[ast.stmt]], list[ast.stmt]]
"""What takes the place of these statements."""


def codes_without(cuts: Iterable[Cut]) -> list[tuple[FunctionType, CodeType]]:
    """The functions, and what they are without these statements. Nothing is changed yet."""
    return _codes(cuts, lambda cut, _: ast.parse(cut.instead).body)


def time_statements(cuts: Iterable[Cut], clock: Callable[[], int], add: Callable[[str, int], None]) -> None:
    """From now on `add` hears how long each of these statements has taken, by `clock`, and of which fact it is."""

    def timed(cut: Cut, statements: list[ast.stmt]) -> list[ast.stmt]:
        [begin] = ast.parse("bench_begin = bench_clock()").body
        frame = ast.parse(f"try:\n    pass\nfinally:\n    bench_add({cut.fact!r}, bench_clock() - bench_begin)").body[0]
        assert isinstance(frame, ast.Try)
        frame.body = statements
        return [begin, frame]

    codes = _codes(cuts, timed)
    for function, _ in codes:
        function.__globals__.update(bench_clock=clock, bench_add=add)
    _give(codes)


def install(cuts: Iterable[Cut]) -> Callable[[], None]:
    """From now on they run so. What is returned gives them back what they were."""
    codes = codes_without(cuts)
    before = [(function, function.__code__) for function, _ in codes]
    _give(codes)
    return lambda: _give(before)


def _codes(cuts: Iterable[Cut], replace: Replace) -> list[tuple[FunctionType, CodeType]]:
    by_function: dict[str, list[Cut]] = {}
    for cut in cuts:
        by_function.setdefault(cut.where, []).append(cut)
    return [_changed_code(where, some, replace) for where, some in by_function.items()]


def _give(codes: list[tuple[FunctionType, CodeType]]) -> None:
    for function, code in codes:
        function.__code__ = code


def _changed_code(where: str, cuts: list[Cut], replace: Replace) -> tuple[FunctionType, CodeType]:
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
        _change(definition, cut, replace)
    flags = annotations.compiler_flag
    code = compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec", flags, dont_inherit=True)
    made: dict[str, FunctionType] = {}
    exec(code, function.__globals__, made)
    return function, made[function.__name__].__code__


def _change(definition: ast.FunctionDef, cut: Cut, replace: Replace) -> None:
    if cut.statement == ALL:
        definition.body = replace(cut, definition.body)
        return
    change = _Change(cut, replace)
    change.visit(definition)
    if change.count != 1:
        raise LookupError(f"{cut.where} has {change.count} times, not once: {cut.statement}")


class _Change(ast.NodeTransformer):
    """`count`: how many statements there were."""

    def __init__(self, cut: Cut, replace: Replace) -> None:
        self.count = 0
        self._cut, self._replace = cut, replace

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        if isinstance(node, ast.stmt) and ast.unparse(node).partition("\n")[0] == self._cut.statement:
            self.count += 1
            return self._replace(self._cut, [node])
        return self.generic_visit(node)
