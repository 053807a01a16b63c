"""What identifies a run: keyed digests of inputs, parameters and p-table, and the fingerprint of the secret.

Digests that are published are keyed by the secret: an unkeyed hash of a few parameters can be inverted by brute force.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from discreet.errors import Mistakes, Problem, mistake
from discreet.hierarchy.mechanism import mechanism
from discreet.io.files import digest_files
from discreet.io.memory import digest_table
from discreet.io.progress import Progress, Quiet
from discreet.io.register import Register, Snapshot
from discreet.maths.cells.keys import SECRET_BYTES, derive
from discreet.perturb.mechanism import Mechanism
from discreet.programme.noise import Draw, PrivateNoise
from discreet.programme.population import UNITS
from discreet.programme.programme import Programme
from discreet.programme.sources import FileSource, MemorySource, Source
from discreet.run.run import Engine, Run


@dataclass(frozen=True)
class FileState:
    """What shows that a file was written again: the table that it belongs to, its size and its time."""

    table: str
    path: Path
    size: int
    modified: int  # nanoseconds


@dataclass(frozen=True)
class Identity:
    """The digests of one run; equal inputs, parameters, secret, snapshot and version give equal ones."""

    inputs: str
    parameters: str
    ptable: str
    fingerprint: str  # of the secret
    resumable: bool  # false if records come from a database or the noise is fresh
    salt: str = (
        ""  # of the digest of the inputs, beside a guarantee: equal digests would show that data are equal
    )
    snapshot: Snapshot | None = None  # what may repeat its noise
    files: frozenset[FileState] = frozenset()  # as they were before their contents were digested

    def run_id(self) -> str:
        """The name of the run; unique where the inputs cannot be digested."""
        parts = [self.inputs, self.parameters, self.ptable, self.fingerprint, version("discreet")]
        if not self.resumable:
            parts.append(secrets.token_hex(16))
        return hashlib.blake2b("/".join(parts).encode(), digest_size=8).hexdigest()


def begin(
    programme: Programme,
    secret: bytes,
    threads: int = 1,
    progress: Progress | None = None,
    register: Register | None = None,
    engine: Engine | None = None,
) -> tuple[Run, Identity]:
    """The run that makes a release, and its identity; its snapshot is not bound before ``Snapshot.bind``."""
    files = file_states(programme)
    digests = digest_inputs(programme, secret, engine)
    snapshot = declared_snapshot(programme, digests, register)
    key = noise_key(programme, secret, digests, snapshot)
    salt = derive(key, "manifest-salt", 16).hex() if programme.noise.is_guaranteed else ""
    run, identity = _begun(programme, secret, key, salt, digests, snapshot, threads, progress, engine)
    return run, replace(identity, files=files)


def file_states(programme: Programme) -> frozenset[FileState]:
    """The state of every file that is read."""
    return frozenset(
        FileState(name, path, state.st_size, state.st_mtime_ns)
        for name, source in _sources(programme)
        if isinstance(source, FileSource)
        for path in source.paths()
        for state in (path.stat(),)
    )


def require_unchanged(programme: Programme, identity: Identity) -> None:
    """Refuse a release of files that were written while they were read: its digest would not be theirs."""
    changed = file_states(programme) ^ identity.files
    if changed:
        first = min(changed, key=lambda one: (one.table, one.path))
        key = f"population.{first.table}" if first.table in UNITS else first.table
        raise mistake(first.path, key, "changed while it was read", "run again when nothing writes it")


def begin_again(
    programme: Programme,
    secret: bytes,
    salt: str = "",
    threads: int = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> tuple[Run, Identity]:
    """A run that publishes nothing, over the same records and with the same law: to audit a release, or to try one.

    Where a guarantee is claimed its noise is not that of any release.
    """
    files = file_states(programme)
    digests = digest_inputs(programme, secret, engine)
    key = secrets.token_bytes(SECRET_BYTES)
    run, identity = _begun(programme, secret, key, salt, digests, None, threads, progress, engine)
    return run, replace(identity, files=files)


def _begun(
    programme: Programme,
    secret: bytes,
    key: bytes,
    salt: str,
    digests: Mapping[str, str],
    snapshot: Snapshot | None,
    threads: int,
    progress: Progress | None,
    engine: Engine | None,
) -> tuple[Run, Identity]:
    chosen = mechanism(programme, secret, key)
    run = Run(
        programme=programme,
        secret=secret,
        mechanism=chosen,
        threads=threads,
        progress=progress or Quiet(),
        engine=engine,
    )
    found = run_digests(programme, secret, chosen, digests, salt)
    identity = Identity(
        inputs=found.inputs,
        parameters=found.parameters,
        ptable=found.ptable,
        fingerprint=derive(secret, "fingerprint", 8).hex(),
        resumable=are_recognised(programme) and not programme.noise.is_fresh,
        salt=salt,
        snapshot=snapshot,
    )
    return run, identity


@dataclass(frozen=True)
class RunDigests:
    """Keyed digests of what a run reads, of its parameters, and of its p-table with the use of keys."""

    inputs: str
    parameters: str
    ptable: str


def run_digests(
    programme: Programme, secret: bytes, chosen: Mechanism, digests: Mapping[str, str], salt: str = ""
) -> RunDigests:
    """The digests of a run, under the secret."""
    own = derive(secret, "manifest")
    canonical = json.dumps(programme.canonical(), sort_keys=True, ensure_ascii=False)
    return RunDigests(
        inputs=keyed_digest(f"{salt}{list(digests.values())!r}".encode(), own),
        parameters=keyed_digest(canonical.encode(), own),
        ptable=keyed_digest(chosen.identity, own),
    )


def digest_inputs(programme: Programme, secret: bytes, engine: Engine | None = None) -> dict[str, str]:
    """Digest the contents of every input, under the secret; ready-made counts are named by their file."""
    key = derive(secret, "manifest")
    if engine is None:
        return _digests(programme, key)
    engine.require(programme)
    return engine.call(_digests, programme, key)


def _digests(programme: Programme, key: bytes) -> dict[str, str]:
    return {name: _digest_source(source, key) for name, source in _sources(programme)}


def declared_snapshot(
    programme: Programme, digests: Mapping[str, str], register: Register | None
) -> Snapshot | None:
    """The declared snapshot with the data of this run; None where none is declared."""
    noise = programme.noise
    if not isinstance(noise, PrivateNoise) or not noise.snapshot:
        return None
    problems = list(snapshot_problems(programme))
    if problems:
        raise Mistakes(problems)
    if register is None:
        remedy = "name the register of the secret, which stores what a snapshot is bound to, with --register"
        raise mistake(programme.path, "noise.snapshot", "no register", remedy)
    return register.snapshot(noise.snapshot, digests)


def snapshot_problems(programme: Programme) -> Iterator[Problem]:
    """The problem of a snapshot whose records cannot be recognised."""
    noise = programme.noise
    if isinstance(noise, PrivateNoise) and noise.snapshot and not are_recognised(programme):
        value = "a snapshot of records that are not in files"
        remedy = "the same records must be recognised: export them to Parquet, or leave the snapshot out"
        yield Problem(str(programme.path), "noise.snapshot", value, remedy)


def bound_key(programme: Programme, secret: bytes, register: Register | None) -> bytes:
    """The key of noise that is drawn again and again, as for a table builder: its snapshot is bound at once."""
    if not isinstance(programme.noise, PrivateNoise):
        return secrets.token_bytes(SECRET_BYTES)  # cell keys need none
    digests = digest_inputs(programme, secret)
    snapshot = declared_snapshot(programme, digests, register)
    if snapshot is not None:
        snapshot = snapshot.register.bound(snapshot.id, digests)
    return noise_key(programme, secret, digests, snapshot)


def noise_key(
    programme: Programme, secret: bytes, digests: Mapping[str, str], snapshot: Snapshot | None
) -> bytes:
    """The key of noise with a law: of a declared snapshot derived from its seed and the secret, else random.

    It never depends on the contents of the records: noise that does would show whether they have changed. Noise by
    participants has no guarantee; its key is bound to the inputs.
    """
    if snapshot is not None:
        return derive(secret, f"private-noise/{snapshot.seed.hex()}")
    if isinstance(programme.noise, PrivateNoise) and programme.noise.draw is Draw.PARTICIPANTS:
        return derive(secret, f"private-noise/{list(digests.values())!r}")
    return secrets.token_bytes(SECRET_BYTES)


def are_recognised(programme: Programme) -> bool:
    """Whether all inputs are digested by their contents, so that the same ones are recognised."""
    return all(_has_content(source) for _, source in _sources(programme))


def _has_content(source: Source) -> bool:
    """Whether the content of a source has a digest; a copy that an engine has made has an order of its own."""
    return isinstance(source, MemorySource) or (isinstance(source, FileSource) and source.copy_of is None)


def keyed_digest(content: bytes, key: bytes) -> str:
    """BLAKE2b of some bytes under a key."""
    return hashlib.blake2b(content, digest_size=32, key=key).hexdigest()


def _sources(programme: Programme) -> Iterator[tuple[str, Source]]:
    if programme.population is not None:
        for name, unit in programme.population.units.items():
            yield name, unit.source
    for ready in programme.ready_made.values():
        yield f"counts {json.dumps(ready.source.describe(), sort_keys=True)}", ready.source


def _digest_source(source: Source, key: bytes) -> str:
    """Digest files and tables in memory by their content; databases and queries only by their declaration."""
    if isinstance(source, MemorySource):
        return digest_table(source.content, key)
    if isinstance(source, FileSource) and source.copy_of is None:
        return digest_files(source.paths(), key)
    return keyed_digest(json.dumps(source.describe(), sort_keys=True).encode(), key)
