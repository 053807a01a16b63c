"""The signature of a release: Ed25519 over its manifest, and through the manifest's checksums over every file.

``manifest.sig`` is JSON with the signature and the public key that checks it. The key inside proves nothing by itself:
a person who changes a release can sign it with another key. So ``verify`` compares with a key that was received in
another way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from discreet.errors import mistake
from discreet.io.signing_key import is_signed, raw_bytes
from discreet.io.whole_file import PUBLIC_FILE, whole_file
from discreet.release.manifest import MANIFEST, SIGNATURE

KIND, ALGORITHM = "discreet signature", "Ed25519"
SHOWN = 16  # hexadecimal digits of a public key that identify it to people
LARGEST = 10_000  # bytes of a signature's file
_PURPOSE = b"discreet release manifest\n"  # so that a signature of other data never fits


class Signed(StrEnum):
    """What is known about who wrote a release."""

    NOT = "not signed"
    UNCHECKED = "signed, not checked"
    VALID = "signed by the given key"
    WRONG = "not signed by the given key"


@dataclass(frozen=True)
class SignatureState:
    """Whether a release is signed, and with which key (its first digits)."""

    state: Signed
    key: str = ""

    def sentence(self) -> str:
        """What it shows and what it cannot show, for people."""
        sentence = _SENTENCES[self.state if self.key or self.state is Signed.NOT else None]
        return sentence.format(key=self.key)


_SENTENCES = {
    Signed.VALID: "Signed: the owner of key {key} signed the manifest, and with it every file.",
    Signed.UNCHECKED: (
        "Signed with key {key}, which was not compared: give the office's key with --public-key. Until then the "
        "release could be from any person."
    ),
    Signed.NOT: (
        "Not signed: checksums show damage, but a person who changes files can rewrite them. That an office published "
        "exactly this is shown only by a signature (discreet sign)."
    ),
    Signed.WRONG: (
        "The signature (key {key}) is not one of this manifest, or not by the office's key: the release was changed, "
        "or it is another office's."
    ),
    None: "The release has no signature that can be read: ask the office for a signed one.",
}
UNSIGNED = SignatureState(Signed.NOT)


def signature_of(manifest: bytes, key: Ed25519PrivateKey) -> str:
    """The text of the signature's file."""
    document = {
        "kind": KIND,
        "algorithm": ALGORITHM,
        "public_key": raw_bytes(key.public_key()).hex(),
        "signature": key.sign(_PURPOSE + manifest).hex(),
    }
    return json.dumps(document, indent=1) + "\n"


def write_signature(folder: Path, key: Ed25519PrivateKey) -> SignatureState:
    """Sign the manifest of a release; the file appears whole, and replaces an earlier signature."""
    place = folder / SIGNATURE
    text = signature_of((folder / MANIFEST).read_bytes(), key)
    try:
        with whole_file(place, PUBLIC_FILE) as draft:
            draft.write_text(text, encoding="ascii")
    except OSError as error:
        reason = (error.strerror or "cannot be written").lower()
        raise mistake(place, "signature", reason, "sign where you can write to the release") from None
    return SignatureState(Signed.VALID, raw_bytes(key.public_key()).hex()[:SHOWN])


def read_signature(folder: Path, key: Ed25519PublicKey | None) -> SignatureState:
    """Who signed a release, as far as the given key shows it; a damaged signature is as none of any key."""
    place = folder / SIGNATURE
    if not place.is_file():
        return SignatureState(Signed.NOT if key is None else Signed.WRONG)
    try:
        with place.open("rb") as file:
            document = json.loads(file.read(LARGEST))
        if (document["kind"], document["algorithm"]) != (KIND, ALGORITHM):
            return SignatureState(Signed.WRONG)
        owner, signature = (bytes.fromhex(document[name]) for name in ("public_key", "signature"))
        stated = Ed25519PublicKey.from_public_bytes(owner)
    except (ValueError, KeyError, TypeError, RecursionError):
        return SignatureState(Signed.WRONG)
    content = _PURPOSE + (folder / MANIFEST).read_bytes()
    if not is_signed(stated, signature, content) or (key is not None and raw_bytes(key) != owner):
        return SignatureState(Signed.WRONG, owner.hex()[:SHOWN])
    return SignatureState(Signed.UNCHECKED if key is None else Signed.VALID, owner.hex()[:SHOWN])
