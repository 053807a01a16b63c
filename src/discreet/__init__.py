"""Discreet: protected frequency tables from census microdata.

The names below are the library; each is imported when it is first used, so that ``import discreet`` is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.engine.secret import make_secret, read_secret
    from discreet.errors import DiscreetError, Mistakes, Problem
    from discreet.maths.ptable import PTable
    from discreet.maths.ptable_solver import PTableParameters, solve
    from discreet.perturb.table import ProtectedTable
    from discreet.pipeline.check import check_data
    from discreet.pipeline.protect import Protected, protect
    from discreet.population.synth import generate
    from discreet.release.read import Release, open_release
    from discreet.release.verify import Verification, verify
    from discreet.schema.programme import Programme, load_programme

_HOMES = {
    "DiscreetError": "errors",
    "Mistakes": "errors",
    "PTable": "maths.ptable",
    "PTableParameters": "maths.ptable_solver",
    "Problem": "errors",
    "Programme": "schema.programme",
    "Protected": "pipeline.protect",
    "ProtectedTable": "perturb.table",
    "Release": "release.read",
    "Verification": "release.verify",
    "check_data": "pipeline.check",
    "generate": "population.synth",
    "load_programme": "schema.programme",
    "make_secret": "engine.secret",
    "open_release": "release.read",
    "protect": "pipeline.protect",
    "read_secret": "engine.secret",
    "solve": "maths.ptable_solver",
    "verify": "release.verify",
}

__all__ = [
    "DiscreetError",
    "Mistakes",
    "PTable",
    "PTableParameters",
    "Problem",
    "Programme",
    "Protected",
    "ProtectedTable",
    "Release",
    "Verification",
    "check_data",
    "generate",
    "load_programme",
    "make_secret",
    "open_release",
    "protect",
    "read_secret",
    "solve",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"discreet.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
