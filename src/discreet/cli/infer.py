"""``discreet infer``: tests, intervals and models for users of a release, allowing for noise."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from discreet.cli.noise_options import NoiseOptions, PublishingOptions, expanded
from discreet.cli.output import JSON, console, emit_json, say
from discreet.errors import Mistakes, mistake
from discreet.inference.estimates import (
    LogLinearResult,
    binomial,
    difference,
    independence,
    interval,
    loglinear,
    proportion,
    ratio,
    total,
)
from discreet.inference.hierarchy import (
    estimated,
    estimated_difference,
    estimated_independence,
    estimated_proportion,
    estimated_ratio,
    estimated_total,
    is_estimated,
)
from discreet.inference.noise import KnownLaw, noise_by, noise_of, noise_of_ptable_file
from discreet.inference.released import ReleasedCube, released_cube
from discreet.inference.tables import CrossTable, integers, long_table, table_in
from discreet.inference.weighted import weighted
from discreet.maths.inference.intervals import Flat, Geometric, Prior

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

STRUCTURAL = "-"  # in a table: a cell that must be empty by definition
LEVEL = Annotated[float, typer.Option("--level", help="Confidence or probability of an interval.")]
LARGEST = Annotated[int | None, typer.Option("--prior-largest", help="Flat prior from 0 to this count.")]
MEAN = Annotated[float | None, typer.Option("--prior-mean", help="Geometric prior with this mean.")]
TABLE = Annotated[
    Path | None,
    typer.Argument(
        help="A CSV file of counts; labels in its first row and column are allowed, - is a cell that must be empty."
    ),
]

COUNT = Annotated[int | None, typer.Option("--count", help="A published count.")]


@dataclass(frozen=True)
class DescribedNoise:
    """The noise of a release, of a p-table file, or a law and what is done to counts before publication."""

    law: NoiseOptions
    publishing: PublishingOptions
    release: Annotated[
        Path | None, typer.Option("--release", help="A release whose public manifest describes the noise.")
    ] = None
    cross_tabulation: Annotated[
        str | None,
        typer.Option("--cross-tabulation", help="The cross-tabulation, where the laws of a release differ."),
    ] = None
    zeros_kept: Annotated[
        bool, typer.Option("--zeros-kept", help="Empty cells are published as zero, without noise.")
    ] = False
    cube: Annotated[
        str | None, typer.Option("--cube", help="A cube of the release, to take counts and their noise from.")
    ] = None
    where: Annotated[
        str,
        typer.Option(
            "--where",
            help="Which cells of the cube, as GEO=AT1 and AGE.M in (Y_LT15, Y15-29); else totals.",
        ),
    ] = ""

    def noise(self) -> KnownLaw:
        """The noise of the one source that is given."""
        self._require_one_source()
        if self.release is not None:
            return noise_of(self.release, self.cross_tabulation)
        if self.law.ptable is not None:
            return noise_of_ptable_file(self.law.ptable)
        wanted, rule = self.law.parameters(), self.publishing.rule()
        return noise_by(
            wanted.kind.value,
            rule.negatives.value,
            rule.rounding,
            rule.threshold,
            keeps_zeros=self.zeros_kept,
            **wanted.given(),
        )

    def released(self) -> ReleasedCube | None:
        """The cube of a release that counts are taken from, if one is named."""
        if self.cube is None:
            if self.where:
                raise mistake(
                    "", "--where", "without --cube", "name the cube of the release that it is about"
                )
            return None
        if self.release is None:
            raise mistake("", "--cube", self.cube, "name its release with --release")
        if not self.law.is_empty or self.cross_tabulation is not None:
            value = "with --cube"
            raise mistake("", "options of noise", value, "leave them out: the release describes it")
        return released_cube(self.release, self.cube)

    def cell(self, given: int | None, option: str, where: str | None) -> tuple[int, KnownLaw]:
        """A published count and its noise: the cell of a cube, or the count that is given."""
        cube = self.released()
        if (cube is None) == (given is None):
            value = "none" if given is None else f"{option} and --cube"
            raise mistake("", "count", value, f"give {option}, or --release with --cube")
        if cube is None:
            return int(given or 0), self.noise()
        found = cube.cell(self.where if where is None else where)
        return int(found.table.counts), found.noise

    def hierarchical(self, *given: object) -> ReleasedCube | None:
        """The cube, where its release is hierarchical: its estimates are used. Nothing else may then be ``given``."""
        if self.cube is None or self.release is None:
            return None
        cube = self.released()
        if cube is None or not is_estimated(cube.release):
            return None
        if any(one is not None for one in given):
            value = "counts, a file, a prior, margins or simulations, with a hierarchical release"
            raise mistake(
                "", "options", value, "leave them out: cells come from --where, errors from the release"
            )
        return cube

    def _require_one_source(self) -> None:
        if self.law.is_empty == (self.release is None):
            value = "none" if self.release is None else "several"
            remedy = "give one: inference requires the law of the noise"
            raise mistake("", "--kind, --ptable or --release", value, remedy)
        self.law.require_one_source()
        source = (
            "--release" if self.release is not None else "--ptable" if self.law.ptable is not None else ""
        )
        if source and (self.zeros_kept or self.publishing != PublishingOptions()):
            names = "--negatives, --rounding, --threshold and --zeros-kept"
            raise mistake("", names, f"with {source}", "leave them out: the noise is fully described by it")


@app.callback()
def infer() -> None:
    """Infer true counts, test and fit models from published counts, allowing for their noise."""


@app.command("independence")
@expanded
def independence_command(
    noise: DescribedNoise,
    table: TABLE = None,
    rows: Annotated[
        str | None,
        typer.Option(
            "--rows", help="The axis of the rows, with --cube: AGE, or one of its levels, as GEO.COUNTY."
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", help="The axis of the columns, with --cube.")
    ] = None,
    public_total: Annotated[
        int | None,
        typer.Option("--public-total", help="The number of all records, where it is known exactly."),
    ] = None,
    known_margins: Annotated[
        Path | None,
        typer.Option(
            "--known-margins",
            help="A CSV file of two lines, the exact totals of the rows and of the columns, where they are known.",
        ),
    ] = None,
    simulations: Annotated[
        int | None,
        typer.Option(
            "--simulations",
            help="Tables to simulate for the p-value; default: 999, fewer for large tables; 0: the chi-square law.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the simulated tables.", min=0)] = 0,
    as_json: JSON = False,
) -> None:
    """Test whether rows and columns of a table are independent, with and without allowing for the noise."""
    cube = noise.hierarchical(table, public_total, known_margins, simulations)
    if cube is not None:
        if rows is None or columns is None:
            raise _no_axes(cube)
        _show(estimated_independence(cube.release, cube.entry.id, rows, columns, noise.where), as_json)
        return
    given, law = _crossed(noise, table, rows, columns)
    found = independence(
        given,
        law,
        public_total=public_total,
        known_margins=None if known_margins is None else _margins(known_margins),
        simulations=simulations,
        seed=seed,
    )
    _show(found, as_json)


@app.command("binomial")
@expanded
def binomial_command(
    noise: DescribedNoise,
    n: Annotated[int, typer.Option("--n", help="Number of records, known exactly.")],
    p0: Annotated[float, typer.Option("--p0", help="The probability to test.")],
    x: Annotated[int | None, typer.Option("--x", help="Published number of them with the property.")] = None,
    against: Annotated[
        float | None,
        typer.Option("--against", help="Report the power of the test if this were the probability."),
    ] = None,
    level: LEVEL = 0.95,
    as_json: JSON = False,
) -> None:
    """Test the probability behind one published count, by enumerating everything that could be published."""
    count, law = noise.cell(x, "--x", None)
    _show(binomial(count, n, p0, law, level, against), as_json)


@app.command("interval")
@expanded
def interval_command(
    noise: DescribedNoise,
    count: Annotated[int | None, typer.Option("--count", help="The published count.")] = None,
    level: LEVEL = 0.95,
    prior_largest: LARGEST = None,
    prior_mean: MEAN = None,
    as_json: JSON = False,
) -> None:
    """Report an interval for the true count."""
    cube = noise.hierarchical(count, prior_largest, prior_mean)
    if cube is not None:
        _show(estimated(cube.release, cube.entry.id, noise.where, level), as_json)
        return
    published, law = noise.cell(count, "--count", None)
    _show(interval(published, law, level, _prior(prior_largest, prior_mean) or Flat()), as_json)


@app.command("difference")
@expanded
def difference_command(
    noise: DescribedNoise,
    count: COUNT = None,
    other: Annotated[
        int | None, typer.Option("--other", help="The published count that is subtracted.")
    ] = None,
    other_where: Annotated[
        str | None, typer.Option("--other-where", help="The cell that is subtracted, with --cube.")
    ] = None,
    level: LEVEL = 0.95,
    prior_largest: LARGEST = None,
    prior_mean: MEAN = None,
    as_json: JSON = False,
) -> None:
    """Report an interval for the difference of two true counts."""
    cube = noise.hierarchical(count, other, prior_largest, prior_mean)
    if cube is not None:
        second_cell = _second(other_where, "--other-where")
        _show(estimated_difference(cube.release, cube.entry.id, noise.where, second_cell, level), as_json)
        return
    (first, law), (second, other_law) = _both(noise, (count, "--count"), (other, "--other"), other_where)
    _require_one_law(law, other_law)
    _show(difference(first, second, law, level, _prior(prior_largest, prior_mean)), as_json)


@app.command("ratio")
@expanded
def ratio_command(
    noise: DescribedNoise,
    count: COUNT = None,
    base: Annotated[
        int | None, typer.Option("--base", help="The published count that it is divided by.")
    ] = None,
    base_where: Annotated[
        str | None, typer.Option("--base-where", help="The cell that it is divided by, with --cube.")
    ] = None,
    level: LEVEL = 0.95,
    prior_largest: LARGEST = None,
    prior_mean: MEAN = None,
    as_json: JSON = False,
) -> None:
    """Report an interval for the ratio of two true counts of different groups; of a part and its whole: proportion."""
    cube = noise.hierarchical(count, base, prior_largest, prior_mean)
    if cube is not None:
        second_cell = _second(base_where, "--base-where")
        _show(estimated_ratio(cube.release, cube.entry.id, noise.where, second_cell, level), as_json)
        return
    (first, law), (second, base_law) = _both(noise, (count, "--count"), (base, "--base"), base_where)
    _require_one_law(law, base_law)
    _show(ratio(first, second, law, level, _prior(prior_largest, prior_mean) or Flat()), as_json)


@app.command("proportion")
@expanded
def proportion_command(
    noise: DescribedNoise,
    count: Annotated[int | None, typer.Option("--count", help="The published count of the part.")] = None,
    whole: Annotated[int | None, typer.Option("--whole", help="The published count of the whole.")] = None,
    whole_where: Annotated[
        str | None,
        typer.Option("--whole-where", help="The cell of the whole, with --cube; empty: the grand total."),
    ] = None,
    level: LEVEL = 0.95,
    as_json: JSON = False,
) -> None:
    """Report an interval for the share of a part in a whole, both published with noise."""
    cube = noise.hierarchical(count, whole)
    if cube is not None:
        second_cell = _second(whole_where, "--whole-where")
        _show(estimated_proportion(cube.release, cube.entry.id, noise.where, second_cell, level), as_json)
        return
    (part, law), (size, whole_law) = _both(noise, (count, "--count"), (whole, "--whole"), whole_where)
    _show(proportion(part, size, law, level, whole_law), as_json)


@app.command("total")
@expanded
def total_command(
    noise: DescribedNoise,
    table: TABLE = None,
    published_total: Annotated[
        int | None,
        typer.Option("--published-total", help="The total, where it is published with its own noise."),
    ] = None,
    level: LEVEL = 0.95,
    prior_largest: LARGEST = None,
    prior_mean: MEAN = None,
    as_json: JSON = False,
) -> None:
    """Report an interval for the true total of all cells of a table, or of those of a cube that --where names."""
    estimates = noise.hierarchical(table, published_total, prior_largest, prior_mean)
    if estimates is not None:
        _show(estimated_total(estimates.release, estimates.entry.id, noise.where, level), as_json)
        return
    cube = _cube_or_file(noise, table)
    if cube is None:
        cells, law = _grid(_file(table), thin=True).counts, noise.noise()
    else:
        found = cube.cells(noise.where)
        cells, law = found.table.counts, found.noise
    prior = _prior(prior_largest, prior_mean)
    _show(total(cells, law, level, prior, published=published_total), as_json)


@app.command("weighted")
def weighted_command(
    release: Annotated[Path, typer.Argument(help="A release with weighted tables.")],
    cube: Annotated[str, typer.Option("--cube", help="The table.")],
    where: Annotated[
        str,
        typer.Option("--where", help="The cell, as SEX=F and GEO=1101; the total of all other variables."),
    ] = "",
    largest: Annotated[
        float | None,
        typer.Option(
            "--largest-weight",
            help="The largest weight of the survey, by which the cell key method scales its noise.",
        ),
    ] = None,
    level: LEVEL = 0.95,
    as_json: JSON = False,
) -> None:
    """Report how far the noise may have moved a weighted estimate; the error of the sample is not included."""
    _show(weighted(release, cube, where, largest, level), as_json)


@app.command("estimate")
def estimate_command(
    release: Annotated[Path, typer.Argument(help="A hierarchical release that publishes its estimates.")],
    cube: Annotated[str, typer.Option("--cube", help="The table.")],
    where: Annotated[
        str,
        typer.Option("--where", help="The cell, as SEX=F and GEO=1101; the total of all other variables."),
    ] = "",
    level: LEVEL = 0.95,
    as_json: JSON = False,
) -> None:
    """Report the estimate of one cell of a hierarchical release, its standard error and an interval."""
    _show(estimated(release, cube, where, level), as_json)


@app.command("loglinear")
@expanded
def loglinear_command(
    noise: DescribedNoise,
    model: Annotated[str, typer.Option("--model", help="Terms with +, axes joined by *, as SEX*AGE+REGION.")],
    table: Annotated[
        Path | None,
        typer.Argument(help="A CSV file: columns of codes and a column value, or a table of counts."),
    ] = None,
    as_json: JSON = False,
) -> None:
    """Fit a log-linear model to a table of two or more axes."""
    terms = [term.strip() for term in model.split("+") if term.strip()]
    axes = list(dict.fromkeys(part.strip() for term in terms for part in term.split("*")))
    if not terms or "" in axes:
        raise mistake("", "--model", repr(model), "name at least one term, and axes on both sides of each *, "
                      "as in SEX*AGE+REGION")  # fmt: skip
    cube = _cube_or_file(noise, table)
    if cube is None:
        _show(loglinear(_axes_table(_file(table), axes), terms, noise.noise()), as_json)
        return
    found = cube.table(axes, noise.where)
    variables = dict(zip(axes, found.table.axes, strict=True))  # levels name the axis of their variable
    plain = ["*".join(variables[part.strip()] for part in term.split("*")) for term in terms]
    _show(loglinear(found.table, plain, found.noise), as_json)


def _crossed(
    noise: DescribedNoise, table: Path | None, rows: str | None, columns: str | None
) -> tuple[CrossTable, KnownLaw]:
    """The table of two axes of a cube, or the one in a file."""
    cube = _cube_or_file(noise, table)
    if cube is None:
        if rows is not None or columns is not None:
            raise mistake("", "--rows and --columns", "with a file", "leave them out, or give --cube instead")
        return _grid(_file(table)), noise.noise()
    if rows is None or columns is None:
        raise _no_axes(cube)
    found = cube.table([rows, columns], noise.where)
    return found.table, found.noise


def _no_axes(cube: ReleasedCube) -> Mistakes:
    names = ", ".join(axis.breakdown for axis in cube.entry.axes)
    return mistake("", "--rows and --columns", "missing", f"name two axes of the cube: {names}")


def _cube_or_file(noise: DescribedNoise, table: Path | None) -> ReleasedCube | None:
    cube = noise.released()
    if (cube is None) == (table is None):
        value = "none" if cube is None else "a file and --cube"
        raise mistake("", "table", value, "give a CSV file, or --release with --cube")
    return cube


def _file(table: Path | None) -> Path:
    if table is None:
        raise ValueError("a table without a cube is a file")
    return table


def _both(
    noise: DescribedNoise, first: tuple[int | None, str], second: tuple[int | None, str], where: str | None
) -> tuple[tuple[int, KnownLaw], tuple[int, KnownLaw]]:
    """Two published counts and their noise."""
    if noise.cube is not None:
        _second(where, f"{second[1]}-where")
    if noise.cube is None and where is not None:
        raise mistake("", f"{second[1]}-where", "without --cube", "name the cube of the release")
    return noise.cell(*first, None), noise.cell(*second, where)


def _second(where: str | None, option: str) -> str:
    if where is None:
        raise mistake("", option, "missing", "name the second cell; an empty text is the grand total")
    return where


def _require_one_law(first: KnownLaw, second: KnownLaw) -> None:
    if first.counts.change.variance != second.counts.change.variance:
        value = "cells of levels with different noise"
        raise mistake(
            "", "--where", value, "choose two cells of one level; of a part and its whole: proportion"
        )


def _prior(largest: int | None, mean: float | None) -> Prior | None:
    if largest is not None and mean is not None:
        raise mistake("", "--prior-largest or --prior-mean", "both", "give one of them")
    if largest is None and mean is None:
        return None
    return Flat(largest) if mean is None else Geometric(mean)


def _lines(path: Path) -> list[list[str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [
                [cell.strip() for cell in line] for line in csv.reader(file) if any(map(str.strip, line))
            ]
    except (UnicodeDecodeError, csv.Error):
        raise mistake(path, "file", "not readable as CSV", "save it as UTF-8 text with commas") from None
    if not lines or len({len(line) for line in lines}) != 1:
        value = "lines of different length" if lines else "empty"
        raise mistake(path, "file", value, "give a full table of counts, separated by commas")
    return lines


def _margins(path: Path) -> tuple[list[float], list[float]]:
    """The totals of the rows (first line) and of the columns (second); a first word that is no number is a label."""
    try:
        lines = [
            [cell.strip() for cell in line if cell.strip()]
            for line in csv.reader(path.read_text(encoding="utf-8-sig").splitlines())
        ]
    except (UnicodeDecodeError, csv.Error):
        raise mistake(path, "file", "not readable as CSV", "save it as UTF-8 text with commas") from None
    lines = [line if _is_number(line[0]) else line[1:] for line in lines if line]
    if len(lines) != 2 or not all(line and all(map(_is_number, line)) for line in lines):
        remedy = "give two lines of whole numbers: the totals of the rows, then those of the columns"
        raise mistake(path, "known margins", "not two lines of numbers", remedy)
    rows, columns = ([float(cell) for cell in line] for line in lines)
    return rows, columns


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _grid(path: Path, thin: bool = False) -> CrossTable:
    """A table of counts; a first row and a first column that are not numbers are labels, - is a structural zero."""
    lines = _lines(path)
    if not all(_is_count(cell) for cell in lines[0][1:] or lines[0]):
        lines = lines[1:]
    if lines and len(lines[0]) > 1 and not all(_is_count(line[0]) for line in lines):
        lines = [line[1:] for line in lines]
    bad = next((cell for line in lines for cell in line if not _is_count(cell)), None)
    if bad is not None or not lines:
        remedy = "give whole numbers; an empty cell is 0, one that must be empty is -"
        raise mistake(path, "table", repr(bad) if lines else "no counts", remedy)
    structural = np.array([[cell == STRUCTURAL for cell in line] for line in lines])
    numbers = [[0.0 if cell == STRUCTURAL else float(cell) for cell in line] for line in lines]
    counts = integers(np.array(numbers), str(path))
    if not thin and min(counts.shape) < 2:
        shape = " x ".join(map(str, counts.shape))
        raise mistake(path, "table", shape, "give at least two rows and two columns")
    return replace(table_in(counts), structural=structural if structural.any() else None)


def _is_count(cell: str) -> bool:
    return cell == STRUCTURAL or _is_number(cell)


def _axes_table(path: Path, axes: list[str]) -> CrossTable:
    """Columns of codes and a column ``value``, or a table of counts whose axes are A (rows) and B (columns)."""
    lines = _lines(path)
    if "value" not in lines[0]:
        return _grid(path)
    columns = {name: [line[at] for line in lines[1:]] for at, name in enumerate(lines[0])}
    return long_table(columns, axes)


def _show(result: Any, as_json: bool) -> None:
    found = result.summary()
    if as_json:
        emit_json(found)
        return
    say(result.sentence)
    if isinstance(result, LogLinearResult):
        console().print(_effects(result))
    say(f"Assumes: {result.assumption}.")
    for caveat in result.caveats:
        say(f"Note: {caveat}.")


def _effects(result: LogLinearResult) -> Table:
    table = Table("effect", "estimate", "s.e.", "p", "naive", "s.e.", box=None, pad_edge=False)
    for one in result.effects:
        numbers = (
            one.estimate,
            one.standard_error,
            one.p_value,
            one.naive_estimate,
            one.naive_standard_error,
        )
        table.add_row(one.name, *("-" if np.isnan(number) else f"{number:.4g}" for number in numbers))
    return table
