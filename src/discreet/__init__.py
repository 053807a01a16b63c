"""Discreet: protected frequency tables from census microdata.

    import discreet as ds
    census = ds.Population(persons=df, person_id="pid", geography=["nuts3", "lau"])
    table = ds.protect(census, ds.Cube("lau", "sex"), ds.CellKey(V=2, D=5), secret=ds.Secret.new())

The names below are the library; each is imported when it is first used, so that ``import discreet`` is fast. Some
commands have the name of a package of the source (``audit``, ``serve``): ``discreet.audit`` is the command, and the
modules of the package are found below it as usual.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import inference
    from discreet.api import risk, types
    from discreet.api.advice import advise, forecast
    from discreet.api.audits import (
        AttackReport,
        AuditReport,
        ComparedUtility,
        attack,
        attack_server,
        audit,
        compare_utility,
        utility,
    )
    from discreet.api.checks import Checked, check, verify
    from discreet.api.cubes import Bands, Cube, ages, bands
    from discreet.api.laws import NoiseLaw, noise
    from discreet.api.noise import CellKey, DiscreteGaussian, Geometric, Hierarchical, Noise, Private, Swap
    from discreet.api.population import Population
    from discreet.api.privacy import Accounting, accounting, convert
    from discreet.api.programme import Programme, load_programme
    from discreet.api.protect import open_ledger, protect, rehearse
    from discreet.api.ptables import CheckedPTable, check_ptable, ptable, read_ptable, write_ptable
    from discreet.api.releases import Release, open_release
    from discreet.api.results import Result
    from discreet.api.secret import Secret
    from discreet.api.serving import serve
    from discreet.api.signing import make_key, sign
    from discreet.api.studies import study, study_declared_geography
    from discreet.api.swapping import SwapResult, swap
    from discreet.api.synthetic import SyntheticCensus, demo, synth
    from discreet.api.tables import Table, TableAxis
    from discreet.api.tokens import Tokens
    from discreet.engine.spark import SparkEngine
    from discreet.errors import DiscreetError, Mistakes, Problem
    from discreet.io.ptable_files import PTableFile
    from discreet.maths.feasible import RiskLimits
    from discreet.maths.noise.ptable import PTable
    from discreet.maths.privacy.accounting import EpsilonDelta, Neighbours, PureEpsilon, Rho
    from discreet.maths.privacy.loss_distribution import GaussianNoise, LaplaceNoise
    from discreet.perturb.ledger import Ledger

    __version__: str

_HOMES = {
    "Accounting": "api.privacy",
    "AttackReport": "api.audits",
    "AuditReport": "api.audits",
    "Bands": "api.cubes",
    "CellKey": "api.noise",
    "Checked": "api.checks",
    "CheckedPTable": "api.ptables",
    "ComparedUtility": "api.audits",
    "Cube": "api.cubes",
    "DiscreetError": "errors",
    "DiscreteGaussian": "api.noise",
    "EpsilonDelta": "maths.privacy.accounting",
    "GaussianNoise": "maths.privacy.loss_distribution",
    "Geometric": "api.noise",
    "Hierarchical": "api.noise",
    "LaplaceNoise": "maths.privacy.loss_distribution",
    "Ledger": "perturb.ledger",
    "Mistakes": "errors",
    "Neighbours": "maths.privacy.accounting",
    "Noise": "api.noise",
    "NoiseLaw": "api.laws",
    "PTable": "maths.noise.ptable",
    "PTableFile": "io.ptable_files",
    "Population": "api.population",
    "Private": "api.noise",
    "Problem": "errors",
    "Programme": "api.programme",
    "PureEpsilon": "maths.privacy.accounting",
    "Release": "api.releases",
    "Result": "api.results",
    "Rho": "maths.privacy.accounting",
    "RiskLimits": "maths.feasible",
    "Secret": "api.secret",
    "SparkEngine": "engine.spark",
    "Swap": "api.noise",
    "SwapResult": "api.swapping",
    "SyntheticCensus": "api.synthetic",
    "Table": "api.tables",
    "TableAxis": "api.tables",
    "Tokens": "api.tokens",
    "accounting": "api.privacy",
    "advise": "api.advice",
    "ages": "api.cubes",
    "attack": "api.audits",
    "attack_server": "api.audits",
    "audit": "api.audits",
    "bands": "api.cubes",
    "check": "api.checks",
    "check_ptable": "api.ptables",
    "compare_utility": "api.audits",
    "convert": "api.privacy",
    "demo": "api.synthetic",
    "forecast": "api.advice",
    "load_programme": "api.programme",
    "make_key": "api.signing",
    "noise": "api.laws",
    "open_ledger": "api.protect",
    "open_release": "api.releases",
    "protect": "api.protect",
    "ptable": "api.ptables",
    "read_ptable": "api.ptables",
    "rehearse": "api.protect",
    "serve": "api.serving",
    "sign": "api.signing",
    "study": "api.studies",
    "study_declared_geography": "api.studies",
    "swap": "api.swapping",
    "synth": "api.synthetic",
    "utility": "api.audits",
    "verify": "api.checks",
    "write_ptable": "api.ptables",
}

_MODULES = {"inference": "discreet.inference", "risk": "discreet.api.risk", "types": "discreet.api.types"}

__all__ = [
    "Accounting",
    "AttackReport",
    "AuditReport",
    "Bands",
    "CellKey",
    "Checked",
    "CheckedPTable",
    "ComparedUtility",
    "Cube",
    "DiscreetError",
    "DiscreteGaussian",
    "EpsilonDelta",
    "GaussianNoise",
    "Geometric",
    "Hierarchical",
    "LaplaceNoise",
    "Ledger",
    "Mistakes",
    "Neighbours",
    "Noise",
    "NoiseLaw",
    "PTable",
    "PTableFile",
    "Population",
    "Private",
    "Problem",
    "Programme",
    "PureEpsilon",
    "Release",
    "Result",
    "Rho",
    "RiskLimits",
    "Secret",
    "SparkEngine",
    "Swap",
    "SwapResult",
    "SyntheticCensus",
    "Table",
    "TableAxis",
    "Tokens",
    "accounting",
    "advise",
    "ages",
    "attack",
    "attack_server",
    "audit",
    "bands",
    "check",
    "check_ptable",
    "compare_utility",
    "convert",
    "demo",
    "forecast",
    "inference",
    "load_programme",
    "make_key",
    "noise",
    "open_ledger",
    "open_release",
    "protect",
    "ptable",
    "read_ptable",
    "rehearse",
    "risk",
    "serve",
    "sign",
    "study",
    "study_declared_geography",
    "swap",
    "synth",
    "types",
    "utility",
    "verify",
    "write_ptable",
]


class _Command:
    """A function with the name of a package of the source: it is called, and the package's modules are below it."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__, self.__wrapped__, self.__doc__ = name, function, function.__doc__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.__wrapped__(*given, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(f"discreet.{self.__name__}"), name)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return __getattr__, (self.__name__,)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


_COMMANDS = frozenset({"advise", "audit", "serve", "swap", "synth"})


class _Library(ModuleType):
    """The package, whose commands are not replaced by sub-packages of the same name when these are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _COMMANDS or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Library


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("discreet")
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no {name!r}; it has {', '.join(__all__)}")
    with import_module("discreet.lazy").importing():
        found = getattr(import_module(f"discreet.{_HOMES[name]}"), name)
    if name in _COMMANDS:
        found = _Command(name, found)
    return globals().setdefault(name, found)  # that of another thread, where one was faster


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
