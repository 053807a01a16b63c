"""``discreet risk bayes``: what an adversary who knows everyone but the target learns from published counts.

Five things can be published: one count, the count at several levels or in several releases, a whole histogram, a
count within a larger group of which less is known, and one within any number of such groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np
import typer
from typer.core import TyperGroup

from discreet.cli.noise_options import AnyLaw, NoiseOptions, PublishingOptions, expanded
from discreet.cli.output import JSON, emit_json, say
from discreet.errors import mistake
from discreet.io.serialize import to_json
from discreet.maths.attacks.bayes import Adversary, LawRows
from discreet.maths.attacks.bayes_findings import (
    count_attack,
    hierarchy_attack,
    histogram_attack,
    levels_attack,
    nested_attack,
)
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
from discreet.maths.noise.publishing import LARGEST_COUNT, UNCHANGED, PublishedLaw, Publishing
from discreet.report.bayes import count_lines, hierarchy_lines, histogram_lines, levels_lines, nested_lines

MOST_CATEGORIES = 100_000
EXAMPLES = {
    "--level": "known=12,published=15,rho=1/4",
    "--release": "published=3,rho=1/10",
    "--within": "published=5,others=3,groups=27,rho=1/4,most=50",
}
CHOICES = ("count", "levels", "histogram", "hierarchy", "nested")
MOST_DRAWS = 1_000_000


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
    typer.Option(
        "--known", help="Number of known others with the target's characteristics.", min=0, max=LARGEST_COUNT
    ),
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
    _report(found := count_attack(one, law.rho, _listed(published)), count_lines(found), as_json)


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
    one = Adversary(seen, known, _prior(prior))
    found = levels_attack(one, law.rho, _listed(published), others)
    _report(found, levels_lines(found), as_json)


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
    others = _repeated("--known", known)
    if min(others) < 0:
        raise mistake("", "--known", known, "give counts of at least 0")
    law = as_published(noise.law(), publishing.rule())
    one = HistogramAdversary(law, tuple(others), _beliefs(prior, len(others)))
    wanted = None if target is None else _categories(target, len(others))
    shown = None if published is None else _repeated("--published", published)
    found = histogram_attack(one, wanted, shown)
    _report(found, histogram_lines(found), as_json)


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
    found = hierarchy_attack(made, true, None if published is None else _triple(published), chain)
    _report(found, hierarchy_lines(found), as_json)


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
        int | None,
        typer.Option(
            "--published",
            help="The published count of the group itself.",
            min=-LARGEST_COUNT,
            max=LARGEST_COUNT,
        ),
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
    found = nested_attack(
        made, published, [one for _, one in larger], true, draws, np.random.default_rng(seed)
    )
    _report(found, nested_lines(found, draws), as_json)


def _report(found: object, lines: Iterable[str], as_json: bool) -> None:
    if as_json:
        emit_json(to_json(found))
        return
    for line in lines:
        say(line)


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


def _listed(published: str | None) -> list[int] | None:
    return None if published is None else _integers("--published", published)


def as_published(law: AnyLaw, rule: Publishing) -> LawRows:
    """The law of what is published; the noise itself where nothing is done to it."""
    return law if rule == UNCHANGED else PublishedLaw(law, rule)


def _larger(rho: str | None, epsilon: str | None) -> AdditiveLaw:
    if (rho is None) == (epsilon is None):
        value = "none" if rho is None else "both"
        raise mistake("", "--larger-rho or --larger-epsilon", value, "give one of them")
    return discrete_gaussian(rho) if rho is not None else discrete_laplace(str(epsilon))


def _observations(
    option: str, texts: Sequence[str], law: LawRows, known: int, rule: Publishing
) -> list[tuple[Adversary, int | None]]:
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
        found.append((Adversary(own, others), shown))
    return found


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
    return found


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
