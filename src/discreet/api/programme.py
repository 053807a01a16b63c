"""A programme as an object: declared in a notebook or read from a file, checked, described and written."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from discreet.api.arguments import names_arguments
from discreet.api.declaration import Declaration
from discreet.api.drawings import shown
from discreet.errors import DiscreetError, mistake
from discreet.page.markup import As, Column, Html, table
from discreet.programme.cube import Cube
from discreet.programme.programme import Programme as ResolvedProgramme


class Programme:
    """The whole declared publication: population, variables, cubes, noise and gates.

    It is made by ``Population.programme`` or read by ``load_programme``; ``to_toml`` writes it as the commands read it.

    >>> import discreet as ds
    >>> persons = {"pid": [1, 2, 3], "sex": ["F", "M", "F"]}
    >>> census = ds.Population(persons=persons, person_id="pid")
    >>> programme = census.programme(ds.Cube("sex"), ds.CellKey(V=2, D=5))
    >>> programme
    Programme('release', 1 cube)
    >>> path = programme.to_toml(getfixture("tmp_path") / "declared")
    >>> ds.check(ds.load_programme(path)).passed
    True
    """

    def __init__(self, declaration: Declaration, again: Callable[[Any], Programme] | None = None) -> None:
        """A programme by its declaration; it is resolved and checked when it is first used.

        ``again`` declares the same for another population; a programme of a file has none.
        """
        self._declaration, self._again = declaration, again

    @classmethod
    @names_arguments
    def read(cls, path: str | Path) -> Programme:
        """The programme of a file; every mistake in it is reported at once."""
        if not isinstance(path, str | Path):
            remedy = "give a Population, a Programme or the path of a programme file"
            raise mistake("", "programme", f"an object of type {type(path).__name__}", remedy)
        found = cls(Declaration.read(Path(path)))
        _ = found.resolved
        return found

    @cached_property
    @names_arguments
    def resolved(self) -> ResolvedProgramme:
        """The programme as every other module uses it; every mistake in it is reported at once."""
        return self._declaration.resolved()

    @property
    def declaration(self) -> Declaration:
        """What was declared."""
        return self._declaration

    def of(self, population: Any) -> Programme:
        """The same cubes and noise for another population."""
        if self._again is None:
            remedy = "leave the population out, or give the programme file that was published"
            raise mistake(
                "", "census", "a population, but the release was made from a programme file", remedy
            )
        return self._again(population)

    @property
    def name(self) -> str:
        """The name of the release."""
        return self.resolved.name

    @property
    def cubes(self) -> tuple[Cube, ...]:
        """The tables, resolved."""
        return self.resolved.cubes

    @names_arguments
    def to_toml(self, folder: str | Path) -> Path:
        """Write the programme file, its codelists and the records in memory into a new folder; return the file.

        The folder is as confidential as the records: only its owner can open it.
        """
        return self._declaration.write(Path(folder), self.resolved)

    def summary(self) -> str:
        """What is published, in a line for each cube."""
        lines = (f"{cube.id}: {cube.unit} by {_axes(cube)}, {cube.size:,} cells" for cube in self.cubes)
        return "\n".join((f"{self.name}, {self.resolved.noise.kind.value} noise", *lines))

    def __repr__(self) -> str:
        try:
            number = len(self.cubes)
        except DiscreetError:  # a debugger shows it, too
            return "Programme(with mistakes: see check)"
        return f"Programme({self.name!r}, {number} cube{'' if number == 1 else 's'})"

    def _repr_html_(self) -> Html:
        columns = [Column("cube"), Column("counted"), Column("axes"), Column("possible cells", As.COUNT)]
        rows = [(cube.id, cube.unit, _axes(cube), cube.size) for cube in self.cubes]
        return shown(
            [table("Programme" if self.name == "release" else f"Programme {self.name}", columns, rows)]
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a programme may contain records and cannot be pickled; write it with to_toml")


def _axes(cube: Cube) -> str:
    return " x ".join(axis.full_name for axis in cube.axes)


def load_programme(path: str | Path) -> Programme:
    """Read and check a programme file; every mistake in it is reported at once.

    >>> import discreet as ds
    >>> folder = getfixture("tmp_path") / "census"
    >>> _ = ds.synth(500, out=folder, tables=["3.1"])
    >>> ds.load_programme(folder / "programme.toml")
    Programme('census', 1 cube)
    """
    return Programme.read(path)
