"""docs/realm-interface.md says what the source says; mypy compares `Realm` with `NativeRealm` where one opens the
other."""

from __future__ import annotations

import pytest

from tests.kit.realm.interface_page import CLASSES, PAGE, ROOT, page, section


def test_the_page_is_the_interface() -> None:
    assert PAGE.read_text() == page(), "write it again: .venv/bin/python -m tests.kit.realm.interface_page"


@pytest.mark.parametrize("name", CLASSES)
def test_another_member_is_another_page(name: str) -> None:
    source = (ROOT / CLASSES[name]).read_text()
    before = section(name, source, CLASSES[name])
    head = source.index('"""', source.index(f"class {name}"))
    end = source.index('"""', head + 3) + 3
    later = f'{source[:end]}\n    planted: int\n    """New."""\n{source[end:]}'
    assert section(name, later, CLASSES[name]) == before.replace("\n\n* ", "\n\n* `planted: int`: New.\n* ", 1)
    with pytest.raises(ValueError, match="planted: int: it needs a text"):
        section(name, f"{source[:end]}\n    planted: int\n{source[end:]}", CLASSES[name])
