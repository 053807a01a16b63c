"""The resolved ``[serve]`` section: what a table builder may answer and to whom; it judges nothing.

A rule that is None is not asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class Action(StrEnum):
    """What the history guard does at its level."""

    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True)
class SparsityRule:
    """Among the interior cells of an area: the largest shares of ones, and of ones and twos, of those not empty."""

    ones: float = 0.25
    ones_and_twos: float = 0.5


@dataclass(frozen=True)
class HistoryRule:
    """What a user may collect: levels of k/t^2 (see maths.redundancy), and how alike two populations may be."""

    warn: float | None = None  # a statistic whose representations reach a k/t^2 below this is warned of
    refuse: float | None = None  # below this it is refused
    difference: int | None = None  # populations that differ by fewer records
    on_difference: Action = Action.REFUSE


@dataclass(frozen=True)
class AccountRule:
    """Noise with a guarantee: what each new cross-tabulation costs a user, and all that a user may spend."""

    each: Fraction  # epsilon, or rho for the discrete Gaussian
    user: Fraction


@dataclass(frozen=True)
class ServeRule:
    """Everything declared."""

    variables: tuple[str, ...] | None = None  # that may be asked for; None: all
    counts: tuple[str, ...] = ()  # 0/1 columns that may be counted beside those of the cubes
    filters: bool = True  # whether users may filter by expressions other than the bases of the cubes
    groupings: tuple[str, ...] = ()  # variables whose codes users may group
    axes: int = 5  # most axes of a table, variables of its filter included
    cells: int = 100_000  # most cells of an answer at once
    job_cells: int = 1_000_000  # most cells of a background job
    counted: int = (
        20_000_000  # most cells, margins included, of the table that is counted or judged for an answer
    )
    place: str | None = None  # the variable whose areas are judged alone
    area_population: int | None = None  # an area with fewer records is blocked
    blocked: float = 0.5  # the largest share of areas that may be blocked
    sparsity: SparsityRule | None = None
    attribute: float | None = None  # largest share of groups that are concentrated in one category
    forbidden: tuple[
        tuple[str, ...], ...
    ] = ()  # variables or breakdowns that may not stand in one table together
    history: HistoryRule = HistoryRule()
    account: AccountRule | None = None

    @property
    def looks_at_cells(self) -> bool:
        """Whether some rule is judged on protected values."""
        return any(rule is not None for rule in (self.area_population, self.sparsity, self.attribute))


DEFAULT_SERVE = ServeRule()
