"""``discreet risk bayes``: what an adversary who knows everyone but the target learns from published counts.

Five things can be published: one count, the count at several levels or in several releases, a whole histogram, a
count within a larger group of which less is known, and one within any number of such groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from typer.core import TyperGroup

from discreet.cli.noise_options import AnyLaw, NoiseOptions, PublishingOptions, expanded
from discreet.cli.output import JSON, emit_json, say
from discreet.errors import mistake
from discreet.maths.attacks.bayes import Adversary, LawRows, Together
from discreet.maths.attacks.bayes_hierarchy import Chain, Hierarchy
from discreet.maths.attacks.bayes_histogram import HistogramAdversary
from discreet.maths.attacks.bayes_nested import (
    LargerPrior,
    Nested,
    NestedLevel,
    Seen,
    WithUnknown,
    poisson,
    unknown_members,
)
from discreet.maths.noise.additive import AdditiveLaw, discrete_gaussian, discrete_laplace, exact
from discreet.maths.noise.publishing import UNCHANGED, PublishedLaw, Publishing

MOST_CATEGORIES = 100_000
SHOWN = 5  # published counts above the known one that are reported by default
FIRST = 5  # categories of a histogram that are reported by default
EXAMPLES = {
    "--level": "known=12,published=15,rho=1/4",
    "--release": "published=3,rho=1/10",
    "--within": "published=5,others=3,groups=27,rho=1/4,most=50",
}
CHOICES = ("count", "levels", "histogram", "hierarchy", "nested")
MOST_DRAWS = 1_000_000

Report = dict[str, Any]


class _Chosen(TyperGroup):
    """Asks for a sub-command in one line where options come first, as they did before there were sub-commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and "--help" not in args:
            remedy = f"name a sub-command first: {', '.join(CHOICES)}"
            raise mistake("", "discreet risk bayes", args[0], remedy)
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Chosen, add_completion=False, rich_markup_mode=None, no_args_is_help=True)

PRIOR = Annotated[
    str,
    typer.Option(
        "--prior", help="The adversary's prior that the target is there, or a fraction such as 1/864."
    ),
]
KNOWN = Annotated[
    int,
    typer.Option("--known", help="Number of known others with the target's characteristics.", min=0),
]
PUBLISHED = Annotated[
    str | None,
    typer.Option("--published", help="Published counts to report the posterior of, separated by commas."),
]
UNKNOWN = Annotated[
    str | None,
    typer.Option(
        "--unknown",
        help="Other members who are not known: the probability of each to have the characteristics, e.g. 0.2x3,0.5.",
    ),
]


@app.callback()
def bayes() -> None:
    """Report what an adversary who knows everyone in a group but one person learns from published counts."""


@app.command()
@expanded
def count(
    noise: NoiseOptions,
    publishing: PublishingOptions,
    prior: PRIOR = "0.5",
    known: KNOWN = 0,
    unknown: UNKNOWN = None,
    published: PUBLISHED = None,
    as_json: JSON = False,
) -> None:
    """One published count: posterior, risk, and the probability that the adversary decides for the target."""
    law = noise.law()
    seen = as_published(law, publishing.rule())
    if unknown is not None:
        seen = WithUnknown(seen, unknown_members(_probabilities(unknown)))
    one = Adversary(seen, known, _prior(prior))
    report = _count(one, law, _shown(published, known))
    if as_json:
        emit_json(report)
    else:
        _print_count(report)


@app.command()
@expanded
def levels(
    noise: NoiseOptions,
    publishing: PublishingOptions,
    prior: PRIOR = "0.5",
    known: KNOWN = 0,
    published: PUBLISHED = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            "--level",
            help="A larger group whose others are known too: known=12,published=15,rho=1/4. Repeatable.",
        ),
    ] = None,
    release: Annotated[
        list[str] | None,
        typer.Option(
            "--release",
            help="The same count with independent noise in another release: published=3,rho=1/10. Repeatable.",
        ),
    ] = None,
    as_json: JSON = False,
) -> None:
    """One count at several levels of a hierarchy, or in several releases: the log odds of all of them add up."""
    law, rule = noise.law(), publishing.rule()
    seen = as_published(law, rule)
    others = [
        *_observations("--level", level or (), seen, known, rule),
        *_observations("--release", release or (), seen, known, rule),
    ]
    if not others:
        raise mistake("", "--level or --release", "missing", f"give at least one, e.g. {EXAMPLES['--level']}")
    one, shown = Adversary(seen, known, _prior(prior)), _shown(published, known)
    report = {**_count(one, law, shown), "together": _together(one, shown, others)}
    if as_json:
        emit_json(report)
        return
    _print_count(report)
    _print_together(report["together"])


