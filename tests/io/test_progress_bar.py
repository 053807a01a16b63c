"""Progress in a notebook: one place that shows the stage and is empty again, also after an error."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from discreet.io import progress_bar
from discreet.io.progress import Quiet


class Place:
    """What a notebook shows in one place, in order."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, content: dict[str, str], raw: bool) -> None:
        assert raw
        self.shown.append(content["text/html"])


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    """A notebook of which only the display is there."""
    found, module = Place(), ModuleType("IPython.display")

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Place:
        assert content["text/html"] == ""
        assert raw
        assert display_id
        return found

    module.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)

    def notebook(**given: Any) -> Console:
        return Console(force_jupyter=True, **given)

    monkeypatch.setattr(progress_bar, "console", SimpleNamespace(Console=notebook))
    return found


def test_stages_and_steps_are_shown_and_leave_nothing_behind(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_bar, "_REDRAWN", 0.0)
    with progress_bar.shown_progress(hidden=False) as listener:
        listener.stage("counting <persons>", 2000)
        listener.step(500)
        listener.stage("writing")
    assert place.shown == [
        '<progress value="0" max="2000"></progress> counting &lt;persons&gt; 0 of 2,000',
        '<progress value="500" max="2000"></progress> counting &lt;persons&gt; 500 of 2,000',
        "<progress></progress> writing",
        "",
    ]


def test_steps_are_not_drawn_more_often_than_can_be_seen(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_bar, "_REDRAWN", 1e6)
    with progress_bar.shown_progress(hidden=False) as listener:
        listener.stage("counting", 10)
        for _ in range(10):
            listener.step()
    assert len(place.shown) == 2


def test_an_error_leaves_nothing_behind(place: Place) -> None:
    def stopped() -> None:
        with progress_bar.shown_progress(hidden=False) as listener:
            listener.stage("counting")
            raise ValueError("stopped")

    with pytest.raises(ValueError, match="stopped"):
        stopped()
    assert place.shown[-1] == ""


def test_nothing_is_shown_where_it_is_hidden(place: Place) -> None:
    with progress_bar.shown_progress(hidden=True) as listener:
        assert isinstance(listener, Quiet)
    assert place.shown == []
