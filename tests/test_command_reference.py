"""The command reference: every option of every command stands under that command's heading, and the page is current."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from discreet.cli.app import COMMANDS, app

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "reference" / "commands.md"


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A command and everything below it; a group is told by the commands that it holds."""
    yield path, command
    below = {**getattr(command, "commands", {})} or dict.fromkeys(COMMANDS if path == "discreet" else ())
    for name in below:
        yield from commands(command.get_command(None, name), f"{path} {name}")


def sections(page: str) -> dict[str, str]:
    """What stands under each heading, up to the next heading of any depth."""
    parts = re.split(r"^#+ (.+)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


ALL = dict(commands(get_command(app), "discreet"))


def missing(page: str) -> list[str]:
    """Commands that have no heading, and names of parameters that no row below their command's heading holds."""
    found = []
    told = sections(page)
    for path, command in ALL.items():
        if path not in told:
            found.append(path)
            continue
        rows = "".join(line.split("|")[1] for line in told[path].splitlines() if line.startswith("| `"))
        names = [name for one in command.params for name in (*one.opts, *one.secondary_opts)]
        found += [f"{path} {name}" for name in names if f"`{name}`" not in rows]
    return found


def test_the_walk_reaches_the_commands_below_the_groups() -> None:
    assert {"discreet", "discreet verify", "discreet risk bayes", "discreet ledger account"} <= set(ALL)
    assert len(ALL) > 40
    assert sum(len(command.params) for command in ALL.values()) > 400


def test_every_option_is_documented_under_its_command() -> None:
    assert missing(PAGE.read_text(encoding="utf-8")) == []


def test_an_option_documented_elsewhere_only_is_missed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = sections(page)["discreet risk bound"]
    row = next(line for line in section.splitlines() if line.startswith("| `--tuples`"))
    assert missing(page.replace(section, section.replace(row, "")) + row) == ["discreet risk bound --tuples"]
    renamed = page.replace("### discreet token list\n", "### discreet token lists\n")
    assert missing(renamed) == ["discreet token list"]


@pytest.mark.parametrize("path", ALL)
def test_every_command_and_option_has_a_help_text(path: str) -> None:
    command = ALL[path]
    assert command.help
    assert command.help.strip()
    assert [one.opts for one in command.params if not (one.help or "").strip()] == []


def test_the_page_is_what_the_script_writes() -> None:
    written = runpy.run_path(str(DOCS / "command_reference.py"))["reference"]()
    assert PAGE.read_text(encoding="utf-8") == written, "run make docs-reference"


KINDS_OF_FILES = {"discreet release", "discreet signature", "discreet release manifest"}  # not commands
IN_PROSE = re.compile(r"`(discreet [a-zA-Z][^`]*)`")


def unknown(text: str) -> list[str]:
    """What commands in running text have that the program does not know: a command, or an option of it."""
    found = []
    for shown in IN_PROSE.findall(text.replace("\\|", "|").replace("\n", " ")):
        if shown in KINDS_OF_FILES or " COMMAND " in shown:
            continue
        first, *words = shown.split()
        for path in (f"{first} {name}" for name in words[0].split("|")):
            for word in words[1:]:  # of several commands below it, the first
                path = below if (below := f"{path} {word.partition('|')[0]}") in ALL else path
            if path not in ALL:
                found.append(shown)
                continue
            known = {name for one in ALL[path].params for name in one.opts}
            options = re.findall(r"(?<![\w-])--[a-zA-Z-]+", shown)
            found += [f"{shown}: {option}" for option in options if option not in known]
    return found


PAGES = [DOCS.parent / "README.md", DOCS.parent / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS.parent).as_posix())
def test_commands_in_running_text_exist_with_their_options(page: Path) -> None:
    assert unknown(page.read_text(encoding="utf-8")) == []


def test_a_command_or_an_option_that_does_not_exist_is_found() -> None:
    assert (
        unknown("Run `discreet protect P --secret S`, `discreet risk bayes count --rho 1 --prior 0.5`.") == []
    )
    assert (
        len(unknown("`discreet infer --release R` `discreet protext P` `discreet check P --sceret S`")) == 3
    )
