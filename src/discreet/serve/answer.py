"""Answers, refusals and previews: only protected values and public text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.serve.query import Query
from discreet.text.phrase import Language, said


class Rule(StrEnum):
    """The rule that refused a question, for machines; the message of a refusal is for people."""

    AXES = "axes"
    CELLS = "cells"
    COUNTED = "counted"
    FORBIDDEN = "forbidden"
    FILTERS = "filters"
    GROUPINGS = "groupings"
    AREA_POPULATION = "area_population"
    SPARSITY = "sparsity"
    ATTRIBUTE = "attribute"
    BLOCKED = "blocked"
    HISTORY = "history"
    DIFFERENCE = "difference"
    BUDGET = "budget"
    NOT_PUBLISHED = "not_published"  # the release does not contain the table


@dataclass(frozen=True, eq=False)
class AnswerAxis:
    """One axis of an answer, with the requested codes, in the order of the codelist."""

    variable: str
    breakdown: str  # full name, or the variable's where its codes were grouped
    codes: tuple[str, ...]
    labels: tuple[str, ...]
    parents: tuple[str, ...]  # nearest code above that is in the answer, empty where none is
    depths: tuple[int, ...]  # below the total, which has 0
    is_place: bool
    levels: tuple[str, ...] = ()  # names of the levels below the total; none where they are numbered

    def __len__(self) -> int:
        return len(self.codes)

    def in_language(self, language: Language) -> AnswerAxis:
        """The same axis with its labels in a language; made once."""
        found = self._languages.get(language)
        if found is None:
            found = replace(self, labels=tuple(said(label, language) for label in self.labels))
            self._languages[language] = found
        return found

    @cached_property
    def _languages(self) -> dict[Language, AnswerAxis]:
        return {}


@dataclass(frozen=True)
class Area:
    """An area that is judged separately, and the rule that blocks it."""

    code: str
    label: str
    rule: Rule


@dataclass(frozen=True)
class NoiseRange:
    """Where the true count is likely to be."""

    low: int
    high: int
    level: float
    message: str
    estimate: float | None = None  # of a hierarchical release, with its standard error
    error: float | None = None


class CellRanges(Protocol):
    """Where the true counts of the cells of an answer are likely to be."""

    def of(self, cell: int, level: float) -> NoiseRange | None:
        """The range of a cell; None where too little of the noise is public."""
        ...

    def all(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lows and highs of all cells, nan where too little is public."""
        ...


@dataclass(frozen=True, eq=False)
class Answer:
    """A protected table: ``values`` in row-major order of ``axes`` (last axis fastest), zeros written out.

    Where ``withheld`` is true the value is 0 and means nothing: it is to be shown as null with the status withheld.
    """

    query: Query  # canonical, its axes in the requested order
    axes: tuple[AnswerAxis, ...]
    values: NDArray[np.int64]  # (cells,)
    withheld: NDArray[np.bool_]  # (cells,)
    noise: str  # the public description of the noise
    additivity: str  # why totals differ from the sums of their parts
    blocked: tuple[Area, ...]
    warnings: tuple[str, ...]
    ranges: CellRanges  # see noise_range and intervals
    language: Language = Language.ENGLISH  # of its texts, and of what is written around it

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of codes along each axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of cells."""
        return prod(self.shape)

    def in_language(self, language: Language) -> Answer:
        """The same answer with its texts in a language."""
        return replace(
            self,
            noise=said(self.noise, language),
            additivity=said(self.additivity, language),
            warnings=tuple(said(message, language) for message in self.warnings),
            axes=tuple(axis.in_language(language) for axis in self.axes),
            blocked=tuple(replace(area, label=said(area.label, language)) for area in self.blocked),
            language=language,
        )

    def noise_range(self, cell: int, level: float = 0.95) -> NoiseRange | None:
        """Where the true count of a cell is likely to be; None where nothing of the noise is public, or no value."""
        return None if self.withheld[cell] else self.ranges.of(cell, level)

    def intervals(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the true counts of all cells are likely to be: lows and highs, nan where nothing is known."""
        low, high = self.ranges.all(level)
        return np.where(self.withheld, np.nan, low), np.where(self.withheld, np.nan, high)


@dataclass(frozen=True)
class Nearest:
    """A table near a refused one that passes the rules, and how it differs."""

    query: Query
    message: str
    price: Fraction | None = None  # what it costs the user, where answers are charged


@dataclass(frozen=True)
class Refusal:
    """A refusal: the rule, a message that explains what to do, the areas, and tables that would pass."""

    rule: Rule
    message: str
    areas: tuple[Area, ...] = ()
    nearest: tuple[Nearest, ...] = ()


@dataclass(frozen=True)
class Balance:
    """The price of a table, and the budget of the user who would pay it."""

    measure: str  # epsilon or rho
    price: Fraction
    left: Fraction
    whole: Fraction


@dataclass(frozen=True)
class Preview:
    """A description of an answer without its values."""

    query: Query  # canonical
    cells: int  # of the answer
    needs_job: bool  # too large for a direct answer, small enough for a background job
    areas: int  # finest areas that are judged, 0 where none are
    withheld: int  # how many of them would be withheld
    blocked: tuple[Area, ...]  # of every level
    refusal: Refusal | None
    cost: str = ""  # its cost in the user's budget, as text; empty where it costs nothing
    balance: Balance | None = None  # the same in numbers; None where answers are not charged
