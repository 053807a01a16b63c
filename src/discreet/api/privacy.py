"""P-tables and privacy losses as objects: solving, composing and converting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.api.arguments import names_arguments
from discreet.api.results import Result
from discreet.errors import mistake
from discreet.maths.exact_numbers import fraction
from discreet.maths.noise.ptable import PTable
from discreet.maths.noise.ptable_solver import PTableParameters, Variance, solve
from discreet.maths.privacy.accounting import Converted, Neighbours, converted
from discreet.maths.privacy.composition import Composable, Total, composed_deltas, composed_epsilons
from discreet.report.ptable import ptable_chart

Amount = int | float | str | Fraction


@names_arguments
def ptable(
    *,
    V: float | Sequence[float],
    D: int,
    js: int = 0,
    pstay: float | Sequence[float] | None = None,
    variance: str = "at-most",
) -> Result[PTable]:
    """The maximum-entropy p-table of the cell key method: variance ``V``, largest change ``D``, no counts 1 to ``js``.

    >>> import discreet as ds
    >>> table = ds.ptable(V=2, D=5, js=2)
    >>> table.smallest_positive
    3
    >>> table.chart().to_dict()["$schema"].startswith("https://vega.github.io/schema/vega-lite")
    True
    """
    given = PTableParameters(
        D,
        V if isinstance(V, int | float) else tuple(V),
        js,
        pstay if pstay is None or isinstance(pstay, int | float) else tuple(pstay),
        variance=_variance(variance),
    )
    found = solve(given)
    name = f"p-table for V {V:g}, D {D}" if isinstance(V, int | float) else f"p-table for D {D}"
    laws = [
        {
            int(change): float(p)
            for change, p in zip(found.changes(row), found.probabilities[row], strict=True)
        }
        for row in range(found.last_row + 1)
    ]
    head = f"{name}: {len(laws)} rows, changes of at most {found.reach}"
    rows = tuple(
        {"count": count, "change": change, "probability": p}
        for count, law in enumerate(laws)
        for change, p in law.items()
    )
    return Result(found, (head, *found.notes), drawings=(ptable_chart(laws, name),), rows=rows)


@dataclass(frozen=True)
class Accounting:
    """What several losses amount to together, in every way of composing them.

    >>> import discreet as ds
    >>> found = ds.accounting([ds.Rho(1)], delta=1e-10)
    >>> sorted(found.epsilons)
    ['advanced', 'basic', 'loss_distribution', 'zcdp']
    """

    epsilon_totals: tuple[Total, ...] = ()  # at the given delta
    delta_totals: tuple[Total, ...] = ()  # at the given epsilon

    @property
    def epsilons(self) -> dict[str, float | None]:
        """Way of composing -> epsilon at the given delta; None where it does not apply."""
        return {one.way.value: one.value for one in self.epsilon_totals}

    @property
    def deltas(self) -> dict[str, float | None]:
        """Way of composing -> delta at the given epsilon; None where it does not apply."""
        return {one.way.value: one.value for one in self.delta_totals}

    def as_json(self) -> dict[str, dict[str, float | None]]:
        """The totals by way."""
        return {"epsilon": self.epsilons, "delta": self.deltas}


@names_arguments
def accounting(
    losses: Iterable[Composable],
    *,
    delta: Amount | None = None,
    epsilon: Amount | None = None,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Result[Accounting]:
    """Compose the losses of several releases: their epsilon at a delta, or their delta at an epsilon.

    A loss is ``PureEpsilon``, ``EpsilonDelta`` or ``Rho`` of a whole release, or ``LaplaceNoise`` and ``GaussianNoise``
    of a cross-tabulation.

    >>> import discreet as ds
    >>> found = ds.accounting([ds.PureEpsilon(1), ds.PureEpsilon(2)], delta=1e-10)
    >>> found.epsilons["basic"]
    3.0
    """
    releases = list(losses)
    if not releases:
        raise mistake("", "losses", "none", "give at least one, such as Rho(1)")
    if delta is None and epsilon is None:
        raise mistake(
            "", "delta or epsilon", "none", "give the delta at which to report epsilon, or the reverse"
        )
    found = Accounting(
        () if delta is None else composed_epsilons(releases, neighbours, _exact(delta, "delta")),
        () if epsilon is None else composed_deltas(releases, neighbours, _exact(epsilon, "epsilon")),
    )
    lines = [
        *(f"epsilon {_shown(one)}" for one in found.epsilon_totals),
        *(f"delta {_shown(one)}" for one in found.delta_totals),
    ]
    return Result(found, (f"{len(releases):,} releases, {neighbours.value}", *lines))


@names_arguments
def convert(
    *, rho: Amount | None = None, epsilon: Amount | None = None, delta: Amount | None = None
) -> Result[Converted]:
    """The third of rho, epsilon and delta from two of them, or the rho that a pure epsilon implies.

    >>> import discreet as ds
    >>> round(ds.convert(rho=1, delta=1e-10).published, 2)
    10.6
    """
    given = {"rho": rho, "epsilon": epsilon, "delta": delta}
    exact = {name: None if value is None else _exact(value, name) for name, value in given.items()}
    found = converted(exact["rho"], exact["epsilon"], exact["delta"])
    return Result(found, (f"{found.what} {found.published:.6g} as published, {found.tighter:.6g} at best",))


def _variance(given: str) -> Variance:
    if given not in list(Variance):
        raise mistake("", "variance", repr(given), f"choose from {', '.join(Variance)}")
    return Variance(given)


def _exact(amount: Amount, name: str) -> Fraction:
    try:
        return fraction(str(amount))
    except ValueError:
        raise mistake("", name, repr(amount), 'give a number, or a fraction such as "1/3"') from None


def _shown(one: Total) -> str:
    return f"({one.way.value}): " + (f"{one.value:.6g}" if one.value is not None else one.reason)
