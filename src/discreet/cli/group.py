"""Groups of commands that import the module of a command when it is called, so that it starts without the others."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

from discreet.cli.plain_values import read_plain_values_first, reading_plain_values_first
from discreet.lazy import importing, leave_out, leave_pandas_out

ARROW_MEMORY = "ARROW_DEFAULT_MEMORY_POOL"  # which allocator Arrow uses; read when it is loaded


class LazyGroup(TyperGroup):
    """A group whose commands are known by name and module; each is built on demand."""

    modules: ClassVar[dict[str, str]]  # name of a command -> module below discreet.cli

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        # by name only: what a mistyped one is compared with
        self.commands: dict[str, Any] = dict.fromkeys(self.modules)

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the group itself."""
        return reading_plain_values_first(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order in which a new user needs them."""
        return list(self.modules)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Build one command from its module: an ``app`` of subcommands, or a function of the command's name."""
        return built(cmd_name, self.modules[cmd_name]) if cmd_name in self.modules else None


@cache
def built(name: str, module: str) -> Any:
    """One command, built once in a process: a shell of many calls would pay for it each time."""
    # Arrow's own allocators return what is freed between two batches, and a new page costs as much as filling it
    os.environ.setdefault(ARROW_MEMORY, "system")
    with importing():
        found = import_module(f"discreet.cli.{module}")
    leave_pandas_out()
    leave_out()
    app = getattr(found, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name=name)(getattr(found, name))
    command = get_command(app)
    command.name = name
    if not isinstance(command, LazyGroup):
        read_plain_values_first(command)
    return command
