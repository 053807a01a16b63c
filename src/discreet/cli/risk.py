"""``discreet risk``: what an outsider can find out, by formula and without data."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from discreet.audit.redundancy import (
    Mode,
    Regions,
    UniverseRedundancy,
    eu_redundancy,
    programme_redundancy,
    regions_of,
)
from discreet.cli.noise_options import (
    PTABLE,
    NoiseOptions,
    Renamed,
    confidence,
    expanded,
    ptable_law,
    variance,
)
from discreet.cli.output import JSON, console, emit_json, say
from discreet.cli.risk_bayes import app as bayes
from discreet.cli.risk_differencing import differencing
from discreet.cli.risk_subsets import subsets
from discreet.errors import mistake
from discreet.maths.attacks.averaging import (
    chebyshev,
    contour,
    exact_success,
    geometric_epsilon,
    laplace_epsilon,
    least_variance,
    success,
)
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
from discreet.maths.attacks.redundancy import Average, Exposure, Redundancy
from discreet.maths.noise.additive import uniform
from discreet.maths.noise.certificates import agreement, fixed_zeros_delta, same_participants_delta
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.programme import eu2021
from discreet.programme.programme import load_declaration

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

SHOWN = 10
MOST_CELLS = 10**15
SMALL = 8  # pairs of true counts up to this are enumerated
LARGEST_ENUMERATED = 20  # largest change for which they are

ALPHA = Annotated[float, typer.Option("--alpha", help="The required confidence.")]


@app.callback()
def risk() -> None:
    """Compute by formula what an outsider can find out."""


app.add_typer(bayes, name="bayes")
app.command()(differencing)
app.command()(subsets)


@app.command()
def redundancy(
    programme: Annotated[str, typer.Argument(help="A programme file, or eu-census-2021.")],
    country: Annotated[
        str | None,
        typer.Option("--country", help="eu-census-2021: the country whose regions are used, e.g. MT."),
    ] = None,
    regions: Annotated[
        str | None,
        typer.Option("--regions", help="eu-census-2021: numbers of NUTS 1, 2, 3 and LAU, e.g. 1,1,2,68."),
    ] = None,
    mode: Annotated[Mode, typer.Option("--mode", help="What counts as a representation.")] = Mode.LITERAL,
    as_json: JSON = False,
) -> None:
    """Count the representations t of each statistic and the cells k they add up; a low k / t^2 means exposed."""
    places = _regions(programme, country, regions)
    universes = (
        programme_redundancy(load_declaration(Path(programme)), mode)
        if places is None
        else eu_redundancy(places, mode)
    )
    report: dict[str, Any] = {
        "programme": programme,
        "country": country,
        "regions": None
        if places is None
        else dict(zip(("NUTS1", "NUTS2", "NUTS3", "LAU"), places, strict=True)),
        "mode": mode.value,
        "universes": [_universe(universe) for universe in universes],
    }
    if as_json:
        emit_json(report)
        return
    for universe in universes:
        console.print(_exposed(universe))


@app.command()
def averaging(
    V: Annotated[float, typer.Option("--V", help="The variance of a cell's noise.")],
    k: Annotated[int, typer.Option("--k", help="Number of cells added up in total.", min=1)],
    t: Annotated[int, typer.Option("--t", help="Number of representations averaged.", min=1)],
    D: Annotated[
        int | None, typer.Option("--D", help="The largest change, for the exact law of cell key noise.")
    ] = None,
    alpha: ALPHA = 0.68,
    as_json: JSON = False,
) -> None:
    """Compute the probability that the mean of t representations, sums of k cells in all, rounds to the true count."""
    variance("--V", V)
    confidence("--alpha", alpha)
    if not t <= k <= MOST_CELLS:
        raise mistake("", "--k", str(k), f"give {t}, one cell for each representation, to {MOST_CELLS}")
    ratio = k / t**2
    least = least_variance(ratio, alpha)
    report: dict[str, Any] = {
        "V": V,
        "k": k,
        "t": t,
        "k_over_t2": ratio,
        "success": success(V, ratio),
        "chebyshev": chebyshev(V, ratio),
        "exact": None if D is None else exact_success(maximum_entropy(V, D), k, t),
        "alpha": alpha,
        "contour": contour(alpha),
        "least_variance": least,
        "largest_epsilon": {"laplace": laplace_epsilon(least), "geometric": geometric_epsilon(least)},
    }
    if as_json:
        emit_json(report)
        return
    exact = "" if report["exact"] is None else f", by the exact law {report['exact']:.4f}"
    say(f"k/t2 {ratio:.6g}: averaging succeeds with probability {report['success']:.4f}{exact}")
    say(f"for any noise at least {report['chebyshev']:.4f} (Chebyshev)")
    say(
        f"below {alpha:g} with a variance of at least {least:.6g} "
        f"(epsilon {laplace_epsilon(least):.4g} of Laplace noise)"
    )


@app.command()
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


@app.command()
@expanded
def dp(
    noise: Annotated[NoiseOptions, Renamed("--epsilon", "--noise-epsilon")],
    epsilon: Annotated[
        str, typer.Option("--epsilon", help="Values at which to report delta, separated by commas: 0,0.5,1.")
    ],
    as_json: JSON = False,
) -> None:
    """Report the exact delta of a law at each epsilon, and that of fixed zeros and of the same noise at any epsilon."""
    places = _epsilons(epsilon)
    law = noise.law()
    last = law.ptable.last_row if isinstance(law, PTableLaw) else 1
    curve = [{"epsilon": place, "delta": law.delta(place)} for place in places]
    report: dict[str, Any] = {
        "law": "cell-key" if noise.ptable is not None else noise.parameters().kind.value,
        "delta": curve[0]["delta"],
        "curve": curve,
        "neighbours": "one record added or removed; every record in one cell; independent noise",
        "fixed_zeros_delta": fixed_zeros_delta(law),
        "same_participants": [
            {"count": i, "agreement": agreement(law, i), "delta": same_participants_delta(law, i)}
            for i in range(1, last + 1)
        ],
    }
    if as_json:
        emit_json(report)
        return
    for point in curve:
        say(f"epsilon {point['epsilon']:g}: delta {point['delta']:.6g}")
    say(f"zeros that stay zero: delta at least {report['fixed_zeros_delta']:.6g} at every epsilon")
    worst = max(report["same_participants"], key=lambda one: one["delta"])
    say(
        f"the same noise for the same participants: delta at least {worst['delta']:.6g} at every epsilon (a person "
        f"with {worst['count']} others)"
    )


def _epsilons(text: str) -> list[float]:
    try:
        places = [float(part) for part in text.split(",")]
    except ValueError:
        places = []
    if not places or not all(0 <= place < math.inf for place in places):
        raise mistake("", "--epsilon", text, "give numbers of at least 0, separated by commas, e.g. 0,0.5,1")
    return places


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
        law = ptable_law(ptable)
        last = law.ptable.last_row
        return law.row(last).shifted(-last), law if law.ptable.reach <= LARGEST_ENUMERATED else None
    if V is None or D is None:
        raise mistake("", "--V, --D", "missing", "give both, or --ptable")
    noise = maximum_entropy(V, D)
    return noise, PTableLaw(solve(PTableParameters(D, V))) if D <= LARGEST_ENUMERATED else None


def _regions(programme: str, country: str | None, regions: str | None) -> Regions | None:
    """The regions of the EU programme; None for a declared one, which has its own."""
    if programme != eu2021.NAME:
        for name, value in (("--country", country), ("--regions", regions)):
            if value is not None:
                raise mistake(
                    "",
                    name,
                    value,
                    f"leave it out, or use {eu2021.NAME}: a programme file declares its regions",
                )
        return None
    if (country is None) == (regions is None):
        raise mistake("", "--country or --regions", "none" if country is None else "both", "give one of them")
    if country is not None:
        return regions_of(country)
    parts = str(regions).split(",")
    if len(parts) != 4 or not all(part.strip().isdecimal() for part in parts):
        raise mistake("", "--regions", str(regions), "give four whole numbers, e.g. 1,1,2,68")
    nuts1, nuts2, nuts3, lau = (int(part) for part in parts)
    return nuts1, nuts2, nuts3, lau


def _universe(universe: UniverseRedundancy) -> dict[str, Any]:
    return {
        "counted": universe.counted,
        "tables": universe.tables,
        "most_exposed": {
            "same_noise": [_name(one) for one in _by_risk(universe, same=True)[:SHOWN]],
            "fresh_noise": [_name(one) for one in _by_risk(universe, same=False)[:SHOWN]],
        },
        "statistics": [
            {
                "statistic": _name(one),
                "same_noise": _exposure(one.same_noise),
                "fresh_noise": _exposure(one.fresh_noise),
            }
            for one in universe.statistics
        ],
    }


def _by_risk(universe: UniverseRedundancy, same: bool) -> list[Redundancy]:
    return sorted(
        universe.statistics,
        key=lambda one: (one.same_noise if same else one.fresh_noise).best.variance,
    )


def _name(one: Redundancy) -> str:
    return " x ".join(level.name for level in sorted(one.statistic)) or "total"


def _exposure(found: Exposure) -> dict[str, Any]:
    return {
        **_average(found.all),
        "riskiest": _average(found.riskiest),
        "first_minimum": _average(found.first_minimum),
        "best": found.best.variance,
    }


def _average(found: Average) -> dict[str, Any]:
    whole = found.k.denominator == 1
    return {"t": found.t, "k": int(found.k) if whole else float(found.k), "k_over_t2": found.ratio}


def _exposed(universe: UniverseRedundancy) -> Table:
    """The statistics that averaging threatens most, with the same noise for the same participants."""
    headers = ("t", "k", "k/t2", "best", "t", "k", "k/t2", "best")
    table = Table(universe.counted, *headers, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.title = "same noise for the same participants | independent noise in every table"
    for column in table.columns[1:]:
        column.justify = "right"
    for one in _by_risk(universe, same=True)[:SHOWN]:
        numbers = [_numbers(found) for found in (one.same_noise, one.fresh_noise)]
        table.add_row(_name(one), *numbers[0], *numbers[1])
    return table


def _numbers(found: Exposure) -> tuple[str, ...]:
    ratios = (f"{found.all.ratio:.4g}", f"{found.best.variance:.4f}")
    return str(found.all.t), f"{float(found.all.k):.4g}", *ratios
