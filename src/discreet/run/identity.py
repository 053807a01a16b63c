"""What identifies a run: keyed digests of inputs, parameters and p-table, and the fingerprint of the secret.

Digests that are published are keyed by the secret: an unkeyed hash of a few parameters can be inverted by brute force.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version

from discreet.errors import mistake
from discreet.io.files import digest_files
from discreet.io.progress import Progress, Quiet
from discreet.maths.cells.keys import SECRET_BYTES, derive
from discreet.perturb.choose import mechanism
from discreet.perturb.mechanism import Mechanism
from discreet.programme.programme import Programme
from discreet.programme.sources import FileSource, Source
from discreet.run.run import Run


@dataclass(frozen=True)
class Identity:
    """The digests of one run; equal inputs, parameters, secret and version give equal ones."""

    inputs: str
    parameters: str
    ptable: str
    fingerprint: str  # of the secret
    resumable: bool  # false if records come from a database or the noise is fresh

    def run_id(self) -> str:
        """The name of the run; unique where the inputs cannot be digested."""
        parts = [self.inputs, self.parameters, self.ptable, self.fingerprint, version("discreet")]
        if not self.resumable:
            parts.append(secrets.token_hex(16))
        return hashlib.blake2b("/".join(parts).encode(), digest_size=8).hexdigest()


def begin(
    programme: Programme, secret: bytes, threads: int = 1, progress: Progress | None = None
) -> tuple[Run, Identity]:
    """The run that makes a release, and its identity."""
    inputs = digest_inputs(programme, secret)
    chosen = mechanism(programme, secret, noise_key(programme, secret, inputs))
    run = Run(
        programme=programme, secret=secret, mechanism=chosen, threads=threads, progress=progress or Quiet()
    )
    return run, _identify(programme, chosen, secret, inputs)


def _identify(programme: Programme, mechanism: Mechanism, secret: bytes, inputs: str) -> Identity:
    """Digest everything that determines the published values."""
    key = derive(secret, "manifest")
    return Identity(
        inputs,
        keyed_digest(json.dumps(programme.canonical(), sort_keys=True, ensure_ascii=False).encode(), key),
        keyed_digest(mechanism.identity, key),
        derive(secret, "fingerprint", 8).hex(),
        _are_files(programme) and not programme.noise.is_fresh,
    )


def digest_inputs(programme: Programme, secret: bytes) -> str:
    """Digest the contents of all input files, under the secret."""
    key = derive(secret, "manifest")
    digests = [_digest_source(source, key) for _, source in _sources(programme)]
    return keyed_digest(repr(digests).encode(), key)


def noise_key(programme: Programme, secret: bytes, inputs: str) -> bytes:
    """The key of noise with a law: random where the noise is fresh, else derived from the secret and the inputs.

    If it were derived only from the secret, two populations (a census and its correction) would get the same noise
    in the same cells, and their difference would be exact.
    """
    noise = programme.noise
    if noise.is_fresh:
        return secrets.token_bytes(SECRET_BYTES)
    if noise.is_guaranteed and not _are_files(programme):
        value = "noise by description for records that are not in files"
        remedy = 'the same records must be recognised: export them to Parquet, or use draw = "fresh"'
        raise mistake(programme.path, "noise.draw", value, remedy)
    return derive(secret, f"private-noise/{inputs}")


def _are_files(programme: Programme) -> bool:
    return all(isinstance(source, FileSource) for _, source in _sources(programme))


def keyed_digest(content: bytes, key: bytes) -> str:
    """BLAKE2b of some bytes under a key."""
    return hashlib.blake2b(content, digest_size=32, key=key).hexdigest()


def _sources(programme: Programme) -> Iterator[tuple[str, Source]]:
    if programme.population is not None:
        for name, unit in programme.population.units.items():
            yield name, unit.source
    for cube, ready in programme.ready_made.items():
        yield f"cube {cube}", ready.source


def _digest_source(source: Source, key: bytes) -> str:
    """Digest files by their content; databases and queries only by their declaration: nothing else is stable."""
    if isinstance(source, FileSource):
        return digest_files(source.paths(), key)
    return keyed_digest(json.dumps(source.describe(), sort_keys=True).encode(), key)
