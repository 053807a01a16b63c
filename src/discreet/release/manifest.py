"""The public manifest of a release, and the private one, which is never part of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from discreet.errors import BrokenRelease, mistake
from discreet.io.serialize import read_json
from discreet.io.whole_file import OWNER_ONLY_FILE, whole_file
from discreet.programme.cube import Cube, Depths, Shown, crossed
from discreet.programme.labels import NO_LABELS, Labels, labels_of
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest_1 import FORMAT_1, noise_of_format_1
from discreet.release.noise_entry import NoiseEntry
from discreet.text.phrase import translated

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"  # beside the manifest, which does not list it
KIND = "discreet release"
FORMAT_VERSION = 2
OWN = "en"


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, defer_build=True)


LONGEST_NAME, LONGEST_PLACE = 255, 1_000  # bytes; no file system has longer names


def _inside(place: str) -> str:
    """Paths of a manifest must not leave its folder, and be such as a file can have."""
    path = PurePosixPath(place)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError("must be inside the release")
    if len(place.encode()) > LONGEST_PLACE or any(len(name.encode()) > LONGEST_NAME for name in path.parts):
        raise ValueError("is longer than the path of a file can be")
    return place


Place = Annotated[str, AfterValidator(_inside)]  # relative, with slashes


class FileEntry(_Entry):
    """One file of the release."""

    path: Place
    sha256: str
    bytes: int
    format: ReleaseFormat | None = None  # of a cube's file
    level: str = ""  # of a cube's file that has the cells of one level only; omitted elsewhere

    @model_serializer(mode="wrap")
    def _without_level(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {name: value for name, value in write(self).items() if value or name != "level"}


class AxisEntry(_Entry):
    """One axis of a cube."""

    variable: str
    breakdown: str
    codes: int  # the total included
    codelist: Place  # path of its codes, parents and labels
    levels: tuple[
        str, ...
    ] = ()  # their names, the first below the total first; absent where they are numbered

    @model_serializer(mode="wrap")
    def _without_levels(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {name: value for name, value in write(self).items() if value or name != "levels"}

    def level(self, depth: int) -> str:
        """The name of a level; that of an earlier release is numbered."""
        return self.levels[depth - 1] if self.levels else f"{self.variable}:{depth}"


def _different(axes: tuple[AxisEntry, ...]) -> tuple[AxisEntry, ...]:
    """A cube has one axis of a variable."""
    if len({axis.variable for axis in axes}) < len(axes):
        raise ValueError("must be axes of different variables")
    return axes


class CubeEntry(_Entry):
    """One cube: what it counts, its axes and its files."""

    id: str
    title: str
    unit: str
    base: str  # the filter as declared, empty where all records count
    base_normal: str  # its normal form: equal for filters that mean the same, empty where all records pass
    count: str  # the counted 0/1 variable, empty where records are counted
    weight: str  # the weight variable, empty if unweighted
    axes: Annotated[tuple[AxisEntry, ...], AfterValidator(_different)]
    cells: int  # published ones, without zeros
    files: tuple[FileEntry, ...]
    source: str = ""  # of ready-made counts whose files are told apart: the first cube of the same file
    published: tuple[str, ...] | None = None  # its cross-tabulations that are; absent where all are
    sums: tuple[str, ...] | None = None  # those of them that are sums of its finest published cells
    public: tuple[str, ...] | None = None  # those of them that are public totals

    @model_serializer(mode="wrap")
    def _without_absent(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Omit what most cubes do not have: a source of ready-made counts, and what is not published."""
        found = dict(write(self))
        return {name: value for name, value in found.items() if name not in _OPTIONAL or value}

    def shown(self, cube: Cube) -> Shown | None:
        """What of a cube is published; a name that the cube does not have means a damaged manifest."""
        if self.published is None:
            return None
        named = {crossed(cube.signature(depths).levels): depths for depths in cube.depths}
        try:
            every, summed, fixed = (
                frozenset(named[name] for name in names or ())
                for names in (self.published, self.sums, self.public)
            )
        except KeyError as missing:
            raise BrokenRelease(f"cube {self.id}: it has no cross-tabulation {missing}") from None
        return Shown(every - summed - fixed, summed, fixed)

    def file(self, form: ReleaseFormat) -> FileEntry | None:
        """The cube's file of a format, where there is one."""
        return next((file for file in self.files if file.format is form), None)

    @property
    def population(self) -> tuple[str, str, str, str, str]:
        """What is counted: cells of cubes that agree in this are comparable."""
        return (self.unit, self.base_normal, self.count, self.weight, self.source)


