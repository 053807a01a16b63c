"""The office's secret as an object that is never shown."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import NoReturn

from discreet.api.arguments import names_arguments
from discreet.errors import mistake
from discreet.io.register import Register
from discreet.io.secret import read_secret, write_secret
from discreet.maths.cells.keys import SECRET_BYTES


class Secret:
    """The 32 random bytes that decide all noise; it is neither shown nor pickled.

    The same records, noise and secret give the same counts. Save it, or the noise cannot be repeated.

    >>> import discreet as ds
    >>> ds.Secret.new()
    Secret(not shown)
    """

    __slots__ = ("_key", "_path")

    def __init__(self, key: bytes, path: Path | None = None) -> None:
        """A secret of 32 bytes; ``path`` is its file."""
        if len(key) != SECRET_BYTES:
            raise mistake(
                "", "secret", f"{len(key)} bytes", f"give {SECRET_BYTES} random bytes, or Secret.new()"
            )
        self._key, self._path = key, path

    @classmethod
    def new(cls) -> Secret:
        """A new random secret."""
        return cls(secrets.token_bytes(SECRET_BYTES))

    @classmethod
    @names_arguments
    def read(cls, where: str | Path) -> Secret:
        """The secret of a file, of ``env:NAME`` or of ``fd:NUMBER``, as the commands read it."""
        text = str(where)
        path = None if text.startswith(("env:", "fd:")) else Path(text)
        return cls(read_secret(text, os.environ), path)

    @names_arguments
    def save(self, path: str | Path) -> Secret:
        """Write it to a new file that only its owner can read, and return the secret of that file."""
        write_secret(Path(path), self._key)
        return Secret(self._key, Path(path))

    @property
    def key(self) -> bytes:
        """The bytes, for the functions of other modules."""
        return self._key

    @property
    def path(self) -> Path | None:
        """Its file, if it has one."""
        return self._path

    def beside(self, suffix: str) -> Path | None:
        """A path next to its file, as the commands choose it."""
        return None if self._path is None else self._path.with_name(f"{self._path.name}.{suffix}")

    def register(self) -> Register | None:
        """What was published under it, next to its file."""
        place = self.beside("register")
        return None if place is None else Register.of(place, self._key)

    def __repr__(self) -> str:
        return "Secret(not shown)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled; save it with Secret.save and read it with Secret.read")


def secret_key(secret: Secret | bytes | str | Path) -> Secret:
    """A secret, or where to read it."""
    if isinstance(secret, Secret):
        return secret
    if not isinstance(secret, bytes | str | Path):
        remedy = "give a Secret, 32 bytes, or the path of a secret file"
        raise mistake("", "secret", f"an object of type {type(secret).__name__}", remedy)
    return Secret(secret) if isinstance(secret, bytes) else Secret.read(secret)
