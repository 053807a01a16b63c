"""Options that describe noise, declared once for all commands, and the law that they describe.

A command takes a bundle of options, a frozen dataclass, as one parameter; ``expanded`` turns it into the options of its
fields and passes the filled bundle to the command.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

from discreet.cli.options import PTABLE
from discreet.errors import mistake
from discreet.io.ptable_files import read_ptable
from discreet.maths.noise.additive import AdditiveLaw, LawKind, SquareSensitivity
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.named import NoiseParameters, implied_kind, named_law
from discreet.maths.noise.publishing import LARGEST_ROUNDING, LARGEST_THRESHOLD, Negatives, Publishing
from discreet.maths.noise.thresholds import RowLaw
from discreet.programme.utility_file import read_utility

AnyLaw = AdditiveLaw | RowLaw | PTableLaw


class NoiseKind(StrEnum):
    """The laws that commands offer: those with parameters."""

    LAPLACE = "laplace"
    NORMAL = "normal"
    GEOMETRIC = "geometric"
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    HELLINGER = "hellinger"
    EXPONENTIAL = "exponential"
    UNIFORM = "uniform"
    CELL_KEY = "cell-key"

    @property
    def law(self) -> LawKind:
        """The same kind as named in ``maths``."""
        return LawKind(self.value)


@dataclass(frozen=True)
class NoiseOptions:
    """A noise law: a p-table file, a kind with its parameters, or parameters that only one kind has."""

    kind: Annotated[
        NoiseKind | None,
        typer.Option(
            "--kind",
            help="The noise law. Without it rho or sigma mean discrete-gaussian, epsilon geometric, D and V cell-key.",
        ),
    ] = None
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon", help="laplace, normal, geometric, hellinger, exponential: epsilon, also as 1/3."
        ),
    ] = None
    bound: Annotated[
        int | None, typer.Option("--bound", help="laplace, normal, uniform: largest change.")
    ] = None
    rho: Annotated[str | None, typer.Option("--rho", help="discrete-gaussian: rho of zCDP, also as 1/3.")] = (
        None
    )
    sigma: Annotated[
        str | None, typer.Option("--sigma", help="discrete-gaussian: scale, instead of rho.")
    ] = None
    sensitivity: Annotated[
        SquareSensitivity | None,
        typer.Option(
            "--sensitivity", help="normal: of v^2, exact (2m-1, the default) or as in the paper (2m+1)."
        ),
    ] = None
    D: Annotated[int | None, typer.Option("--D", help="cell-key: largest change, from 1 to 100.")] = None
    V: Annotated[float | None, typer.Option("--V", help="cell-key: variance.")] = None
    js: Annotated[int | None, typer.Option("--js", help="cell-key: counts 1..js are never published.")] = None
    utility: Annotated[
        Path | None,
        typer.Option("--utility", help="exponential: a CSV file, count,published,utility or change,utility."),
    ] = None
    ptable: PTABLE = None

    @property
    def given(self) -> frozenset[str]:
        """The names of the parameters that were given, without the kind and the p-table."""
        names = (one.name for one in fields(self) if one.name not in ("kind", "ptable"))
        return frozenset(name for name in names if getattr(self, name) is not None)

    @property
    def is_empty(self) -> bool:
        """Whether no noise is described."""
        return self.kind is None and self.ptable is None and not self.given

    def law(self) -> AnyLaw:
        """The law that the options describe."""
        if self.ptable is None:
            return named_law(self.parameters())
        self.require_one_source()
        return ptable_law(self.ptable)

    def parameters(self) -> NoiseParameters:
        """The law by name and parameters; the kind is the one that has the parameters, where only one does."""
        kind = implied_kind(self.given) if self.kind is None else self.kind.law
        if kind is None:
            raise self._no_kind()
        given = {name: getattr(self, name) for name in self.given if name != "utility"}
        utility = None if self.utility is None else read_utility(self.utility)
        return NoiseParameters(kind, **given, utility=utility)

    def require_one_source(self) -> None:
        """Refuse a p-table together with another description of the noise."""
        others = [f"--{name}" for name in (*(["kind"] if self.kind else []), *sorted(self.given))]
        if self.ptable is not None and others:
            remedy = "give one of them: leave out the other options of the noise, or the p-table"
            raise mistake("", f"--ptable and {', '.join(others)}", "both", remedy)

    def _no_kind(self) -> Exception:
        if not self.given:
            return mistake(
                "", "--kind or --ptable", "none", "give one of them, or --rho, --epsilon, --D and --V"
            )
        names = ", ".join(f"--{name}" for name in sorted(self.given))
        return mistake("", names, "without a kind", "name the noise with --kind, or give one of them")


@dataclass(frozen=True)
class PublishingOptions:
    """What is done to a noisy count before it is published."""

    negatives: Annotated[
        Negatives, typer.Option("--negatives", help="What is published for negative noisy counts.")
    ] = Negatives.KEEP
    rounding: Annotated[int, typer.Option("--rounding", help="Published counts are multiples of this.")] = 1
    threshold: Annotated[int, typer.Option("--threshold", help="Smaller counts are published as zero.")] = 0

    def rule(self) -> Publishing:
        """The same as a rule, checked."""
        if not 1 <= self.rounding <= LARGEST_ROUNDING or not 0 <= self.threshold <= LARGEST_THRESHOLD:
            value = f"{self.rounding} and {self.threshold}"
            remedy = f"give 1 to {LARGEST_ROUNDING} and 0 to {LARGEST_THRESHOLD}"
            raise mistake("", "--rounding and --threshold", value, remedy)
        return Publishing(self.negatives, self.rounding, self.threshold)


def ptable_law(path: Path) -> PTableLaw:
    """The law of a p-table file."""
    return PTableLaw(read_ptable(path).law())


@dataclass(frozen=True)
class Renamed:
    """Marks an option of a bundle that has another name in this command."""

    option: str
    name: str


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a bundle by the options of its fields; the command gets the bundle."""
    own = inspect.signature(command, eval_str=True).parameters
    options = [option for one in own.values() for option in _options(one)]

    @wraps(command)
    def run(**given: Any) -> None:
        command(**{name: _filled(name, one.annotation, given) for name, one in own.items()})

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _options(one: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """The options of a parameter: itself, or those of the bundle that it is."""
    bundle, renamed = _bundle(one.annotation)
    if bundle is None:
        yield one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        return
    hints = get_type_hints(bundle, include_extras=True)
    for part in fields(bundle):
        default = inspect.Parameter.empty if part.default is MISSING else part.default
        hint = _under(hints[part.name], renamed)
        yield from _options(
            inspect.Parameter(
                f"{one.name}_{part.name}", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint
            )
        )


def _filled(name: str, annotation: Any, given: Mapping[str, Any]) -> Any:
    """What was given for a parameter, as its bundle where it is one."""
    bundle, _ = _bundle(annotation)
    if bundle is None:
        return given[name]
    hints = get_type_hints(bundle, include_extras=True)
    parts = {part.name: _filled(f"{name}_{part.name}", hints[part.name], given) for part in fields(bundle)}
    return bundle(**parts)


def _bundle(annotation: Any) -> tuple[Any, tuple[Renamed, ...]]:
    """The dataclass that an annotation names, and which of its options have other names."""
    kind, *more = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return None, ()
    return kind, tuple(one for one in more if isinstance(one, Renamed))


def _under(hint: Any, renamed: tuple[Renamed, ...]) -> Any:
    """The annotation of an option under the name that a command gives it."""
    for one in renamed:
        for option in getattr(hint, "__metadata__", ()):
            # typer stores the first name of an annotated option as its default
            if isinstance(option, OptionInfo) and option.default == one.option:
                other = copy.copy(option)
                other.default = one.name
                return Annotated[get_args(hint)[0], other]
    return hint
