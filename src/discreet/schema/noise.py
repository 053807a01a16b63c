"""The resolved noise rules: the cell key method, and noise with a differential privacy guarantee.

It owns what can be declared and what is refused for good; it draws nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

from discreet.maths.accounting import Neighbours
from discreet.maths.laws import LawKind
from discreet.maths.lookup import Order
from discreet.maths.ptable_solver import PTableParameters


@dataclass(frozen=True)
class CellKeyNoise:
    """Noise by the cell key method: a p-table to compute, or a file that holds one."""

    table: PTableParameters | Path
    order: Order


class Draw(StrEnum):
    """What decides the noise of a cell: who is in it, what it describes, or chance alone."""

    PARTICIPANTS = "participants"
    DESCRIPTION = "description"
    FRESH = "fresh"


class KeptZeros(StrEnum):
    """Which empty cells are not perturbed: those that cannot hold anybody, or all."""

    STRUCTURAL = "structural"
    ALL = "all"


class Negatives(StrEnum):
    """What is published for a negative noisy count: itself, or zero (post-processing, biased)."""

    KEEP = "keep"
    ZERO = "zero"


class Protects(StrEnum):
    """Whose presence the guarantee hides: one person's, or a whole household's."""

    PERSON = "person"
    HOUSEHOLD = "household"


class Claim(StrEnum):
    """What the release says of itself: a differential privacy guarantee, or none."""

    DP = "dp"
    NONE = "none"


class Split(StrEnum):
    """How the budget is divided over the cross-tabulations."""

    EVEN = "even"
    BY_AXES = "by_axes"
    BY_TABLE = "by_table"


@dataclass(frozen=True)
class BudgetRule:
    """The whole budget (epsilon, or rho for the discrete Gaussian) and how it is divided."""

    total: Fraction
    split: Split = Split.EVEN
    shares: Mapping[str, Fraction] = field(
        default_factory=dict
    )  # number of axes, or table -> share of the total


@dataclass(frozen=True)
class PostProcessing:
    """What is done to noisy counts before they are published; it costs no privacy."""

    negatives: Negatives = Negatives.ZERO
    rounding: int = 1  # published counts are multiples of this
    threshold: int = 0  # counts below this are published as zero


@dataclass(frozen=True)
class PrivateNoise:
    """Integer noise of a known law in every cell."""

    kind: LawKind
    budget: BudgetRule
    bound: int | None = None
    delta: Fraction = Fraction(0)
    draw: Draw = Draw.DESCRIPTION
    keep_zeros: KeptZeros = KeptZeros.STRUCTURAL
    published: PostProcessing = PostProcessing()
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    protects: Protects = Protects.PERSON
    largest_household: int | None = None
    claim: Claim = Claim.DP
    large_delta: bool = False

    @property
    def is_gaussian(self) -> bool:
        """Whether the budget is a rho."""
        return self.kind is LawKind.DISCRETE_GAUSSIAN


Noise = CellKeyNoise | PrivateNoise
