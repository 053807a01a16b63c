"""``discreet risk averaging``: the probability that a mean of sums is the true count."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from discreet.cli.options import ALPHA, confidence, variance
from discreet.cli.output import JSON, emit_json, say
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
from discreet.maths.attacks.bounds import maximum_entropy

MOST_CELLS = 10**15


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
