"""A release's name and metadata, and the sentences that its files repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, pi, sqrt

from discreet.perturb.noise import Noise
from discreet.programme.labels import NO_LABELS, Labels
from discreet.text.phrase import Phrase, joined, phrase

ADDS_UP = phrase(
    "All totals and sub-totals are the sums of their parts, in every table. The counts were adjusted to each other "
    "after they had been perturbed."
)
ZEROS = (
    "Cells that are not listed are zero: nobody was counted there, or the perturbation made the count zero."
)
FILLED = (
    "Households were exchanged before counting: people may live in a cell that is not listed, and no one may live in "
    "one that is."
)
MAYBE_OCCUPIED = "Cells that are not listed were published as zero; people may be in them."
LEAST_ADDED = 0.005  # to a sum by an empty part: less is not mentioned
WEIGHTED = "A weighted value is the perturbed count of the cell times the mean weight of its records, to one decimal."
SCALED_WEIGHTS = (
    "A weighted value is the perturbed count of the cell times the mean weight of its records, plus noise that is "
    "scaled by the largest of these weights, to one decimal."
)
NOISY_WEIGHTS = "A weighted value is the sum of the weights of the cell plus noise, to one decimal."
NOT_PUBLISHED = (
    "Only some cross-tabulations of this table are published, and cells of others are not zero: {names}."
)
PARTS_ADD_UP = (
    "Each published cross-tabulation is perturbed on its own. A total that is not published is estimated by the sum of "
    "its parts; its variance is the sum of theirs."
)
SUMS = (
    "Totals and sub-totals without noise of their own are exactly the sums of the finest published cells; their "
    "variance is that of one cell times the number of cells added up."
)
SAME_GROUP = "The same group of people has the same published count in every table."
SAME_CELL = "The same cell has the same published count in every table."

SWAPPED = phrase(
    "Before anything was counted, some households exchanged their places with similar households elsewhere. A count "
    "of a small area may hold people from another one; which were exchanged is kept secret. The error by this is not "
    "part of what is stated about the noise, and its size is not published: a count may be further from the true one, "
    "and cells without people may have been filled."
)
FEW_PARTS, MANY_PARTS = 10, 100


def weighted_note(noise: Noise) -> str:
    """What a weighted value is."""
    if noise.weights is not None:
        return NOISY_WEIGHTS
    return WEIGHTED if noise.weighted is None else SCALED_WEIGHTS


def additivity(noise: Noise) -> Phrase:
    """Whether totals add up, and by how much they differ from their parts."""
    if noise.adjusted:
        return ADDS_UP
    return joined(
        phrase("Each count is perturbed on its own, totals and sub-totals included."),
        _difference(noise),
        phrase("Use the published total; do not add up its parts to get a better one."),
    )


def _difference(noise: Noise) -> Phrase:
    """The mean difference of a total and its m parts: sqrt(2 / pi) sqrt((m + 1) V), nearly normal, and m biases."""
    spread = noise.spread
    if spread is None:
        return phrase("A total differs from the sum of its parts by an amount that is not published.")
    added = max(noise.mean_if_empty or 0.0, 0.0)
    few, many = (sqrt(2 / pi * (parts + 1)) * spread + parts * added for parts in (FEW_PARTS, MANY_PARTS))
    differs = phrase(
        "A total differs from the sum of its parts by up to about {few} on average if it has {few_parts} parts, by up "
        "to about {many} if it has {many_parts}.",
        few=rounded(few),
        few_parts=FEW_PARTS,
        many=rounded(many),
        many_parts=MANY_PARTS,
    )
    if added < LEAST_ADDED:
        return differs
    return joined(
        differs,
        phrase(
            "Negative counts are published as zero, so that each empty or small part adds up to {added} to such a sum "
            "on average.",
            added=rounded(added),
        ),
    )


def rounded(value: float) -> float:
    """Three digits."""
    return float(f"{value:.3g}")


def zeros(noise: Noise, swapped: bool) -> str:
    """What a cell that is not listed means, and whether a listed one has people."""
    if noise.keeps_zeros and swapped:
        return f"{ZEROS} {FILLED}"
    if noise.keeps_zeros:
        return ZEROS
    if noise.adjusted or noise.listed_if_empty is None:
        return f"{MAYBE_OCCUPIED} A listed cell may be empty."
    chance = rounded(noise.listed_if_empty)
    listed = f"an empty cell is listed with a probability of up to {chance:g}"
    return f"{MAYBE_OCCUPIED} A listed cell may be empty: {listed}."


def same_everywhere(noise: Noise) -> str:
    """What has the same value in all tables."""
    return SAME_GROUP if noise.same_noise and not noise.adjusted else SAME_CELL


def purpose(noise: Noise, swapped: bool) -> str:
    """What the noise hides, and what it does not."""
    if noise.hides_presence and not noise.adjusted:
        return "No published count shows with certainty whether anyone is in a cell."
    if noise.keeps_zeros and not noise.adjusted:
        counted = " among the households as they were exchanged" if swapped else ""
        return f"A listed cell has at least one member{counted}; how many is uncertain by the noise."
    return "How many are in a cell is uncertain by the noise."


def small_counts(noise: Noise) -> str:
    """Which counts are small beside the noise."""
    if noise.adjusted or noise.spread is None:
        return "Noise weighs most on small counts: take them as an indication only."
    verb = "is" if noise.has_one_law else "may be"
    return (
        f"Noise weighs most on small counts: of a count below {ceil(10 * noise.spread):,} one standard deviation of "
        f"the noise {verb} more than a tenth."
    )


def promise(noise: Noise, swapped: bool) -> Phrase:
    """What is proven of the protection, for a line below every table."""
    if noise.guarantee is not None:
        return noise.guarantee.sentence()
    return joined(
        phrase("Counts are protected by random noise."),
        phrase("Before counting, some households were swapped between areas.") if swapped else "",
        phrase(
            "That makes small groups uncertain. There is no formal guarantee that no one can be recognised or that "
            "nothing can be learned about a person."
        ),
    )


@dataclass(frozen=True)
class Publication:
    """A release's name, its SDMX maintenance agency and version, its noise, its geography and labels."""

    name: str
    agency: str  # an SDMX agency id, such as "ESTAT"
    version: str  # a semantic version, such as "1.0.0"
    noise: Noise  # what the public may know of it
    title: str = ""
    geography: frozenset[str] = frozenset({"GEO"})  # variables that are places
    swapped: bool = False  # whether households exchanged their places
    labels: Labels = NO_LABELS
    structural_zeros: tuple[str, ...] = ()  # filters of cells that must be empty by definition
    titles: Mapping[str, str] = field(default_factory=dict)  # cube -> its title
    language: str = "en"  # of labels, titles and definitions

    def citation(self, table: str, title: str = "") -> str:
        """How to cite a table of the release."""
        named = f"table {table}, {title}" if title else f"table {table}"
        return f"{self.agency}: {self.title or self.name}, version {self.version}, {named}."
