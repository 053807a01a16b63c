"""From a protected table to an answer: the cells asked for, their axes, and what may be told; it judges nothing."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.perturb.table import ProtectedTable
from discreet.release.publication import ADDITIVITY, SWAPPED
from discreet.schema.codelist import Breakdown
from discreet.schema.crosstab import Signature
from discreet.serve.answer import Answer, AnswerAxis, NoiseRange
from discreet.serve.picking import map_of, picked
from discreet.serve.question import Question
from discreet.serve.rules import Verdict
from discreet.serve.sources import TableSource
from discreet.serve.telling import root_of
from discreet.words.phrase import joined

Nodes = NDArray[np.int64]


def answer_of(
    question: Question,
    table: ProtectedTable,
    verdict: Verdict,
    warnings: tuple[str, ...],
    source: TableSource,
) -> Answer:
    """The answer to a question, blocked areas withheld."""
    cube, catalogue = question.cube, source.catalogue
    shape = tuple(len(nodes) for nodes in question.picked)
    maps = [map_of(len(axis), question.picked[question.order.index(k)]) for k, axis in enumerate(cube.axes)]
    places, rows = picked(cube, table.cells, maps, question.order, shape)
    values = np.zeros(prod(shape), dtype=np.int64)
    values[places] = table.values[rows]
    withheld = _withheld(question, verdict, catalogue.rule.place, shape)
    values[withheld] = 0
    axes = [
        _axis(cube.axes[k], nodes, said.breakdown, cube.axes[k].variable in catalogue.places)
        for k, nodes, said in zip(question.order, question.picked, question.query.axes, strict=True)
    ]
    noise = joined(catalogue.noise.sentence(), SWAPPED if catalogue.swapped else "")
    shown = {code for axis in axes if axis.variable == catalogue.rule.place for code in axis.codes}
    return Answer(
        question.query,
        tuple(axes),
        values,
        withheld,
        noise,
        ADDITIVITY,
        tuple(area for area in verdict.blocked if area.code in shown),
        warnings,
        _ranges(question, values, source),
    )


def _axis(axis: Breakdown, nodes: Nodes, breakdown: str, is_place: bool) -> AnswerAxis:
    picked, parents, depths = nodes.tolist(), axis.parents.tolist(), axis.depths.tolist()
    shown = set(picked)
    above = (_above(node, parents, shown) for node in picked)
    return AnswerAxis(
        axis.variable.partition("~")[0],
        breakdown,
        tuple(axis.codes[node] for node in picked),
        tuple(axis.labels[node] for node in picked),
        tuple(axis.codes[node] if node >= 0 else "" for node in above),
        tuple(depths[node] for node in picked),
        is_place,
    )


def _above(node: int, parents: list[int], shown: set[int]) -> int:
    """The nearest node above that is shown; -1 where there is none."""
    node = parents[node]
    while node >= 0 and node not in shown:
        node = parents[node]
    return node


def _withheld(
    question: Question, verdict: Verdict, place: str | None, shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Every cell of a blocked area."""
    withheld = np.zeros(shape, dtype=bool)
    codes = {area.code for area in verdict.blocked}
    for asked, k in enumerate(question.order):
        axis = question.cube.axes[k]
        if root_of(axis) == place and codes:
            blocked = np.array([axis.codes[node] in codes for node in question.picked[asked]], dtype=bool)
            np.moveaxis(withheld, asked, 0)[blocked] = True
    return withheld.reshape(-1)


def _ranges(
    question: Question, values: NDArray[np.int64], source: TableSource
) -> Callable[[int, float], NoiseRange | None]:
    """Cell and level -> where its true count is likely to be."""
    cube, shape = question.cube, tuple(len(nodes) for nodes in question.picked)
    noise = source.noise

    def range_of(cell: int, level: float) -> NoiseRange | None:
        at = np.unravel_index(cell, shape) if shape else ()
        levels = []
        for asked, k in enumerate(question.order):
            depth = int(cube.axes[k].depths[question.picked[asked][at[asked]]])
            levels += [(cube.axes[k].variable, depth)] if depth else []
        base = cube.base.canonical if cube.base else ""
        signature = Signature(cube.unit, base, cube.count or "", tuple(sorted(levels)))
        return noise.range_of(signature, int(values[cell]), level)

    return range_of
