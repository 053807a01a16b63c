"""``discreet risk``: what an outsider can find out, by formula and without data."""

from __future__ import annotations

from typing import ClassVar

import typer

from discreet.cli.group import LazyGroup


class RiskCommands(LazyGroup):
    """The formulas, each in its own module."""

    modules: ClassVar[dict[str, str]] = {
        name: f"risk_{name}"
        for name in ("differencing", "subsets", "redundancy", "averaging", "bound", "dp", "bayes")
    }


app = typer.Typer(cls=RiskCommands, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def risk() -> None:
    """Compute by formula what an outsider can find out."""