@app.command()
@expanded
def histogram(
    noise: NoiseOptions,
    publishing: PublishingOptions,
    known: Annotated[
        str,
        typer.Option(
            "--known", help="The others in each category, one of which is the target's: 34,10,0x862."
        ),
    ],
    prior: Annotated[
        str | None,
        typer.Option("--prior", help="Weights of the categories, separated by commas; default: equal."),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option("--published", help="The published count of each category, separated by commas."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", help="Categories of the target to report probabilities of, counted from 1: 1,3."
        ),
    ] = None,
    as_json: JSON = False,
) -> None:
    """A whole histogram: the adversary knows everyone else's category and looks for the target's."""
    report = _histogram(as_published(noise.law(), publishing.rule()), known, prior, published, target)
    if as_json:
        emit_json(report)
    else:
        _print_histogram(report)


@app.command()
@expanded
def hierarchy(
    noise: NoiseOptions,
    groups: Annotated[
        int, typer.Option("--groups", help="Number of other groups in the larger group.", min=1)
    ],
    larger_rho: Annotated[
        str | None, typer.Option("--larger-rho", help="Discrete Gaussian noise of the larger group: its rho.")
    ] = None,
    larger_epsilon: Annotated[
        str | None, typer.Option("--larger-epsilon", help="Geometric noise of the larger group: its epsilon.")
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(
            "--counts",
            help="True counts of the larger group to report the probability of a decision for, separated by commas.",
        ),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option(
            "--published",
            help="Published counts: the group's, the larger one's, the sum of the others: 2,1,-1.",
        ),
    ] = None,
    chain: Annotated[
        Chain,
        typer.Option("--chain", help="exact, or paper: the paper's sampler, which drops X1 <= X2."),
    ] = Chain.EXACT,
    prior: PRIOR = "0.5",
    known: KNOWN = 0,
    as_json: JSON = False,
) -> None:
    """A count within a larger group whose other members are not known, with the counts of both published."""
    if counts is None and published is None:
        raise mistake("", "--counts or --published", "missing", "give true counts, published counts, or both")
    law = noise.law()
    if not isinstance(law, AdditiveLaw):
        remedy = "give --rho or --epsilon: its noise must not depend on counts"
        raise mistake("", "the noise", "with a hierarchy", remedy)
    made = Hierarchy(law, _larger(larger_rho, larger_epsilon), groups, known, _prior(prior))
    true = [] if counts is None else _integers("--counts", counts)
    if any(one <= known for one in true):
        raise mistake("", "--counts", str(counts), f"give counts of at least {known + 1}")
    report: Report = {
        "prior": made.prior,
        "known": known,
        "groups": groups,
        "correct": [{"count": one, "correct": made.correct(one)} for one in true],
        "chain": chain.value,
        "posterior": None if published is None else made.posterior(*_triple(published), chain),
    }
    if as_json:
        emit_json(report)
    else:
        _print_hierarchy(report)


@app.command()
@expanded
def nested(
    noise: NoiseOptions,
    within: Annotated[
        list[str],
        typer.Option(
            "--within",
            help="A larger group, from the smallest up: published=5 (or exact=5, an invariant), others=3 (the "
            "published sum of its other groups), groups=27 (their number), rho or epsilon, and as prior of its "
            "count most=50, mean=12 or both. Repeatable.",
        ),
    ],
    published: Annotated[
        int | None, typer.Option("--published", help="The published count of the group itself.")
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(
            "--counts",
            help="True counts of the group and each larger one, to simulate how often the adversary is right.",
        ),
    ] = None,
    draws: Annotated[int, typer.Option("--draws", help="Simulated releases.", min=1)] = 2000,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same result.", min=0)] = 1,
    prior: PRIOR = "0.5",
    known: KNOWN = 0,
    unknown: UNKNOWN = None,
    as_json: JSON = False,
) -> None:
    """A count within larger and larger groups whose other members are not known: any levels, priors, invariants."""
    if published is None and counts is None:
        raise mistake(
            "", "--published or --counts", "missing", "give a published count, true counts, or both"
        )
    if draws > MOST_DRAWS:
        raise mistake("", "--draws", str(draws), f"give at most {MOST_DRAWS}")
    law = noise.law()
    if not isinstance(law, AdditiveLaw):
        remedy = "give --rho or --epsilon: its noise must not depend on counts"
        raise mistake("", "the noise", "with larger groups", remedy)
    larger = [_within(text, law) for text in within]
    others = unknown_members([] if unknown is None else _probabilities(unknown))
    made = Nested(law, tuple(level for level, _ in larger), known, _prior(prior), others)
    true = None if counts is None else _integers("--counts", counts)
    share, error = (None, None) if true is None else made.correct(true, draws, np.random.default_rng(seed))
    report: Report = {
        "prior": made.prior,
        "known": known,
        "unknown": others.last,
        "levels": len(larger) + 1,
        "posterior": None if published is None else made.posterior(published, [one for _, one in larger]),
        "above_half": share,
        "standard_error": error,
    }
    if as_json:
        emit_json(report)
        return
    if report["posterior"] is not None:
        say(f"with the counts of {len(larger)} larger groups: posterior {report['posterior']:.4f}")
    if share is not None:
        say(
            f"decides for the target with probability {share:.4f} (+- {error:.4f}, {draws:,} simulated releases)"
        )


