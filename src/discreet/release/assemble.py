"""The steps from protected tables to a release folder, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.formats.dataset import Dataset, dataset_of
from discreet.formats.levels import LEVEL
from discreet.formats.publication import Publication
from discreet.formats.writers import SDMX_STRUCTURES, SPLIT, WRITERS, level_place, place
from discreet.lazy import lazily
from discreet.programme.cube import Cube
from discreet.programme.definitions import tags_of
from discreet.programme.release import ReleaseFormat
from discreet.release.folder import ReleaseFolder
from discreet.release.manifest import CubeEntry, Digests, FileEntry, Manifest, codelist_place, cube_entry
from discreet.release.noise_entry import entry_of
from discreet.release.reader import breakdowns, write_codes
from discreet.release.readme import readme
from discreet.tabulate.tables import ProtectedTable
from discreet.text.phrase import others_of

if TYPE_CHECKING:
    from discreet.release import certificate as certificates
else:
    certificates = lazily("discreet.release.certificate")


def write_cube(
    folder: ReleaseFolder,
    table: ProtectedTable,
    publication: Publication,
    formats: Iterable[ReleaseFormat],
    split: bool = False,
) -> CubeEntry:
    """Write one cube in the given formats and record it as finished; ``split``: one level to a CSV file or workbook."""
    dataset = dataset_of(table, publication)
    files = tuple(
        file for form in formats for file in _written(folder, dataset, form, split and form in SPLIT)
    )
    entry = cube_entry(table.cube, len(dataset.values), files)
    folder.finish(entry)
    return entry


def _written(
    folder: ReleaseFolder, dataset: Dataset, form: ReleaseFormat, split: bool
) -> Iterator[FileEntry]:
    if not split:
        yield folder.write(place(dataset.id, form), partial(WRITERS[form], dataset), form)
        return
    for part in dataset.by_level():
        path = level_place(dataset.id, form, part.level)
        yield folder.write(path, partial(WRITERS[form], part), form, part.level)


def write_shared(
    folder: ReleaseFolder,
    cubes: Sequence[Cube],
    entries: Sequence[CubeEntry],
    formats: Iterable[ReleaseFormat],
    publication: Publication,
    certificate: str | None = None,
) -> tuple[FileEntry, ...]:
    """Write what belongs to no single cube: codelists, SDMX structures, the README and the certificate."""
    files = [
        folder.write(codelist_place(name), partial(write_codes, axis))
        for name, axis in sorted(breakdowns(cubes).items())
    ]
    if ReleaseFormat.SDMX_CSV in set(formats):
        # pysdmx is imported only for releases that have its files
        from discreet.formats.sdmx_structures import write_structures  # noqa: PLC0415

        files.append(folder.write(SDMX_STRUCTURES, lambda path: write_structures(cubes, path, publication)))
    text = readme(publication, entries)
    files.append(folder.write("README.md", lambda path: _write_text(path, text)))
    if certificate is not None:
        files.append(folder.write(certificates.CERTIFICATE, lambda path: _write_text(path, certificate)))
    return tuple(files)


def release_manifest(
    publication: Publication,
    entries: Sequence[CubeEntry],
    files: Sequence[FileEntry],
    digests: Digests,
    secret_fingerprint: str,
) -> Manifest:
    """The manifest of what has been written; digests must be keyed (see manifest)."""
    return Manifest(
        discreet_version=version("discreet"),
        name=publication.name,
        title=str(publication.title),
        agency=publication.agency,
        version=publication.version,
        language=publication.language,
        noise=entry_of(publication.noise),
        swapped=publication.swapped,
        places=tuple(sorted(publication.geography)),
        labels=publication.labels.only(
            (axis.breakdown for cube in entries for axis in cube.axes), (cube.unit for cube in entries)
        ),
        titles=_translated_titles({"": publication.title, **publication.titles}),
        structural_zeros=publication.structural_zeros,
        level_column=LEVEL,
        digests=digests,
        secret_fingerprint=secret_fingerprint,
        cubes=tuple(entries),
        files=tuple(files),
    )


def _translated_titles(titles: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Language -> cube -> its title, where it has one."""
    return {
        tag: {name: others_of(text)[tag] for name, text in titles.items() if tag in others_of(text)}
        for tag in tags_of(titles.values())
    }


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
