"""The resolved gates: what a release may at most give away before it is not finished; it measures nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from discreet.schema.rules import Variable


@dataclass(frozen=True)
class PosteriorGate:
    """At most this share of small cells may show a person with a posterior above ``above``."""

    prior: float
    above: float
    share: float
    largest: int  # true counts up to this are small
    alone: bool = True  # cells of one person count too, whom fixed zeros give away whatever the noise


@dataclass(frozen=True)
class DifferencingGate:
    """At most so many differences below the threshold may be revealed with more than this probability."""

    pairs: tuple[tuple[Variable, Variable], ...]
    threshold: int
    above: float
    revealed: int


@dataclass(frozen=True)
class ReconstructionGate:
    """At most these shares of the records of sampled areas may be reconstructed, and re-identified."""

    place: str
    variables: tuple[str, ...]
    quasi: tuple[str, ...]  # what the intruder's file holds beside the place
    errors: Mapping[str, float]  # variable -> share of the intruder's file that is wrong
    areas: int
    seconds: float
    reconstructed: float
    reidentified: float


@dataclass(frozen=True)
class Gates:
    """Everything declared; None is not asked for."""

    averaging: float | None = None  # largest predicted success for any statistic
    bound_revealed: float | None = None  # largest probability that the tables reveal the bound of the noise
    pinned_cells: int | None = None  # most cells that bounds and margins pin
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    true_uniques: float | None = None  # largest share of published ones that are one person
    true_attributes: float | None = None  # largest share of apparent attribute disclosures that are true
    posterior: PosteriorGate | None = None
    differencing: DifferencingGate | None = None
    reconstruction: ReconstructionGate | None = None

    @property
    def declared(self) -> tuple[str, ...]:
        """The names of the gates that are asked for."""
        return tuple(item.name for item in fields(self) if getattr(self, item.name) is not None)


NO_GATES = Gates()
