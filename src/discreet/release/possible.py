"""Whether a release can have been published so: codelists that are trees, values that its noise can give."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.errors import BrokenRelease
from discreet.formats.dataset import VALUE
from discreet.io.files import UNREADABLE
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.publishing import UNCHANGED, Publishing
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest import CubeEntry, Manifest
from discreet.release.reader import PublishedCodes, Values, read_codes, size_problem

LARGEST = 2**53  # beyond it neither a count nor a sum is exact in every format


def unusual_files(folder: Path) -> Iterator[str]:
    """Whatever is neither a folder nor a file: a link shows other content tomorrow, a pipe never ends."""
    for place in sorted(folder.rglob("*")):
        mode = place.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            kind = "a link" if stat.S_ISLNK(mode) else "not a file"
            yield f"{place.relative_to(folder).as_posix()}: is {kind}; a release has files only"


def require_plain(path: Path) -> None:
    """Refuse a manifest that is a link, a folder or a pipe, or is in a folder that is a link, before it is read."""
    if path.parent.is_symlink():
        raise BrokenRelease(
            f"{path.parent}: is a link, which may lead elsewhere tomorrow; give the folder itself"
        )
    try:
        mode = path.lstat().st_mode
    except OSError:
        return  # reported where it is read
    if not stat.S_ISREG(mode):
        kind = "a link" if stat.S_ISLNK(mode) else "not a file"
        raise BrokenRelease(f"{path}: is {kind}; a release has files only, fetch it again")


def possible_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Codelists and axes that cannot have been published, in a release whose files are intact."""
    known: dict[str, PublishedCodes] = {}
    for place in sorted({axis.codelist for cube in manifest.cubes for axis in cube.axes}):
        try:
            known[place] = read_codes(folder / place)
        except BrokenRelease:
            return  # reported where cells are compared
        yield from _codelist_problems(place, known[place])
    for cube in manifest.cubes:
        yield from _axis_problems(cube, known)


def _codelist_problems(place: str, listed: PublishedCodes) -> Iterator[str]:
    """A code below one that is not listed before it: the list is not a tree with the total at its root."""
    seen: set[str] = set()
    for code, parent in zip(listed.codes, listed.parents, strict=True):
        if (parent != "") if not seen else (parent not in seen):
            yield f"{place}: the parent of code {code!r} is not listed before it"
            return
        seen.add(code)


def _axis_problems(cube: CubeEntry, known: Mapping[str, PublishedCodes]) -> Iterator[str]:
    for axis in cube.axes:
        found = len(known[axis.codelist].codes)
        if found != axis.codes:
            yield f"cube {cube.id}: the manifest states {axis.codes} codes of {axis.breakdown}, its list has {found}"
    if problem := size_problem(cube, [known[axis.codelist] for axis in cube.axes]):
        yield problem


@dataclass(frozen=True)
class PossibleValues:
    """The values that the noise of a cube can give."""

    cube: str
    least: int  # positive count
    publishing: Publishing

    @classmethod
    def of(cls, manifest: Manifest, cube: CubeEntry) -> PossibleValues:
        """As the manifest describes the noise of a cube."""
        if cube.weight:
            return cls(cube.id, 1, UNCHANGED)
        return cls(cube.id, _smallest(manifest), _publishing(manifest))

    def problem(self, values: Values) -> str | None:
        """The first value that is impossible, and how many there are; None where there are none.

        Values beyond all counts, below the smallest one that is published, or not multiples of the rounding base.
        """
        wrong: NDArray[np.bool_] = ~np.isfinite(values) | (np.abs(values) > LARGEST)
        if values.dtype.kind == "i":
            wrong |= (values > 0) & (values < max(self.least, self.publishing.threshold))
            if self.publishing.rounding > 1:
                wrong |= values % self.publishing.rounding != 0
        if not wrong.any():
            return None
        example, number = values[wrong][0].item(), int(wrong.sum())
        return f"cube {self.cube}: {number} values that its noise cannot give, for example {example}"


def impossible_values(folder: Path, manifest: Manifest, cube: CubeEntry) -> str | None:
    """The values of a cube that its noise cannot give, whatever else is wrong with its file."""
    file = cube.file(ReleaseFormat.PARQUET)
    if file is None:
        return None
    try:
        with pq.ParquetFile((folder / file.path).absolute()) as stored:
            column = stored.read(columns=[VALUE])[VALUE]
        if column.type not in (pa.int64(), pa.float64()):
            return None
        return PossibleValues.of(manifest, cube).problem(column.to_numpy())
    except (*UNREADABLE, KeyError, TypeError, IndexError):
        return None  # damaged, or not the columns of a cube: reported where cells are compared


def _smallest(manifest: Manifest) -> int:
    """The smallest positive count that the disclosed law can publish; 1 where it is unknown or counts were fitted."""
    noise = manifest.noise
    if noise.adjusted:
        return 1
    stated = noise.parameters.js if noise.parameters else None
    law = noise.noise().law
    by_law = law.ptable.smallest_positive if isinstance(law, PTableLaw) else 1
    return max((stated or 0) + 1, by_law)


def _publishing(manifest: Manifest) -> Publishing:
    """The rounding and threshold of every count; none where counts were fitted, or some are sums or public."""
    noise = manifest.noise
    if noise.adjusted or noise.sums or noise.public_totals or noise.publishing is None:
        return UNCHANGED
    rule = noise.publishing
    return Publishing(rule.negatives, rule.rounding, rule.threshold)
