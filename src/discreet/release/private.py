"""The private manifest: everything about a run that must not be published; it never goes into a release folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from discreet.errors import mistake


@dataclass(frozen=True)
class PrivateManifest:
    """The full parameters of a run and what went into it; as confidential as the microdata."""

    release: str
    run_id: str
    discreet_version: str
    finished: datetime
    parameters: Mapping[str, object]
    digests: Mapping[str, str]  # keyed by the secret, as in the public manifest
    rows: Mapping[str, int]  # unit -> number of records
    secret_fingerprint: str
    notes: tuple[str, ...] = ()


def require_private_place(path: Path, release: Path) -> None:
    """Refuse a place inside the release or one that cannot be written, before any work is done."""
    if path.resolve().is_relative_to(release.resolve()):
        raise mistake(path, "private manifest", "lies inside the release", "put it beside the secret instead")
    if not os.access(path.resolve().parent, os.W_OK):
        raise mistake(path, "private manifest", "cannot be written there", "name another place for it")


def write_private_manifest(manifest: PrivateManifest, path: Path) -> None:
    """Write it beside the secret, readable by its owner only and whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(
            {**asdict(manifest), "finished": manifest.finished.isoformat()},
            file,
            indent=1,
            ensure_ascii=False,
        )
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
