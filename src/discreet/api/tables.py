"""A protected table in memory: its published cells, parts of it, and as frames, arrays and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.api.drawings import as_picture, shown
from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.page.markup import Html, paragraph, safe
from discreet.programme.codelist import TOTAL
from discreet.programme.columns import plain_name
from discreet.programme.filter import alternatives
from discreet.release.reader import Release as OpenedRelease

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import polars as pl
    import xarray as xr

    from discreet.inference import estimates
    from discreet.inference.noise import KnownLaw
    from discreet.maths.inference import intervals
    from discreet.release import hierarchy
else:
    alt, estimates, intervals, hierarchy = map(
        lazily,
        (
            "altair",
            "discreet.inference.estimates",
            "discreet.maths.inference.intervals",
            "discreet.release.hierarchy",
        ),
    )

Integers = NDArray[np.int64]
Selected = str | Sequence[str]
VALUE = "value"
MOST_ROWS, MOST_COLUMNS = 30, 14  # of a table that is shown
MOST_DENSE = 10_000_000  # cells that are listed with their zeros
MOST_BARS = 60


def _taken_estimates(
    estimates: Callable[[], NDArray[np.float64]], shape: tuple[int, ...], places: Sequence[Sequence[int]]
) -> NDArray[np.float64]:
    """The estimates of some codes along each axis, in their order."""
    found = estimates().reshape((2, *shape))
    return found[np.ix_([0, 1], *places)].reshape(2, -1)


def optional(name: str) -> Any:
    """An optional library; a clear error where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise mistake("", name, "is not installed", f"install it: pip install {name}") from None


