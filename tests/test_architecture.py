"""What holds of the whole tree: who imports whom, no print, the public names, the commands, no private places."""

import ast
import importlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import discreet
from discreet.cli.app import COMMANDS, app

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"
ORDER = [
    "errors",
    "text",
    "maths",
    "programme",
    "io",
    "population",
    "synth",
    "swap",
    "tabulate",
    "perturb",
    "hierarchy",
    "formats",
    "release",
    "run",
    "audit",
    "inference",
    "advise",
    "page",
    "report",
    "pipeline",
    "serve",
    "cli",
]
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem == "errors")


def package(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(module: ast.Module) -> Iterator[str]:
    """The packages of discreet that a module imports, wherever the import stands."""
    for node in ast.walk(module):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("discreet."))


def test_every_package_has_its_place_in_the_order() -> None:
    assert {package(path) for path in MODULES} <= set(ORDER)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_the_left(path: Path) -> None:
    allowed = ORDER[: ORDER.index(package(path)) + 1]
    assert set(imported(tree(path))) <= set(allowed)


def test_mathematics_neither_reads_nor_logs() -> None:
    for path in (SOURCE / "maths").glob("*.py"):
        names = {
            alias.name
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not names & {"os", "pathlib", "logging", "pyarrow", "duckdb", "tomllib", "random"}, path.name
        assert not any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
            for node in ast.walk(tree(path))
        ), path.name


def test_nothing_prints_and_every_module_says_what_it_owns() -> None:
    for path in SOURCE.rglob("*.py"):
        module = tree(path)
        assert ast.get_docstring(module), path
        for node in ast.walk(module):
            called = node.func if isinstance(node, ast.Call) else None
            assert not (
                isinstance(called, ast.Name) and called.id in ("print", "breakpoint", "eval", "exec")
            ), path


def test_sql_stands_in_the_engine_alone() -> None:
    statement = re.compile(r"\b(SELECT|INSERT|DELETE|UPDATE)\b.*\b(FROM|INTO|SET)\b")
    for path in MODULES:
        if package(path) == "io" or path.stem == "draft":  # a drafted programme shows a query
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.JoinedStr):  # a plain text may tell a user how to write one
                text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
                assert not statement.search(text), path


def test_the_public_names_are_these() -> None:
    assert sorted(discreet.__all__) == [
        "DiscreetError",
        "Mistakes",
        "PTable",
        "PTableParameters",
        "Problem",
        "Programme",
        "Protected",
        "ProtectedTable",
        "Release",
        "Verification",
        "check_data",
        "generate",
        "load_programme",
        "make_secret",
        "open_release",
        "protect",
        "read_secret",
        "solve",
        "verify",
    ]
    for name in discreet.__all__:
        assert getattr(discreet, name).__name__ == name
    assert dir(discreet) == discreet.__all__
    with pytest.raises(AttributeError, match="has no 'nothing'; it has DiscreetError"):
        _ = discreet.nothing


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_called_and_is_documented(name: str) -> None:
    importlib.import_module(f"discreet.cli.{name}")
    command = get_command(app).get_command(None, name)  # type: ignore[attr-defined]
    assert command is not None
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"discreet {name}" in page.read_text(encoding="utf-8") for page in pages)


def commands_below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and all its sub-commands with their full names."""
    yield name, command
    for below, one in getattr(command, "commands", {}).items():
        yield from commands_below(f"{name} {below}", one)


def test_every_option_is_documented_and_has_a_help_text() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    for first in COMMANDS:
        found = get_command(app).get_command(None, first)  # type: ignore[attr-defined]
        for name, command in commands_below(first, found):
            for parameter in command.params:
                assert parameter.help, f"discreet {name} {parameter.name}"
                for option in parameter.opts:
                    if option.startswith("--") and option != "--help":
                        assert option in text, f"discreet {name} {option}"


def tracked() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git working tree")
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in told.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_tracked_file_names_a_place_of_one_machine_or_a_registry() -> None:
    places = [f"/{top}/" for top in ("work", "home", "root", "Users", "tmp/venv")]
    private = re.compile(
        "|".join([*(rf"(?<![\w.]){place}" for place in places), "://[^ ]*/simple\\b", "-index-" + "url"])
    )
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found = private.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found and found[0]}"
