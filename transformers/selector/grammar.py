"""Selector text to a closure over a message: the grammar, and what makes terms of it while it is read.

The grammar is that of JMS (a subset of SQL-92). Beyond it: names may hold dots (`amqp.priority`), and any name may
stand in double quotes (`"x-kind" = 'a'`). What a term can be (truth, number, string, or a name, which may be any of
them) is checked while it is read, so that `1 AND 2` is refused with its place like any other error.

Errors: `SelectorError` with the place in the text. Limits: TERMS_DEEP (terms inside each other; the operands of one
chain of AND or OR count once). Source: JMS 2.0 section 3.8.1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError

from transformers.selector import terms
from transformers.selector.fields import Reader, reader

TERMS_DEEP = 64
_LONG_MAX = 2**63

GRAMMAR = r"""
?start: condition
?condition: conjunction (_OR conjunction)*
conjunction: truth (_AND truth)*
?truth: NOT truth -> negation | predicate
?predicate: sum
    | sum COMPARE sum -> comparison
    | sum NOT? _BETWEEN sum _AND sum -> between
    | sum NOT? LIKE STRING (_ESCAPE STRING)? -> like
    | sum NOT? IN "(" STRING ("," STRING)* ")" -> one_of
    | sum IS NOT? _NULL -> null
?sum: product | sum ADD product -> arithmetic
?product: signed | product MULTIPLY signed -> arithmetic
?signed: ADD signed -> signed | primary
?primary: "(" condition ")"
    | NAME -> name
    | QUOTED -> name
    | EXACT -> exact
    | APPROXIMATE -> approximate
    | STRING -> string
    | TRUE -> true
    | FALSE -> false

