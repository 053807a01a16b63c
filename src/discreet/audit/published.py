"""What an outsider holds: the published tables and what is said of their noise, ready to be attacked.

It owns the shape of that knowledge; where it is read from is the release's, and what it gives away the attacks'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.maths.laws import Law
from discreet.schema.codelist import Codelist
from discreet.schema.crosstab import Levels, Signature
from discreet.schema.cube import Cube
from discreet.schema.noise import PostProcessing

Integers = NDArray[np.int64]
Cells = tuple[
    Integers, Integers
]  # flat positions in the cube's grid, ascending, and their values; the rest is zero


LARGE = 1000  # a count that has the noise of large counts
NOTHING_MORE = PostProcessing()


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """One table as anybody can read it; its cells are read when they are wanted."""

    cube: Cube  # its base is told by the universe
    load: Callable[[], Cells]

    @property
    def id(self) -> str:
        """The id of the cube."""
        return self.cube.id


@dataclass(frozen=True, eq=False)
class Universe:
    """The tables that count the same records: only these represent each other."""

    unit: str
    base: str  # normal form of the population base, empty for all
    count: str  # the counted 0/1 variable, empty for records
    tables: tuple[PublishedTable, ...]
    codelists: Mapping[str, Codelist]  # variable -> all codes that any table of the release has

    @property
    def counted(self) -> str:
        """What is counted, in words."""
        who = f"{self.unit} where {self.base}" if self.base else self.unit
        return f"{self.count} of {who}" if self.count else who

    def signature(self, levels: Levels) -> Signature:
        """The signature of one of its cross-tabulations in the whole release."""
        return Signature(self.unit, self.base, self.count, levels)


@dataclass(frozen=True, eq=False)
class KnownNoise:
    """What is known of the noise: all of it, its variance and a bound, or nothing."""

    method: str
    same_noise: bool  # the same participants have the same noise wherever they are counted
    keeps_zeros: bool  # an empty cell is published as empty
    variance: float | None = None  # of any cell at most this
    bound: int | None = None  # no change is larger; None where that is not told, or not so
    law: Law | None = None  # of the published count before it is post-processed, by true count
    laws: Mapping[str, Law] = field(
        default_factory=dict
    )  # of cross-tabulations that have another, by signature
    published: PostProcessing = NOTHING_MORE
    bound_is_exact: bool = True  # False where the public was told a rounded one

    def law_of(self, signature: Signature) -> Law:
        """The law of a cross-tabulation's cells; an attack that needs it cannot do without."""
        law = self.laws.get(str(signature), self.law)
        if law is None:
            remedy = "give the p-table or the private side, or attack what needs no law"
            raise mistake("", "noise", "its law is not public", remedy)
        return law

    def variance_of(self, signature: Signature) -> float:
        """The variance of a cell of a cross-tabulation, at most."""
        if self.law is not None:
            row = self.law_of(signature).row(LARGE)
            return row.variance
        if self.variance is None:
            remedy = "give it with --variance, or attack what needs none"
            raise mistake("", "noise", "its variance is not public", remedy)
        return self.variance


@dataclass(frozen=True, eq=False)
class Published:
    """All that anybody can read of a release."""

    name: str
    universes: tuple[Universe, ...]
    noise: KnownNoise
    places: tuple[str, ...] = ()  # the variables that are places
    left_out: tuple[str, ...] = ()  # cubes that no attack can use: weighted sums

    @property
    def variables(self) -> list[str]:
        """The variables of all axes."""
        return sorted({axis.variable for u in self.universes for t in u.tables for axis in t.cube.axes})
