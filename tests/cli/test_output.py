"""What commands print fits a terminal: it is wrapped at words, and programs that read it get whole lines."""

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from discreet.cli import output

LONG = "  Averaging attack: 489 cells, 170 expected to be recovered exactly, 138 of them published unchanged in /a-b/c"


def said(monkeypatch: pytest.MonkeyPatch, text: str, is_terminal: bool, width: int = 80) -> list[str]:
    place = StringIO()
    shown = Console(file=place, force_terminal=is_terminal, width=width, emoji=False)
    monkeypatch.setattr(output, "console", lambda: shown)
    output.say(text)
    return place.getvalue().splitlines()


def test_a_terminal_gets_lines_wrapped_at_words(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = said(monkeypatch, LONG, True)
    assert len(lines) == 2
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("    ")
    assert " ".join(" ".join(lines).split()) == LONG.strip()


def test_a_file_gets_whole_lines_and_what_fits_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, LONG, False) == [LONG]
    assert said(monkeypatch, f"a   table\n{'x' * 90} 1", True) == ["a   table", "x" * 90, "  1"]


def test_no_command_prints_sentences_past_the_edge() -> None:
    """What is printed without ``say`` is for programs: JSON, a token, the version; or there is no memory for more."""
    for path in Path(output.__file__).parent.glob("*.py"):
        for line in path.read_text().splitlines():
            plain = re.search(r"typer\.echo\((.*)", line)
            short = '"Not enough memory; give Discreet more of it, or use fewer --threads."'
            allowed = ("json", "token)", "f\"discreet {metadata.version('discreet')}", short)
            assert plain is None or plain[1].startswith(allowed), f"{path.name}: {line}"


def test_names_between_colons_are_no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, "GEO:100: 3 counts", False) == ["GEO:100: 3 counts"]
    monkeypatch.undo()
    assert output.console()._emoji is False


def test_verdicts_have_colours_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal, start in ((True, "\x1b[1;32mPassed\x1b[0m: gates"), (False, "Passed: gates")):
        place = StringIO()
        shown = Console(file=place, force_terminal=is_terminal, width=80, color_system="standard")
        monkeypatch.setattr(output, "console", lambda shown=shown: shown)
        output.say_finding(f"Passed: gates.true_uniques: {LONG.strip()}")
        assert place.getvalue().startswith(start)
        assert (place.getvalue().count("\n") > 1) == is_terminal
