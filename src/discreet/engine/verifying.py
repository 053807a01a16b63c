"""Where a release is verified: on this machine, or through Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.engine.computing import require_here
from discreet.programme.engine import EngineRule
from discreet.programme.engine_kind import EngineKind
from discreet.release.verify import Verification, verify

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from discreet.engine.spark import SparkEngine


def verified(
    release: str,
    key: Ed25519PublicKey | None = None,
    kind: EngineKind | None = None,
    given: SparkEngine | None = None,
) -> Verification:
    """Verify a release: here, in a task of Spark, or a copy of one at an address that only Spark reads."""
    if given is not None:
        return given.verified(release, key)
    if kind is EngineKind.SPARK:
        from discreet.engine.spark import opened_engine  # noqa: PLC0415, an optional engine

        with opened_engine(EngineRule(EngineKind.SPARK)) as engine:
            return engine.verified(release, key)
    require_here(release)
    return verify(release, key)
