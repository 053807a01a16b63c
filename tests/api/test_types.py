"""Every type that a user meets, in a signature or inside a result, is exported."""

import collections.abc
import enum
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import discreet as ds

INNER = {  # for other modules of the source; a user need not name them
    "discreet.api.declaration.Declaration",
    "discreet.api.releases.Origin",
    "discreet.audit.differencing.DifferenceNoise",
    "discreet.io.progress.Progress",
    "discreet.io.register.Register",
    "discreet.io.store.Database",
    "discreet.io.temporary_folder.TemporaryFolder",
    "discreet.maths.cells.lookup.Lookup",
    "discreet.maths.noise.exponential.UtilityTable",
    "discreet.maths.noise.publishing.CountLaw",
    "discreet.maths.privacy.allowance.Allowance",
    "discreet.perturb.mechanism.Mechanism",
    "discreet.perturb.noise.Noise",
    "discreet.population.reading.Needs",
    "discreet.programme.codelist.Breakdown",
    "discreet.programme.cube.Cube",
    "discreet.programme.filter.Filter",
    "discreet.programme.labels.Labels",
    "discreet.programme.noise.PrivateNoise",
    "discreet.programme.population.Unit",
    "discreet.programme.programme.Programme",
    "discreet.programme.sources.DatabaseSource",
    "discreet.programme.sources.FileSource",
    "discreet.programme.sources.MemorySource",
    "discreet.programme.sources.QuerySource",
    "discreet.programme.strategy.Histogram",
    "discreet.programme.strategy.Strategy",
    "discreet.programme.swap.SwapRule",
    "discreet.programme.variables.Variable",
    "discreet.release.manifest.CubeEntry",
    "discreet.release.manifest.Manifest",
    "discreet.release.reader.Release",
    "discreet.report.published.Names",
    "discreet.run.run.Engine",
    "discreet.run.run.Places",
    "discreet.run.run.Run",
    "discreet.run.run.Swapped",
    "discreet.run.run.Tabulated",
    "discreet.synth.generate.Census",
    "discreet.tabulate.tables.ConfidentialTable",
    "discreet.text.phrase.Phrase",
}
ROOT = Path(__file__).parents[2]


def full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def hints(of: Any) -> dict[str, Any]:
    """The annotations, with what is imported for type checkers only left out."""
    module = inspect.getmodule(of)
    known: dict[str, Any] = dict(vars(module)) if module is not None else {}
    found = {}
    for name, text in getattr(of, "__annotations__", {}).items():
        try:
            found[name] = eval(text, known) if isinstance(text, str) else text
        except NameError:
            continue
    return found


def named(hint: Any) -> Iterator[type]:
    """The types of this package that an annotation names."""
    if isinstance(hint, list | tuple):
        for one in hint:
            yield from named(one)
    elif typing.get_origin(hint) is not None and typing.get_origin(hint) is not typing.Literal:
        yield from named(typing.get_origin(hint))
        yield from named(typing.get_args(hint))
    elif isinstance(hint, type) and hint.__module__.startswith("discreet."):
        yield hint


def function_types(function: Callable[..., Any]) -> Iterator[type]:
    return (one for hint in hints(inspect.unwrap(function)).values() for one in named(hint))


def called(value: Any, methods: bool) -> Callable[..., Any] | None:
    """The function behind a member of a class: a property, or a method where methods are meant to be called."""
    if isinstance(value, property):
        return value.fget
    if isinstance(value, cached_property):
        return value.func
    if methods and isinstance(value, classmethod | staticmethod):
        return value.__func__
    return value if methods and isinstance(value, types.FunctionType) else None


def members(kind: type, methods: bool) -> Iterator[type]:
    """The types of public fields and properties, and of methods where they are meant to be called."""
    own = [base for base in kind.__mro__ if base.__module__.startswith("discreet.")]
    for base in [] if issubclass(kind, enum.Enum) else own:
        for name, hint in hints(base).items():
            yield from () if name.startswith("_") else named(hint)
        for name, value in vars(base).items():
            function = called(value, methods)
            if function is not None and (not name.startswith("_") or name == "__init__"):
                yield from function_types(function)


def public() -> Iterator[Any]:
    """Every public name; those of modules too."""
    for name in ds.__all__:
        value = getattr(ds, name)
        if name != "types":
            yield from (getattr(value, one) for one in value.__all__) if inspect.ismodule(value) else [value]


def met() -> set[type]:
    """The types that are reached from public names, through signatures, fields and properties."""
    own = {value for value in public() if isinstance(value, type)}
    waiting = [*own, *(one for value in public() if value not in own for one in function_types(value))]
    found: set[type] = set()
    while waiting:
        kind = waiting.pop()
        if kind in found or full_name(kind) in INNER or kind.__name__.startswith("_"):
            continue
        found.add(kind)
        waiting += members(kind, methods=kind in own)
    return found


def exported() -> set[Any]:
    own = {value for value in public() if isinstance(value, type)}
    return own | {getattr(ds.types, one) for one in ds.types.__all__}


def test_every_type_that_a_user_meets_is_exported() -> None:
    missing = sorted(full_name(one) for one in met() - exported())
    assert missing == [], "import them in api/types.py"


def test_types_that_nobody_meets_are_not_exported() -> None:
    listed = {getattr(ds.types, one) for one in ds.types.__all__}
    assert sorted(full_name(one) for one in listed - met()) == []
    own = {value for value in public() if isinstance(value, type)}
    assert sorted(full_name(one) for one in listed & own) == [], "they are exported already"


def test_inner_types_exist_and_are_not_exported() -> None:
    for name in INNER:
        module, _, kind = name.rpartition(".")
        assert inspect.isclass(getattr(__import__(module, fromlist=[kind]), kind))
    assert not {full_name(one) for one in exported()} & INNER


def test_the_walk_sees_what_is_deep_inside_a_result() -> None:
    names = {one.__name__ for one in met()}
    assert {"AveragingAudit", "Bin", "SubsetReconstruction", "Pinning", "KnownLaw"} <= names
    assert list(named(dict[str, tuple[ds.PureEpsilon, ...]] | None)) == [ds.PureEpsilon]
    assert list(named(collections.abc.Callable[[ds.Rho], ds.Table])) == [ds.Rho, ds.Table]


@pytest.mark.parametrize("name", ["Secrets", "Published", "PTables", "Codes"])
def test_aliases_in_signatures_are_documented(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "reference" / "api" / "types.md").read_text(encoding="utf-8")
