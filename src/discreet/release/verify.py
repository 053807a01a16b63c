"""Verification of a release: nothing missing, foreign or changed, and one value for every cell.

It owns the checks and the words for what they find; how cells of many cubes are compared is in compare.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from discreet.release.compare import Comparison, compare
from discreet.release.folder import file_sha256
from discreet.release.manifest import MANIFEST, CubeEntry, FileEntry, Manifest, read_manifest
from discreet.schema.rules import ReleaseFormat


@dataclass(frozen=True)
class Verification:
    """What verification found; a release passes when there are no problems."""

    name: str
    problems: tuple[str, ...]
    cubes: int
    files: int
    cells: int  # published cells of all cubes
    compared: int  # cells that stand in more than one cube

    @property
    def passed(self) -> bool:
        """Whether everything is as it should be."""
        return not self.problems


def verify(folder: Path | str) -> Verification:
    """Check a release folder; a folder without a sound manifest raises BrokenRelease."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    problems = [*_shape_problems(manifest), *_file_problems(folder, manifest)]
    # Cells are read only from files that are what the manifest says: anything else is reported already.
    comparison = Comparison((), 0) if problems else compare(folder, manifest)
    return Verification(
        manifest.name,
        (*problems, *comparison.problems),
        len(manifest.cubes),
        len(manifest.all_files()),
        sum(cube.cells for cube in manifest.cubes),
        comparison.compared,
    )


def _shape_problems(manifest: Manifest) -> Iterator[str]:
    listed = {file.path for file in manifest.files}
    seen: set[str] = set()
    for cube in manifest.cubes:
        if cube.id in seen:
            yield f"{MANIFEST}: cube {cube.id} stands twice"
        seen.add(cube.id)
        yield from _cube_problems(cube, listed)


def _cube_problems(cube: CubeEntry, listed: set[str]) -> Iterator[str]:
    if cube.file(ReleaseFormat.PARQUET) is None:
        yield f"{MANIFEST}: cube {cube.id} has no Parquet file"
    if not cube.axes:
        yield f"{MANIFEST}: cube {cube.id} has no axes"
    for axis in cube.axes:
        if axis.codelist not in listed:
            yield f"{MANIFEST}: cube {cube.id} needs {axis.codelist}, which is not listed"


def _file_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    listed = {file.path: file for file in manifest.all_files()}
    present = set(_present(folder))
    for path in sorted(present - {MANIFEST, *listed}):
        yield f"{path}: not listed in the manifest"
    for path, file in sorted(listed.items()):
        if path not in present:
            yield f"{path}: missing"
        elif not _matches(folder / path, file):
            yield f"{path}: its content is not what the manifest says"


def _present(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        linked = [name for name in folders if Path(parent, name).is_symlink()]  # os.walk does not enter these
        for name in (*names, *linked):
            yield Path(parent, name).relative_to(folder).as_posix()


def _matches(path: Path, file: FileEntry) -> bool:
    return path.stat().st_size == file.bytes and file_sha256(path) == file.sha256
