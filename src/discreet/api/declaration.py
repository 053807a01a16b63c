"""A programme as declared: the content of its file, with tables and codelists that are in memory beside it."""

from __future__ import annotations

import copy
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from discreet.errors import Mistakes
from discreet.io.atomic_folder import AtomicFolder
from discreet.io.temporary_folder import TemporaryFolder
from discreet.lazy import lazily
from discreet.programme.codelist import Codelist, write_codelist
from discreet.programme.programme import (
    Inspected,
    Programme,
    Supplied,
    inspect_declared,
)
from discreet.programme.reading import checked_declaration, read_toml
from discreet.programme.section import Findings, with_home
from discreet.programme.sources import MemorySource

if TYPE_CHECKING:
    import tomlkit
else:
    tomlkit = lazily("tomlkit")

PROGRAMME = "programme.toml"


@dataclass(frozen=True, eq=False, repr=False)
class Declaration:
    """The content of a programme file, and what replaces the files that it names."""

    content: Mapping[str, Any]
    path: Path = Path("notebook")  # of the file; a name in messages where it has none
    supplied: Supplied = field(default_factory=Supplied)
    kept: TemporaryFolder | None = None  # the files are in a folder that exists as long as this refers to it

    @classmethod
    def read(cls, path: Path, kept: TemporaryFolder | None = None) -> Declaration:
        """The declaration of a programme file."""
        return cls(read_toml(path), path, kept=kept)

    def inspect(self) -> Inspected:
        """Resolve it as a programme file is resolved, and collect its mistakes."""
        findings = Findings(self.path)
        declared = checked_declaration(copy.deepcopy(dict(self.content)), findings)
        return inspect_declared(declared, findings, self.supplied)

    def resolved(self) -> Programme:
        """The programme; every mistake is reported at once."""
        found = self.inspect()
        if found.sound is None or found.problems:
            raise Mistakes(found.problems)
        return found.sound

    def write(self, folder: Path, programme: Programme) -> Path:
        """Write the programme file, its codelists and the records in memory into a new folder of its owner only."""
        content = copy.deepcopy(dict(self.content))
        with AtomicFolder(folder, "to_toml") as new:
            for name, tree in self._codelists(programme):
                content["variables"][name]["codelist"] = place = f"codelists/{name.lower()}.csv"
                with new.draft(place) as draft:
                    write_codelist(draft, tree)
            for unit, source in self.supplied.sources.items():
                if isinstance(source, MemorySource):
                    content["population"][unit] = f"{unit}.parquet"
                    with new.draft(f"{unit}.parquet") as draft:
                        pq.write_table(source.content, draft, compression="zstd")
            _with_absolute_paths(content, self.path.absolute().parent, self.supplied.sources)
            with new.draft(PROGRAMME) as draft:
                draft.write_text(tomlkit.dumps(_without_none(content)), encoding="utf-8")
            new.publish()
        return folder / PROGRAMME

    def _codelists(self, programme: Programme) -> Iterator[tuple[str, Codelist]]:
        """The codelists that are declared as files, as they were read or supplied."""
        for name, entry in self.content.get("variables", {}).items():
            if entry.get("codelist") is not None:
                yield name, programme.variables[name].codelist


def _with_absolute_paths(content: dict[str, Any], folder: Path, written: Container[str]) -> None:
    """Name files that are not written again by their full path: the folder of the programme is another one."""
    population = content.get("population", {})
    for unit in ("persons", "households", "families", "dwellings"):
        entry = population.get(unit)
        if unit in written:
            continue
        if isinstance(entry, str):
            population[unit] = str(folder / with_home(entry))
        elif isinstance(entry, dict) and entry.get("file"):
            entry["file"] = str(folder / with_home(entry["file"]))
    for key in ("ptable", "utility"):
        if content.get("noise", {}).get(key):
            content["noise"][key] = str(folder / content["noise"][key])
    if bounds := content.get("noise", {}).get("invariants", {}).get("bounds"):
        bounds["file"] = str(folder / bounds["file"])
    for cube in content.get("cubes", []):
        if cube.get("counts"):
            cube["counts"]["file"] = str(folder / cube["counts"]["file"])


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_none(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_without_none(one) for one in value]
    return value
