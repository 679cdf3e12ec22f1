"""The page of a thousand nodes in Chromium, wide and narrow, light and dark: nothing is wider than the window, folded
or not; axe finds nothing. Pictures: `.cache/reconciliation/shots`."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciliation.report import page
from tests.kit.chromium import drive, shots
from tests.reconciliation.report.made import Made
from tests.reconciliation.report.thousand import thousand


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pages")
    (directory / "reconciliation.html").write_text(page.render(thousand(directory)))
    (directory / "clean.html").write_text(page.render(Made(nodes=40, quiet=10).result()))
    return directory


@pytest.mark.parametrize(("scheme", "ground"), [("light", "rgb(246, 247, 249)"), ("dark", "rgb(16, 20, 26)")])
def test_it_fits_and_says_first_what_is_wrong(directory: Path, scheme: str, ground: str) -> None:
    paths = ("/reconciliation.html", "/clean.html")
    views = drive("look", directory.as_uri(), str(shots("reconciliation")), scheme, *paths)
    assert len(views) == 4
    for view in views:
        where = f"{view['path']} at {view['width']}"
        assert not view["violations"], f"{where}: {view['violations']}"
        assert view["overflow"] <= 0 and not view["wide"] and not view["errors"], f"{where}: {view}"
        assert view["ground"] == ground
        tops = view["tops"]
        assert [*tops] == sorted(tops, key=lambda name: tops[name]) and next(iter(tops)) == "What is wrong"
        if view["width"] == 1440:
            assert tops["What is wrong"] < 600, "it is there before anything is scrolled"
