"""``discreet risk bayes``: what one who knows everyone but the target learns from a count; it owns no formula."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.output import JSON, emit_json
from discreet.cli.risk_noise import PTABLE, say
from discreet.errors import mistake
from discreet.maths.bayes_hierarchy import Chain, Hierarchy
from discreet.maths.bayes_risk import Adversary
from discreet.maths.laws import AdditiveLaw, discrete_gaussian, discrete_laplace, exact
from discreet.maths.row_laws import PTableLaw
from discreet.schema.ptable_files import read_ptable

SHOWN = 5  # published counts above the known one that are told


@dataclass(frozen=True)
class _Above:
    """What the options say of the larger group."""

    rho: str | None
    epsilon: str | None
    groups: int | None
    counts: str | None
    published: str | None
    chain: Chain

    @property
    def given(self) -> bool:
        """Whether there is a larger group at all."""
        return any(
            value is not None for value in (self.rho, self.epsilon, self.groups, self.counts, self.published)
        )


def bayes(
    rho: Annotated[str | None, typer.Option("--rho", help="Discrete Gaussian noise, also as 1/10.")] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="Two-sided geometric noise.")] = None,
    ptable: PTABLE = None,
    prior: Annotated[str, typer.Option("--prior", help="The adversary's prior, also as 1/864.")] = "0.5",
    known: Annotated[
        int, typer.Option("--known", help="Others with the target's characteristics.", min=0)
    ] = 0,
    published: Annotated[
        str | None,
        typer.Option("--published", help="Published counts to tell the posterior of, with commas."),
    ] = None,
    hierarchy_rho: Annotated[
        str | None, typer.Option("--hierarchy-rho", help="Gaussian noise of the larger group.")
    ] = None,
    hierarchy_epsilon: Annotated[
        str | None, typer.Option("--hierarchy-epsilon", help="Geometric noise of the larger group.")
    ] = None,
    hierarchy_groups: Annotated[
        int | None,
        typer.Option("--hierarchy-groups", help="How many other groups the larger one has.", min=1),
    ] = None,
    hierarchy_counts: Annotated[
        str | None, typer.Option("--hierarchy-counts", help="True counts of the larger group, with commas.")
    ] = None,
    hierarchy_published: Annotated[
        str | None,
        typer.Option(
            "--hierarchy-published",
            help="Published counts: the group's, the larger one's, the others' sum: 2,1,-1.",
        ),
    ] = None,
    hierarchy_chain: Annotated[
        Chain,
        typer.Option("--hierarchy-chain", help="exact, or as the paper's sampler, which drops X1 <= X2."),
    ] = Chain.EXACT,
    as_json: JSON = False,
) -> None:
    """Tell the posterior, the risk and the decisions of an adversary who knows everyone in a group but one person."""
    law, belief = _law(rho, epsilon, ptable), _prior(prior)
    one = Adversary(law, known, belief)
    shown = range(known + 1, known + 1 + SHOWN) if published is None else _integers("--published", published)
    above = _Above(
        hierarchy_rho,
        hierarchy_epsilon,
        hierarchy_groups,
        hierarchy_counts,
        hierarchy_published,
        hierarchy_chain,
    )
    limit = 1 / belief if law.rho is None else min(1 / belief, _exp(2 * law.rho))
    report: dict[str, Any] = {
        "prior": belief,
        "known": known,
        "posterior": one.mean_posterior,
        "risk": one.risk,
        "largest_risk": limit,
        "correct": one.correct,
        "mistaken": one.mistaken,
        "published": [_published(one, count) for count in shown],
        "hierarchy": _hierarchy(law, known, belief, above) if above.given else None,
    }
    if as_json:
        emit_json(report)
        return
    _print(report)


def _published(one: Adversary, count: int) -> dict[str, Any]:
    return {
        "count": count,
        "probability": one.with_target.at(count),
        "probability_without": one.without.at(count),
        "posterior": one.posterior(count),
        "risk": one.ratio(count),
    }


def _hierarchy(law: AdditiveLaw | PTableLaw, known: int, prior: float, above: _Above) -> dict[str, Any]:
    if isinstance(law, PTableLaw):
        raise mistake(
            "", "--ptable", "with a hierarchy", "give --rho or --epsilon: its noise must not depend on counts"
        )
    upper = _law(above.rho, above.epsilon, None, "--hierarchy-")
    if above.groups is None:
        raise mistake("", "--hierarchy-groups", "missing", "give the number of other groups")
    if not isinstance(upper, AdditiveLaw):
        raise mistake("", "--hierarchy-rho", "missing", "give the noise of the larger group")
    made = Hierarchy(law, upper, above.groups, known, prior)
    counts = [] if above.counts is None else _integers("--hierarchy-counts", above.counts)
    if any(count <= known for count in counts):
        raise mistake("", "--hierarchy-counts", str(above.counts), f"give counts of at least {known + 1}")
    return {
        "groups": above.groups,
        "correct": [{"count": count, "correct": made.correct(count)} for count in counts],
        "chain": above.chain.value,
        "posterior": None
        if above.published is None
        else made.posterior(*_triple(above.published), above.chain),
    }


def _law(
    rho: str | None, epsilon: str | None, ptable: Path | None, prefix: str = "--"
) -> AdditiveLaw | PTableLaw:
    given = [value for value in (rho, epsilon, ptable) if value is not None]
    if len(given) != 1:
        names = f"{prefix}rho, {prefix}epsilon{' or --ptable' if prefix == '--' else ''}"
        raise mistake("", names, f"{len(given)} of them", "give one of them")
    if ptable is not None:
        return PTableLaw(read_ptable(ptable).law())
    return discrete_gaussian(rho) if rho is not None else discrete_laplace(str(epsilon))


def _prior(text: str) -> float:
    found = float(exact("--prior", text))
    if not 0 < found < 1:
        raise mistake("", "--prior", text, "give a number between 0 and 1")
    return found


def _integers(name: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.removeprefix("-").isdecimal() for part in parts):
        raise mistake("", name, text, "give whole numbers with commas")
    return [int(part) for part in parts]


def _triple(text: str) -> tuple[int, int, int]:
    found = _integers("--hierarchy-published", text)
    if len(found) != 3:
        raise mistake("", "--hierarchy-published", text, "give three whole numbers, as 2,1,-1")
    return found[0], found[1], found[2]


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf


def _print(report: dict[str, Any]) -> None:
    say(
        f"prior {report['prior']:.6g}: posterior {report['posterior']:.4f} on average, risk {report['risk']:.4f}"
    )
    say(
        f"decides for a target who is there with probability {report['correct']:.4g}, for one who is not with "
        f"{report['mistaken']:.4g}"
    )
    for one in report["published"]:
        say(
            f"published {one['count']} (probability {one['probability']:.4f}): posterior {one['posterior']:.4f}, "
            f"risk {one['risk']:.4f}"
        )
    above = report["hierarchy"]
    for one in above["correct"] if above else ():
        say(f"larger group with {one['count']}: right with probability {one['correct']:.4f}")
    if above and above["posterior"] is not None:
        say(f"with the larger group's counts: posterior {above['posterior']:.4f} ({above['chain']})")
