"""Keys with which an office signs its releases: Ed25519 (RFC 8032), in PEM files."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import mistake
from discreet.io.whole_file import new_file
from discreet.lazy import lazily

if TYPE_CHECKING:
    from cryptography import exceptions
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519
else:
    exceptions = lazily("cryptography.exceptions")
    serialization = lazily("cryptography.hazmat.primitives.serialization")
    ed25519 = lazily("cryptography.hazmat.primitives.asymmetric.ed25519")

PUBLIC_SUFFIX = ".pub"
LARGEST = 10_000  # bytes of a key file
_MAKE = "make a pair with: discreet key --out signing.key"


def make_key(path: Path) -> Path:
    """Write a new private key, readable by its owner only, and its public key beside it; existing files stay."""
    if not path.name:
        raise mistake(path, "key", "no name of a file", "give one, such as signing.key")
    private, public = ed25519.Ed25519PrivateKey.generate(), path.with_name(path.name + PUBLIC_SUFFIX)
    for place in (path, public):
        if place.exists() or place.is_symlink():
            raise mistake(place, "key", "the file exists", "choose another name")
    _write(
        path,
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        0o600,
    )
    _write(public, _pem(private.public_key()), 0o644)
    return public


def read_private_key(path: Path) -> ed25519.Ed25519PrivateKey:
    """Read a private key; one that other users can read is refused."""
    text = _read(path, "signing key")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        remedy = f"chmod 600 {path}, and make a new pair if others have read it"
        raise mistake(path, "signing key", "other users can read or write it", remedy)
    try:
        key = serialization.load_pem_private_key(text, None)
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm, exceptions.InternalError):
        # internal where the bytes are those of another algorithm, whose keys have another length
        raise mistake(path, "signing key", "not a private key in PEM without password", _MAKE) from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise mistake(path, "signing key", "not an Ed25519 key", _MAKE)
    return key


def read_public_key(path: Path) -> ed25519.Ed25519PublicKey:
    """Read a public key."""
    text = _read(path, "public key")
    try:
        key = serialization.load_pem_public_key(text)
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm, exceptions.InternalError):
        remedy = "give the file that the office publishes beside its releases, in PEM"
        raise mistake(path, "public key", "not a public key in PEM", remedy) from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise mistake(path, "public key", "not an Ed25519 key", "give the office's Ed25519 public key")
    return key


def raw_bytes(key: ed25519.Ed25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def is_signed(key: ed25519.Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    """Whether a signature of some content is that of the key's owner."""
    try:
        key.verify(signature, content)
    except exceptions.InvalidSignature:
        return False
    return True


def _pem(key: ed25519.Ed25519PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _write(path: Path, content: bytes, mode: int) -> None:
    try:
        with new_file(path, mode) as descriptor:
            os.write(descriptor, content)
    except OSError as error:
        reason = (error.strerror or "cannot be written").lower()
        raise mistake(path, "key", reason, "choose a folder that you can write to") from None


def _read(path: Path, key: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST)
    except OSError as error:
        raise mistake(path, key, (error.strerror or "cannot be read").lower(), _MAKE) from None
