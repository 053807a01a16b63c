"""The protocol of mechanisms: a mechanism turns a confidential table into a protected one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from discreet.errors import Problem
from discreet.perturb.noise import Noise
from discreet.programme.cube import Cube
from discreet.programme.noise import PrivateNoise
from discreet.tabulate.tables import ConfidentialTable, NoisyTable, ProtectedTable


@dataclass(frozen=True)
class Certified:
    """What the guarantee of a mechanism rests on, as computed from the integers that are drawn."""

    rule: PrivateNoise
    delta: Fraction  # at the nominal epsilon
    distance: Fraction  # total variation, between what is drawn and the laws as they are written


class Mechanism(Protocol):
    """Noise that is ready to be drawn."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on declared constraints that could not be met."""

    @property
    def key_modulus(self) -> int:
        """Cell keys matter modulo this; 1 where they do not matter."""

    @property
    def identity(self) -> bytes:
        """Everything that decides the noise except the secret."""

    def noise(self) -> Noise:
        """Everything about the noise except its key."""

    def problems(self, records: int) -> Iterator[Problem]:
        """Problems of the noise for a population of this many records."""

    def certified(self) -> Certified | None:
        """What a guarantee rests on; None where no law is one of noise with a guarantee."""

    def cube_problems(self, cube: Cube) -> Iterator[Problem]:
        """Why a cube cannot be perturbed, known before anything is counted."""

    def perturb(self, table: ConfidentialTable) -> ProtectedTable:
        """Make the published cells of one cube."""

    def measure(self, table: ConfidentialTable) -> NoisyTable:
        """Make the noisy cells of one cube, without post-processing, for tables that add up."""
