"""Signing of a release that passes verification; one that does not is never signed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from discreet.release.manifest import SIGNATURE
from discreet.release.signature import Signed, write_signature
from discreet.release.verify import Verification, verify


def sign_release(folder: Path, key: Ed25519PrivateKey) -> Verification:
    """Verify a release and sign it if it passes; a signature that no longer fits is replaced."""
    outcome = verify(folder)
    if outcome.signature.state is Signed.WRONG and (folder / SIGNATURE).is_file():
        others = tuple(one for one in outcome.problems if one != outcome.signature.sentence())
        outcome = replace(outcome, problems=others)
    return replace(outcome, signature=write_signature(folder, key)) if outcome.passed else outcome
