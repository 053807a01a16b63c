"""The office's secret: 32 random bytes from a file, the environment or a file descriptor."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from discreet.errors import mistake
from discreet.io.whole_file import OWNER_ONLY_FILE, new_file
from discreet.maths.cells.keys import SECRET_BYTES

_MAKE = "make one with: discreet secret --out secret.key"


def make_secret(path: Path) -> None:
    """Write a new secret, readable by its owner only; an existing file is never overwritten."""
    write_secret(path, secrets.token_bytes(SECRET_BYTES))


def write_secret(path: Path, secret: bytes) -> None:
    """Write a secret, readable by its owner only; an existing file is never overwritten."""
    try:
        with new_file(path, OWNER_ONLY_FILE) as descriptor:
            os.write(descriptor, f"{secret.hex()}\n".encode())
    except FileExistsError:
        raise mistake(path, "secret", "the file exists", "use it, or choose another name") from None
    except OSError as error:
        raise mistake(path, "secret", _reason(error), "choose a folder that you can write to") from None


def read_secret(where: str, environment: Mapping[str, str]) -> bytes:
    """Read a secret from a path, ``env:NAME`` or ``fd:NUMBER``; it is 64 hexadecimal digits."""
    if where.startswith("env:"):
        return _decode(environment.get(where[4:], ""), where)
    if where.startswith("fd:"):
        return _decode(_read_descriptor(where), where)
    return _decode(_read_private_file(Path(where)), where)


def _read_descriptor(where: str) -> str:
    try:
        with os.fdopen(int(where[3:]), "r", closefd=False) as file:
            return file.read(4 * SECRET_BYTES)
    except (ValueError, OSError):
        raise mistake(
            where,
            "secret",
            "no such file descriptor",
            "open it for the command, for example with 3<secret.key",
        ) from None


def _read_private_file(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise mistake(path, "secret", _reason(error), _MAKE) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise mistake(
            path,
            "secret",
            "other users can read or write it",
            f"chmod 600 {path}, and make a new secret if others have read it",
        )
    return text


def _decode(text: str, where: str) -> bytes:
    try:
        secret = bytes.fromhex(text.strip())
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise mistake(where, "secret", f"not {2 * SECRET_BYTES} hexadecimal digits", _MAKE)
    return secret


def _reason(error: OSError) -> str:
    return (error.strerror or "cannot be read").lower()
