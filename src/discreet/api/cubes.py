"""Cubes as a notebook names them: columns, bands of numbers, and ages from dates of birth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from discreet.errors import mistake

Limit = int | float
LONGEST_ID = 64


@dataclass(frozen=True, kw_only=True)
class Bands:
    """A column of numbers, or of dates of birth, in bands; made by ``bands`` and ``ages``.

    >>> import discreet as ds
    >>> ds.bands("age", 0, 15, 65) == ds.Bands(column="age", limits=(0, 15, 65))
    True
    """

    column: str
    limits: tuple[Limit, ...] = ()  # lower limits, rising; the last band is open
    name: str | None = None  # of the variable, where it is not that of the column
    on: date | None = None  # the column has dates of birth, and the value is the age on this day
    missing: str | None = None  # the code of records without a value


def bands(column: str, *limits: Limit, name: str | None = None, missing: str | None = None) -> Bands:
    """A column of numbers as bands, by their lower limits; the last band is open.

    ``name`` is that of the variable where a column is banded in two ways, ``missing`` the code of records without a
    value.

    >>> import discreet as ds
    >>> ds.bands("age", 0, 15, 30, 45, 65).limits
    (0, 15, 30, 45, 65)
    """
    if not limits:
        raise mistake(
            "", f"bands({column!r})", "no limits", f"give lower limits: bands({column!r}, 0, 15, 65)"
        )
    return Bands(column=column, limits=_rising(f"bands({column!r})", limits), name=name, missing=missing)


def ages(
    column: str, *limits: Limit, on: str | date, name: str | None = None, missing: str | None = None
) -> Bands:
    """A column of dates of birth as ages in completed years on a day, in bands or in single years up to 120.

    >>> import discreet as ds
    >>> ds.ages("born", 0, 18, 65, on="2021-05-09").on
    datetime.date(2021, 5, 9)
    """
    try:
        day = on if isinstance(on, date) else date.fromisoformat(on)
    except ValueError:
        raise mistake("", f"ages({column!r})", f"on={on!r}", 'give a day as "2021-05-09"') from None
    bounds = _rising(f"ages({column!r})", limits) or tuple(range(121))
    return Bands(column=column, limits=bounds, name=name, on=day, missing=missing)


def _rising(key: str, limits: tuple[Limit, ...]) -> tuple[Limit, ...]:
    if not all(isinstance(limit, int | float) and not isinstance(limit, bool) for limit in limits):
        raise mistake("", key, "limits that are no numbers", "give each limit as a number: 0, 15, 65")
    if any(low >= high for low, high in pairwise(limits)):
        ordered = ", ".join(f"{limit:g}" for limit in sorted(set(limits)))
        raise mistake("", key, "limits that do not rise", f"give each once, in order: {ordered}")
    return limits


Axis = str | Bands


@dataclass(frozen=True, kw_only=True, init=False)
class Cube:
    """A table to make: a cross of columns with all its totals.

    An axis is the name of a column (or of a level of a hierarchy, or of a breakdown such as ``AGE.M``), or bands of
    numbers. Levels of a hierarchy are one variable, named by its finest column, whichever of them a cube has; letters
    with accents and other signs in names of columns are replaced in those of variables. ``where`` selects who is
    counted (``'sex == "F"'``), ``count`` names a 0/1 column that is counted instead of the records, ``weight`` a column
    of survey weights, ``unit`` whom it counts.

    >>> import discreet as ds
    >>> ds.Cube("lau", "sex", ds.bands("age", 0, 15, 65)).id
    'lau_sex_age'
    """

    axes: tuple[Axis, ...]
    id: str
    where: str | None
    count: str | None
    weight: str | None
    unit: str
    title: str

    def __init__(
        self,
        *axes: Axis,
        id: str | None = None,  # noqa: A002, the key of a programme file
        where: str | None = None,
        count: str | None = None,
        weight: str | None = None,
        unit: str = "persons",
        title: str = "",
    ) -> None:
        """Declare a table; its id, which becomes a file name, follows from the axes unless it is given."""
        if not axes:
            raise mistake("", "Cube", "no axes", 'name at least one column: Cube("sex")')
        wrong = next((axis for axis in axes if not isinstance(axis, str | Bands)), None)
        if wrong is not None:
            value = f"an axis of type {type(wrong).__name__}"
            raise mistake("", "Cube", value, "give names of columns, or bands(..) of numbers")
        given = {"axes": axes, "id": id or made_id(axes), "where": where, "count": count}
        for name, one in {**given, "weight": weight, "unit": unit, "title": title}.items():
            object.__setattr__(self, name, one)

    @property
    def banded(self) -> Iterator[Bands]:
        """The axes that are bands."""
        return (axis for axis in self.axes if isinstance(axis, Bands))


def axis_name(axis: Axis) -> str:
    """The name of the variable of an axis."""
    return axis if isinstance(axis, str) else axis.name or axis.column


def made_id(axes: tuple[Axis, ...]) -> str:
    """An id from the names of the axes."""
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", "_".join(map(axis_name, axes))).strip("-._")
    return text[:LONGEST_ID] or "cube"
