"""``discreet noise``: show the properties and guarantees of a noise law, and draw samples of it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from numpy.typing import NDArray
from rich.table import Table

from discreet.cli.noise_options import AnyLaw, NoiseOptions, expanded
from discreet.cli.output import JSON, QUIET, console, emit_json, say
from discreet.errors import mistake
from discreet.io.files import UNREADABLE
from discreet.io.whole_file import PUBLIC_FILE, whole_file
from discreet.maths.cells.lookup import Order, build, change
from discreet.maths.noise.additive import AdditiveLaw, LawKind, SquareSensitivity, exact
from discreet.maths.noise.certificates import GAUSSIAN_DELTA, Certificate, certificate
from discreet.maths.noise.draws import BitSource, draw
from discreet.maths.noise.exponential import UtilityTable
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Loss, Pmf
from discreet.maths.noise.publishing import LARGEST_COUNT
from discreet.maths.noise.thresholds import row_table, threshold_table

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

Changes = NDArray[np.int64]
CHANGE = "change"  # the column of samples
LEAST_SHOWN = 1e-12  # probabilities below this are left out of what is shown
QUANTILES = (0.005, 0.025, 0.25, 0.5, 0.75, 0.975, 0.995)
COUNTS = "0,1,2,3,4,5,10,100"
PART = 2**22  # samples written at a time
MOST_SAMPLES = 10**9
LINES = 61  # the most probable changes are shown on the terminal; --json has them all


@app.command()
@expanded
def show(
    noise: NoiseOptions,
    delta: Annotated[
        str | None,
        typer.Option(
            "--delta",
            help="discrete-gaussian: the delta at which to certify; others: refuse a law whose delta is larger.",
        ),
    ] = None,
    counts: Annotated[
        str, typer.Option("--counts", help="True counts to show losses and rows for, separated by commas.")
    ] = COUNTS,
    as_json: JSON = False,
) -> None:
    """Show the probabilities, moments and expected losses of a law, and the epsilon and delta certified for it."""
    law, rows = noise.law(), _counts(counts)
    certified = _certified(law, delta)
    report: dict[str, Any] = {
        **_named(noise),
        **(_described(law.pmf) if isinstance(law, AdditiveLaw) else {}),
        "losses": [_losses(count, law.row(count)) for count in rows],
        "certified": _certificate(certified),
        "rows": [] if isinstance(law, AdditiveLaw) else [_row(count, law.row(count)) for count in rows],
    }
    if as_json:
        emit_json(report)
        return
    _print(report)


@app.command()
@expanded
def sample(
    noise: NoiseOptions,
    n: Annotated[int, typer.Option("--n", help="Number of samples.", min=1, max=MOST_SAMPLES)],
    out: Annotated[Path, typer.Option("--out", help="The Parquet file to write.")],
    count: Annotated[
        int | None,
        typer.Option("--count", help="Laws that depend on it: the true count to perturb.", min=0),
    ] = None,
    quiet: QUIET = False,
    as_json: JSON = False,
) -> None:
    """Draw from a law with fresh random bits of the operating system; samples cannot be reproduced."""
    law = noise.law()
    if out.suffix != ".parquet":
        raise mistake("", "--out", str(out), "give a file name that ends with .parquet")
    if not out.parent.is_dir():
        raise mistake("", "--out", str(out), "give a folder that exists")
    _require_replaceable(out)
    drawer, certified = _drawer(law, count), _certified(law, None)
    total, squares = _write(out, (drawer(min(PART, n - start)) for start in range(0, n, PART)))
    mean = total / n
    report: dict[str, Any] = {
        "file": str(out),
        **_named(noise),
        "n": n,
        "mean": mean,
        "variance": squares / n - mean**2,
        "certified": _certificate(certified),
    }
    if as_json:
        emit_json(report)
    elif not quiet:
        say(f"{out}: {n} changes, mean {mean:.4g}, variance {report['variance']:.6g}")
        say(_guarantee(report["certified"]))


def _require_replaceable(out: Path) -> None:
    """Refuse a file that has no samples: it may have the records."""
    if not out.exists():
        return
    try:
        found = pq.read_schema(out.absolute()).names
    except UNREADABLE:
        found = []
    if found != [CHANGE]:
        value, remedy = "exists and has no samples", "give another path, or remove what is there"
        raise mistake(out, "--out", value, remedy)


def _drawer(law: AnyLaw, count: int | None) -> Callable[[int], Changes]:
    """A function that draws n changes; laws that depend on the count need it, the others refuse it."""
    if (count is None) != isinstance(law, AdditiveLaw):
        remedy = (
            "give the true count" if count is None else "leave it out: the law is the same for every count"
        )
        raise mistake("", "--count", "missing" if count is None else str(count), remedy)
    bits, true = BitSource(secrets.token_bytes(32)), count or 0
    if isinstance(law, PTableLaw):
        lookup = build(law.ptable, Order.PLAIN)
        return lambda n: change(lookup, np.full(n, true), (bits.words(n) >> np.uint64(32)).astype(np.uint32))
    table = threshold_table(law) if isinstance(law, AdditiveLaw) else row_table(law, true)
    return lambda n: draw(table, n, bits).astype(np.int64) - true


def _write(out: Path, parts: Iterable[Changes]) -> tuple[int, int]:
    """Write the file completely or not at all; return the sum and the sum of squares."""
    schema, total, squares = pa.schema([(CHANGE, pa.int64())]), 0, 0
    with (
        whole_file(out, PUBLIC_FILE) as draft,
        pq.ParquetWriter(draft.absolute(), schema, compression="zstd") as writer,
    ):
        for part in parts:
            writer.write_table(pa.table({CHANGE: part}, schema=schema))
            total, squares = total + int(part.sum()), squares + int((part * part).sum())
    return total, squares


def _certified(law: AnyLaw, delta: str | None) -> Certificate:
    """Certify a law; a delta is where Gaussian noise is certified, and a limit for the other laws."""
    asked = None if delta is None else exact("delta", delta)
    if asked is not None and not 0 < asked < 1:
        raise mistake("", "delta", str(delta), "give a number between 0 and 1")
    found = certificate(law, GAUSSIAN_DELTA if asked is None else asked)
    if asked is not None and found.delta > asked:
        remedy = "use a larger bound, or a law without one"
        raise mistake("", "delta", f"{float(found.delta):.3g}, above {delta}", remedy)
    return found


def _counts(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise mistake("", "--counts", text, "give whole numbers of at least 0, separated by commas")
    if max(map(int, parts)) > LARGEST_COUNT:
        raise mistake("", "--counts", text[:40], f"give counts up to {LARGEST_COUNT:,}")
    return sorted({int(part) for part in parts})


def _described(pmf: Pmf) -> dict[str, Any]:
    return {
        "pmf": _probabilities(pmf),
        "mean": _rounded(pmf.mean),
        "variance": pmf.variance,
        "standard_deviation": math.sqrt(pmf.variance),
        "mean_absolute": pmf.absolute_moment(1),
        "entropy": pmf.entropy,
        "quantiles": {str(share): pmf.quantile(share) for share in QUANTILES},
    }


def _row(count: int, row: Pmf) -> dict[str, Any]:
    """One row of a law that depends on the count, as changes."""
    return {"count": count, **_described(row.shifted(-count))}


def _probabilities(pmf: Pmf) -> dict[str, float]:
    pairs = zip(pmf.values.tolist(), pmf.p.tolist(), strict=True)
    return {str(value): p for value, p in pairs if p >= LEAST_SHOWN}


def _losses(count: int, row: Pmf) -> dict[str, Any]:
    clipped = row.negatives_to_zero()
    return {
        "count": count,
        **{loss.value: row.expected_loss(count, loss) for loss in Loss},
        "negatives_to_zero": {loss.value: clipped.expected_loss(count, loss) for loss in Loss},
    }


def _certificate(found: Certificate) -> dict[str, Any]:
    """The certificate as numbers, rounded up where they are fractions."""
    return {
        "epsilon": found.epsilon,
        "delta": _upward(found.delta),
        "rho": None if found.rho is None else float(found.rho),
        "total_variation": _upward(found.distance),
        "by_integers": found.certified,
        "neighbours": "one record added or removed; every record in one cell",
    }


def _upward(number: Fraction) -> float:
    value = float(number)
    return value if value >= number else math.nextafter(value, math.inf)


def _rounded(mean: float) -> float:
    """Zero where symmetric sums left a last digit."""
    return 0.0 if abs(mean) < 1e-12 else mean


def _named(noise: NoiseOptions) -> dict[str, Any]:
    """The kind and the parameters that were given; of a p-table its file."""
    if noise.ptable is not None:
        return {"kind": LawKind.CELL_KEY.value, "parameters": {"ptable": str(noise.ptable)}}
    wanted = noise.parameters()
    given = {
        name: str(value)
        if isinstance(value, SquareSensitivity | UtilityTable)
        else float(Fraction(str(value)))
        for name, value in wanted.given().items()
    }
    return {"kind": wanted.kind.value, "parameters": given}


def _print(report: dict[str, Any]) -> None:
    parameters = ", ".join(
        f"{name} {value}" if isinstance(value, str) else f"{name} {value:g}"
        for name, value in report["parameters"].items()
    )
    say(f"{report['kind']}: {parameters}")
    if "pmf" in report:
        say(
            f"mean {report['mean']:.4g}, variance {report['variance']:.6g}, mean absolute change "
            f"{report['mean_absolute']:.6g}, entropy {report['entropy']:.4g} nats"
        )
    say(_guarantee(report["certified"]))
    console().print(_loss_table(report["losses"]))
    for row in report["rows"] or [report]:
        name = f"changes of {row['count']}" if "count" in row else "change"
        console().print(_pmf_table(name, row["pmf"]))


def _guarantee(found: dict[str, Any]) -> str:
    how = "certified by the integers drawn" if found["by_integers"] else "by the law's formula"
    delta = f"delta {found['delta']:.4g}"
    if found["epsilon"] is None:
        return f"no epsilon: {delta} at every epsilon ({how})"
    rho = "" if found["rho"] is None else f", rho {found['rho']:.6g}"
    return f"epsilon {found['epsilon']:.12g}, {delta}{rho} ({how}; {found['neighbours']})"


def _loss_table(losses: Sequence[dict[str, Any]]) -> Table:
    table = _numbers("count", "l1", "l2", "l3", "l1, negatives to zero", "l2", "l3")
    for row in losses:
        values = [row[loss.value] for loss in Loss] + [row["negatives_to_zero"][loss.value] for loss in Loss]
        table.add_row(str(row["count"]), *(f"{value:.4f}" for value in values))
    return table


def _pmf_table(name: str, pmf: dict[str, float]) -> Table:
    table = _numbers(name, "probability")
    least = max(5e-7, *sorted(pmf.values())[-LINES:][:1])
    for value, p in pmf.items():
        if p >= least:
            table.add_row(value, f"{p:.6f}")
    return table


def _numbers(*headers: str) -> Table:
    table = Table(*headers, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    return table
