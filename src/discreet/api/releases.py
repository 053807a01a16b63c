"""A release as a mapping from the ids of its tables to protected tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from discreet.api.arguments import names_arguments
from discreet.api.drawings import shown
from discreet.api.programme import Programme
from discreet.api.secret import Secret
from discreet.api.tables import Table, TableAxis, summary_frame
from discreet.audit.evidence import PublishedTable, WeightedTable, published
from discreet.audit.verdict import GateVerdict
from discreet.errors import BrokenRelease, mistake
from discreet.formats.dataset import part_of
from discreet.io.temporary_folder import TemporaryFolder
from discreet.lazy import lazily
from discreet.page.markup import As, Column, Html, paragraph, table
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Breakdown
from discreet.programme.filter import alternatives
from discreet.programme.hierarchical import Output
from discreet.release.manifest import Manifest
from discreet.release.reader import PublishedCodes
from discreet.release.reader import Release as OpenedRelease
from discreet.release.reader import open_release as open_folder

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from discreet.inference import noise as known_noise
    from discreet.inference.noise import KnownLaw
    from discreet.release import hierarchy
else:
    known_noise, hierarchy = lazily("discreet.inference.noise"), lazily("discreet.release.hierarchy")


Default = TypeVar("Default")


@dataclass(frozen=True, eq=False, repr=False)
class Origin:
    """What a release was made from; confidential, and only in the memory of the process that made it."""

    programme: Programme
    secret: Secret
    notes: tuple[str, ...] = ()
    verdicts: tuple[GateVerdict, ...] = ()
    folder: TemporaryFolder | None = None  # deleted with the release


class Release(Mapping[str, Table]):
    """A release: ids of tables -> protected tables, with its manifest and what is public about its noise.

    >>> import discreet as ds
    >>> persons = {"pid": range(60), "sex": ["F", "M", "F"] * 20, "lau": ["A", "B"] * 30}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"])
    >>> cubes = [ds.Cube("lau", "sex", id="3.1"), ds.Cube("sex", id="1.1")]
    >>> release = ds.protect(census, cubes, ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> list(release)
    ['3.1', '1.1']
    >>> release["3.1"].sel(sex="F").variables
    ('lau',)
    >>> release["1.1"].value(sex="F") == release["3.1"].value(sex="F")
    True
    """

    def __init__(self, opened: OpenedRelease, origin: Origin | None = None) -> None:
        """A release that is opened; ``origin`` is what it was made from, in the process that made it."""
        self._opened, self._origin = opened, origin

    @property
    def folder(self) -> Path:
        """Its folder; a temporary one, deleted with the release, where it was made without ``out``."""
        return self._opened.folder

    @property
    def manifest(self) -> Manifest:
        """The public manifest."""
        return self._opened.manifest

    @property
    def opened(self) -> OpenedRelease:
        """The release as every other module uses it."""
        return self._opened

    @property
    def origin(self) -> Origin | None:
        """What it was made from; None where it was opened from a folder."""
        return self._origin

    @property
    def noise(self) -> Noise:
        """What is public about the noise."""
        return self._opened.noise

    @property
    def notes(self) -> tuple[str, ...]:
        """Where noise and swapping deviate from the declaration."""
        return self._origin.notes if self._origin else ()

    @property
    def verdicts(self) -> tuple[GateVerdict, ...]:
        """The gates that were judged when it was made; all passed."""
        return self._origin.verdicts if self._origin else ()

    def __iter__(self) -> Iterator[str]:
        return (entry.id for entry in self.manifest.cubes)

    def __len__(self) -> int:
        return len(self.manifest.cubes)

    def __contains__(self, name: object) -> bool:
        return any(entry.id == name for entry in self.manifest.cubes)

    @overload
    def get(self, name: str, /) -> Table | None: ...

    @overload
    def get(self, name: str, /, default: Default) -> Table | Default: ...

    def get(self, name: str, /, default: object = None) -> object:
        """The table of an id, or the default where there is no such table."""
        return self[name] if name in self else default  # noqa: SIM401, this is get

    def __getitem__(self, name: str) -> Table:
        if name not in self:
            raise mistake(self.folder, "cube", repr(name), alternatives(name, list(self)))
        seen = self._tables.get(name)
        if seen is None:
            raise BrokenRelease(f"cube {name}: its Parquet file is missing; fetch the release again")
        entry, cube = self._opened.cube(name), seen.cube
        cells, values = seen.load()
        part = part_of(cube)
        return Table(
            id=name,
            title=entry.title,
            counted=entry.count or entry.unit,
            axes=tuple(map(_axis, cube.axes)),
            cells=cells,
            values=values,
            present=None if part is None else part.present,
            law=partial(self.known_law),
            estimates=self._estimates(name),
            release=self,
        )

    def _estimates(self, name: str) -> Callable[[], NDArray[np.float64]] | None:
        """How to read the estimates of a table of a hierarchical release; None where it publishes none."""
        found = hierarchy.published_hierarchy(self._opened)
        if found is None or Output.ESTIMATES not in found.rule.outputs:
            return None
        return partial(found.estimated, name)

    def known_law(self, cross_tabulation: str | None = None) -> KnownLaw:
        """The law of the noise as a data user knows it."""
        return known_noise.noise_of(self._opened, cross_tabulation)

    def read_cube(self, name: str) -> pa.Table:
        """The published cells of a table with codes and labels, as its file has them."""
        return self._opened.read_cube(name)

    def read_codes(self, breakdown: str) -> PublishedCodes:
        """Codes, parents and labels of a breakdown, such as ``AGE.M``."""
        return self._opened.read_codes(breakdown)

    def to_pandas(self) -> pd.DataFrame:
        """The list of the tables as a pandas data frame."""
        return summary_frame(self._rows())

    def summary(self) -> str:
        """What is published, in a line for each table."""
        lines = (
            f"{row['table']}: {row['counted']} by {row['axes']}, {row['cells']:,} cells"
            for row in self._rows()
        )
        return "\n".join((f"{self.manifest.name}: {self.noise.sentence()}", *lines))

    def __repr__(self) -> str:
        return f"Release({self.manifest.name!r}, {len(self)} table{'' if len(self) == 1 else 's'})"

    def _repr_html_(self) -> Html:
        columns = [Column("table"), Column("counted"), Column("axes"), Column("cells", As.COUNT)]
        rows = [tuple(row[column.name] for column in columns) for row in self._rows()]
        name = self.manifest.name
        listed = table("Release" if name == "release" else f"Release {name}", columns, rows)
        return shown([listed, paragraph(str(self.noise.sentence()))])

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a release is a folder: write it with protect(.., out=..) and open it with open_release"
        )

    @cached_property
    def _tables(self) -> dict[str, PublishedTable | WeightedTable]:
        seen = published(self._opened)
        counts = {one.id: one for universe in seen.universes for one in universe.tables}
        return {**counts, **{one.id: one for one in seen.weighted}}

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "table": entry.id,
                "title": entry.title,
                "counted": entry.count or entry.unit,
                "axes": " x ".join(axis.breakdown for axis in entry.axes),
                "cells": entry.cells,
            }
            for entry in self.manifest.cubes
        ]


def _axis(axis: Breakdown) -> TableAxis:
    above = axis.parents.tolist()
    return TableAxis(
        axis.variable,
        axis.codes,
        axis.labels,
        tuple(axis.codes[parent] if parent >= 0 else "" for parent in above),
        axis.depths.astype(np.int64),
        axis.name if axis.name != axis.variable else "",
    )


@names_arguments
def open_release(folder: str | Path) -> Release:
    """Open a release folder; its manifest is checked, its files are not (``verify`` does).

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": [1, 2], "sex": ["F", "M"]}, person_id="pid")
    >>> made = ds.protect(census, [ds.Cube("sex")], ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> ds.open_release(made.folder)
    Release('release', 1 table)
    """
    return Release(open_folder(folder))