_OPTIONAL = ("source", "published", "sums", "public")


class Digests(_Entry):
    """Keyed digests, empty where they do not apply."""

    inputs: str
    parameters: str
    ptable: str = ""
    salt: str = ""  # of the inputs' digest beside a guarantee: releases of the same records do not show it

    @model_serializer(mode="wrap")
    def _without_salt(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value or name != "salt"}


class _TextsEntry(_Entry):
    """Texts of variables, breakdowns and units in one language."""

    variables: dict[str, str] = {}
    breakdowns: dict[str, str] = {}
    units: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    sources: dict[str, str] = {}
    topics: dict[str, str] = {}


class _LabelsEntry(_TextsEntry):
    """The texts in the language of the release, and their translations."""

    translations: dict[str, _TextsEntry] = {}


def _labels(value: object) -> Labels:
    if isinstance(value, Labels):
        return value
    read = _LabelsEntry.model_validate(value)
    others = {tag: texts.model_dump() for tag, texts in read.translations.items()}
    return labels_of(read.model_dump(exclude={"translations"}), others)


def _written_labels(labels: Labels) -> dict[str, object]:
    others = labels.translations()
    return {**labels.own_texts(), **({"translations": others} if others else {})}


LabelsEntry = Annotated[Labels, BeforeValidator(_labels), PlainSerializer(_written_labels)]


class Manifest(_Entry):
    """The public description of a release."""

    kind: str = KIND
    format_version: int = FORMAT_VERSION
    discreet_version: str
    name: str
    title: str = ""
    agency: str = ""
    version: str = ""
    language: str = OWN  # of labels, titles and definitions; omitted if English
    noise: NoiseEntry
    swapped: bool = False  # whether households exchanged their places before counting
    places: tuple[str, ...] = ()  # the variables that are places
    labels: LabelsEntry = (
        NO_LABELS  # of what is published, with definitions and translations; omitted if empty
    )
    titles: dict[
        str, dict[str, str]
    ] = {}  # language -> cube (empty: the release) -> its title; omitted if empty
    structural_zeros: tuple[
        str, ...
    ] = ()  # filters of cells that must be empty by definition; omitted if empty
    level_column: str = (
        ""  # the column of long files that has the level of each row; omitted if there is none
    )
    digests: Digests
    secret_fingerprint: str
    cubes: tuple[CubeEntry, ...]
    files: tuple[FileEntry, ...]  # those that belong to no single cube

    def all_files(self) -> tuple[FileEntry, ...]:
        """Every file of the release but the manifest itself."""
        return (*self.files, *(file for cube in self.cubes for file in cube.files))

    @property
    def heading(self) -> str:
        """The title of the whole, with its translations."""
        return self._titled("", self.title)

    def title_of(self, cube: CubeEntry) -> str:
        """The title of a cube, with its translations."""
        return self._titled(cube.id, cube.title)

    def _titled(self, name: str, title: str) -> str:
        return translated(title, {tag: titles.get(name, "") for tag, titles in self.titles.items()})

    def seal(self) -> str:
        """A SHA-256 of the manifest's content: it shows damage, it does not prove who wrote it."""
        return _seal(self._content())

    def to_json(self) -> str:
        """The text of manifest.json; equal manifests give equal text."""
        return json.dumps({**self._content(), "seal": self.seal()}, indent=1, ensure_ascii=False) + "\n"

    def _content(self) -> dict[str, object]:
        """Omit what is empty and was introduced later, so that releases without it keep their text."""
        later = ("labels", "titles", "structural_zeros", "level_column")
        empty = {name for name in later if not getattr(self, name)} | (
            {"language"} if self.language == OWN else set()
        )
        return self.model_dump(mode="json", exclude=empty)


