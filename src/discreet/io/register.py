"""The register of a secret: a private file of what was published under it.

It binds the id of a snapshot to its data and to a random seed, and records every release by the cell key method.

An office declares a snapshot (``noise.snapshot``) for records that do not change any more. All noise under its id is
drawn from the seed that the register has for it, so that it is repeated and not averaged away; data that differ from
those at the first use are refused. Neither the seed nor the digests are ever published: neither the
secret nor a release together with it gives the noise.

Of a release by the cell key method it has the p-table: the same people under another p-table have two published counts,
from which their noise follows. A p-table that is not in the register yet is refused where there is another one.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from discreet.errors import mistake
from discreet.io.whole_file import OWNER_ONLY_FILE, whole_file
from discreet.maths.cells.keys import SECRET_BYTES, derive

HEX = r"^[0-9a-f]{64}$"
_RESTORE = "restore the last intact copy; a new register means new noise, which is charged again"


class _Snapshot(BaseModel):
    """What one id is bound to."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    seed: str = Field(pattern=HEX)
    inputs: dict[str, str]  # name of an input -> keyed digest of its contents


class Issue(BaseModel):
    """A release, or a table builder, by the cell key method; its digests are keyed by the secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    release: str
    version: str
    run_id: str
    time: datetime
    ptable: str  # digest of the p-table and of the use of keys
    keys: str  # permuted or plain
    large: tuple[tuple[int, int], ...]  # (change, number of keys) of large counts, in the order of the keys
    inputs: str  # digest
    parameters: str  # digest
    forced: bool = False  # another p-table was accepted

    @property
    def what(self) -> tuple[str, str]:
        """What is recorded once."""
        return self.release, self.run_id


class _Content(BaseModel):
    """The file."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    kind: str = Field(default="discreet register", pattern="^discreet register$")
    secret_fingerprint: str
    snapshots: dict[str, _Snapshot] = {}
    issued: tuple[Issue, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """A declared snapshot: its id, its seed, and the inputs that this run reads; not bound before ``bind``."""

    register: Register
    id: str
    seed: bytes = field(repr=False)
    inputs: Mapping[str, str] = field(repr=False)

    def bind(self) -> None:
        """Store what the id is bound to, on disk when this returns; call it before the first noise is drawn."""
        if self.register.bound(self.id, self.inputs, self.seed).seed != self.seed:
            value = f"snapshot {self.id!r} has just been bound by another run"
            raise mistake(self.register.path, "noise.snapshot", value, "run the command again")


@dataclass(frozen=True)
class Register:
    """The register of one secret, as a file that only its owner can read; safe for several processes."""

    path: Path
    fingerprint: str

    @classmethod
    def of(cls, path: Path, secret: bytes) -> Register:
        """The register at a path; it is made when the first snapshot is bound."""
        return cls(path, derive(secret, "fingerprint", 8).hex())

    def require_place(self) -> None:
        """Refuse a place where nothing can be stored; to be called before any work."""
        folder = self.path.parent
        if not os.access(folder, os.W_OK | os.X_OK):
            value = "its folder cannot be written" if folder.is_dir() else "its folder does not exist"
            raise mistake(self.path, "register", value, "give a file that you can read and write")

    def snapshot(self, name: str, inputs: Mapping[str, str]) -> Snapshot:
        """The snapshot of an id: the seed that it has, or a new one; other data than at its first use are refused."""
        bound = _checked(self.path, name, self._read().snapshots.get(name), inputs)
        seed = secrets.token_bytes(SECRET_BYTES) if bound is None else bytes.fromhex(bound.seed)
        return Snapshot(self, name, seed, inputs)

    def bound(self, name: str, inputs: Mapping[str, str], seed: bytes = b"") -> Snapshot:
        """Bind an id to the inputs and to a seed, where it has none yet; what it is bound to, on disk already."""
        with self._locked() as content:
            before = _checked(self.path, name, content.snapshots.get(name), inputs)
            used = before.seed if before else (seed or secrets.token_bytes(SECRET_BYTES)).hex()
            every = {**(before.inputs if before else {}), **inputs}
            if before is None or before.inputs != every:
                entry = _Snapshot(seed=used, inputs=dict(sorted(every.items())))
                self._store(content.model_copy(update={"snapshots": {**content.snapshots, name: entry}}))
        return Snapshot(self, name, bytes.fromhex(used), inputs)

    def others(self, issue: Issue) -> tuple[Issue, ...]:
        """What was issued with other p-tables; nothing where this p-table was issued before."""
        return _others(self._read(), issue)

    def record(self, issue: Issue) -> tuple[Issue, ...]:
        """Record an issue, on disk when this returns; return what was issued with other p-tables, without recording.

        A forced issue is recorded whatever there is; the same release of the same run only once.
        """
        with self._locked() as content:
            others = _others(content, issue)
            if others and not issue.forced:
                return others
            kept = (one for one in content.issued if one.what != issue.what)
            self._store(content.model_copy(update={"issued": (*kept, issue)}))
        return ()

    @contextmanager
    def _locked(self) -> Iterator[_Content]:
        """The content, while no other process may change it."""
        try:
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self._read()
        finally:
            os.close(lock)

    def _store(self, content: _Content) -> None:
        """Replace the file in one step, on disk when this returns."""
        text = json.dumps(content.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
        try:
            with whole_file(self.path, OWNER_ONLY_FILE) as draft:
                draft.write_text(text, encoding="utf-8")
        except OSError as error:
            raise self._unusable(error) from None

    def _read(self) -> _Content:
        try:
            mode = self.path.stat().st_mode
            if self.path.is_fifo():  # reading would wait for a writer
                raise mistake(self.path, "register", "is a named pipe", "give a file")
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return _Content(secret_fingerprint=self.fingerprint)
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable(error) from None
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            value = "other users can read or write it"
            raise mistake(self.path, "register", value, f"chmod 600 {self.path}")
        try:
            content = _Content.model_validate_json(text)
        except ValidationError:
            raise mistake(self.path, "register", "is damaged, or not a register", _RESTORE) from None
        if content.secret_fingerprint != self.fingerprint:
            remedy = "give the register of this secret with --register"
            raise mistake(self.path, "register", "belongs to another secret", remedy)
        return content

    def _unusable(self, error: Exception) -> Exception:
        reason = getattr(error, "strerror", None) or "cannot be read"
        return mistake(self.path, "register", reason.lower(), "give a file that you can read and write")


def _others(content: _Content, issue: Issue) -> tuple[Issue, ...]:
    if any(one.ptable == issue.ptable for one in content.issued):
        return ()
    return content.issued


def _checked(path: Path, name: str, bound: _Snapshot | None, inputs: Mapping[str, str]) -> _Snapshot | None:
    """What an id is bound to, once no input differs from it."""
    differing = sorted(key for key in inputs if bound and bound.inputs.get(key, inputs[key]) != inputs[key])
    if differing:
        value = f"snapshot {name!r} is bound to other contents of {', '.join(differing)}"
        remedy = (
            "restore the data as they were, or declare another snapshot, which is charged as a new release"
        )
        raise mistake(path, "noise.snapshot", value, remedy)
    return bound