def _within(text: str, law: AdditiveLaw) -> tuple[NestedLevel, Seen]:
    """Read one larger group."""
    option = "--within"
    keys = {"published", "exact", "others", "groups", "rho", "epsilon", "most", "mean"}
    given = _pairs(option, text, keys)
    for pair in (("published", "exact"), ("rho", "epsilon"), ("exact", "rho"), ("exact", "epsilon")):
        if set(pair) <= set(given):
            raise mistake("", option, text, f"{' and '.join(pair)}: give one of them")
    if "published" not in given and "exact" not in given:
        raise mistake("", option, text, f"give its count, e.g. {EXAMPLES[option]}")
    if ("others" in given) != ("groups" in given):
        raise mistake("", option, text, "others and groups: give both, or neither")
    own: AdditiveLaw | None = law
    if "exact" in given:
        own = None
    elif {"rho", "epsilon"} & set(given):
        own = discrete_gaussian(given["rho"]) if "rho" in given else discrete_laplace(given["epsilon"])
    groups = _integer(option, given["groups"]) if "groups" in given else 0
    most = _integer(option, given["most"]) if "most" in given else None
    if groups < 0 or (most is not None and most < 0):
        raise mistake("", option, text, "give numbers of at least 0")
    expected = poisson(float(exact("mean", given["mean"]))) if "mean" in given else None
    count = _integer(option, given.get("published") or given["exact"])
    others = _integer(option, given["others"]) if "others" in given else None
    return NestedLevel(own, groups, LargerPrior(expected, most)), Seen(count, others)


def _probabilities(text: str) -> list[float]:
    """Probabilities with commas; 0.2x3 means three times 0.2."""
    found: list[float] = []
    for part in text.split(","):
        value, _, times = part.strip().partition("x")
        many = _integer("--unknown", times) if times else 1
        p = float(exact("--unknown", value))
        if not (0 <= p <= 1 and 0 < many <= MOST_CATEGORIES):
            raise mistake("", "--unknown", text, "give probabilities from 0 to 1, e.g. 0.2x3,0.5")
        found += [p] * many
    return found


def as_published(law: AnyLaw, rule: Publishing) -> LawRows:
    """The law of what is published; the noise itself where nothing is done to it."""
    return law if rule == UNCHANGED else PublishedLaw(law, rule)


def _larger(rho: str | None, epsilon: str | None) -> AdditiveLaw:
    if (rho is None) == (epsilon is None):
        value = "none" if rho is None else "both"
        raise mistake("", "--larger-rho or --larger-epsilon", value, "give one of them")
    return discrete_gaussian(rho) if rho is not None else discrete_laplace(str(epsilon))


def _shown(published: str | None, known: int) -> Sequence[int]:
    return range(known + 1, known + 1 + SHOWN) if published is None else _integers("--published", published)


def _count(one: Adversary, law: AnyLaw, shown: Sequence[int]) -> Report:
    limit = 1 / one.prior if law.rho is None else min(1 / one.prior, _exp(2 * law.rho))
    return {
        "prior": one.prior,
        "known": one.known,
        "posterior": one.mean_posterior,
        "risk": one.risk,
        "largest_risk": limit,
        "correct": one.correct,
        "mistaken": one.mistaken,
        "published": [_published(one, count) for count in shown],
    }


def _published(one: Adversary, count: int) -> Report:
    return {
        "count": count,
        "probability": one.with_target.at(count),
        "probability_without": one.without.at(count),
        "posterior": one.posterior(count),
        "risk": one.ratio(count),
    }


@dataclass(frozen=True, eq=False)
class Observation:
    """The same target in a larger group or in another release."""

    adversary: Adversary
    published: int | None


