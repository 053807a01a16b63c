"""What a mechanism is to the rest of the path: it turns a confidential table into a protected one and explains itself.

It owns the seam and the public facts of a noise; each mechanism is a module of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from discreet.errors import Problem
from discreet.tabulate.tables import ConfidentialTable, ProtectedTable


@dataclass(frozen=True)
class NoiseFacts:
    """What can be said of a noise in public; how much of it is said is the release's rule."""

    method: str
    variance: float  # the largest of any cell
    bound: int | None  # None where the noise is unbounded
    parameters: Mapping[str, int | float | str]
    law: tuple[
        dict[int, float], ...
    ]  # true count -> change -> probability; the last serves all larger counts
    kind: str = "cell-key"  # the word of programme files
    parameter: str = ""  # epsilon or rho of a cell with this law, where it has one
    others: Mapping[str, str] = field(
        default_factory=dict
    )  # cross-tabulation -> parameter, where it has another law
    guarantee: str = ""  # a sentence, empty where none is claimed
    is_open: bool = False  # whether the law must be told whatever the release's rule says


class Mechanism(Protocol):
    """Noise that is ready to be drawn."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be had as it was declared."""

    @property
    def key_modulus(self) -> int:
        """Cell keys matter modulo this; 1 where they do not matter."""

    @property
    def identity(self) -> bytes:
        """Everything that decides the noise but the secret."""

    def facts(self) -> NoiseFacts:
        """What can be said of the noise."""

    def problems(self, records: int) -> Iterator[Problem]:
        """What is wrong with the noise for a population of so many records."""

    def perturb(self, table: ConfidentialTable) -> ProtectedTable:
        """Make the published cells of one cube."""
