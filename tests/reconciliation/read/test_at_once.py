"""Two reconciliations that continue from the same state at the same time: the first to end is right, and the other one
says that it is not. Where one was killed, another one lands while the first judges, or ends, is chosen here, not met by
chance."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciliation.cli import judging
from reconciliation.jobs.reconcile import judge
from reconciliation.model.errors import SetupError
from reconciliation.model.folder import LocalFolder
from reconciliation.model.settings import SettingsError
from reconciliation.read import increments
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.days import Days, said
from tests.reconciliation.realms import Place

CONTINUED = r"has continued from .* meanwhile: run again"


@pytest.fixture
def unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Days:
    """Without Spark: a snapshot is landed without it, and of what it holds nothing is asked."""
    monkeypatch.setattr(increments, "first_and_last", lambda *_: {})
    return Days(tmp_path, None, None)


def files(days: Days, increment: increments.Increment) -> dict[str, int]:
    """Of its link, with their sizes."""
    link = days.state / "links" / f"link={increment.link}"
    return {str(file.relative_to(link)): file.stat().st_size for file in link.rglob("*") if file.is_file()}


def test_what_one_has_landed_stays_while_another_one_lands(unseen: Days) -> None:
    """Also where there is nothing new, so that both land the same."""
    unseen.add(1)
    unseen.landed().keep()
    unseen.add(1)
    increment = unseen.landed()
    there = files(unseen, increment)
    assert {Path(name).parent.name for name in there} > {"kind=outcomes", "kind=journal", "kind=events"}
    other = unseen.landed()
    assert files(unseen, increment) == there == files(unseen, other)
    increment.check()
    increment.keep()
    assert unseen.kept()[0] == "state-000002.json"


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_at_once_the_first_to_end_is_right(unseen: Days, is_first: bool) -> None:
    unseen.add(1)
    if not is_first:
        unseen.landed().keep()
    increment, other = unseen.landed(), unseen.landed()
    other.keep()
    kept, links = unseen.kept(), unseen.links()
    assert other.link in links and increment.link not in links
    for step in (increment.check, increment.keep):
        with pytest.raises(SetupError, match=CONTINUED):
            step()
    assert (unseen.kept(), unseen.links()) == (kept, links)


def test_of_two_that_end_at_once_one_is_right(unseen: Days, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last look of one and its state the other one writes its own."""
    unseen.add(1)
    increment, other = unseen.landed(), unseen.landed()
    create = LocalFolder.create

    def late(folder: LocalFolder, name: str, content: bytes) -> bool:
        monkeypatch.setattr(LocalFolder, "create", create)
        other.keep()
        return folder.create(name, content)

    monkeypatch.setattr(LocalFolder, "create", late)
    with pytest.raises(SetupError, match=CONTINUED):
        increment.keep()
    assert other.link in unseen.links()
    assert f'"{other.link}"' in unseen.kept()[1].decode()


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_one_that_is_killed_while_it_ends_has_judged_nothing(
    unseen: Days, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    unseen.add(1)
    unseen.landed().keep()
    before = unseen.kept()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    increment = unseen.landed()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, step, killed)
        increment.keep()
    assert unseen.kept() == before
    (unseen.state / ".state-000002.json.0").write_bytes(b"{")  # kill -9 leaves it
    later = unseen.landed()
    later.keep()
    assert later.link in unseen.links() and increment.link not in unseen.links()
    assert {file.name for file in unseen.state.iterdir()} == {"links", "state-000002.json"}


def test_what_cannot_be_continued_is_not_judged_behind_another_one(unseen: Days) -> None:
    """What it has landed as a whole is removed, too."""
    unseen.add(1)
    increment = unseen.landed()
    Place(unseen.realm).drop("um.outcomes")
    whole = unseen.landed()
    assert whole.after is None and whole.landed.chain is None
    whole.check()
    increment.keep()
    with pytest.raises(SetupError, match=CONTINUED):
        whole.check()
    later = unseen.landed()
    later.keep()
    assert unseen.links() == {increment.link}


def test_a_link_that_is_gone_is_named(unseen: Days) -> None:
    unseen.add(1)
    increment = unseen.landed()
    increment.keep()
    shutil.rmtree(unseen.state / "links" / f"link={increment.link}")
    with pytest.raises(SettingsError, match=f"has no links/link={increment.link} any more, which its state names"):
        unseen.landed()


def test_only_what_is_its_own_is_removed_from_a_state(unseen: Days) -> None:
    unseen.add(1)
    (unseen.state / "links" / "mine").mkdir(parents=True)
    (unseen.state / "state-of-things.json").write_text("mine")
    unseen.landed().keep()
    assert (unseen.state / "links" / "mine").exists() and (unseen.state / "state-of-things.json").exists()


@pytest.mark.parametrize("ends", [False, True])
def test_another_one_that_runs_while_one_judges(
    tmp_path: Path, reconcile: Reconcile, session: Any, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    """It has landed by then, and is killed; or it ends."""
    days = Days(tmp_path, reconcile, session)
    days.add(1)
    others: list[Any] = []

    def interrupted(*arguments: Any) -> Any:
        monkeypatch.setattr(judging, "judge", judge)
        days.add(1)
        others.append(days.judged() if ends else days.landed())
        return judge(*arguments)

    monkeypatch.setattr(judging, "judge", interrupted)
    attempt: Callable[[], Any] = lambda: days.judged(out=tmp_path / "out")  # noqa: E731
    if ends:
        with pytest.raises(SetupError, match=CONTINUED):
            attempt()
        left = {file.name for file in (tmp_path / "out").iterdir()}
        assert not left & {"manifest.json", "summary.txt", "index.html", "report"}
    else:
        assert attempt().code == 0
    later = days.judged()
    assert "reconciliation number 2 of this state" in later.text
    assert said(later) == said(reconcile(days.realm))
