"""Noise as a notebook declares it: the cell key method, noise with a guarantee, and record swapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Literal, Protocol

Amount = int | float | str | Fraction  # a number, or a fraction such as "1/3"
Setting = str | int | float | bool | list["Setting"] | dict[str, "Setting"]


class Noise(Protocol):
    """How counts are protected: ``CellKey``, ``Geometric``, ``DiscreteGaussian`` or ``Private``.

    >>> import discreet as ds
    >>> ds.CellKey(V=2, D=5).declared()
    {'kind': 'cell-key', 'V': 2, 'D': 5}
    """

    def declared(self) -> dict[str, Setting]:
        """The ``[noise]`` section of a programme file."""


@dataclass(frozen=True, kw_only=True)
class CellKey:
    """Noise by the cell key method: variance ``V``, largest change ``D``, no published counts from 1 to ``js``.

    ``pstay`` is the probability that a count is unchanged, ``ptable`` a file with a p-table in place of the parameters.

    >>> import discreet as ds
    >>> ds.CellKey(V=2, D=5, js=2).D
    5
    """

    V: float | Sequence[float] | None = None
    D: int | None = None
    js: int | None = None
    pstay: float | Sequence[float] | None = None
    variance: Literal["at-most", "equal", "equal-where-feasible"] | None = None
    keys: Literal["permuted", "plain"] | None = None
    ptable: Path | str | None = None
    allow_weak: bool | None = None

    def declared(self) -> dict[str, Setting]:
        """The ``[noise]`` section of a programme file."""
        return {"kind": "cell-key", **_settings(self)}


@dataclass(frozen=True, kw_only=True)
class _Guaranteed:
    """The keys that both laws with a budget have."""

    delta: Amount | None = None
    snapshot: str | None = None
    negatives: Literal["keep", "zero"] | None = None
    rounding: int | None = None
    threshold: int | None = None
    neighbours: Literal["add-remove", "substitute"] | None = None
    protects: Literal["person", "household"] | None = None
    largest_household: int | None = None
    largest_weight: Amount | None = None
    split: Literal["even"] | Mapping[str, object] | None = None
    public_totals: Mapping[str, int] = field(default_factory=dict)
    allow_weak: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Geometric(_Guaranteed):
    """Discrete Laplace noise in every cell, with a guarantee of ``epsilon`` for all tables together.

    >>> import discreet as ds
    >>> ds.Geometric(epsilon=1).declared()
    {'kind': 'geometric', 'epsilon': 1}
    """

    epsilon: Amount
    composition: Literal["basic", "advanced", "pld"] | None = None

    def declared(self) -> dict[str, Setting]:
        """The ``[noise]`` section of a programme file."""
        return {"kind": "geometric", **_settings(self)}


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(_Guaranteed):
    """Discrete Gaussian noise in every cell, with a guarantee of ``rho`` (zCDP) for all tables together.

    >>> import discreet as ds
    >>> ds.DiscreteGaussian(rho="1/8").declared()
    {'kind': 'discrete-gaussian', 'rho': '1/8'}
    """

    rho: Amount

    def declared(self) -> dict[str, Setting]:
        """The ``[noise]`` section of a programme file."""
        return {"kind": "discrete-gaussian", **_settings(self)}


@dataclass(frozen=True)
class Private:
    """Noise of any other law of a programme file, with the keys of its ``[noise]`` section.

    >>> import discreet as ds
    >>> ds.Private("laplace", {"epsilon": 1, "bound": 30, "delta": 1e-6}).kind
    'laplace'
    """

    kind: Literal["laplace", "normal", "geometric", "discrete-gaussian", "hellinger", "exponential"]
    keys: Mapping[str, object]

    def declared(self) -> dict[str, Setting]:
        """The ``[noise]`` section of a programme file."""
        return {"kind": self.kind, **{name: _setting(value) for name, value in self.keys.items()}}


@dataclass(frozen=True, kw_only=True)
class Swap:
    """Targeted record swapping of households before anything is counted.

    ``risk`` names the variables whose combination makes a household unique, ``similar`` those in which two households
    that are exchanged agree, the strictest profile first; ``rate`` is the least share that is exchanged.

    >>> import discreet as ds
    >>> ds.Swap(risk=["age", "sex"], similar=[["hh_size"]], rate=0.02).declared()
    {'risk': ['age', 'sex'], 'similar': [['hh_size']], 'rate': 0.02}
    """

    risk: Sequence[str] = ()
    similar: Sequence[Sequence[str]]
    k: int | None = None
    rate: float | None = None
    cap: float | None = None
    levels: Sequence[str] | None = None
    donors: Literal["risk", "uniform"] | None = None
    inside_parent: bool | None = None
    carry: Sequence[str] = ()
    exclude: str | None = None

    def declared(self) -> dict[str, Setting]:
        """The ``[swap]`` section of a programme file."""
        return _settings(self)


def _settings(declared: object) -> dict[str, Setting]:
    """What is given, by key; what is left out has the default of the programme file."""
    given = {one.name: getattr(declared, one.name) for one in fields(declared)}  # type: ignore[arg-type]
    return {name: _setting(value) for name, value in given.items() if not _is_left_out(value)}


def _is_left_out(value: object) -> bool:
    return value is None or (isinstance(value, tuple | dict) and not value)


def _setting(value: object) -> Setting:
    """A value as a programme file has it."""
    if isinstance(value, Mapping):
        return {str(name): _setting(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_setting(one) for one in value]
    if isinstance(value, Fraction | Path):
        return str(value)
    if isinstance(value, str | int | float | bool):
        return value
    return str(value)
