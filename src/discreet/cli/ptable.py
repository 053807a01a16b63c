"""``discreet ptable``: make, show, convert and check perturbation tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Table

from discreet.cli.output import JSON, console, emit_json, numbered
from discreet.errors import Mistakes, Problem, mistake
from discreet.io.ptable_files import (
    PTableFile,
    PTableFormat,
    WrapRule,
    lookup_for,
    lookup_of,
    read_ptable,
    write_ptable,
)
from discreet.io.secret import read_secret
from discreet.maths.cells.keys import derive
from discreet.maths.cells.lookup import Order
from discreet.maths.noise.ptable import Demands, Law, RowFacts, row_facts, table_facts, unmet
from discreet.maths.noise.ptable_solver import PTableParameters, Variance, solve
from discreet.report.ptable import valid_line, write_ptable_picture

T = TypeVar("T")

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

OUT = Annotated[Path, typer.Option("--out", help="The file to write.")]
FILE = Annotated[Path, typer.Argument(help="A p-table file.")]
ORDER = Annotated[Order, typer.Option("--order", help="Order of the lookup intervals.")]
SECRET = Annotated[
    str | None,
    typer.Option(
        "--secret", help="For --order split or shuffled: path, env:NAME or fd:N. Keep such a file secret too."
    ),
]
MODULUS = Annotated[
    int | None, typer.Option("--modulus", help="Number of keys: 256 or 4096 in lists of keys.")
]
WRAP = Annotated[
    str | None, typer.Option("--wrap", help="Rows that larger counts share, FROM:LENGTH; ONS has 501:250.")
]
SMALL_N = Annotated[
    int, typer.Option("--small-n", help="SuperSTAR: number of last columns that larger counts share.")
]
FORMAT = Annotated[
    PTableFormat | None, typer.Option("--format", help="The file's format; known by its header.")
]
BLOCK = 11  # changes that fit next to each other on a terminal


@app.command()
def make(
    out: OUT,
    D: Annotated[int, typer.Option("--D", help="Largest change, from 1 to 100.")],
    V: Annotated[
        str, typer.Option("--V", help="Variance; one value, or one for each row 1,2,.., separated by commas.")
    ],
    js: Annotated[int, typer.Option("--js", help="Counts 1..js are never published.")] = 0,
    pstay: Annotated[
        str | None,
        typer.Option("--pstay", help="Least probability of no change; one, or one per row ('-': none)."),
    ] = None,
    keep_pstay: Annotated[bool, typer.Option("--keep-pstay", help="Never lower pstay to reach V.")] = False,
    monotony: Annotated[
        str,
        typer.Option("--monotony", help="Whether p may not fall up to no change: yes, no, or one per row."),
    ] = "yes",
    variance: Annotated[Variance, typer.Option("--variance", help="What V means.")] = Variance.AT_MOST,
    p_min: Annotated[float, typer.Option("--p-min", help="Least probability of an allowed target.")] = 1e-8,
    to: Annotated[PTableFormat, typer.Option("--to", help="The format to write.")] = PTableFormat.R,
    order: ORDER = Order.PLAIN,
    secret: SECRET = None,
    modulus: MODULUS = None,
    as_json: JSON = False,
) -> None:
    """Compute the table of maximum entropy and write it."""
    wanted = PTableParameters(
        D,
        _one_or_many("V", V, _number),
        js,
        None if pstay is None else _one_or_many("pstay", pstay, _number_or_none),
        _one_or_many("monotony", monotony, _yes_or_no),
        variance,
        p_min,
        keep_pstay,
    )
    table = solve(wanted)
    write_ptable(out, to, lookup_for(table, to, order, _shuffle_key(order, secret), modulus))
    variances = [round(table.variance(row), 6) for row in range(table.last_row + 1)]
    if as_json:
        report = {"file": str(out), "format": to.value, "D": D, "js": js, "last_row": table.last_row}
        emit_json({**report, "variances": variances, "notes": list(table.notes)})
        return
    console().print(
        f"{out}: counts 0..{table.last_row} and above, variances {min(variances[1:])}..{max(variances)}"
    )
    for note in table.notes:
        _say(f"note: {note}")


@app.command()
def show(
    file: FILE,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw to this .png, .svg or .html.")
    ] = None,
    format: FORMAT = None,  # noqa: A002
    modulus: MODULUS = None,
    wrap: WRAP = None,
    small_n: SMALL_N = 10,
    as_json: JSON = False,
) -> None:
    """Show each row's variance, its probability of no change and all transition probabilities."""
    found = read_ptable(file, format, modulus, _rule(wrap), small_n)
    laws = found.laws
    facts = [row_facts(count, law) for count, law in enumerate(laws)]
    if picture is not None:
        write_ptable_picture(picture, laws, f"Transition probabilities of {file.name}")
    if as_json:
        rows = [
            {**asdict(row), "law": {str(change): p for change, p in law.items()}}
            for row, law in zip(facts, laws, strict=True)
        ]
        emit_json({**_described(found), "rows": rows, "picture": str(picture) if picture else None})
        return
    console().print(_summary(facts))
    for part in _transitions(laws):
        console().print(part)
    if picture is not None:
        _say(f"{picture}: drawn")


