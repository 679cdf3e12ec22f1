"""Table files -> rules. Everything that one rule can have wrong by itself is found here, all of it, with its line:
unknown keys and words, a `then` that is incomplete or unlawful, a source that nobody could look up.

How rules fit together (gaps, clashes) is the business of `mappings.check`.

A file:

    table: settle
    hit_policy: unique
    axes: {state: [...], ...}                 # the vocabulary's, spelt out for the reader
    impossible: [{when: {...}, because: ...}]
    profiles:
      um-9.12: {rules: [{id, when, then, because, source}]}
      extended: {extends: um-9.12, without: [id, ...], rules: [...]}

May import: the standard library, `mappings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mappings.boxes import Box
from mappings.citations import CITATIONS
from mappings.rules import Impossible, Profile, Rule, TableRules
from mappings.vocabulary import HIT_POLICY, PROFILES, TABLES, Law, TableWords, Value, Word
from mappings.yaml_lines import Kind, Node, Problem, load_document, refuse_unknown_keys, suggest

_RULE_KEYS = ("id", "when", "then", "because", "source")
_RULE_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def load_directory(directory: Path) -> tuple[dict[str, TableRules], list[Problem]]:
    """Every table of `directory` (one file per table, `NAME.yaml`), in the vocabulary's order."""
    problems: list[Problem] = []
    tables: dict[str, TableRules] = {}
    if not directory.is_dir():
        return {}, [Problem(str(directory), 1, "is no directory", "name a directory that holds the table files")]
    problems.extend(
        Problem(str(path), 1, f"there is no table {path.stem}", suggest(path.stem, TABLES))
        for path in sorted(directory.glob("*.yaml"))
        if path.stem not in TABLES
    )
    for name, words in TABLES.items():
        path = directory / f"{name}.yaml"
        if not path.is_file():
            problems.append(Problem(str(path), 1, f"the file of table {name} is missing", "write it"))
        elif (table := load_table(path, words, problems)) is not None:
            tables[name] = table
    return tables, problems


def load_table(path: Path, words: TableWords, problems: list[Problem]) -> TableRules | None:
    """One table file; None when it has problems (they are appended)."""
    document, found = load_document(path)
    if not found:
        reader = _TableReader(words, str(path), found)
        table = reader.read(document.root)
    problems.extend(found)
    return None if found else table


