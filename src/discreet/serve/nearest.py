"""Tables near one that was refused: a coarser breakdown, an axis less, larger areas; each is judged before offered.

It owns where to look and how long; what passes is the rules' to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from math import prod

from discreet.serve.answer import Nearest
from discreet.serve.catalogue import Catalogue
from discreet.serve.query import Axis, Query
from discreet.words.phrase import joined, phrase

MOST_OFFERED = 3
MOST_JUDGED = 12
STEPS = 3  # changes of the refused table

Passes = Callable[[Query], bool]


def nearest(query: Query, catalogue: Catalogue, passes: Passes) -> tuple[Nearest, ...]:
    """The largest tables within a few changes that pass; at most so many are judged."""
    judged = islice(_in_order(query, catalogue), MOST_JUDGED)
    return tuple(islice((change for change in judged if passes(change.query)), MOST_OFFERED))


def _in_order(query: Query, catalogue: Catalogue) -> Iterator[Nearest]:
    """One change before two, then more cells before fewer; no table twice."""
    seen = {_whole(query).id}
    level = [Nearest(_whole(query), "")]
    if level[0].query != query:
        unfiltered = phrase("the same table without the filter")
        yield Nearest(_whole(query), unfiltered) if query.where else level[0]
    for _ in range(STEPS):
        following = {}
        for one in level:
            for change in _changes(one, catalogue):
                if change.query.id not in seen:
                    following[change.query.id] = change
        seen |= following.keys()
        level = sorted(following.values(), key=lambda one: -_cells(one.query, catalogue))
        yield from level


def _whole(query: Query) -> Query:
    """The query without filter and picked codes: the rules are judged on this anyway."""
    axes = tuple(replace(axis, codes=()) for axis in query.axes)
    return replace(query, axes=axes, where="")


def _changes(one: Nearest, catalogue: Catalogue) -> Iterator[Nearest]:
    query, labels = one.query, catalogue.labels
    for place, axis in enumerate(query.axes):
        coarser = _coarser(axis, catalogue)
        if coarser is not None:
            changed = replace(query, axes=_with(query.axes, place, coarser))
            is_place = catalogue.variables[coarser.variable].is_place
            old = labels.breakdowns.get(axis.breakdown, axis.breakdown)
            names = {"new": labels.axis(coarser.breakdown), "old": old}
            larger = phrase("larger areas: {new} for {old}", **names)
            said = larger if is_place else phrase("coarser: {new} for {old}", **names)
            yield Nearest(changed, joined(one.words, said, by=", "))
        if len(query.axes) > 1:
            left = (*query.axes[:place], *query.axes[place + 1 :])
            said = phrase("without {variable}", variable=labels.variable(axis.variable))
            yield Nearest(replace(query, axes=left), joined(one.words, said, by=", "))


def _coarser(axis: Axis, catalogue: Catalogue) -> Axis | None:
    """The next coarser breakdown of the same variable that still divides it."""
    known = catalogue.variables[axis.variable].breakdowns
    if axis.groups:
        return None
    below = [name for name, held in known.items() if 1 < len(held) < len(known[axis.breakdown])]
    return Axis(below[-1]) if below else None


def _with(axes: tuple[Axis, ...], place: int, axis: Axis) -> tuple[Axis, ...]:
    return (*axes[:place], axis, *axes[place + 1 :])


def _cells(query: Query, catalogue: Catalogue) -> int:
    return prod(
        len(axis.groups) + 1
        if axis.groups
        else len(catalogue.variables[axis.variable].breakdowns[axis.breakdown])
        for axis in query.axes
    )