@app.command()
def convert(
    file: FILE,
    out: OUT,
    to: Annotated[PTableFormat, typer.Option("--to", help="The format to write.")],
    format: FORMAT = None,  # noqa: A002
    modulus: MODULUS = None,
    wrap: WRAP = None,
    small_n: SMALL_N = 10,
    order: ORDER = Order.PLAIN,
    secret: SECRET = None,
    to_modulus: Annotated[int | None, typer.Option("--to-modulus", help="Number of keys to write.")] = None,
    tolerance: Annotated[float, typer.Option("--tolerance", help="Largest accepted bias of a row.")] = 1e-6,
    as_json: JSON = False,
) -> None:
    """Write a table in another format. Lists of keys keep every key's change where both formats allow it."""
    found = read_ptable(file, format, modulus, _rule(wrap), small_n)
    lookup = lookup_of(found, to, order, _shuffle_key(order, secret), to_modulus, tolerance)
    write_ptable(out, to, lookup)
    report = {"file": str(out), "format": to.value, "modulus": lookup.modulus, "read_as": found.format.value}
    if as_json:
        emit_json(report)
    else:
        _say(f"{out}: written in the {to.value} format, read in the {found.format.value} format")


@app.command()
def check(
    file: FILE,
    D: Annotated[int | None, typer.Option("--D", help="Require changes within D.")] = None,
    V: Annotated[float | None, typer.Option("--V", help="Require variances within V.")] = None,
    js: Annotated[int | None, typer.Option("--js", help="Require that 1..js are never published.")] = None,
    monotone: Annotated[
        bool, typer.Option("--monotone", help="Require that p never falls up to no change.")
    ] = False,
    tolerance: Annotated[float, typer.Option("--tolerance", help="Largest accepted bias of a row.")] = 1e-6,
    format: FORMAT = None,  # noqa: A002
    modulus: MODULUS = None,
    wrap: WRAP = None,
    small_n: SMALL_N = 10,
    as_json: JSON = False,
) -> None:
    """Verify a file: complete, unbiased, and within the required limits. Exit code 2 if it is not."""
    rule = _rule(wrap)
    try:
        found = read_ptable(file, format, modulus, rule, small_n)
    except Mistakes as wrong:
        raise Mistakes(_brief(file, wrong.problems)) from None
    facts = [row_facts(count, law) for count, law in enumerate(found.laws)]
    problems = list(unmet(facts, Demands(D, V, js, monotone, tolerance)))
    if problems:
        raise Mistakes(_brief(file, problems))
    summary = table_facts(facts)
    if as_json:
        emit_json({**_described(found), **asdict(summary), "sound": True})
        return
    _say(f"{file}: {valid_line(summary)}")


def _say(text: str) -> None:
    console().print(text, soft_wrap=True, markup=False, highlight=False)


def _described(found: PTableFile) -> dict[str, object]:
    lookup = found.lookup
    return {
        "file": str(found.path),
        "format": found.format.value,
        "modulus": lookup.modulus,
        "last_row": lookup.last_row,
        "wrap": [lookup.wrap_from, lookup.wrap_length],
    }


def _brief(file: Path, problems: Sequence[Problem]) -> list[Problem]:
    first = Problem(str(file), problems[0].key, problems[0].value, problems[0].remedy)
    if len(problems) == 1:
        return [first]
    return [
        first,
        Problem(str(file), "", numbered(len(problems) - 1, "more fault"), "see discreet ptable show"),
    ]


def _summary(facts: Sequence[RowFacts]) -> Table:
    table = _numbers("count", "variance", "no change", "change", "smallest published")
    for row in facts:
        table.add_row(
            _count(row.count, len(facts)),
            f"{row.variance:.4f}",
            f"{row.stay:.4f}",
            f"{row.least:+d}..{row.most:+d}" if row.least != row.most else f"{row.least}",
            str(row.smallest_positive or "-"),
        )
    return table


def _transitions(laws: Sequence[Law]) -> list[Table]:
    """Return the transition probabilities, one table for every few changes so that none is cut off."""
    changes = sorted({change for law in laws for change in law})
    tables = []
    for start in range(0, len(changes), BLOCK):
        part = changes[start : start + BLOCK]
        table = Table(
            "count", *(f"{change:+d}" if change else "0" for change in part), box=None, pad_edge=False
        )
        for column in table.columns:
            column.justify = "right"
        for count, law in enumerate(laws):
            table.add_row(_count(count, len(laws)), *(_probability(law.get(change)) for change in part))
        tables.append(table)
    return tables


def _numbers(*headers: str) -> Table:
    table = Table(*headers, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    return table


def _count(count: int, rows: int) -> str:
    return f"{count}+" if count == rows - 1 else str(count)


def _probability(p: float | None) -> str:
    if not p:
        return ""
    return f"{p:.3f}".removeprefix("0") if p >= 0.0005 else "<.001"


def _shuffle_key(order: Order, secret: str | None) -> bytes | None:
    if order is Order.PLAIN:
        return None
    if secret is None:
        raise mistake("", "--order", order.value, "give the secret that keys it with --secret")
    return derive(read_secret(secret, os.environ), "lookup-order")


def _rule(text: str | None) -> WrapRule | None:
    if text is None:
        return None
    first, _, length = text.partition(":")
    if not (first.isdecimal() and length.isdecimal()):
        raise mistake("", "--wrap", text, "give FROM:LENGTH, for instance 501:250")
    return WrapRule(int(first), int(length))


def _one_or_many(option: str, text: str, read: Callable[[str], T]) -> T | tuple[T, ...]:
    try:
        values = tuple(read(part.strip()) for part in text.split(","))
    except ValueError:
        raise mistake(
            "", f"--{option}", text, "give one value, or one for each row 1,2,.., separated by commas"
        ) from None
    return values[0] if len(values) == 1 else values


def _number(text: str) -> float:
    return float(text)


def _number_or_none(text: str) -> float | None:
    return None if text in ("-", "") else float(text)


def _yes_or_no(text: str) -> bool:
    if text.lower() not in ("yes", "no", "true", "false"):
        raise ValueError(text)
    return text.lower() in ("yes", "true")
