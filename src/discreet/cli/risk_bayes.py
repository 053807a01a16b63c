"""``discreet risk bayes``: what an adversary who knows everyone but the target learns from counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.noise_options import (
    BOUND,
    JS,
    NEGATIVES,
    PTABLE,
    ROUNDING,
    THRESHOLD,
    AnyLaw,
    D,
    V,
    ptable_law,
    say,
)
from discreet.cli.output import JSON, emit_json
from discreet.errors import mistake
from discreet.maths.attacks.bayes import Adversary, Rows, Together
from discreet.maths.attacks.bayes_hierarchy import Chain, Hierarchy
from discreet.maths.attacks.bayes_histogram import HistogramAdversary
from discreet.maths.noise.additive import AdditiveLaw, LawKind, discrete_gaussian, discrete_laplace, exact
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.named import NoiseParameters, named_law
from discreet.maths.noise.publishing import UNCHANGED, Negatives, PublishedLaw, Publishing


@dataclass(frozen=True)
class LawOptions:
    """What the options say of the noise."""

    rho: str | None = None
    epsilon: str | None = None
    ptable: Path | None = None
    kind: LawKind | None = None
    bound: int | None = None
    D: int | None = None
    V: float | None = None
    js: int | None = None

    def law(self) -> AnyLaw:
        """The law: by its kind, or the one that a single parameter means."""
        if self.kind is not None:
            if self.ptable is not None:
                raise mistake("", "--ptable or --kind", "both", "give one of them")
            wanted = NoiseParameters(
                self.kind, self.epsilon, self.bound, self.rho, D=self.D, V=self.V, js=self.js
            )
            return named_law(wanted)
        more = [name for name, value in (("--bound", self.bound), ("--D", self.D), ("--V", self.V), ("--js", self.js))
                if value is not None]  # fmt: skip
        if more:
            raise mistake("", ", ".join(more), "without a kind", "say with --kind which noise it is")
        return short_law(self.rho, self.epsilon, self.ptable)


def short_law(
    rho: str | None, epsilon: str | None, ptable: Path | None, prefix: str = "--"
) -> AdditiveLaw | PTableLaw:
    """Gaussian noise by its rho, geometric noise by its epsilon, or a p-table."""
    given = [value for value in (rho, epsilon, ptable) if value is not None]
    if len(given) != 1:
        names = f"{prefix}rho, {prefix}epsilon{' or --ptable' if prefix == '--' else ''}"
        raise mistake("", names, f"{len(given)} of them", "give one of them")
    if ptable is not None:
        return ptable_law(ptable)
    return discrete_gaussian(rho) if rho is not None else discrete_laplace(str(epsilon))


def as_published(law: AnyLaw, rule: Publishing) -> Rows:
    """The law of what is published; the noise itself where nothing is done to it."""
    return law if rule == UNCHANGED else PublishedLaw(law, rule)


def _publishing(negatives: Negatives, rounding: int, threshold: int) -> Publishing:
    if rounding < 1 or threshold < 0:
        value = f"{rounding} and {threshold}"
        raise mistake("", "--rounding and --threshold", value, "give at least 1 and 0")
    return Publishing(negatives, rounding, threshold)


MOST_CATEGORIES = 100_000
EXAMPLES = {"--level": "known=12,published=15,rho=1/4", "--release": "published=3,rho=1/10"}


@dataclass(frozen=True, eq=False)
class Observation:
    """The same target once more: in a larger group, or in another release."""

    adversary: Adversary
    published: int | None


def observations(
    option: str, texts: Sequence[str], law: Rows, known: int, rule: Publishing
) -> list[Observation]:
    """Read repeated options: known (of a level), published, and rho or epsilon where the noise is another one."""
    keys = {"published", "rho", "epsilon"} | ({"known"} if option == "--level" else set())
    found = []
    for text in texts:
        said = _pairs(option, text, keys)
        if option == "--level" and "known" not in said:
            raise mistake("", option, text, f"say how many others are known, as {EXAMPLES[option]}")
        own = (
            as_published(short_law(said.get("rho"), said.get("epsilon"), None, f"{option} "), rule)
            if {"rho", "epsilon"} & set(said)
            else law
        )
        others = _integer(option, said["known"]) if "known" in said else known
        if others < 0:
            raise mistake("", option, text, "give a known count of at least 0")
        shown = _integer(option, said["published"]) if "published" in said else None
        found.append(Observation(Adversary(own, others), shown))
    return found


def together(one: Adversary, counts: Sequence[int], others: Sequence[Observation]) -> dict[str, Any] | None:
    """What all observations tell: on average, and for each published count of the first with those of the others."""
    if not others:
        return None
    made = Together((one, *(other.adversary for other in others)), one.prior)
    shown = [other.published for other in others if other.published is not None]
    complete = len(shown) == len(others)
    return {
        "observations": len(made.parts),
        "posterior": made.mean_posterior,
        "risk": made.risk,
        "correct": made.correct,
        "mistaken": made.mistaken,
        "published": [
            {"counts": [count, *shown], "posterior": made.posterior([count, *shown])} for count in counts
        ]
        if complete
        else [],
    }


def histogram(
    law: Rows, known: str, prior: str | None, published: str | None, targets: str | None
) -> dict[str, Any]:
    """The attack on a whole histogram: baseline, success, chances by category and a posterior."""
    others = repeated("--histogram", known)
    if min(others) < 0:
        raise mistake("", "--histogram", known, "give counts of at least 0")
    one = HistogramAdversary(law, tuple(others), _beliefs(prior, len(others)))
    wanted = range(min(len(others), 5)) if targets is None else _categories(targets, len(others))
    shown = None if published is None else one.posterior(repeated("--histogram-published", published))
    return {
        "categories": len(others),
        "baseline": one.baseline,
        "success": one.success,
        "targets": [
            {
                "category": category + 1,
                "prior": one.prior[category],
                "posterior": one.mean_posterior(category),
                "correct": one.correct(category),
            }
            for category in wanted
        ],
        "posteriors": None if shown is None else shown.tolist(),
        "decision": None if shown is None else int(shown.argmax()) + 1,
    }


def repeated(option: str, text: str) -> list[int]:
    """Whole numbers with commas; 0x862 stands for 862 zeros."""
    found: list[int] = []
    for part in text.split(","):
        value, _, times = part.strip().partition("x")
        many = _integer(option, times) if times else 1
        if not 1 <= many <= MOST_CATEGORIES - len(found):
            raise mistake("", option, text, f"give 1 to {MOST_CATEGORIES} categories")
        found += [_integer(option, value)] * many
    return found


def _beliefs(text: str | None, categories: int) -> tuple[float, ...]:
    """Uniform, or weights that are made to add up to 1."""
    if text is None:
        return (1 / categories,) * categories
    weights = [exact("--histogram-prior", part.strip()) for part in text.split(",")]
    if min(weights) < 0 or not sum(weights):
        raise mistake("", "--histogram-prior", text, "give numbers of at least 0, not all 0")
    return tuple(float(weight / sum(weights)) for weight in weights)


def _categories(text: str, categories: int) -> list[int]:
    found = [_integer("--histogram-target", part.strip()) for part in text.split(",")]
    if not all(1 <= one <= categories for one in found):
        raise mistake("", "--histogram-target", text, f"give numbers of categories, 1 to {categories}")
    return [one - 1 for one in found]


def _pairs(option: str, text: str, keys: set[str]) -> dict[str, str]:
    said: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or key not in keys or key in said:
            raise mistake("", option, text, f"give {', '.join(sorted(keys))}, as {EXAMPLES[option]}")
        said[key] = value
    return said


def _integer(option: str, text: str) -> int:
    if not text.removeprefix("-").isdecimal() or len(text) > 15:
        raise mistake("", option, text, "give whole numbers")
    return int(text)


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
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", help="Two-sided geometric noise, or that of the kind.")
    ] = None,
    ptable: PTABLE = None,
    kind: Annotated[LawKind | None, typer.Option("--kind", help="Any law, with its parameters.")] = None,
    bound: BOUND = None,
    D: D = None,
    V: V = None,
    js: JS = None,
    negatives: NEGATIVES = Negatives.KEEP,
    rounding: ROUNDING = 1,
    threshold: THRESHOLD = 0,
    prior: Annotated[str, typer.Option("--prior", help="The adversary's prior, also as 1/864.")] = "0.5",
    known: Annotated[
        int, typer.Option("--known", help="Others with the target's characteristics.", min=0)
    ] = 0,
    published: Annotated[
        str | None,
        typer.Option("--published", help="Published counts to tell the posterior of, with commas."),
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option("--level", help="A larger group that is known too: known=12,published=15,rho=1/4."),
    ] = None,
    release: Annotated[
        list[str] | None,
        typer.Option(
            "--release", help="The same count with noise of its own elsewhere: published=3,rho=1/10."
        ),
    ] = None,
    histogram_known: Annotated[
        str | None,
        typer.Option(
            "--histogram", help="The others in each category, one of which is the target's: 34,10,0x862."
        ),
    ] = None,
    histogram_prior: Annotated[
        str | None, typer.Option("--histogram-prior", help="Weights of the categories; default: all alike.")
    ] = None,
    histogram_published: Annotated[
        str | None, typer.Option("--histogram-published", help="The published count of each category.")
    ] = None,
    histogram_target: Annotated[
        str | None,
        typer.Option("--histogram-target", help="Categories of the target to tell chances of: 1,3."),
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
    noise, belief = LawOptions(rho, epsilon, ptable, kind, bound, D, V, js).law(), _prior(prior)
    rule = _publishing(negatives, rounding, threshold)
    law = as_published(noise, rule)
    one = Adversary(law, known, belief)
    others = [
        *observations("--level", level or (), law, known, rule),
        *observations("--release", release or (), law, known, rule),
    ]
    if histogram_known is None and (histogram_prior or histogram_published or histogram_target):
        raise mistake("", "--histogram", "missing", "give the counts of the others in each category")
    shown = range(known + 1, known + 1 + SHOWN) if published is None else _integers("--published", published)
    above = _Above(
        hierarchy_rho,
        hierarchy_epsilon,
        hierarchy_groups,
        hierarchy_counts,
        hierarchy_published,
        hierarchy_chain,
    )
    limit = 1 / belief if noise.rho is None else min(1 / belief, _exp(2 * noise.rho))
    report: dict[str, Any] = {
        "prior": belief,
        "known": known,
        "posterior": one.mean_posterior,
        "risk": one.risk,
        "largest_risk": limit,
        "correct": one.correct,
        "mistaken": one.mistaken,
        "published": [_published(one, count) for count in shown],
        "together": together(one, shown, others),
        "histogram": None
        if histogram_known is None
        else histogram(law, histogram_known, histogram_prior, histogram_published, histogram_target),
        "hierarchy": _hierarchy(noise, rule, known, belief, above) if above.given else None,
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


def _hierarchy(law: AnyLaw, rule: Publishing, known: int, prior: float, above: _Above) -> dict[str, Any]:
    if not isinstance(law, AdditiveLaw):
        remedy = "give --rho or --epsilon: its noise must not depend on counts"
        raise mistake("", "the noise", "with a hierarchy", remedy)
    if rule != UNCHANGED:
        remedy = "leave out --negatives, --rounding and --threshold"
        raise mistake("", "post-processing", "with a hierarchy", remedy)
    upper = short_law(above.rho, above.epsilon, None, "--hierarchy-")
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
    _print_more(report["together"], report["histogram"])
    above = report["hierarchy"]
    for one in above["correct"] if above else ():
        say(f"larger group with {one['count']}: right with probability {one['correct']:.4f}")
    if above and above["posterior"] is not None:
        say(f"with the larger group's counts: posterior {above['posterior']:.4f} ({above['chain']})")


def _print_more(all_of_it: dict[str, Any] | None, cells: dict[str, Any] | None) -> None:
    if all_of_it is not None:
        say(
            f"{all_of_it['observations']} observations: posterior {all_of_it['posterior']:.4f} on average, right with "
            f"probability {all_of_it['correct']:.4g}, mistaken with {all_of_it['mistaken']:.4g}"
        )
        for one in all_of_it["published"]:
            said = ", ".join(str(count) for count in one["counts"])
            say(f"published {said} together: posterior {one['posterior']:.4f}")
    if cells is not None:
        say(
            f"histogram of {cells['categories']} categories: right with probability {cells['success']:.4g}, by the "
            f"prior alone {cells['baseline']:.4g}"
        )
        for one in cells["targets"]:
            say(
                f"target in category {one['category']}: posterior {one['posterior']:.4g}, right {one['correct']:.4g}"
            )
        if cells["decision"] is not None:
            best = cells["posteriors"][cells["decision"] - 1]
            say(f"published histogram: category {cells['decision']}, posterior {best:.4f}")
