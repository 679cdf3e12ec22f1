"""Tables with a class of nodes and rules of its own for it, made from shipped ones."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml


def classify(directory: Path, *names: str, node_class: str = "bulk") -> None:
    """Nodes of these names are of a class of their own."""
    rule = {"id": node_class, "names": list(names), "node_class": node_class, "because": "They are.", "source": "3.6"}
    document = {"table": "classify", "node_classes": ["default", node_class], "rules": [rule]}
    write(directory, "classify", document)


def override(directory: Path, table: str, rule: str, node_class: str = "bulk", **then: Any) -> None:
    """`rule` holds for other nodes; for those of the class, `then` says something else. Its name is RULE-CLASS."""
    document = yaml.safe_load((directory / "tables" / f"{table}.yaml").read_text(encoding="utf-8"))
    document["axes"] = {"node_class": ["default", node_class], **document["axes"]}
    count = 0
    for profile in document["profiles"].values():
        for written in list(profile["rules"]):
            if written["id"] == rule:
                count += 1
                other = deepcopy({**written, "id": f"{rule}-{node_class}", "then": {**written["then"], **then}})
                other["when"] = {"node_class": node_class, **other["when"]}
                written["when"] = {"node_class": "default", **written["when"]}
                profile["rules"].append(other)
    assert count == 1, f"{count} rules {rule} in {table}"
    write(directory, table, document)


def write(directory: Path, table: str, document: dict[str, Any]) -> None:
    (directory / "tables" / f"{table}.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
