"""Discreet: protected frequency tables from census microdata.

The names below are the library; each is imported when it is first used, so that ``import discreet`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.errors import DiscreetError, Mistakes, Problem
    from discreet.io.secret import make_secret, read_secret
    from discreet.maths.noise.ptable import PTable
    from discreet.maths.noise.ptable_solver import PTableParameters, solve
    from discreet.pipeline.check import check_data
    from discreet.pipeline.protect import Protected, protect
    from discreet.programme.programme import Programme, load_programme
    from discreet.release.reader import Release, open_release
    from discreet.release.verify import Verification, verify
    from discreet.synth import generate
    from discreet.tabulate.tables import ProtectedTable

_HOMES = {
    "DiscreetError": "errors",
    "Mistakes": "errors",
    "PTable": "maths.noise.ptable",
    "PTableParameters": "maths.noise.ptable_solver",
    "Problem": "errors",
    "Programme": "programme.programme",
    "Protected": "pipeline.protect",
    "ProtectedTable": "tabulate.tables",
    "Release": "release.reader",
    "Verification": "release.verify",
    "check_data": "pipeline.check",
    "generate": "synth",
    "load_programme": "programme.programme",
    "make_secret": "io.secret",
    "open_release": "release.reader",
    "protect": "pipeline.protect",
    "read_secret": "io.secret",
    "solve": "maths.noise.ptable_solver",
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
