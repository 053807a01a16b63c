"""Privacy losses as objects: composing and converting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from discreet.api.arguments import names_arguments
from discreet.api.results import Result
from discreet.errors import mistake
from discreet.maths.exact_numbers import fraction
from discreet.maths.privacy.accounting import Converted, Neighbours, converted
from discreet.maths.privacy.composition import Composable, Total, Way, composed_deltas, composed_epsilons

Amount = int | float | str | Fraction


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
    return Result(found, (f"{len(releases):,} releases, neighbours {neighbours.value}", *lines))


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
    known = ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)
    line = f"{known}: {found.what} {found.published:.6g}"
    if found.published != found.tighter:
        line += f" as published (Bun & Steinke 2016), {found.tighter:.6g} by the tighter formula"
    return Result(found, (line,))


def _exact(amount: Amount, name: str) -> Fraction:
    try:
        return fraction(str(amount))
    except ValueError:
        raise mistake("", name, repr(amount), 'give a number, or a fraction such as "1/3"') from None


_WAYS = {Way.ZCDP: "zCDP", Way.LOSS_DISTRIBUTION: "loss distribution"}


def _shown(one: Total) -> str:
    return f"({_WAYS.get(one.way, one.way.value)}): " + (
        f"{one.value:.6g}" if one.value is not None else one.reason
    )