def _observations(
    option: str, texts: Sequence[str], law: LawRows, known: int, rule: Publishing
) -> list[Observation]:
    """Read repeated options: known (of a level), published, and rho or epsilon where the noise differs."""
    keys = {"published", "rho", "epsilon"} | ({"known"} if option == "--level" else set())
    found = []
    for text in texts:
        given = _pairs(option, text, keys)
        if option == "--level" and "known" not in given:
            raise mistake("", option, text, f"give the number of known others, e.g. {EXAMPLES[option]}")
        if {"rho", "epsilon"} <= set(given):
            raise mistake("", option, text, "rho and epsilon: give one of them")
        own = (
            as_published(NoiseOptions(rho=given.get("rho"), epsilon=given.get("epsilon")).law(), rule)
            if {"rho", "epsilon"} & set(given)
            else law
        )
        others = _integer(option, given["known"]) if "known" in given else known
        if others < 0:
            raise mistake("", option, text, "give a known count of at least 0")
        shown = _integer(option, given["published"]) if "published" in given else None
        found.append(Observation(Adversary(own, others), shown))
    return found


def _together(one: Adversary, counts: Sequence[int], others: Sequence[Observation]) -> Report:
    """What all observations show: on average, and for each published count of the first with those of the others."""
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


def _histogram(
    law: LawRows, known: str, prior: str | None, published: str | None, targets: str | None
) -> Report:
    """The attack on a whole histogram: baseline, success, probabilities by category and a posterior."""
    others = _repeated("--known", known)
    if min(others) < 0:
        raise mistake("", "--known", known, "give counts of at least 0")
    one = HistogramAdversary(law, tuple(others), _beliefs(prior, len(others)))
    wanted = range(min(len(others), FIRST)) if targets is None else _categories(targets, len(others))
    shown = None if published is None else one.posterior(_repeated("--published", published))
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


def _repeated(option: str, text: str) -> list[int]:
    """Whole numbers with commas; 0x862 means 862 zeros."""
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
    weights = [exact("--prior", part.strip()) for part in text.split(",")]
    if min(weights) < 0 or not sum(weights):
        raise mistake("", "--prior", text, "give numbers of at least 0, not all 0")
    return tuple(float(weight / sum(weights)) for weight in weights)


def _categories(text: str, categories: int) -> list[int]:
    found = [_integer("--target", part.strip()) for part in text.split(",")]
    if not all(1 <= one <= categories for one in found):
        raise mistake("", "--target", text, f"give numbers of categories, 1 to {categories}")
    return [one - 1 for one in found]


def _pairs(option: str, text: str, keys: set[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (text.strip() for text in part.partition("="))
        if not equals or key not in keys or key in given:
            raise mistake("", option, text, f"give {', '.join(sorted(keys))}, e.g. {EXAMPLES[option]}")
        given[key] = value
    return given


def _integer(option: str, text: str) -> int:
    if not text.removeprefix("-").isdecimal() or len(text) > 15:
        raise mistake("", option, text, "give whole numbers")
    return int(text)


def _integers(name: str, text: str) -> list[int]:
    return [_integer(name, part.strip()) for part in text.split(",")]


def _triple(text: str) -> tuple[int, int, int]:
    found = _integers("--published", text)
    if len(found) != 3:
        raise mistake("", "--published", text, "give three whole numbers, e.g. 2,1,-1")
    return found[0], found[1], found[2]


def _prior(text: str) -> float:
    found = float(exact("--prior", text))
    if not 0 < found < 1:
        raise mistake("", "--prior", text, "give a number between 0 and 1")
    return found


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf


def _print_count(report: Report) -> None:
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


def _print_together(found: Report) -> None:
    say(
        f"{found['observations']} observations: posterior {found['posterior']:.4f} on average, right with "
        f"probability {found['correct']:.4g}, mistaken with {found['mistaken']:.4g}"
    )
    for one in found["published"]:
        counts = ", ".join(str(count) for count in one["counts"])
        say(f"published {counts} together: posterior {one['posterior']:.4f}")


def _print_histogram(found: Report) -> None:
    say(
        f"histogram of {found['categories']} categories: right with probability {found['success']:.4g}, by the "
        f"prior only {found['baseline']:.4g}"
    )
    for one in found["targets"]:
        say(
            f"target in category {one['category']}: posterior {one['posterior']:.4g}, right {one['correct']:.4g}"
        )
    if found["decision"] is not None:
        best = found["posteriors"][found["decision"] - 1]
        say(f"published histogram: category {found['decision']}, posterior {best:.4f}")


def _print_hierarchy(found: Report) -> None:
    for one in found["correct"]:
        say(f"larger group with {one['count']}: right with probability {one['correct']:.4f}")
    if found["posterior"] is not None:
        say(f"with the larger group's counts: posterior {found['posterior']:.4f} ({found['chain']})")
