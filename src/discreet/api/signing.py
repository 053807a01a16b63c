"""Keys and signatures of releases."""

from __future__ import annotations

from pathlib import Path

from discreet.api.arguments import names_arguments
from discreet.api.audits import Published, release_of
from discreet.api.results import Result
from discreet.errors import BrokenRelease
from discreet.io.signing_key import make_key as write_key
from discreet.io.signing_key import read_private_key
from discreet.release.sign import sign_release
from discreet.release.verify import Verification


@names_arguments
def make_key(out: str | Path) -> Path:
    """Write a new private key for signing releases to a file, and return the file of its public key.

    >>> import discreet as ds, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> ds.make_key(folder / "signing.key").name
    'signing.key.pub'
    """
    return write_key(Path(out))


@names_arguments
def sign(release: Published, key: str | Path) -> Result[Verification]:
    """Verify a release folder and sign it with a private key; a release that does not pass raises BrokenRelease.

    >>> import discreet as ds, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> public = ds.make_key(folder / "signing.key")
    >>> census = ds.Population(persons={"pid": [1, 2], "sex": ["F", "M"]}, person_id="pid")
    >>> secret = ds.Secret.new().save(folder / "secret.key")
    >>> release = ds.protect(census, [ds.Cube("sex")], ds.CellKey(V=2, D=5), secret=secret, out=folder / "release")
    >>> signed = ds.sign(release, folder / "signing.key")
    >>> ds.verify(release, public_key=public).passed
    True
    """
    folder = Path(release) if isinstance(release, str | Path) else release_of(release).folder
    found = sign_release(folder, read_private_key(Path(key)))
    if not found.passed:
        raise BrokenRelease("\n".join((f"{folder}: failed, not signed.", *found.problems)))
    return Result(found, (f"{found.name}: signed with key {found.signature.key}.",))
