"""Noise as a notebook declares it: the cell key method, noise with a guarantee, and record swapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Literal, Protocol

from discreet.api.cubes import Bands, axis_name
from discreet.errors import mistake

Amount = int | float | str | Fraction  # a number, or a fraction such as "1/3"
Setting = str | int | float | bool | list["Setting"] | dict[str, "Setting"]


class Noise(Protocol):
    """How counts are protected: ``CellKey``, ``Geometric``, ``DiscreteGaussian``, ``Hierarchical`` or ``Private``.

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
    large_delta: bool | None = None


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


@dataclass(frozen=True, kw_only=True)
class Hierarchical:
    """Noisy marginals at every level of a geography, and tables that are fitted to all of them and add up.

    The budget of all tables together is ``rho`` (zCDP), or ``epsilon`` with geometric noise. ``strategy`` is
    ``"pl94-2020"``, ``"pl94-2020-pr"``, or a mapping with ``histogram`` (the columns or bands that are crossed),
    ``levels`` (level of the geography, or ``total`` -> share of the budget) and ``queries`` (query -> share of what a
    level has, the same at every level; or level -> query -> share). A query is ``total``, ``detailed``, or names of the
    histogram joined by ``*``.
    ``invariants`` are what is published without noise, such as ``{"totals": ["nuts3"]}``.

    >>> import discreet as ds
    >>> shares = {"total": "1/4", "detailed": "3/4"}
    >>> strategy = {"histogram": ["sex"], "levels": {"total": "1/2", "lau": "1/2"}, "queries": shares}
    >>> noise = ds.Hierarchical(geography="lau", rho="1/2", strategy=strategy)
    >>> persons = {"pid": range(300), "lau": ["A", "B", "B"] * 100, "sex": ["F", "M"] * 150}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"], of="person")
    >>> table = ds.protect(census, ds.Cube("lau", "sex"), noise, secret=ds.Secret.new())
    >>> table.value(lau="A") + table.value(lau="B") == table.value()
    True
    >>> table.interval().columns.tolist()
    ['lau', 'sex', 'value', 'estimate', 'standard_error', 'low', 'high']
    """

    geography: str
    strategy: Literal["pl94-2020", "pl94-2020-pr"] | Mapping[str, object]
    rho: Amount | None = None
    epsilon: Amount | None = None
    law: Literal["discrete-gaussian", "geometric"] | None = None
    delta: Amount | None = None
    neighbours: Literal["add-remove", "substitute"] | None = None
    protects: Literal["person", "household"] | None = None
    largest_household: int | None = None
    snapshot: str | None = None
    large_delta: bool | None = None
    invariants: Mapping[str, object] = field(default_factory=dict)
    outputs: Sequence[Literal["counts", "estimates", "measurements"]] = ()
    fit: Literal["tree", "own-level"] | None = None
    spine: bool | None = None

    def declared(self) -> dict[str, Setting]:
        """The ``[noise]`` section of a programme file."""
        found = {"kind": "hierarchical", **_settings(self)}
        if self.epsilon is not None and self.rho is None:
            found.setdefault("law", "geometric")
        if isinstance(self.strategy, Mapping):
            found["strategy"] = {**_mapping(self.strategy), **_queries(self.strategy)}
        return found

    @property
    def histogram(self) -> tuple[str | Bands, ...]:
        """The axes of the histogram of a strategy of one's own."""
        named = self.strategy.get("histogram") if isinstance(self.strategy, Mapping) else None
        return tuple(named) if isinstance(named, list | tuple) else ()


def _queries(strategy: Mapping[str, object]) -> dict[str, Setting]:
    """The queries by level, where a notebook gives them once for all levels."""
    levels, queries = strategy.get("levels"), strategy.get("queries")
    if not (isinstance(levels, Mapping) and isinstance(queries, Mapping)):
        return {}
    if any(isinstance(shares, Mapping) for shares in queries.values()):
        return {}
    return {"queries": {str(level): _mapping(queries) for level in levels}}


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
    ``risk_column`` has a risk that was computed elsewhere, ``quotas`` the most that may be exchanged
    (``{"levels": {"nuts3": 0.01}}``).

    >>> import discreet as ds
    >>> ds.Swap(risk=["age", "sex"], similar=[["hh_size"]], rate=0.02).declared()
    {'risk': ['age', 'sex'], 'similar': [['hh_size']], 'rate': 0.02}
    """

    risk: Sequence[str] = ()
    similar: Sequence[Sequence[str | Mapping[str, object]]]
    k: int | None = None
    rate: float | None = None
    cap: float | None = None
    levels: Sequence[str] | None = None
    donors: Literal["risk", "uniform"] | None = None
    inside_parent: bool | None = None
    carry: Sequence[str] = ()
    exclude: str | None = None
    risk_column: str | None = None
    exclude_zero_risk: bool | None = None
    quotas: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse names where lists of names belong: each would be taken for a list of letters."""
        for key, given, remedy in (
            ("risk", self.risk, f'give a list: risk=["{self.risk}"]'),
            ("similar", self.similar, f'give lists of names: similar=[["{self.similar}"]]'),
            *(("similar", one, f'give lists of names: similar=[["{one}"]]') for one in self.similar),
        ):
            if isinstance(given, str):
                raise mistake("Swap", key, repr(given), remedy)

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
        return _mapping(value)
    if isinstance(value, list | tuple):
        return [_setting(one) for one in value]
    if isinstance(value, Fraction | Path):
        return str(value)
    if isinstance(value, Bands):
        return axis_name(value)
    if isinstance(value, str | int | float | bool):
        return value
    return str(value)


def _mapping(value: Mapping[str, object]) -> dict[str, Setting]:
    return {str(name): _setting(one) for name, one in value.items()}
