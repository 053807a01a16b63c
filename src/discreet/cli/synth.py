"""``discreet synth``: make a synthetic census."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from discreet.cli.output import say
from discreet.synth import Census, generate


def synth(
    out: Annotated[Path, typer.Option(help="The new folder to write.")],
    persons: Annotated[int, typer.Option(help="Number of persons, from 1 to 1e9.")] = 200_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same census.")] = 1,
    tables: Annotated[
        str,
        typer.Option(
            help="Tables or groups of the EU programme to select, such as 1,3 or 9.2; all if left out."
        ),
    ] = "",
    country: Annotated[
        str, typer.Option(help="A country whose numbers of regions to use, such as AT.")
    ] = "XX",
    threads: Annotated[
        int | None, typer.Option(help="Number of threads; the result does not depend on it.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress and no report.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Report in JSON.")] = False,
) -> None:
    """Make a synthetic census: persons, households, families, dwellings, codelists and a programme."""
    selection = [name.strip() for name in tables.split(",") if name.strip()] or None
    with _progress(persons, hidden=quiet or as_json) as progress:
        census = generate(
            persons, seed, out, tables=selection, country=country, threads=threads, progress=progress
        )
    if as_json:
        typer.echo(json.dumps(_report(census)))
    elif not quiet:
        say(_summary(census))


@contextmanager
def _progress(persons: int, *, hidden: bool) -> Iterator[Callable[[int], None]]:
    of = f" of {persons:,}"
    columns = (TextColumn("Persons"), BarColumn(), TextColumn("{task.fields[done]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden) as bar:
        task = bar.add_task("Persons", total=persons, done=f"0{of}")
        yield lambda done: bar.update(task, completed=done, done=f"{done:,}{of}")


def _report(census: Census) -> dict[str, object]:
    files = [
        {"file": f"{unit}.parquet", "rows": rows, "bytes": (census.folder / f"{unit}.parquet").stat().st_size}
        for unit, rows in census.rows.items()
    ]
    return {
        "folder": str(census.folder),
        "programme": str(census.folder / "programme.toml"),
        "files": files,
        "regions": census.regions,
        "seconds": census.seconds,
    }


def _summary(census: Census) -> str:
    rows = [f"  {unit + '.parquet':20} {count:>13,} rows" for unit, count in census.rows.items()]
    regions = ", ".join(f"{count:,} {level}" for level, count in census.regions.items())
    programme = census.folder / "programme.toml"
    return "\n".join(
        [
            f"{census.folder} ({census.seconds:.1f} s)",
            *rows,
            f"  regions: {regions}",
            f"  next: discreet check {programme}",
        ]
    )
