"""Every trap of YAML is refused with its line, and everything else reads as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from mappings.language.yaml_lines import Problem, load_document, parse_document, refuse_unknown_keys


@pytest.mark.parametrize(
    ("text", "line", "message", "remedy"),
    [
        ("a: 1\nb: 9.10\n", 2, "bare 9.10 is no whole number", 'write "9.10" in quotes'),
        ("a: 1e3\n", 1, "bare 1e3", "in quotes"),
        ("a: .5\n", 1, "bare .5", "in quotes"),
        ("a: 12:30\n", 1, "bare 12:30", "in quotes"),
        ("a: 0x1F\n", 1, "bare 0x1F", "in quotes"),
        ("a: 010\n", 1, "bare 010", "in quotes"),
        ("a: 1_000\n", 1, "bare 1_000", "in quotes"),
        ("a: +1\n", 1, "bare +1", "in quotes"),
        ("a: 2012-05-29\n", 1, "bare 2012-05-29", "in quotes"),
        ("a: .inf\n", 1, "bare .inf", "in quotes"),
        ("a: -.Inf\n", 1, "bare -.Inf", "in quotes"),
        ("a: .NaN\n", 1, "bare .NaN", "in quotes"),
        ("a:\n  - on\n", 2, "bare on is ambiguous", "write true"),
        ("a: No\n", 1, "bare No is ambiguous", "write false"),
        ("a: True\n", 1, "bare True is ambiguous", "write true"),
        ("a: NULL\n", 1, "bare NULL is ambiguous", "write null"),
        ("a:\n", 1, "no value is written here", "write null"),
        ("a: ~\n", 1, "no value is written here", "write null"),
        ("a: 1\nb: 2\na: 3\n", 3, "key a is written twice (first on line 1)", "keep one"),
        ("a: {b: 1, b: 2}\n", 1, "key b is written twice", "keep one"),
        ("1: a\n", 1, "key 1 is not a text", 'write "1" in quotes'),
        ("true: a\n", 1, "key true is not a text", 'write "true" in quotes'),
        ("off: a\n", 1, "bare off is ambiguous", '"off" in quotes'),
        ("{a: 1}: b\n", 1, "key a mapping is not a text", "write a word"),
        ("a: &x 1\n", 1, "anchor &x is not allowed", "remove it"),
        ("a: 1\nb: *x\n", 2, "alias *x is not allowed", "write the value out"),
        ("a: !!str 1\n", 1, "tag tag:yaml.org,2002:str is not allowed", "remove the tag"),
        ("a: !x {b: 1}\n", 1, "tag !x is not allowed", "remove the tag"),
        ("<<: {a: 1}\n", 1, "merge key << is not allowed", "write the keys out"),
        ("a: 1\n---\nb: 1\n", 2, "a second document begins here", "keep one"),
        ("a: [1\nb: 2\n", 2, "is not YAML", "mend the syntax"),
        ("a: \x01\n", 1, "is not YAML", "remove the characters"),
        ("", 1, "the file is empty", "write a mapping"),
        ("a: " + "[" * 60 + "]" * 60, 1, "more than 50 levels deep", "mend"),
    ],
)
def test_a_trap_is_refused_on_its_line(text: str, line: int, message: str, remedy: str) -> None:
    _, problems = parse_document(text, "bad.yaml")
    assert len(problems) == 1, problems
    assert problems[0].line == line
    assert message in problems[0].message
    assert remedy in problems[0].remedy
    assert str(problems[0]).startswith(f"bad.yaml:{line}: ")


def test_all_problems_of_a_file_are_reported_in_order() -> None:
    _, problems = parse_document("a: yes\nb: 9.10\na: 1\nc: [&x 1]\n", "bad.yaml")
    assert [problem.line for problem in problems] == [1, 2, 3, 4]


def test_values_read_as_written() -> None:
    text = 'a: "9.10"\nb: um-9.10\nc: -12\nd: [true, false, null]\ne: {f: none, h: 1.2.3-x}\ni: |\n  on\nj: 0\n'
    document, problems = parse_document(text, "good.yaml")
    assert problems == []
    value = document.root.value
    assert value["a"] == "9.10"
    assert value["b"] == "um-9.10"
    assert value["c"] == -12
    assert value["d"] == [True, False, None]
    assert value["e"]["f"] == "none"
    assert value["i"] == "on\n"
    assert value["j"] == 0


@pytest.mark.parametrize(
    "word", ["127.0.0.1:9092", "0.0.0.0:5672", "amqp://127.0.0.1:0", "3scale", "a.b", "-", "um-9.12", "1MB"]
)
def test_words_with_digits_are_words(word: str) -> None:
    document, problems = parse_document(f"a: {word}\n" if word != "-" else 'a: "-"\n', "good.yaml")
    assert problems == []
    assert document.root["a"].content == word


def test_nodes_know_lines_kinds_and_keys() -> None:
    document, problems = parse_document("a:\n  - p\n  - q\nb: {c: 1}\n", "good.yaml")
    root = document.root
    assert problems == []
    assert [item.line for item in root["a"].sequence()] == [2, 3]
    assert root.key_line("b") == 4
    assert [root[key].kind for key in ("a", "b")] == ["sequence", "mapping"]
    assert root["b"]["c"].kind == "integer"
    assert "c" in root["b"]
    assert root["a"].get("c") is None
    with pytest.raises(TypeError):
        root["a"].mapping()


def test_unknown_keys_come_with_the_likeliest_one() -> None:
    document, problems = parse_document("listen: []\nreallm: {}\n", "s.yaml")
    refuse_unknown_keys(document.root, ("listen", "realm"), problems)
    assert problems == [Problem("s.yaml", 2, "unknown key reallm", "write realm")]


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    document, problems = load_document(tmp_path / "none.yaml")
    assert "cannot be read" in problems[0].message
    assert document.root.value == {}
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: \xe9\n")
    assert "is not UTF-8" in load_document(latin)[1][0].message
