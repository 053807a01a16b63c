"""``discreet accounting``: compose the privacy losses of several releases, and convert rho, epsilon and delta."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import typer
from rich.table import Table

from discreet.cli.output import JSON, console, emit_json, say
from discreet.errors import mistake
from discreet.maths.noise.additive import exact, positive
from discreet.maths.privacy.accounting import (
    Converted,
    EpsilonDelta,
    Neighbours,
    PureEpsilon,
    Rho,
    converted,
)
from discreet.maths.privacy.composition import Composable, Total, Way, composed_deltas, composed_epsilons
from discreet.maths.privacy.loss_distribution import GaussianNoise, LaplaceNoise

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

MOST = 10_000  # releases of one kind
LEAST_GAUSSIAN = Fraction(1, 10**7)  # below it the loss distribution has too many points
NAMES = {
    Way.BASIC: "basic (sums)",
    Way.ADVANCED: "advanced",
    Way.ZCDP: "zCDP",
    Way.LOSS_DISTRIBUTION: "privacy-loss distribution",
}
MEANING = {
    Neighbours.ADD_REMOVE: "one record added or removed: one cell of a cross-tabulation changes, by one",
    Neighbours.SUBSTITUTE: "one record with other values, their number being public: two cells of a "
    "cross-tabulation change, by one each",
}
UNCHANGED = "those of the loss that is given: a conversion does not change them"


@app.callback()
def accounting() -> None:
    """Compose the privacy losses of several releases, and convert rho, epsilon and delta into each other."""


@dataclass(frozen=True)
class Repeated:
    """Releases of one kind and size: how often, and how they were given."""

    option: str
    amount: str
    times: int
    release: Composable

    def summary(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"kind": self.option.removeprefix("--"), "amount": self.amount, "times": self.times}


@app.command()
def compose(
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            "--epsilon",
            help="Releases with this epsilon: 0.5, 1/3, 0.5*3 (three of them), 0.5,1e-9 (with a delta). Repeatable.",
        ),
    ] = None,
    rho: Annotated[
        list[str] | None,
        typer.Option(
            "--rho", help="Releases with this rho of zCDP whose noise is not known, e.g. 0.1*3. Repeatable."
        ),
    ] = None,
    laplace: Annotated[
        list[str] | None,
        typer.Option(
            "--laplace",
            help="Cross-tabulations with discrete Laplace (geometric) noise of this epsilon per cell, e.g. 0.1*103. "
            "Repeatable.",
        ),
    ] = None,
    gaussian: Annotated[
        list[str] | None,
        typer.Option(
            "--gaussian",
            help="Cross-tabulations with discrete Gaussian noise of this rho per cell, e.g. 1/40*103. Repeatable.",
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option("--delta", help="Report the epsilon of all releases at this delta, e.g. 1e-10."),
    ] = None,
    at_epsilon: Annotated[
        str | None, typer.Option("--at-epsilon", help="Report the delta of all releases at this epsilon.")
    ] = None,
    neighbours: Annotated[
        Neighbours,
        typer.Option(
            "--neighbours", help="Which populations the guarantee compares: add-remove or substitute."
        ),
    ] = Neighbours.ADD_REMOVE,
    as_json: JSON = False,
) -> None:
    """Compose losses and noise in four ways: sums, advanced, zCDP, privacy-loss distributions.

    --epsilon and --rho are losses of whole releases, for the same neighbours. --laplace and --gaussian are
    noise, charged once for each cell in which neighbours differ.
    """
    given = list(_given(epsilon or (), rho or (), laplace or (), gaussian or ()))
    if not given:
        raise mistake("", "--epsilon, --rho, --laplace or --gaussian", "none", "give at least one release")
    if delta is None and at_epsilon is None:
        raise mistake(
            "",
            "--delta or --at-epsilon",
            "none",
            "give the delta at which to report epsilon, or the epsilon at which to report delta",
        )
    releases = [one.release for one in given for _ in range(one.times)]
    epsilons = () if delta is None else composed_epsilons(releases, neighbours, _delta(delta))
    deltas = () if at_epsilon is None else composed_deltas(releases, neighbours, _epsilon(at_epsilon))
    if as_json:
        emit_json(
            {
                "releases": [one.summary() for one in given],
                "neighbours": neighbours.value,
                "neighbours_meaning": MEANING[neighbours],
                "delta": None if delta is None else float(_delta(delta)),
                "epsilon_at_delta": _values(epsilons),
                "epsilon": None if at_epsilon is None else float(_epsilon(at_epsilon)),
                "delta_at_epsilon": _values(deltas),
                "not_available": {one.way.value: one.reason for one in (*epsilons, *deltas) if one.reason},
            }
        )
        return
    say(f"{len(releases):,} releases; neighbours: {MEANING[neighbours]}")
    _print(epsilons, f"epsilon at delta {delta}")
    _print(deltas, f"delta at epsilon {at_epsilon}")


@app.command()
def convert(
    rho: Annotated[str | None, typer.Option("--rho", help="rho of zCDP, also as 1/3.")] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", help="epsilon; with neither rho nor delta pure epsilon.")
    ] = None,
    delta: Annotated[str | None, typer.Option("--delta", help="delta, e.g. 1e-10.")] = None,
    as_json: JSON = False,
) -> None:
    """Convert rho, epsilon and delta: give two of them, the third is reported by the published and a tighter formula.

    A pure epsilon by itself implies rho = epsilon^2/2.
    """
    given = {
        name: value
        for name, value in (("rho", rho), ("epsilon", epsilon), ("delta", delta))
        if value is not None
    }
    found = _converted(rho, epsilon, delta)
    asked, published, tighter = found.what, found.published, found.tighter
    report = {
        "given": {name: float(exact(f"--{name}", value)) for name, value in given.items()},
        "asked": asked,
        "published": published,
        "tighter": tighter,
        "neighbours": UNCHANGED,
    }
    if as_json:
        emit_json(report)
        return
    known = ", ".join(f"{name} {value}" for name, value in given.items())
    if published == tighter:
        say(f"{known}: {asked} {published:.6g}")
    else:
        say(f"{known}: {asked} {published:.6g} as published (Bun & Steinke 2016)")
        say(
            f"{' ' * len(known)}  {asked} {tighter:.6g} by the tighter formula (Canonne, Kamath & Steinke 2020)"
        )
    say(f"neighbours: {UNCHANGED}")


def _converted(rho: str | None, epsilon: str | None, delta: str | None) -> Converted:
    """The third of rho, epsilon and delta."""
    return converted(
        None if rho is None else positive("--rho", rho),
        None if epsilon is None else _epsilon(epsilon, "--epsilon", zero=rho is not None),
        None if delta is None else _delta(delta),
    )


def _given(
    epsilon: Sequence[str], rho: Sequence[str], laplace: Sequence[str], gaussian: Sequence[str]
) -> Iterator[Repeated]:
    kinds: tuple[tuple[str, Sequence[str], Callable[[str, str], Composable]], ...] = (
        ("--epsilon", epsilon, _bounded),
        ("--rho", rho, lambda option, text: Rho(positive(option, text))),
        ("--laplace", laplace, lambda option, text: LaplaceNoise(positive(option, text))),
        ("--gaussian", gaussian, _gaussian),
    )
    for option, texts, made in kinds:
        for text in texts:
            amount, star, times = (part.strip() for part in text.partition("*"))
            if star and not (times.isdecimal() and 1 <= int(times) <= MOST):
                raise mistake("", option, text, f"give their number after the *, 1 to {MOST:,}, e.g. 0.5*3")
            yield Repeated(option, amount, int(times) if star else 1, made(option, amount))


def _gaussian(option: str, text: str) -> GaussianNoise:
    rho = positive(option, text)
    if rho < LEAST_GAUSSIAN:
        remedy = f"give at least {float(LEAST_GAUSSIAN):g}, or its loss as --rho"
        raise mistake("", option, text, remedy)
    return GaussianNoise(rho)


def _bounded(option: str, text: str) -> PureEpsilon | EpsilonDelta:
    epsilon, comma, delta = (part.strip() for part in text.partition(","))
    if not comma:
        return PureEpsilon(positive(option, epsilon))
    return EpsilonDelta(positive(option, epsilon), _delta(delta, option))


def _delta(text: str, option: str = "--delta") -> Fraction:
    found = exact(option, text)
    if not 0 < found < 1:
        raise mistake("", option, text, "give a delta above 0 and below 1, e.g. 1e-10")
    return found


def _epsilon(text: str, option: str = "--at-epsilon", *, zero: bool = True) -> Fraction:
    """An epsilon; one at which a delta is reported may be 0."""
    found = exact(option, text)
    if found < 0:
        raise mistake("", option, text, "give a number of at least 0")
    return found if zero and found == 0 else positive(option, text)


def _values(totals: Sequence[Total]) -> dict[str, float | None] | None:
    return {one.way.value: one.value for one in totals} or None


def _print(totals: Sequence[Total], what: str) -> None:
    if not totals:
        return
    table = Table("composition", what, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for one in totals:
        table.add_row(NAMES[one.way], f"{one.value:.6g}" if one.value is not None else f"- ({one.reason})")
    console().print(table)
