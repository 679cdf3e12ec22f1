"""Transformers by name: the shipped ones, and what users have installed, with what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.messages.plugins import install
from transformers import NativeEvent, TransformerError, event_transformer, user_names
from transformers.events import installed
from transformers.events.complete import Complete


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(
        tmp_path,
        shout="acme_code:Shout",
        mute="acme_code:Mute",
        late="acme_code:Late",
        lost="acme_code:Missing",
        gone="nowhere:Missing",
        basic="acme_code:Shout",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(installed, "_loaded", {})  # what another test has installed
    return tmp_path


def refusal(name: str) -> str:
    with pytest.raises(TransformerError) as raised:
        event_transformer(name)
    return str(raised.value)


def test_complete_needs_no_entry_point() -> None:
    assert isinstance(event_transformer("complete"), Complete)


def test_a_users_class_is_made_by_its_name(path: Path) -> None:
    made = event_transformer("shout").event(b"a message")
    assert made == NativeEvent(b"1;forged", (("whole", b"a message"),), b"LENGTH 9")
    assert user_names() == ["gone", "late", "lost", "mute", "shout"], "none can take the name of a shipped one"


def test_a_transformer_that_cannot_be_made_is_named_with_its_owner_and_a_remedy(path: Path) -> None:
    assert refusal("mute") == (
        "transformer 'mute' (acme_code:Mute, of distribution acme) has no method message; see EventTransformer"
    )
    assert refusal("late") == (
        "transformer 'late' (acme_code:Late, of distribution acme) cannot be made: ValueError: not today; mend it,"
        " or do not name it"
    )
    assert "of distribution acme) cannot be made: AttributeError" in refusal("lost")
    assert "cannot be made: ModuleNotFoundError: No module named 'nowhere'" in refusal("gone")


@pytest.mark.parametrize("name", ["basic", "none", "Shout", "no one", ""])
def test_an_unknown_name_is_reported_with_the_known_ones(path: Path, name: str) -> None:
    assert refusal(name).startswith(
        f"no transformer is called {name!r} (there are none, basic, complete, gone, late, lost, mute, shout); install"
    )


def test_a_name_of_two_distributions_is_refused(path: Path, tmp_path: Path) -> None:
    install(tmp_path, name="other", shout="acme_code:Shout")
    assert refusal("shout") == (
        "transformer 'shout' comes from distribution acme and distribution other; remove one of them"
    )


def test_what_is_loaded_is_not_looked_up_again(path: Path, tmp_path: Path) -> None:
    """Looking up reads what is installed, which takes milliseconds, and links attach on the loop; who checks tables
    looks anew."""
    event_transformer("shout")
    assert installed.is_loaded("shout") and installed.is_loaded("basic") and not installed.is_loaded("mute")
    install(tmp_path, name="other", shout="acme_code:Shout")
    event_transformer("shout")
    assert installed.complaint_about("shout") == (
        "transformer 'shout' comes from distribution acme and distribution other",
        "remove one of them",
    )
    assert installed.complaint_about("complete") is None
