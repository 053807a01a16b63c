"""What an answer adds to what its user has: cross-tabulations with their sizes, populations with their totals.

It looks at protected tables alone; what is too much is the history's to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.errors import Mistakes
from discreet.perturb.table import ProtectedTable
from discreet.schema.crosstab import signatures
from discreet.schema.expression import NOBODY
from discreet.serve.collected import Collected, Population, Statistic
from discreet.serve.history import cells_of
from discreet.serve.query import Query
from discreet.serve.question import Question, resolve
from discreet.serve.sources import TableSource


@dataclass(frozen=True)
class Collecting:
    """One question and the source that answers it."""

    source: TableSource
    question: Question

    def collected(self, table: ProtectedTable) -> Collected:
        """Every cross-tabulation and every population of an answer."""
        cube = self.question.judged  # a filter shows cells of the table that has its variables as axes
        sizes = {axis.variable: self._sizes(axis.variable) for axis in cube.axes}
        statistics = tuple(Statistic(one, cells_of(one, sizes)) for one in signatures([cube]))
        return Collected(statistics, tuple({one.base: one for one in self._populations(table)}.values()))

    def differing(self, new: str, earlier: str) -> int | None:
        """The published number of records that are in one of two populations alone; None where none can be."""
        if new and earlier:
            text = f"(({new}) and not ({earlier})) or (({earlier}) and not ({new}))"
        else:
            text = f"not ({new or earlier})"
        try:
            return self._number(text)
        except Mistakes as mistakes:
            if all(problem.remedy == NOBODY for problem in mistakes.problems):
                return None  # no record can be in one alone: the filters mean the same
            return 0  # too long or too deep to be compared: what cannot be judged is not let through

    def _number(self, where: str) -> int:
        """The published number of records that pass a filter."""
        cube = self.question.cube
        asked = Query(cube.unit, (), where, cube.count or "")
        return value_at(self.source.table(resolve(asked, self.source.catalogue).cube), 0)

    def _sizes(self, variable: str) -> tuple[int, ...]:
        """The number of codes of each depth of a variable, or of a grouping of it."""
        if "~" in variable:
            axis = next(axis for axis in self.question.cube.axes if axis.variable == variable)
            return (1, len(axis) - 1)
        tree = self.source.catalogue.variables[variable].codelist
        return tuple(np.bincount(np.array([0, *tree.depths])).tolist())

    def _populations(self, table: ProtectedTable) -> Iterator[Population]:
        """Who is counted: everybody, those who pass the filter, and each group of a grouping.

        A release shows only populations that it has published, which nothing that is asked here can change.
        """
        catalogue, cube = self.source.catalogue, self.question.cube
        if not catalogue.may_filter:
            return
        base = cube.base.canonical if cube.base else ""
        yield Population("", self._number(""))
        yield Population(base, value_at(table, 0))
        for k, axis in enumerate(cube.axes):
            variable, _, grouped = axis.variable.partition("~")
            for node in range(1, len(axis)) if grouped else ():
                leaves = np.flatnonzero(axis.node_of_leaf == node)
                codes = (catalogue.variables[variable].codelist.leaf_codes[leaf] for leaf in leaves)
                text = f"{variable} in ({', '.join(map(repr, codes))},)"
                both = f"({base}) and {text}" if base else text
                normal = resolve(Query(cube.unit, (), both, cube.count or ""), catalogue).query.where
                yield Population(normal, value_at(table, node * cube.strides[k]))


def value_at(table: ProtectedTable, cell: int) -> int:
    """The published value of one cell; what is not stored is zero."""
    place = int(np.searchsorted(table.cells, cell))
    found = place < len(table) and int(table.cells[place]) == cell
    return int(table.values[place]) if found else 0