def _seal(content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def cube_entry(cube: Cube, cells: int, files: tuple[FileEntry, ...]) -> CubeEntry:
    """Describe a cube and its written files."""
    return CubeEntry(
        id=cube.id,
        title=str(cube.title),
        unit=cube.unit,
        base=cube.base.text if cube.base else "",
        base_normal=cube.base.canonical if cube.base and not cube.base.passes_all else "",
        count=cube.count or "",
        weight=cube.weight or "",
        axes=tuple(
            AxisEntry(
                variable=axis.variable,
                breakdown=axis.full_name,
                codes=len(axis),
                codelist=codelist_place(axis.full_name),
                levels=axis.levels,
            )
            for axis in cube.axes
        ),
        cells=cells,
        files=files,
        source=cube.source,
        **_shown(cube),
    )


def _shown(cube: Cube) -> dict[str, tuple[str, ...]]:
    """The names of what is published, where that is not all."""
    shown = cube.shown
    if shown is None:
        return {}

    def named(some: Iterable[Depths]) -> tuple[str, ...]:
        return tuple(crossed(cube.signature(depths).levels) for depths in cube.depths if depths in set(some))

    found = {"published": named(shown.every), "sums": named(shown.summed), "public": named(shown.fixed)}
    return {name: names for name, names in found.items() if names}


def codelist_place(breakdown: str) -> str:
    """The path of a breakdown's codes in the release."""
    return f"codelists/{breakdown}.csv"


def is_release(folder: Path) -> bool:
    """Whether a folder is a release of Discreet, damaged or not."""
    try:
        content = read_json(folder / MANIFEST)
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == KIND


def read_manifest(folder: Path) -> Manifest:
    """Read and check manifest.json; anything else than an undamaged one is a broken release."""
    path = folder / MANIFEST
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise BrokenRelease(f"{folder}: no {MANIFEST} there; give the folder of a release") from None
    except NotADirectoryError:
        raise BrokenRelease(f"{folder}: not a folder; give the folder of a release") from None
    except (OSError, ValueError):
        raise BrokenRelease(f"{path}: not readable as JSON; fetch the release again") from None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise BrokenRelease(f"{path}: not the manifest of a Discreet release; give the folder of a release")
    return _checked(path, content)


def _checked(path: Path, content: dict[str, object]) -> Manifest:
    written = content.get("format_version")
    if written not in (FORMAT_1, FORMAT_VERSION):
        known = f"{FORMAT_1} and {FORMAT_VERSION}"
        raise BrokenRelease(f"{path}: format version {written}; this Discreet reads {known}")
    seal = content.pop("seal", None)
    try:
        noise = noise_of_format_1(content.get("noise")) if written == FORMAT_1 else content.get("noise")
        manifest = Manifest.model_validate({**content, "noise": noise})
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise BrokenRelease(f"{path}: {where}: {error.errors()[0]['msg']}; fetch the release again") from None
    except ValueError as error:
        raise BrokenRelease(f"{path}: noise: {error}; fetch the release again") from None
    if seal != _seal(content):
        raise BrokenRelease(
            f"{path}: its content does not match its seal; it was changed, fetch the release again"
        )
    return manifest


@dataclass(frozen=True)
class PrivateManifest:
    """The full parameters and inputs of a run; as confidential as the microdata."""

    release: str
    run_id: str
    discreet_version: str
    finished: datetime
    parameters: Mapping[str, object]
    digests: Mapping[str, str]  # keyed by the secret, as in the public manifest
    rows: Mapping[str, int]  # unit -> number of records
    secret_fingerprint: str
    notes: tuple[str, ...] = ()


def require_outside(path: Path, what: str, release: Path) -> None:
    """Refuse a confidential file in a release, or in its place."""
    if path.resolve().is_relative_to(release.resolve()):
        raise mistake(path, what, "is inside the release", "store it next to the secret instead")


def require_private_place(path: Path, release: Path) -> None:
    """Refuse a path inside the release or one that cannot be written, before any work is done."""
    require_outside(path, "private manifest", release)
    if not os.access(path.resolve().parent, os.W_OK):
        raise mistake(path, "private manifest", "cannot be written there", "give another path")
    if path.is_symlink() or (path.exists() and not _is_private_manifest(path)):
        value = "exists and is not a private manifest"
        raise mistake(path, "private manifest", value, "give another path, or remove what is there")


def _is_private_manifest(path: Path) -> bool:
    """Whether a file may be replaced: it has the fields of a private manifest."""
    try:
        content = read_json(path)
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"release", "run_id", "secret_fingerprint"} <= content.keys()


def write_private_manifest(manifest: PrivateManifest, path: Path) -> None:
    """Write it next to the secret, readable by its owner only, completely or not at all."""
    content = {**asdict(manifest), "finished": manifest.finished.isoformat()}
    with whole_file(path, OWNER_ONLY_FILE) as draft:
        draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
