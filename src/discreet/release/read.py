"""Reading a release as a library user does: its manifest and its cubes; it does not verify (see verify)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.errors import BrokenRelease, mistake
from discreet.release.codelist_files import PublishedCodes, read_codes
from discreet.release.manifest import CubeEntry, Manifest, read_manifest
from discreet.schema.rules import ReleaseFormat


@dataclass(frozen=True)
class Release:
    """A release folder, opened."""

    folder: Path
    manifest: Manifest

    def cube(self, cube: str) -> CubeEntry:
        """The description of a cube."""
        for entry in self.manifest.cubes:
            if entry.id == cube:
                return entry
        known = ", ".join(entry.id for entry in self.manifest.cubes) or "none"
        raise mistake(self.folder, "cube", repr(cube), f"this release has {known}")

    def read_cube(self, cube: str) -> pa.Table:
        """The published cells of a cube: codes and labels of each axis, then the value."""
        file = self.cube(cube).file(ReleaseFormat.PARQUET)
        if file is None:
            raise BrokenRelease(f"{self.folder}: cube {cube} has no Parquet file; fetch the release again")
        return pq.read_table(self.folder / file.path)

    def read_codes(self, breakdown: str) -> PublishedCodes:
        """Codes, parents and labels of a breakdown, such as ``AGE.M``."""
        places = {axis.breakdown: axis.codelist for cube in self.manifest.cubes for axis in cube.axes}
        if breakdown not in places:
            raise mistake(
                self.folder, "breakdown", repr(breakdown), f"this release has {', '.join(sorted(places))}"
            )
        return read_codes(self.folder / places[breakdown])


def open_release(folder: Path | str) -> Release:
    """Open a release folder; its manifest is checked, its files are not (``discreet verify`` does)."""
    return Release(Path(folder), read_manifest(Path(folder)))
