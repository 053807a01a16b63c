"""The observations of an answer, ready to be written: cells of the keys asked for, under SDMX names; no format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from discreet.serve.answer import Answer
from discreet.serve.sdmx.keys import Pick
from discreet.serve.sdmx.registry import Dimension, Flow


class Detail(Enum):
    """How much of an observation is written."""

    FULL = auto()
    VALUES = auto()  # no attributes
    KEYS = auto()  # no values


@dataclass(frozen=True, eq=False)
class Observations:
    """Cells of a dataflow in row-major order of ``dimensions``; where ``withheld`` is true the value means nothing."""

    flow: Flow
    dimensions: tuple[Dimension, ...]
    codes: tuple[tuple[str, ...], ...]  # dimension -> SDMX ids
    values: NDArray[np.int64]  # (cells,)
    withheld: NDArray[np.bool_]  # (cells,)
    shown: NDArray[np.bool_]  # (cells,), false where no key asks for the cell
    detail: Detail = Detail.FULL

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of codes along each dimension."""
        return tuple(map(len, self.codes))

    def with_last(self, dimension: Dimension) -> Observations:
        """The same observations, one dimension varying fastest."""
        place = self.dimensions.index(dimension)
        order = [*(k for k in range(len(self.codes)) if k != place), place]

        def moved(cells: NDArray[np.generic]) -> NDArray[np.generic]:
            return cells.reshape(self.shape).transpose(order).reshape(-1)

        return Observations(
            self.flow,
            tuple(self.dimensions[k] for k in order),
            tuple(self.codes[k] for k in order),
            moved(self.values).astype(np.int64),
            moved(self.withheld).astype(np.bool_),
            moved(self.shown).astype(np.bool_),
            self.detail,
        )

    def first(self, number: int) -> Observations:
        """The first observations along the last dimension, or the last ones where the number is negative."""
        kept = slice(None, number) if number > 0 else slice(number, None)
        return Observations(
            self.flow,
            self.dimensions,
            (*self.codes[:-1], self.codes[-1][kept]),
            self.values.reshape(self.shape)[..., kept].reshape(-1),
            self.withheld.reshape(self.shape)[..., kept].reshape(-1),
            self.shown.reshape(self.shape)[..., kept].reshape(-1),
            self.detail,
        )


def observations(flow: Flow, pick: Pick, answer: Answer, detail: Detail) -> Observations:
    """The observations of an answer to a pick."""
    return Observations(
        flow, flow.dimensions, pick.codes, answer.values, answer.withheld, pick.inside, detail
    )


def keys_alone(flow: Flow, pick: Pick) -> Observations:
    """The keys without values, for which nobody needs to be asked."""
    shown = pick.inside
    none = np.zeros(len(shown), dtype=bool)
    return Observations(flow, flow.dimensions, pick.codes, none.astype(np.int64), none, shown, Detail.KEYS)
