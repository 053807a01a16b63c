"""``discreet risk bound``: the tuples that reveal the bound of bounded noise."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import ALPHA, PTABLE, confidence
from discreet.cli.output import JSON, emit_json, say
from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.maths.attacks.bounds import (
    epsilon_of_bound,
    epsilon_of_reconstruction,
    maximum_entropy,
    pinned,
    pinned_small,
    revealed,
    reveals,
    tuples_needed,
)
from discreet.maths.noise.additive import uniform
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve

if TYPE_CHECKING:
    from discreet.io import ptable_files
else:
    ptable_files = lazily("discreet.io.ptable_files")

SMALL = 8  # pairs of true counts up to this are enumerated
LARGEST_ENUMERATED = 20  # largest change for which they are


def bound(
    V: Annotated[float | None, typer.Option("--V", help="The variance of a cell's noise.")] = None,
    D: Annotated[int | None, typer.Option("--D", help="The largest change.")] = None,
    ptable: PTABLE = None,
    tuples: Annotated[
        int | None, typer.Option("--tuples", help="Number of published tuples {F, M, T}.", min=1)
    ] = None,
    counts: Annotated[
        int | None,
        typer.Option("--counts", help="Number of counts that Laplace noise has to keep within D.", min=1),
    ] = None,
    records: Annotated[
        int | None, typer.Option("--records", help="Number of records that might be reconstructed.", min=2)
    ] = None,
    alpha: ALPHA = 0.68,
    as_json: JSON = False,
) -> None:
    """Compute how many tuples {F, M, T} reveal the largest change, and how many then disclose their counts."""
    confidence("--alpha", alpha)
    noise, law = _noise(ptable, V, D)
    reach = max(-noise.first, noise.last)
    p1 = reveals(noise, reach)
    needed = tuples_needed(p1, alpha)
    report: dict[str, Any] = {
        "V": V,
        "D": reach,
        "alpha": alpha,
        "p1": p1,
        "m": None if math.isinf(needed) else needed if needed < 2**53 else float(needed),
        "uniform_p1": reveals(uniform(reach).pmf, reach),
        "pinned": pinned(noise),
        "pinned_small": None if law is None else _pinned_small(law),
        "tuples": tuples,
        "revealed": None if tuples is None else revealed(p1, tuples),
        "expected_pinned": None if tuples is None else tuples * pinned(noise),
        "epsilon_of_bound": None if counts is None else epsilon_of_bound(reach, counts, alpha),
        "epsilon_of_reconstruction": None if records is None else epsilon_of_reconstruction(records, alpha),
    }
    if as_json:
        emit_json(report)
        return
    _print_bound(report)


def _pinned_small(law: PTableLaw) -> list[dict[str, Any]]:
    found = pinned_small(law.row, law.ptable.reach, SMALL)
    return [{"F": one.first, "M": one.second, "probability": one.probability} for one in found]


def _print_bound(report: dict[str, Any]) -> None:
    say(
        f"a tuple reveals the bound {report['D']} with probability {report['p1']:.4g} (uniform noise: "
        f"{report['uniform_p1']:.4g})"
    )
    needed = "no number of" if report["m"] is None else f"{report['m']:.7g}"
    say(f"{needed} tuples reveal it with confidence {report['alpha']:g}")
    say(f"once it is known, a tuple of large counts is disclosed with probability {report['pinned']:.4g}")
    if report["pinned_small"]:
        worst = max(report["pinned_small"], key=lambda one: one["probability"])
        say(f"of small counts at most {worst['probability']:.4g}, at F {worst['F']} and M {worst['M']}")
    if report["tuples"] is not None:
        say(
            f"{report['tuples']} tuples reveal it with probability {report['revealed']:.4g} and disclose "
            f"{report['expected_pinned']:.4g} tuples"
        )
    for name, text in (
        ("epsilon_of_bound", "Laplace noise stays within the bound with epsilon"),
        ("epsilon_of_reconstruction", "the records can be reconstructed with epsilon"),
    ):
        if report[name] is not None:
            say(f"{text} {report[name]:.4g} or more for each count")


def _noise(ptable: Path | None, V: float | None, D: int | None) -> tuple[Pmf, PTableLaw | None]:
    """The noise of large counts, and the table of the small ones where it is small enough to be enumerated."""
    if ptable is not None:
        if V is not None or D is not None:
            raise mistake("", "--ptable", str(ptable), "leave out --V and --D, which the table has")
        law = PTableLaw(ptable_files.read_ptable(ptable).law())
        last = law.ptable.last_row
        return law.row(last).shifted(-last), law if law.ptable.reach <= LARGEST_ENUMERATED else None
    if V is None or D is None:
        raise mistake("", "--V, --D", "missing", "give both, or --ptable")
    noise = maximum_entropy(V, D)
    return noise, PTableLaw(solve(PTableParameters(D, V))) if D <= LARGEST_ENUMERATED else None