@dataclass(frozen=True, eq=False)
class TableAxis:
    """One axis of a table: a variable with its codes, labels and the codes above them; the total is ``_T``.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": [1, 2], "sex": ["F", "M"]}, person_id="pid")
    >>> table = ds.protect(census, ds.Cube("sex"), ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> table.axes[0].codes
    ('_T', 'F', 'M')
    """

    variable: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]
    parents: tuple[str, ...]  # empty for the total
    depths: Integers  # levels below the total
    level: str = ""  # the column of the finest codes, where the variable has finer ones

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def full_name(self) -> str:
        """The variable, with the level of its codes where it has finer ones: ``lau.nuts3``."""
        return f"{self.variable}.{self.level}" if self.level else self.variable

    def taken(self, places: Sequence[int]) -> TableAxis:
        """Some of the codes."""
        return TableAxis(
            self.variable,
            tuple(self.codes[k] for k in places),
            tuple(self.labels[k] for k in places),
            tuple(self.parents[k] for k in places),
            self.depths[list(places)],
            self.level,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Table:
    """A protected table: published values only, so that it may be shown, stored and sent.

    Cells that are not listed are zero, or not published where only some cross-tabulations are.

    >>> import discreet as ds
    >>> persons = {"pid": range(60), "sex": ["F", "M", "F"] * 20, "lau": ["A", "B"] * 30}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"])
    >>> secret = ds.Secret(bytes(range(32)))
    >>> table = ds.protect(census, ds.Cube("lau", "sex"), ds.CellKey(V=2, D=5), secret=secret)
    >>> table.sel(sex="F").shape
    (3,)
    >>> table.value(lau="A", sex="F") in range(15, 26)
    True
    """

    id: str
    title: str
    counted: str  # persons, or a 0/1 column of them
    axes: tuple[TableAxis, ...]
    cells: Integers  # flat positions in the grid of all codes, ascending, last axis fastest
    values: NDArray[Any]  # counts, or sums of weights
    present: NDArray[np.bool_] | None = None  # [level along each axis] whether it is published; None: all
    law: Callable[[], KnownLaw] | None = field(default=None)  # what is public about the noise
    estimates: Callable[[], NDArray[np.float64]] | None = (
        None  # of a hierarchical release: (estimate or error, cell)
    )
    release: Any = None  # the release that it is from

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of codes along each axis, the total included."""
        return tuple(map(len, self.axes))

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(axis.variable for axis in self.axes)

    @property
    def opened(self) -> OpenedRelease:
        """The release that it is from, for the functions of ``discreet.inference``."""
        if self.release is None:
            remedy = "open the release (open_release) and take the table of it"
            raise mistake(self.id, "table", "it was stored without its release", remedy)
        found: OpenedRelease = self.release.opened
        return found

    def whole_cube(self) -> str:
        """The id of the cube; refused where this is only a part of it."""
        entry = self.opened.cube(self.id)
        if self.variables != tuple(axis.variable for axis in entry.axes) or any(
            axis.codes != self.opened.read_codes(of_cube.breakdown).codes
            for axis, of_cube in zip(self.axes, entry.axes, strict=True)
        ):
            value = f"a part of the table {self.id}"
            raise mistake("", "table", value, "give the whole table, and choose cells with where=")
        return self.id

    def __len__(self) -> int:
        return len(self.cells)

    def axis(self, variable: str) -> TableAxis:
        """The axis of a variable, by its name, that of its column or of its level, where no other axis has the same."""
        for names in (
            [axis.variable for axis in self.axes],
            [axis.level for axis in self.axes],
        ):
            for name in (variable, plain_name(variable)):
                if names.count(name) == 1:
                    return self.axes[names.index(name)]
        raise mistake(self.id, "axis", repr(variable), alternatives(variable, self.variables))

    def sel(self, **codes: Selected) -> Table:
        """The part of the table with some codes: one code removes the axis, a list selects along it.

        ``"_T"`` is the total.
        """
        codes = {self.axis(name).variable: given for name, given in codes.items()}
        wanted = {name: _places(self.axis(name), given, self.id) for name, given in codes.items()}
        nodes = np.unravel_index(self.cells, self.shape) if self.axes else ()
        inside = np.ones(len(self.cells), dtype=bool)
        axes, columns, present = [], [], self.present
        for k, axis in enumerate(self.axes):
            if axis.variable not in wanted:
                axes.append(axis)
                columns.append(nodes[k])
                continue
            places = wanted[axis.variable]
            new = np.full(len(axis), -1, dtype=np.int64)
            new[places] = np.arange(len(places))
            inside &= new[nodes[k]] >= 0
            if isinstance(codes[axis.variable], str):
                if present is not None:
                    present = np.asarray(present.take(int(axis.depths[places[0]]), axis=len(axes)))
            else:
                axes.append(axis.taken(places))
                columns.append(new[nodes[k]])
        shape = tuple(map(len, axes))
        estimates = self.estimates
        if estimates is not None:
            taken = tuple(wanted.get(axis.variable, list(range(len(axis)))) for axis in self.axes)
            estimates = partial(_taken_estimates, estimates, self.shape, taken)
        flat = (
            np.ravel_multi_index([np.maximum(column, 0) for column in columns], shape)
            if axes
            else np.zeros(len(self.cells), dtype=np.int64)
        )
        order = np.argsort(flat[inside], kind="stable")
        return replace(
            self,
            axes=tuple(axes),
            cells=flat[inside][order],
            values=self.values[inside][order],
            present=present,
            estimates=estimates,
        )

    def value(self, **codes: str) -> int | float | None:
        """One published value; axes that are left out are at their total; None where it is not published."""
        codes = {self.axis(name).variable: code for name, code in codes.items()}
        cell = self.sel(**{axis.variable: codes.get(axis.variable, TOTAL) for axis in self.axes})
        if cell.present is not None and not bool(cell.present):
            return None
        found: int | float = cell.values[0].item() if len(cell.values) else 0
        return found

    def finest(self, *variables: str) -> Table:
        """The cross of some variables by their finest codes, the others at their total: no totals, each record once."""
        names = variables or self.variables
        chosen: dict[str, Selected] = {
            axis.variable: [code for code in axis.codes if code != TOTAL and code not in axis.parents]
            for axis in self.axes
            if axis.variable in [self.axis(name).variable for name in names]
        }
        return self.sel(
            **{axis.variable: TOTAL for axis in self.axes if axis.variable not in chosen}, **chosen
        )

    def to_arrow(self, *, zeros: bool = False, labels: bool = False) -> pa.Table:
        """The cells in long form: a column for each axis, then the value; zeros only on request."""
        cells, values, mask = self._listed(zeros)
        columns: dict[str, pa.Array] = {}
        nodes = np.unravel_index(cells, self.shape) if self.axes else ()
        for axis, along in zip(self.axes, nodes, strict=True):
            columns[axis.variable] = _dictionary(along, axis.codes)
            if labels:
                columns[f"{axis.variable}_label"] = _dictionary(along, axis.labels)
        columns[VALUE] = pa.array(values, mask=mask)
        return pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The cells in long form for any library with the Arrow PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self, *, zeros: bool = False, labels: bool = False) -> pd.DataFrame:
        """The cells in long form as a pandas data frame."""
        optional("pandas")
        return self.to_arrow(zeros=zeros, labels=labels).to_pandas()

    def to_polars(self, *, zeros: bool = False, labels: bool = False) -> pl.DataFrame:
        """The cells in long form as a polars data frame."""
        frame: pl.DataFrame = optional("polars").from_arrow(self.to_arrow(zeros=zeros, labels=labels))
        return frame

    def wide(self, columns: str | None = None) -> pd.DataFrame:
        """A pandas data frame with the codes of one variable as columns, the last by default; zeros are filled in."""
        pandas = optional("pandas")
        dense = self.to_numpy()
        if not self.axes:
            return pandas.DataFrame({VALUE: [dense.item()]})
        across = self.variables.index(self.axis(columns).variable) if columns else len(self.axes) - 1
        moved = np.moveaxis(dense, across, -1).reshape(-1, len(self.axes[across]))
        others = [axis for k, axis in enumerate(self.axes) if k != across]
        head = pandas.Index(self.axes[across].codes, name=self.axes[across].variable)
        if not others:
            return pandas.DataFrame(moved, columns=head, index=[self.counted])
        if len(others) == 1:
            index = pandas.Index(others[0].codes, name=others[0].variable)
        else:
            names = [axis.variable for axis in others]
            index = pandas.MultiIndex.from_product([axis.codes for axis in others], names=names)
        return pandas.DataFrame(moved, index=index, columns=head)

    def to_numpy(self) -> NDArray[Any]:
        """All cells as an array with one dimension for each axis; what is not published is NaN."""
        _, values, mask = self._listed(zeros=True)
        filled = values if not mask.any() else np.where(mask, np.nan, values)
        return filled.reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.to_numpy(), dtype=dtype)

    def to_xarray(self) -> xr.DataArray:
        """All cells as an array of xarray, with the codes as coordinates."""
        coordinates = {axis.variable: list(axis.codes) for axis in self.axes}
        array: xr.DataArray = optional("xarray").DataArray(
            self.to_numpy(), coords=coordinates, dims=self.variables, name=self.counted
        )
        return array

    def interval(self, level: float = 0.95) -> pd.DataFrame:
        """An interval for the true count of each listed cell, by what is public about the noise.

        Of a hierarchical release every cell is listed, zeros too, with its least squares estimate and standard error:
        the interval is that of the estimate, never of the whole count.
        """
        if self.estimates is not None:
            return self._estimated(level)
        known = self.noise()
        found = {
            value: estimates.interval(value, known, level).interval
            for value in np.unique(self.values).tolist()
        }
        frame = self.to_pandas()
        frame["low"] = [found[value].low for value in self.values.tolist()]
        frame["high"] = [found[value].high for value in self.values.tolist()]
        return frame

    def _estimated(self, level: float) -> pd.DataFrame:
        """All cells with their estimates and intervals."""
        if self.estimates is None:
            raise TypeError("the table has no estimates")
        intervals.checked_level(level)
        estimate, error = self.estimates()
        frame = self.to_pandas(zeros=True)
        frame["estimate"], frame["standard_error"] = estimate, error
        frame["low"], frame["high"] = hierarchy.interval(estimate, error, level)
        return frame

    def noise(self) -> KnownLaw:
        """The law of the noise as a data user knows it, for the functions of ``discreet.inference``."""
        if self.law is None or self.values.dtype.kind == "f":
            remedy = "intervals are for counts whose noise the release describes"
            raise mistake(self.id, "noise", "no law is known for this table", remedy)
        return self.law()

    def summary(self) -> str:
        """The table in a line."""
        by = " x ".join(f"{axis.full_name} ({len(axis)})" for axis in self.axes) or "one cell"
        return f"{self.id}: {self.counted} by {by}; {len(self.cells):,} published cells that are not zero"

    def chart(self) -> alt.Chart:
        """Bars of the finest cells of the last axis, coloured by the one before it."""
        axes = self.variables[-2:]
        if not axes:
            raise mistake(self.id, "chart", "a single value", "show a table with an axis")
        shown = self.finest(*axes).to_arrow(zeros=True, labels=False).to_pylist()
        if len(shown) > MOST_BARS * 10:
            raise mistake(self.id, "chart", f"{len(shown):,} cells", "select some with sel(..)")
        data = alt.Data(values=shown)  # type: ignore[no-untyped-call]
        bars: alt.Chart = as_picture(alt.Chart(data, title=self.title or self.id)).mark_bar()
        x = alt.X(field=axes[-1], type="nominal", sort=None)
        y = alt.Y(field=VALUE, type="quantitative", title=self.counted)
        if len(axes) == 1:
            return bars.encode(x, y)
        colour = alt.Color(field=axes[0], type="nominal", sort=None)
        return bars.encode(x, y, colour, alt.XOffset(field=axes[0], type="nominal", sort=None))

    def __repr__(self) -> str:
        return f"Table({self.summary()})"

    def _repr_html_(self) -> Html:
        return shown([*self._grid(), paragraph(self.summary())])

    def __getstate__(self) -> dict[str, Any]:
        """Without the release, which may know the records; what is public about the noise is lost with it."""
        return {**self.__dict__, "release": None, "law": None, "estimates": None}

    def _grid(self) -> Iterator[str]:
        """The first rows and columns as HTML: the last axis across, the others down."""
        down, across = self.axes[:-1], self.axes[-1:]
        columns = across[0].codes[:MOST_COLUMNS] if across else (VALUE,)
        rows = min(prod(map(len, down)), MOST_ROWS)
        heads = "".join(f'<th class="text" rowspan="2">{safe(axis.full_name)}</th>' for axis in down)
        over = safe(across[0].full_name if across else self.counted)
        yield f"<table><caption>{safe(self.title or self.id)}</caption><thead><tr>{heads}"
        yield f'<th class="text" colspan="{len(columns)}">{over}</th></tr><tr>'
        labels = across[0].labels if across else columns
        yield "".join(map(_head, columns, labels)) + "</tr></thead><tbody>"
        width = len(across[0]) if across else 1
        for row in range(rows):
            places = np.unravel_index(row, tuple(map(len, down))) if down else ()
            names = "".join(
                _head(axis.codes[int(k)], axis.labels[int(k)]) for axis, k in zip(down, places, strict=True)
            )
            found = self._window(row * width, row * width + len(columns))
            yield f"<tr>{names}{''.join(f'<td>{one}</td>' for one in found)}</tr>"
        yield "</tbody></table>"
        hidden = {"rows": prod(map(len, down)) - rows, "columns": width - len(columns)}
        if more := " and ".join(f"{number:,} more {name}" for name, number in hidden.items() if number):
            yield paragraph(f"Not shown: {more}.")

    def _window(self, start: int, stop: int) -> list[str]:
        first, last = np.searchsorted(self.cells, (start, stop))
        known = dict(zip(self.cells[first:last].tolist(), self.values[first:last].tolist(), strict=True))
        absent = self._absent(np.arange(start, stop))
        return [
            "" if missing else f"{known.get(cell, 0):,}"
            for cell, missing in zip(range(start, stop), absent.tolist(), strict=True)
        ]

    def _absent(self, cells: Integers) -> NDArray[np.bool_]:
        """Which cells are not published."""
        if self.present is None:
            return np.zeros(len(cells), dtype=bool)
        if not self.axes:
            return np.full(len(cells), not bool(self.present))
        nodes = np.unravel_index(cells, self.shape)
        levels = tuple(axis.depths[along] for axis, along in zip(self.axes, nodes, strict=True))
        found: NDArray[np.bool_] = ~self.present[levels]
        return found

    def _listed(self, zeros: bool) -> tuple[Integers, NDArray[Any], NDArray[np.bool_]]:
        """Cells, values, and which of them are not published."""
        if not zeros:
            return self.cells, self.values, np.zeros(len(self.cells), dtype=bool)
        size = prod(self.shape)
        if size > MOST_DENSE:
            raise mistake(self.id, "table", f"{size:,} cells with zeros", "select some with sel(..) first")
        values = np.zeros(size, dtype=self.values.dtype)
        values[self.cells] = self.values
        cells = np.arange(size)
        return cells, values, self._absent(cells)


def _head(code: str, label: str) -> str:
    """The head of a row or column: a code, with its label where the pointer rests on it."""
    title = f' title="{safe(label)}"' if label != code else ""
    return f"<th{title}>{safe(code)}</th>"


def _places(axis: TableAxis, codes: Selected, name: str) -> list[int]:
    if not isinstance(codes, Iterable):
        value = f"an object of type {type(codes).__name__}"
        raise mistake(
            name, axis.variable, value, f'give a code as text, such as "{axis.codes[-1]}", or a list'
        )
    given = [codes] if isinstance(codes, str) else list(codes)
    place = {code: k for k, code in enumerate(axis.codes)}
    for code in given:
        if code not in place:
            raise mistake(name, axis.variable, f"unknown code {code!r}", alternatives(str(code), axis.codes))
    return [place[code] for code in given]


def _dictionary(nodes: NDArray[np.int64], texts: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(nodes.astype(np.int32)), pa.array(texts, pa.string()))


def summary_frame(rows: Sequence[Mapping[str, object]], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Some rows as a pandas data frame; ``columns`` are those of a frame that may have no rows."""
    return optional("pandas").DataFrame(list(rows), columns=columns)
