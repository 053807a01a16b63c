"""A release's name and metadata, and the sentences that its files repeat."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.perturb.noise import Noise
from discreet.programme.labels import NO_LABELS, Labels
from discreet.text.phrase import Phrase, phrase

ADDITIVITY = phrase(
    "Each count is perturbed on its own, totals and sub-totals included. A total may therefore differ a little "
    "from the sum of its parts. Use the published total; do not add up its parts to get a better one."
)
ADDS_UP = phrase(
    "All totals and sub-totals are the sums of their parts, in every table. The counts were adjusted to each other "
    "after they had been perturbed."
)
ZEROS = (
    "Cells that are not listed are zero: nobody was counted there, or the perturbation made the count zero."
)
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
SAME_CELL = "The same group has the same published count in every table."

SWAPPED = phrase(
    "Before anything was counted, some households exchanged their places with similar households elsewhere. A count "
    "of a small area may hold people from another one; which were exchanged is kept secret."
)


def weighted_note(noise: Noise) -> str:
    """What a weighted value is."""
    if noise.weights is not None:
        return NOISY_WEIGHTS
    return WEIGHTED if noise.weighted is None else SCALED_WEIGHTS


def additivity(noise: Noise) -> Phrase:
    """Whether totals add up, as a sentence."""
    return ADDS_UP if noise.adjusted else ADDITIVITY


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
