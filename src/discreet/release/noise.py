"""What a release says of its noise in public; it owns the wording and what is held back, not the noise itself."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from pydantic import BaseModel, ConfigDict

from discreet.schema.rules import Disclosure

Parameter = bool | int | float | str | tuple[int | float | str, ...] | None


class NoiseStatement(BaseModel):
    """The public words on the noise; fields that the disclosure rule holds back are empty."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    disclose: Disclosure
    variance: float | None = None  # at most this
    bound: str | None = None
    parameters: dict[str, Parameter] | None = None
    law: tuple[dict[int, float], ...] | None = (
        None  # true count -> change -> probability; the last serves larger ones
    )

    def sentence(self) -> str:
        """The statement in one or two plain sentences."""
        said = f"Counts are perturbed by the {self.method}."
        if self.parameters is not None:
            listed = ", ".join(f"{name} = {value}" for name, value in sorted(self.parameters.items()))
            said += f" Its parameters are {listed}."
        elif self.variance is not None:
            said += f" The noise has a mean of zero and a variance of at most {self.variance:g}."
        if self.bound is not None:
            said += f" A published count differs from the count before noise by {self.bound}."
        return said


def noise_statement(
    method: str,
    disclose: Disclosure,
    *,
    variance: float | None = None,
    bound: int | None = None,
    parameters: Mapping[str, Parameter] | None = None,
    law: tuple[dict[int, float], ...] | None = None,
) -> NoiseStatement:
    """Keep of the noise's parameters what the disclosure rule lets the public see."""
    if disclose is Disclosure.LAW:
        return NoiseStatement(method=method, disclose=disclose, parameters=dict(parameters or {}), law=law)
    if disclose is Disclosure.VARIANCE:
        return NoiseStatement(
            method=method, disclose=disclose, variance=_rough_variance(variance), bound=_rough_bound(bound)
        )
    return NoiseStatement(method=method, disclose=disclose)


def _rough_variance(variance: float | None) -> float | None:
    """Round up to one decimal: the last digits of a computed variance would tell which parameters it came from."""
    return None if variance is None else ceil(round(variance * 10, 4)) / 10


def _rough_bound(bound: int | None) -> str | None:
    """A bound that is true but helps no attacker: the exact one is rounded up to a multiple of ten."""
    return None if bound is None else f"at most {max(10, -(-bound // 10) * 10)}"
