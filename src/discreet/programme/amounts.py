"""Columns of amounts (incomes, turnover, areas), whose sums are not protected and which are therefore no weights."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

REMEDY = (
    "Discreet protects counts; sums and means of amounts are not protected yet: count it in bands instead, "
    "or list a survey weight in population.weights"
)

_WORDS = {
    "amount", "amt", "area", "assets", "benefit", "benefits", "cost", "costs", "debt", "earned", "earnings",
    "expenditure", "expenses", "hectares", "inc", "income", "incomes", "loan", "mortgage", "pay", "pension", "price",
    "profit", "profits", "rent", "revenue", "revenues", "salary", "salaries", "sales", "savings", "sqm", "surface",
    "tax", "taxes", "turnover", "value", "wage", "wages", "wealth",
    "einkommen", "flaeche", "gehalt", "lohn", "miete", "umsatz", "wohnflaeche",
    "ingreso", "ingresos", "renta", "salario", "superficie", "revenu", "revenus", "salaire", "loyer",
}  # fmt: skip
_PARTS = re.compile(r"income|salar|wage(?!r)|turnover|revenue|earning|einkommen|umsatz")
_WEIGHT = re.compile(r"weight|wgt|wght|wt(?![a-z])|gewicht|poids|peso|ponder|grossing|factor")
_PUMS = re.compile(
    r"(p|h|f)?incp|wagp|pernp|semp|retp|ssp|ssip|valp|grntp?|rntp|smocp"
)  # of the American survey

MOST_MEAN = 10_000  # a record rarely represents more than that
HUNDRED = 100
ROUND_SHARE = 0.5
FEWEST_ROUND = 10  # different round values: a design has few weights, which may be round


def is_named_amount(name: str) -> bool:
    """Whether a column is named like an amount, and not like a weight."""
    plain = name.lower()
    if _WEIGHT.search(plain):
        return False
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
    return bool(words & _WORDS or _PARTS.search(plain) or _PUMS.fullmatch(plain))


class AmountsSeen:
    """Judges the values of a column batch by batch; nothing of them is shown.

    They look like amounts where their mean is above 10,000, or where more than half of them are round hundreds of at
    least ten different sizes.
    """

    def __init__(self) -> None:
        self._records, self._sum, self._round = 0, 0.0, 0
        self._sizes: set[float] = set()

    def add(self, values: NDArray[np.float64]) -> None:
        """Add a batch; records without weight prove nothing."""
        values = values[values > 0]
        rounded = values[values % HUNDRED == 0]
        self._records += len(values)
        self._sum += float(values.sum())
        self._round += len(rounded)
        if len(self._sizes) < FEWEST_ROUND:
            self._sizes.update(np.unique(rounded)[: 2 * FEWEST_ROUND].tolist())

    def join(self, other: AmountsSeen) -> None:
        """Add the values that another one has seen."""
        self._records += other._records
        self._sum += other._sum
        self._round += other._round
        self._sizes |= other._sizes

    @property
    def look_like_amounts(self) -> bool:
        """Whether the values so far are unlike survey weights."""
        if not self._records:
            return False
        round_ones = self._round > ROUND_SHARE * self._records and len(self._sizes) >= FEWEST_ROUND
        return round_ones or self._sum > MOST_MEAN * self._records
