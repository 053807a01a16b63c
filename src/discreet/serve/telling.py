"""The axes by which a question is judged: fine enough to tell who passes its filter and who is in its groups.

It looks at codelists alone; what is judged by these axes, and how, is the rules' matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.schema.codelist import Breakdown, breakdown
from discreet.schema.expression import Comparison, Filter, Term
from discreet.serve.catalogue import Catalogue, ServedVariable

Mask = NDArray[np.bool_]  # leaf -> is it inside
EVERY_CODE = "*"  # the name of a breakdown that nobody declared


def judged_axes(
    axes: Sequence[Breakdown], base: Filter | None, catalogue: Catalogue, keeps: Callable[[str], bool]
) -> Iterator[Breakdown]:
    """The axes, each fine enough for the filter, and the variables that stand in the filter alone.

    A grouping whose variable is not one to keep is judged by a breakdown that tells its groups apart.
    """
    grouped = {root_of(axis): axis for axis in axes if is_grouping(axis)}
    held = {axis.variable: axis for axis in axes if not is_grouping(axis)}
    parts = list(comparisons(base.term)) if base else []
    yield from (axis for variable, axis in grouped.items() if keeps(variable))
    for name in dict.fromkeys([*held, *grouped, *(part.variable for part in parts)]):
        masks = [part.lookup for part in parts if part.variable == name]
        if name in grouped and not keeps(name):
            masks += masks_of(grouped[name])
        if masks:
            yield telling(catalogue.variables[name], masks, held.get(name))
        elif name in held:
            yield held[name]


def telling(variable: ServedVariable, masks: Iterable[Mask], least: Breakdown | None = None) -> Breakdown:
    """The coarsest breakdown that tells who is inside and has all codes of ``least``; all codes where none does."""
    wanted = list(masks)
    for axis in variable.breakdowns.values():
        holds = least is None or axis.position.keys() >= least.position.keys()
        if holds and all(_tells(axis, inside) for inside in wanted):
            return axis
    tree = variable.codelist
    return breakdown(variable.name, EVERY_CODE, tree, tree.leaves)


def masks_of(grouping: Breakdown) -> list[Mask]:
    """The leaves of each group."""
    return [grouping.node_of_leaf == node for node in range(1, len(grouping))]


def picks_codes(axes: Iterable[Breakdown], told: Iterable[Breakdown]) -> bool:
    """Whether some group is one finest code of the axis that tells it apart."""
    by_variable = {axis.variable: axis for axis in told}
    pairs = ((axis, by_variable.get(root_of(axis))) for axis in axes if is_grouping(axis))
    return any(
        len(np.unique(finer.node_of_leaf[inside])) == 1
        for axis, finer in pairs
        if finer is not None
        for inside in masks_of(axis)
    )


def is_grouping(axis: Breakdown) -> bool:
    """Whether the codes of an axis are groups of a user's."""
    return "~" in axis.variable


def root_of(axis: Breakdown) -> str:
    """The variable of an axis, or the one whose codes it groups."""
    return axis.variable.partition("~")[0]


def comparisons(term: Term) -> Iterator[Comparison]:
    """All comparisons of a filter."""
    if isinstance(term, Comparison):
        yield term
    else:
        for part in term.terms:
            yield from comparisons(part)


def _tells(axis: Breakdown, inside: Mask) -> bool:
    """Whether all leaves of each node are inside, or none."""
    leaves = np.bincount(axis.node_of_leaf, minlength=len(axis))
    found = np.bincount(axis.node_of_leaf, weights=inside, minlength=len(axis))
    return bool(((found == 0) | (found == leaves)).all())
