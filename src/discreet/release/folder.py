"""An unfinished release: an atomic folder that records finished cubes, so that an interrupted run is resumed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from pydantic import ConfigDict, TypeAdapter, ValidationError

from discreet.errors import BrokenRelease, mistake
from discreet.io.atomic_folder import PUBLIC, AtomicFolder, require_free
from discreet.lazy import lazily
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest import (
    MANIFEST,
    SIGNATURE,
    CubeEntry,
    FileEntry,
    Manifest,
    is_release,
    read_manifest,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from discreet.release import signature
else:
    signature = lazily("discreet.release.signature")

OPTION = "release folder"
_PART = ".part"
_LISTED = ".files"
_FILES = TypeAdapter(tuple[FileEntry, ...], config=ConfigDict(defer_build=True))
_DIGEST = 32  # bytes of SHA-256


class ReleaseFolder:
    """An unfinished release; use it in a ``with`` block, which locks the target."""

    def __init__(self, target: Path, run_id: str) -> None:
        if not run_id:
            raise ValueError("a run id consists of letters and digits")
        self._folder = AtomicFolder(
            target,
            OPTION,
            run_id=run_id,
            permissions=PUBLIC,
            require_replaceable=_replaceable,
        )

    def __enter__(self) -> Self:
        with ExitStack() as undone:
            undone.enter_context(self._folder)
            self._keep_recorded()
            undone.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.__exit__(kind, error, trace)

    @property
    def tree(self) -> Path:
        """The folder of the files until they are published."""
        return self._folder.tree

    @property
    def private(self) -> Path:
        """A folder for confidential files of the run, which are never published."""
        return self._folder.private

    def finished(self, cube: str) -> CubeEntry | None:
        """The record of a cube that an interrupted run finished, if its files are still those recorded."""
        try:
            text = (self._folder.records / _record(cube)).read_text(encoding="utf-8")
            entry = CubeEntry.model_validate_json(text)
        except (FileNotFoundError, ValidationError):
            return None
        intact = all(_matches(self.tree / file.path, file) for file in entry.files)
        return entry if intact else None

    def write(
        self, place: str, write: Callable[[Path], None], form: ReleaseFormat | None = None, level: str = ""
    ) -> FileEntry:
        """Let ``write`` make one file of the release; it appears when it is complete and on disk."""
        (entry,) = self.write_together([place], lambda paths: write(paths[0]))
        return entry.model_copy(update={"format": form, "level": level})

    def write_together(
        self, places: Sequence[str], write: Callable[[Sequence[Path]], None]
    ) -> tuple[FileEntry, ...]:
        """Let ``write`` make several files side by side; they appear when all are complete and on disk."""
        with ExitStack() as drafts:
            paths = [drafts.enter_context(self._folder.draft(place)) for place in places]
            write(paths)
            return tuple(
                FileEntry(path=place, sha256=file_sha256(path), bytes=path.stat().st_size)
                for place, path in zip(places, paths, strict=True)
            )

    def finish(self, entry: CubeEntry) -> None:
        """Record that all files of a cube are in place; a later run with the same id starts from here."""
        self._folder.record(_record(entry.id), entry.model_dump_json().encode())

    def finish_files(self, name: str, files: Sequence[FileEntry]) -> None:
        """Record that files that belong to no cube are in place."""
        content = _FILES.dump_json(tuple(files))
        self._folder.record(f"{quote(name, safe='')}{_LISTED}", content)

    def finished_files(self, name: str) -> tuple[FileEntry, ...] | None:
        """The files that an interrupted run finished, if they are still those recorded."""
        files = _listed(self._folder.records / f"{quote(name, safe='')}{_LISTED}")
        return files if files and all(_matches(self.tree / file.path, file) for file in files) else None

    def store(self, name: str, part: bytes) -> None:
        """Store a part of a long computation, for a run with the same id; it is never published."""
        self._folder.record(f"{name}{_PART}", hashlib.sha256(part).digest() + part)

    def stored(self, name: str) -> bytes | None:
        """The part that an interrupted run stored, if it is still what was stored."""
        try:
            content = (self._folder.records / f"{name}{_PART}").read_bytes()
        except FileNotFoundError:
            return None
        digest, part = content[:_DIGEST], content[_DIGEST:]
        return part if hashlib.sha256(part).digest() == digest else None

    def publish(self, manifest: Manifest, key: Ed25519PrivateKey | None = None) -> None:
        """Publish the release with its manifest, signed where a key is given, in one step."""
        text, kept = manifest.to_json(), {MANIFEST, *(file.path for file in manifest.all_files())}
        self.write(MANIFEST, lambda path: _write_text(path, text))
        if key is not None:
            signed = signature.signature_of(text.encode(), key)
            self.write(SIGNATURE, lambda path: _write_text(path, signed))
            kept.add(SIGNATURE)
        self._folder.keep_only(kept)
        self._folder.publish()

    def discard(self) -> None:
        """Remove what was written and leave the target as it is."""
        self._folder.discard()

    def _keep_recorded(self) -> None:
        """Keep the files of recorded cubes; delete everything else that an earlier run left."""
        kept: set[str] = set()
        for record in sorted(self._folder.records.glob("*.json")):
            try:
                entry = CubeEntry.model_validate_json(record.read_text(encoding="utf-8"))
            except ValidationError:
                record.unlink()
            else:
                kept.update(file.path for file in entry.files)
        for record in sorted(self._folder.records.glob(f"*{_LISTED}")):
            kept.update(file.path for file in _listed(record))
        self._folder.keep_only(kept)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _listed(record: Path) -> tuple[FileEntry, ...]:
    try:
        return _FILES.validate_json(record.read_bytes())
    except (FileNotFoundError, ValidationError):
        return ()


def _record(cube: str) -> str:
    return f"{quote(cube, safe='')}.json"


def _matches(path: Path, entry: FileEntry) -> bool:
    return path.is_file() and path.stat().st_size == entry.bytes and file_sha256(path) == entry.sha256


def require_replaceable(out: Path) -> None:
    """Refuse a place that is neither new nor a release, before any work is done."""
    _replaceable(out, OPTION)


def _replaceable(target: Path, option: str) -> None:
    """Accept a new path or a release of Discreet without other files: nothing else is ever replaced."""
    if not target.is_dir() or not any(target.iterdir()):
        require_free(target, option)
    elif not is_release(target):
        raise mistake(target, option, "exists and is not a release of Discreet", "give another folder")
    elif others := _others(target):
        remedy = "move it out, or give another folder: the release that is there is removed"
        raise mistake(target, option, f"has the file {others[0]!r}, which is not one of the release", remedy)


def _others(release: Path) -> list[str]:
    """The files in a release folder that are not of the release; none are known of a damaged one.

    What file managers leave, and a draft of a signature, may be removed with it.
    """
    try:
        found = unlisted(files_in(release), read_manifest(release))
    except BrokenRelease:
        return []
    return [
        path for path in found if Path(path).name != ".DS_Store" and not path.startswith(f".{SIGNATURE}.")
    ]


def files_in(folder: Path) -> Iterator[str]:
    """The paths of all files and links in a folder, relative to it."""
    for parent, folders, names in os.walk(folder):
        linked = [name for name in folders if Path(parent, name).is_symlink()]  # os.walk does not enter these
        for name in (*names, *linked):
            yield Path(parent, name).relative_to(folder).as_posix()


def unlisted(present: Iterable[str], manifest: Manifest) -> list[str]:
    """The paths that a manifest does not list."""
    listed = {file.path for file in manifest.all_files()}
    return sorted(set(present) - {MANIFEST, SIGNATURE} - listed)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