class _TableReader:
    """Reads one file, appending to `problems`; what it returns is of use only when it appended none."""

    def __init__(self, words: TableWords, file: str, problems: list[Problem]) -> None:
        self.words = words
        self.file = file
        self.problems = problems

    def read(self, root: Node) -> TableRules | None:
        fields = self._fields(root, ("table", "hit_policy", "axes", "impossible", "profiles"), ("impossible",))
        if fields is None:
            return None
        self._exactly(fields.get("table"), self.words.name)
        self._exactly(fields.get("hit_policy"), HIT_POLICY)
        if (axes := fields.get("axes")) is not None:
            self._axes(axes)
        impossible = [self._impossible(node) for node in self._items(fields.get("impossible"))]
        profiles = fields.get("profiles")
        if profiles is None:
            return None
        return TableRules(
            self.words,
            self.file,
            tuple(item for item in impossible if item is not None),
            self._profiles(profiles),
        )

    # -- the parts of a table

    def _axes(self, node: Node) -> None:
        if not self._is(node, "mapping"):
            return
        refuse_unknown_keys(node, self.words.axes, self.problems)
        for axis, values in self.words.axes.items():
            written = node.get(axis)
            if written is None:
                self._refuse(node, f"axis {axis} is missing", f"write {axis}: {_listed(values)}")
            elif written.value != list(values):
                self._refuse(written, f"axis {axis} has other values", f"write {axis}: {_listed(values)}")
        if not self.problems and list(node.mapping()) != list(self.words.axes):
            self._refuse(node, "the axes are in another order", f"write them as {_listed(self.words.axes)}")

    def _impossible(self, node: Node) -> Impossible | None:
        fields = self._fields(node, ("when", "because"))
        if fields is None or len(fields) < 2:
            return None
        because = self._text(fields["because"])
        return Impossible(self._box(fields["when"]), because, node.line)

    def _profiles(self, node: Node) -> dict[str, Profile]:
        if not self._is(node, "mapping"):
            return {}
        refuse_unknown_keys(node, PROFILES, self.problems)
        profiles: dict[str, Profile] = {}
        for name in PROFILES:  # a profile extends one that comes before it in this order, so there are no circles
            written = node.get(name)
            if written is None:
                self._refuse(node, f"profile {name} is missing", f"write {name}: {{rules: [...]}}")
                continue
            profile = self._profile(name, written, profiles)
            if profile is not None:
                profiles[name] = profile
        return profiles

    def _profile(self, name: str, node: Node, earlier: Mapping[str, Profile]) -> Profile | None:
        fields = self._fields(node, ("extends", "without", "rules"), ("extends", "without"))
        if fields is None:
            return None
        inherited = self._inherited(fields, earlier)
        rules = {rule.id: rule for rule in inherited}
        for item in self._items(fields.get("rules")):
            rule = self._rule(item)
            if rule is None:
                continue
            if rule.id in rules:
                first = rules[rule.id]
                remedy = "name it under without" if first in inherited else "give one of them another id"
                self._refuse(item, f"rule {rule.id} is there already ({first.place})", remedy)
                continue
            rules[rule.id] = rule
        return Profile(name, tuple(rules.values()), node.line)

    def _inherited(self, fields: Mapping[str, Node], earlier: Mapping[str, Profile]) -> list[Rule]:
        extends, without = fields.get("extends"), fields.get("without")
        if extends is None:
            if without is not None:
                self._refuse(without, "without needs a profile to take rules from", "write extends: PROFILE")
            return []
        name = self._text(extends)
        if name not in earlier:
            self._refuse(extends, f"there is no profile {name} before this one", suggest(name, list(earlier)))
            return []
        rules = {rule.id: rule for rule in earlier[name].rules}
        for item in self._items(without):
            rule_id = self._text(item)
            if rules.pop(rule_id, None) is None:
                self._refuse(item, f"{name} has no rule {rule_id}", suggest(rule_id, list(rules)))
        return list(rules.values())

    # -- rules

    def _rule(self, node: Node) -> Rule | None:
        count = len(self.problems)
        fields = self._fields(node, _RULE_KEYS)
        if fields is None or len(fields) < len(_RULE_KEYS):
            return None
        rule_id = self._text(fields["id"])
        if not _RULE_ID.fullmatch(rule_id):
            self._refuse(fields["id"], f"rule id {rule_id} is not made of words", "write lower-case-words-like-this")
        box = self._box(fields["when"])
        then = self._then(fields["then"])
        because = self._text(fields["because"])
        sources = self._sources(fields["source"])
        if len(self.problems) > count:
            return None
        rule = Rule(rule_id, box, then, because, sources, self.file, node.line)
        for law in self.words.laws:
            self._obey(law, rule, fields["then"], fields["when"])
        return rule

    def _box(self, node: Node) -> Box:
        masks = {axis: (1 << len(values)) - 1 for axis, values in self.words.axes.items()}
        if not self._is(node, "mapping"):
            return tuple(masks.values())
        refuse_unknown_keys(node, self.words.axes, self.problems)
        for axis, written in node.items():
            if axis in masks:
                masks[axis] = self._mask(axis, written) or masks[axis]
        return tuple(masks.values())

    def _mask(self, axis: str, node: Node) -> int:
        values = self.words.axes[axis]
        mask = 0
        for item in node.sequence() if node.is_sequence else [node]:
            word = item.content
            if not isinstance(word, str) or word not in values:
                self._refuse(item, f"{axis} has no value {_written(item)}", suggest(_written(item), values))
            elif mask >> values.index(word) & 1:
                self._refuse(item, f"{axis} names {word} twice", "keep one")
            else:
                mask |= 1 << values.index(word)
        if node.is_sequence and not node.sequence():
            self._refuse(node, f"{axis} names no value", "leave the axis out to mean any")
        return mask

    def _then(self, node: Node) -> dict[str, Value]:
        if not self._is(node, "mapping"):
            return {}
        refuse_unknown_keys(node, self.words.then, self.problems)
        then: dict[str, Value] = {}
        for key, word in self.words.then.items():
            written = node.get(key)
            if written is not None:
                then[key] = self._word(key, word, written)
            elif word.required:
                self._refuse(node, f"then does not say {key}", f"write {key}: {_choices(word)}")
            else:
                then[key] = word.default[0]
        return then

    def _word(self, key: str, word: Word, node: Node) -> Value:
        content: Value = node.content if node.kind in ("text", "boolean", "null") else None
        if node.kind not in ("text", "boolean", "null") or not _contains(word.values, content):
            remedy = f"write {_choices(word)}"
            self._refuse(node, f"{key} cannot be {_written(node)}", remedy)
        return content

    def _sources(self, node: Node) -> tuple[str, ...]:
        sources = tuple(part.strip() for part in self._text(node).split(","))
        for source in sources:
            if source not in CITATIONS:
                self._refuse(node, f"there is no source {source}", suggest(source, _near(source)))
        return sources

    def _obey(self, law: Law, rule: Rule, then: Node, when: Node) -> None:
        if not all(_contains(values, rule.then[key]) for key, values in law.given.items()):
            return
        for key, values in law.then.items():
            if not _contains(values, rule.then[key]):
                remedy = f"write {key}: {_choices(Word(values))}" if values != (None,) else f"leave {key} out"
                self._refuse(then.get(key) or then, f"{law.says}: {key} is {_shown(rule.then[key])}", remedy)
        for at, (axis, known) in enumerate(self.words.axes.items()):
            allowed = law.facts.get(axis, known)
            if any(rule.box[at] >> bit & 1 for bit, value in enumerate(known) if value not in allowed):
                remedy = f"write {axis}: {_listed(allowed)} or less"
                self._refuse(when.get(axis) or when, f"{law.says}: {axis} may be something else", remedy)

    # -- plain shapes

    def _fields(self, node: Node, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Node] | None:
        """The fields of a mapping that are known; missing and unknown ones are problems. None when it is no mapping."""
        if not self._is(node, "mapping"):
            return None
        refuse_unknown_keys(node, keys, self.problems)
        for key in keys:
            if key not in node and key not in optional:
                self._refuse(node, f"{key} is missing", f"write {key}: ...")
        return {key: value for key, value in node.items() if key in keys}

    def _items(self, node: Node | None) -> list[Node]:
        if node is None or not self._is(node, "sequence"):
            return []
        return node.sequence()

    def _text(self, node: Node) -> str:
        if not self._is(node, "text"):
            return ""
        text = str(node.content).strip()
        if not text:
            self._refuse(node, "the text is empty", "write words")
        return text

    def _exactly(self, node: Node | None, text: str) -> None:
        if node is not None and node.content != text:
            self._refuse(node, f"{_written(node)} is not {text}", f"write {text}")

    def _is(self, node: Node, kind: Kind) -> bool:
        if node.kind != kind:
            self._refuse(node, f"a {kind} belongs here, not a {node.kind}", f"write a {kind}")
        return node.kind == kind

    def _refuse(self, node: Node, message: str, remedy: str) -> None:
        self.problems.append(node.problem(message, remedy))


def _contains(values: Iterable[Value], value: Value) -> bool:
    """`in`, but False is not 0 and "none" is not None."""
    return any(value is other or (isinstance(value, str) and value == other) for other in values)


def _shown(value: Value) -> str:
    return {None: "null", True: "true", False: "false"}.get(value, str(value)) if not isinstance(value, str) else value


def _choices(word: Word) -> str:
    return " or ".join(_shown(value) for value in word.values if value is not None)


def _written(node: Node) -> str:
    return _shown(node.content) if node.kind in ("text", "boolean", "null", "integer") else f"a {node.kind}"


def _listed(values: Iterable[str]) -> str:
    return f"[{', '.join(values)}]"


def _near(source: str) -> list[str]:
    """Ids of the same family as a source that does not exist."""
    family = re.split(r"[-0-9]*$", source)[0] or source
    near = sorted(known for known in CITATIONS if known.startswith(family))
    return near or ["S-A1", "2.H-7", "1.3-A", "3.6"]