%declare _AND _OR NOT _BETWEEN LIKE _ESCAPE IN IS _NULL TRUE FALSE
NAME: /(?:[^\W\d]|\$)[\w$.]*/
QUOTED: /"(?:[^"]|"")+"/
STRING: /'(?:[^']|'')*'/
APPROXIMATE.2: /(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?|\d+[eE][+-]?\d+[fFdD]?|\d+[fFdD]/
EXACT.1: /0[xX][0-9a-fA-F]+[lL]?|\d+[lL]?/
COMPARE: /<>|<=|>=|<|>|=/
ADD: /[+-]/
MULTIPLY: /[*\/]/
%ignore /[ \t\f\r\n]+/
"""
_KEYWORDS = {
    word: word if word in ("NOT", "LIKE", "IN", "IS", "TRUE", "FALSE") else f"_{word}"
    for word in ("AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "IN", "IS", "NULL", "TRUE", "FALSE")
}


class SelectorError(Exception):
    """The text is no selector. `position`: where, from 0."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"selector at character {position + 1}: {reason}")
        self.position = position


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a selector. `kind` is what its values are, name: not known before a message is read."""

    read: Reader
    kind: Literal["truth", "number", "string", "name"]
    at: int
    depth: int = 1


@v_args(inline=True)
class _Terms(Transformer[Token, Term]):
    """Called bottom-up while the text is read."""

    def condition(self, *parts: Term) -> Term:
        return _chain(parts, terms.disjunction)

    def conjunction(self, *parts: Term) -> Term:
        return _chain(parts, terms.conjunction) if len(parts) > 1 else parts[0]

    def negation(self, word: Token, term: Term) -> Term:
        return _made(terms.negation(_truth(term).read), "truth", _place(word), term)

    def comparison(self, left: Term, sign: Token, right: Term) -> Term:
        if sign not in ("=", "<>"):
            _number(left), _number(right)
        elif "name" not in (left.kind, right.kind) and left.kind != right.kind:
            raise SelectorError(_place(sign), f"a {left.kind} is never compared with a {right.kind}")
        return _made(terms.comparison(str(sign), left.read, right.read), "truth", left.at, left, right)

    def between(self, term: Term, *rest: Any) -> Term:
        low, high = rest[-2:]
        read = terms.between(_number(term).read, _number(low).read, _number(high).read)
        return _made(_unless(rest[0], read), "truth", term.at, term, low, high)

    def like(self, term: Term, *rest: Token) -> Term:
        strings = [token for token in rest if token.type == "STRING"]
        pattern, escape = _unquoted(strings[0]), _unquoted(strings[1]) if len(strings) > 1 else None
        if escape is not None and len(escape) != 1:
            raise SelectorError(_place(strings[1]), "ESCAPE takes one character")
        try:
            read = terms.is_like(_name(term, "LIKE").read, pattern, escape)
        except ValueError as error:
            raise SelectorError(_place(strings[0]), str(error)) from None
        return _made(_unless(rest[0], read), "truth", term.at, term)

    def one_of(self, term: Term, *rest: Token) -> Term:
        strings = frozenset(_unquoted(token) for token in rest if token.type == "STRING")
        return _made(_unless(rest[0], terms.is_in(_name(term, "IN").read, strings)), "truth", term.at, term)

    def null(self, term: Term, _: Token, *rest: Token) -> Term:
        read = terms.is_null(_name(term, "IS NULL").read)
        return _made(terms.negation(read) if rest else read, "truth", term.at, term)

    def arithmetic(self, left: Term, sign: Token, right: Term) -> Term:
        read = terms.arithmetic(str(sign), _number(left).read, _number(right).read)
        return _made(read, "number", left.at, left, right)

    def signed(self, sign: Token, term: Term) -> Term:
        sign_of = terms.negative if sign == "-" else terms.positive
        return _made(sign_of(_number(term).read), "number", _place(sign), term)

    def name(self, token: Token) -> Term:
        text = token[1:-1].replace('""', '"') if token.type == "QUOTED" else str(token)
        return Term(reader(text), "name", _place(token))

    def exact(self, token: Token) -> Term:
        digits = token.rstrip("lL")
        base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" and len(digits) > 1 else 10
        try:
            number = int(digits, base)
        except ValueError:  # also what has thousands of digits
            raise SelectorError(_place(token), "no number") from None
        if number > _LONG_MAX:
            raise SelectorError(_place(token), "larger than a long can be")
        return Term(terms.constant(number), "number", _place(token))

    def approximate(self, token: Token) -> Term:
        number = float(token.rstrip("fFdD"))
        if math.isinf(number):
            raise SelectorError(_place(token), "larger than a double can be")
        return Term(terms.constant(number), "number", _place(token))

    def string(self, token: Token) -> Term:
        return Term(terms.constant(_unquoted(token)), "string", _place(token))

    def true(self, token: Token) -> Term:
        return Term(terms.constant(True), "truth", _place(token))

    def false(self, token: Token) -> Term:
        return Term(terms.constant(False), "truth", _place(token))


def read_selector(text: str) -> Reader:
    """What says of a message whether it is wanted: True, False, or None where that is unknown."""
    try:
        term: Any = _parser().parse(text)
    except UnexpectedInput as error:
        raise _unexpected(error, text) from None
    except VisitError as error:
        if isinstance(error.orig_exc, SelectorError):
            raise error.orig_exc from None
        raise
    return _truth(term).read


@functools.cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer="basic", transformer=_Terms(), lexer_callbacks={"NAME": _keyword})


def _keyword(token: Token) -> Token:
    """Reserved words have no case."""
    kind = _KEYWORDS.get(token.upper())
    return token if kind is None else Token.new_borrow_pos(kind, token.value, token)


def _unexpected(error: UnexpectedInput, text: str) -> SelectorError:
    if isinstance(error, UnexpectedCharacters):
        return SelectorError(error.pos_in_stream or 0, f"unexpected {text[error.pos_in_stream or 0]!r}")
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        return SelectorError(_place(error.token), f"unexpected {str(error.token)[:20]!r}")
    assert isinstance(error, UnexpectedToken | UnexpectedEOF)
    return SelectorError(len(text), "it ends too early")


def _chain(parts: Sequence[Term], join: Callable[[list[Reader]], Reader]) -> Term:
    return _made(join([_truth(part).read for part in parts]), "truth", parts[0].at, *parts)


def _made(read: Reader, kind: Literal["truth", "number"], at: int, *parts: Term) -> Term:
    depth = 1 + max(part.depth for part in parts)
    if depth > TERMS_DEEP:
        raise SelectorError(at, f"more than {TERMS_DEEP} terms inside each other")
    return Term(read, kind, at, depth)


def _truth(term: Term) -> Term:
    if term.kind not in ("truth", "name"):
        raise SelectorError(term.at, f"a {term.kind} is neither true nor false")
    return term


def _number(term: Term) -> Term:
    if term.kind not in ("number", "name"):
        raise SelectorError(term.at, f"a {term.kind} is no number")
    return term


def _name(term: Term, word: str) -> Term:
    if term.kind != "name":
        raise SelectorError(term.at, f"{word} asks about a name")
    return term


def _unless(word: Any, read: Reader) -> Reader:
    return terms.negation(read) if isinstance(word, Token) and word.type == "NOT" else read


def _unquoted(token: Token) -> str:
    return token[1:-1].replace("''", "'")


def _place(token: Token) -> int:
    return token.start_pos or 0
