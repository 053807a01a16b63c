"""Write ``reference/commands.md``: every command with its usage, arguments and options, as the program declares them.

``make docs-reference`` runs it; a test fails when the page differs from what this script writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from discreet.cli.app import app

PAGE = Path(__file__).parent / "reference" / "commands.md"
INTRODUCTION = """\
# Command reference

Every command with its usage, arguments and options, as `--help` shows them. `make docs-reference` writes this page from
the program. [The commands](overview.md) shows what they are for, and the exit codes.
"""


def commands(command: Any, name: str = "discreet", parent: Any = None) -> Iterator[tuple[str, Any, Any]]:
    """Path, command and context of a command and of everything below it, in the order of its help."""
    context = typer.Context(command, info_name=name, parent=parent)
    yield context.command_path, command, context
    if hasattr(command, "list_commands"):
        for below in command.list_commands(context):
            yield from commands(command.get_command(context, below), below, context)


def _text(text: str) -> str:
    """Prose on one line; a bar would end a cell of a table, an angle bracket open a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _values(parameter: Any, context: Any) -> str:
    """What a parameter takes: nothing, a type with its limits, or one of several values."""
    if getattr(parameter, "is_flag", False):
        return ""
    kind = parameter.type_descriptor
    shown = re.sub(r"^list\[(.*)]$", r"\1", parameter.display_type(context).strip("<>"))
    shown = (
        " ".join(_code(value) for value in shown.split("|")) if kind.is_choice else shown.replace("|", "\\|")
    )
    limits = [
        *([f"at least {parameter.min}"] if parameter.min is not None else []),
        *([f"at most {parameter.max}"] if parameter.max is not None else []),
    ]
    return ", ".join([shown, *limits, *(["repeatable"] if kind.is_list else [])])


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.required:
        return "required"
    if getattr(parameter, "is_flag", False) and not parameter.secondary_opts:
        return ""
    if value is None or value in ("", (), []):
        return ""
    if callable(value):
        return "computed"
    values = value if isinstance(value, list | tuple) else [value]
    return _code(" ".join(str(one.value if isinstance(one, Enum) else one) for one in values))


def _table(title: str, parameters: list[Any], context: Any) -> str:
    """One row per argument or option; nothing where there is none."""
    if not parameters:
        return ""
    lines = [f"\n| {title} | value | default | meaning |\n|---|---|---|---|\n"]
    for parameter in parameters:
        names = ", ".join(_code(name) for name in [*parameter.opts, *parameter.secondary_opts])
        cells = [names, _values(parameter, context), _default(parameter), _text(parameter.help or "")]
        lines.append("| " + " | ".join(cells) + " |\n")
    return "".join(lines)


def _section(path: str, command: Any, context: Any) -> str:
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [parameter for parameter in shown if parameter.param_type_name == "argument"]
    options = [parameter for parameter in shown if parameter.param_type_name == "option"]
    paragraphs = (command.help or "").split("\n\n")
    return (
        f"\n{'#' * max(2, len(path.split()))} {path}\n\n```text\n{usage}\n```\n\n"
        + "\n\n".join(_text(paragraph) for paragraph in paragraphs)
        + "\n"
        + _table("argument", arguments, context)
        + _table("option", options, context)
    )


def reference() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(
        _section(path, command, context) for path, command, context in commands(get_command(app))
    )


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(reference(), encoding="utf-8")
