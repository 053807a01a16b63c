"""The parts of ``discreet risk bayes`` with more than one count: levels, releases, histograms; it owns no formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.cli.risk_bayes_laws import as_published, short_law
from discreet.errors import mistake
from discreet.maths.bayes_histogram import HistogramAdversary
from discreet.maths.bayes_risk import Adversary, Rows
from discreet.maths.bayes_together import Together
from discreet.maths.laws import exact
from discreet.schema.noise import PostProcessing

MOST_CATEGORIES = 100_000
EXAMPLES = {"--level": "known=12,published=15,rho=1/4", "--release": "published=3,rho=1/10"}


@dataclass(frozen=True, eq=False)
class Observation:
    """The same target once more: in a larger group, or in another release."""

    adversary: Adversary
    published: int | None


def observations(
    option: str, texts: Sequence[str], law: Rows, known: int, rule: PostProcessing
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
