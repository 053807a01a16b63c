"""The ``[noise]`` section: the cell key method or noise with a guarantee, and its checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import Discriminator, Field, Tag

from discreet.errors import Mistakes
from discreet.maths.exact_numbers import fraction
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.exponential import UtilityTable
from discreet.maths.noise.ptable_solver import PTableParameters, Variance
from discreet.maths.noise.publishing import LARGEST_ROUNDING, LARGEST_THRESHOLD, Negatives, Publishing
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.privacy.composition import Composition
from discreet.programme.attributes import Attributes
from discreet.programme.hierarchical import DeclaredHierarchical, HierarchyRule
from discreet.programme.population import PopulationRule, SampleMethod, UnitName
from discreet.programme.section import Amount, Declared, Findings, Text, is_file, text_or_table
from discreet.programme.split import BudgetRule, DeclaredSplit, Split, budget_of, refused_split
from discreet.programme.utility_file import read_utility

__all__ = [
    "NO_NEGATIVES",
    "BudgetRule",
    "CellKeyNoise",
    "Claim",
    "DeclaredCellKey",
    "DeclaredPrivate",
    "Draw",
    "KeptZeros",
    "KeyKind",
    "NoiseEntry",
    "NoiseRule",
    "PrivateNoise",
    "Protects",
    "Split",
    "check_sample",
    "resolve_noise",
]


def _one_or_rows(value: object) -> str:
    return "|rows" if isinstance(value, list) else "|one"


Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PerRow = Annotated[
    Annotated[Number, Tag("|one")] | Annotated[list[Number], Field(min_length=1), Tag("|rows")],
    Discriminator(_one_or_rows),
]


class DeclaredCellKey(Declared):
    """Noise by the cell key method: parameters of a p-table, or a file with one."""

    kind: Literal["cell-key"]
    V: PerRow | None = None
    D: Annotated[int, Field(ge=1, le=1000)] | None = None
    js: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    pstay: PerRow | None = None
    variance: Literal["at-most", "equal", "equal-where-feasible"] | None = None
    keys: Literal["permuted", "plain"] = "permuted"
    ptable: Text | None = None
    allow_weak: bool = False


class DeclaredPrivate(Declared):
    """Noise of a known law in every cell, with a differential privacy guarantee unless none is claimed."""

    kind: Literal["laplace", "normal", "geometric", "discrete-gaussian", "hellinger", "exponential"]
    epsilon: Amount | None = None
    rho: Amount | None = None
    delta: Amount | None = None
    bound: Annotated[int, Field(ge=1, le=100_000)] | None = None
    utility: Text | None = None
    draw: Literal["participants", "description", "fresh"] | None = None
    snapshot: Text | None = None
    keep_zeros: Literal["structural", "all"] = "structural"
    negatives: Literal["keep", "zero"] = "zero"
    rounding: Annotated[int, Field(ge=1, le=LARGEST_ROUNDING)] = 1
    threshold: Annotated[int, Field(ge=0, le=LARGEST_THRESHOLD)] = 0
    neighbours: Literal["add-remove", "substitute"] = "add-remove"
    protects: Literal["person", "household"] = "person"
    largest_household: Annotated[int, Field(ge=1, le=10_000)] | None = None
    split: Annotated[
        Annotated[Literal["even"], Tag("|text")] | Annotated[DeclaredSplit, Tag("|table")],
        Discriminator(text_or_table),
    ] = "even"
    composition: Literal["basic", "advanced", "pld"] = "basic"
    public_totals: dict[UnitName, Annotated[int, Field(ge=1, le=10**12)]] = {}
    largest_weight: Amount | None = None
    claim: Literal["dp", "none"] = "dp"
    large_delta: bool = False
    allow_weak: bool = False


PRIVATE_KINDS = ("laplace", "normal", "geometric", "discrete-gaussian", "hellinger", "exponential")
HIERARCHICAL = "hierarchical"
KINDS = ("cell-key", *PRIVATE_KINDS, HIERARCHICAL)


def _kind_of_noise(value: object) -> str:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    if kind == HIERARCHICAL:
        return "|hierarchical"
    return "|private" if kind in PRIVATE_KINDS else "|cell-key"


NoiseEntry = Annotated[
    Annotated[DeclaredCellKey, Tag("|cell-key")]
    | Annotated[DeclaredPrivate, Tag("|private")]
    | Annotated[DeclaredHierarchical, Tag("|hierarchical")],
    Discriminator(_kind_of_noise),
]


class KeyKind(StrEnum):
    """What is looked up in the p-table: the sum of record keys permuted by the secret, or the sum itself."""

    PERMUTED = "permuted"
    PLAIN = "plain"


@dataclass(frozen=True)
class CellKeyNoise:
    """Noise by the cell key method: a p-table to compute, or a file that contains one."""

    table: PTableParameters | Path
    keys: KeyKind = KeyKind.PERMUTED
    allow_weak: bool = False  # accept noise below any protection
    kind: ClassVar[LawKind] = LawKind.CELL_KEY
    is_guaranteed: ClassVar[bool] = False
    is_fresh: ClassVar[bool] = False


class Draw(StrEnum):
    """What decides the noise of a cell: who is in it, what it describes in a snapshot, or only chance."""

    PARTICIPANTS = "participants"
    DESCRIPTION = "description"
    FRESH = "fresh"


class KeptZeros(StrEnum):
    """Which empty cells are not perturbed: those that cannot have records, or all."""

    STRUCTURAL = "structural"
    ALL = "all"


class Protects(StrEnum):
    """Whose presence the guarantee hides: one person's, or a whole household's."""

    PERSON = "person"
    HOUSEHOLD = "household"


class Claim(StrEnum):
    """What the release claims: a differential privacy guarantee, or none."""

    DP = "dp"
    NONE = "none"


NO_NEGATIVES = Publishing(Negatives.ZERO)
NO_ATTRIBUTES = Attributes()


@dataclass(frozen=True)
class PrivateNoise:
    """Integer noise of a known law in every cell."""

    kind: LawKind
    budget: BudgetRule
    bound: int | None = None
    delta: Fraction = Fraction(0)
    draw: Draw = Draw.FRESH
    keep_zeros: KeptZeros = KeptZeros.STRUCTURAL
    published: Publishing = NO_NEGATIVES
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    protects: Protects = Protects.PERSON
    largest_household: int | None = None
    claim: Claim = Claim.DP
    large_delta: bool = False
    snapshot: str = ""  # the id of the records whose noise is repeated; empty where it is fresh
    attributes: Attributes = NO_ATTRIBUTES  # whose the variables of the programme are
    largest_weight: Fraction | None = None  # of a record, where cubes have weights
    utility: UtilityTable | None = None  # of the exponential mechanism
    composition: Composition = Composition.BASIC  # of its cross-tabulations
    allow_weak: bool = False  # accept noise below any protection
    hierarchy: HierarchyRule | None = (
        None  # where marginals of a tree of areas are measured, and tables fitted
    )

    @property
    def is_guaranteed(self) -> bool:
        """Whether differential privacy is claimed."""
        return self.claim is Claim.DP

    @property
    def is_fresh(self) -> bool:
        """Whether every run draws new noise."""
        return self.draw is Draw.FRESH

    @property
    def is_gaussian(self) -> bool:
        """Whether the budget is a rho."""
        return self.kind is LawKind.DISCRETE_GAUSSIAN


NoiseRule = CellKeyNoise | PrivateNoise


_Value = TypeVar("_Value")
EXAMPLE_NOISE = '[noise] kind = "cell-key", V = 2.0, D = 5, js = 0'
TRUNCATED = (LawKind.LAPLACE, LawKind.NORMAL)


def resolve_noise(
    declared: DeclaredCellKey | DeclaredPrivate | DeclaredHierarchical | None, findings: Findings
) -> NoiseRule | None:
    """The noise rule; a programme without one is refused, because absent protection is an error."""
    if declared is None:
        if "noise" not in findings.broken_sections:
            findings.add("noise", "is missing", f"declare how counts are protected: {EXAMPLE_NOISE}")
        return None
    if isinstance(declared, DeclaredCellKey):
        return _cell_key(declared, findings)
    if isinstance(declared, DeclaredHierarchical):
        return _hierarchical(declared, findings)
    return _private(declared, findings)


def _hierarchical(declared: DeclaredHierarchical, findings: Findings) -> PrivateNoise | None:
    """The budget of a hierarchical release; its strategy is resolved when variables and cubes are known."""
    return _private(
        DeclaredPrivate(kind=declared.law, **{name: getattr(declared, name) for name in _OF_BUDGET}), findings
    )


_OF_BUDGET = (
    "rho", "epsilon", "delta", "neighbours", "protects", "largest_household", "snapshot", "large_delta",
)  # fmt: skip


def check_sample(population: PopulationRule | None, noise: NoiseRule | None, findings: Findings) -> None:
    """A secret sample amplifies a guarantee only where a theorem applies (see maths.privacy.amplification)."""
    sample = population.sample if population is not None else None
    if sample is None or noise is None:
        return
    if not isinstance(noise, PrivateNoise) or not noise.is_guaranteed:
        findings.add("population.sample", "the noise has no guarantee to amplify", "leave it out")
        return
    if noise.is_gaussian:
        remedy = "leave it out, or use a law whose budget is an epsilon"
        findings.add("population.sample", "rho is not amplified by sampling as an epsilon is", remedy)
    poisson = sample.method is SampleMethod.POISSON
    if poisson != (noise.neighbours is Neighbours.ADD_REMOVE):
        wanted = "add-remove" if poisson else "substitute"
        remedy = f'use neighbours = "{wanted}", or leave the sample out: no theorem covers this pair'
        findings.add("population.sample.method", f"{sample.method} with {noise.neighbours.value}", remedy)
    if sample.unit != f"{noise.protects}s":
        remedy = (
            "only what is sampled as a whole gains from it: protect the sampled unit, or leave the sample out"
        )
        findings.add(
            "population.sample.unit", f"a sample of {sample.unit} that protects a {noise.protects}", remedy
        )
    if poisson and noise.budget.public:
        remedy = "the size of a Poisson sample is random: leave one of the two out"
        findings.add("noise.public_totals", "a public total of a Poisson sample", remedy)


def _cell_key(declared: DeclaredCellKey, findings: Findings) -> CellKeyNoise | None:
    keys = KeyKind(declared.keys)
    if declared.ptable is None:
        parameters = _parameters(declared, findings)
        return None if parameters is None else CellKeyNoise(parameters, keys, declared.allow_weak)
    for key in ("V", "D", "js", "pstay", "variance"):
        if getattr(declared, key) is not None:
            findings.add(
                f"noise.{key}", "is given together with ptable", "keep the file or the parameters, not both"
            )
    path = findings.folder / declared.ptable
    if not is_file(path):
        findings.add("noise.ptable", f"no file {declared.ptable!r}", "correct the path of the p-table")
    return CellKeyNoise(path, keys, declared.allow_weak)


def _parameters(declared: DeclaredCellKey, findings: Findings) -> PTableParameters | None:
    for key in ("V", "D"):
        if getattr(declared, key) is None:
            findings.add(f"noise.{key}", "is missing", f"add it, or a ptable file: {EXAMPLE_NOISE}")
    if declared.V is None or declared.D is None:
        return None
    V = _per_row(declared.V)
    pstay = None if declared.pstay is None else _per_row(declared.pstay)
    if np.max(V) > declared.D**2:
        remedy = f"a change of at most D = {declared.D} has a variance of at most {declared.D**2}"
        findings.add("noise.V", str(declared.V), remedy)
        return None
    try:
        return PTableParameters(
            declared.D, V, declared.js or 0, pstay, variance=Variance(declared.variance or "at-most")
        )
    except Mistakes as mistakes:
        for problem in mistakes.problems:
            findings.add(f"noise.{problem.key}", problem.value, problem.remedy)
    return None


def _per_row(value: _Value | list[_Value]) -> _Value | tuple[_Value, ...]:
    return tuple(value) if isinstance(value, list) else value


def _private(declared: DeclaredPrivate, findings: Findings) -> PrivateNoise | None:
    kind = LawKind(declared.kind)
    problems = list(_refused(declared, kind))
    for key, value, remedy in problems:
        findings.add(f"noise.{key}", value, remedy)
    total = declared.rho if kind is LawKind.DISCRETE_GAUSSIAN else declared.epsilon
    utility = _utility(declared, findings)
    if problems or total is None or (kind is LawKind.EXPONENTIAL and utility is None):
        return None
    return PrivateNoise(
        kind,
        budget_of(Fraction(str(total)), declared.split, declared.public_totals),
        declared.bound,
        Fraction(str(declared.delta or 0)),
        _draw(declared),
        KeptZeros(declared.keep_zeros),
        Publishing(Negatives(declared.negatives), declared.rounding, declared.threshold),
        Neighbours.ADD_REMOVE if declared.neighbours == "add-remove" else Neighbours.SUBSTITUTE,
        Protects(declared.protects),
        declared.largest_household,
        Claim(declared.claim),
        declared.large_delta,
        declared.snapshot or "",
        largest_weight=None if declared.largest_weight is None else Fraction(str(declared.largest_weight)),
        utility=utility,
        composition=Composition(declared.composition),
        allow_weak=declared.allow_weak,
    )


def _utility(declared: DeclaredPrivate, findings: Findings) -> UtilityTable | None:
    if declared.utility is None:
        return None
    try:
        return read_utility(findings.folder / declared.utility)
    except Mistakes as mistakes:
        for problem in mistakes.problems:
            findings.add(f"noise.utility ({declared.utility}, {problem.key})", problem.value, problem.remedy)
    return None


def _draw(declared: DeclaredPrivate) -> Draw:
    """Noise is repeated only for a declared snapshot."""
    if declared.draw is not None:
        return Draw(declared.draw)
    return Draw.DESCRIPTION if declared.snapshot else Draw.FRESH


def _refused(declared: DeclaredPrivate, kind: LawKind) -> Iterator[tuple[str, str, str]]:
    """Everything that would break the guarantee: (key, value, remedy)."""
    yield from _refused_budget(declared, kind)
    if kind in TRUNCATED and declared.bound is None:
        yield (
            "bound",
            "is missing",
            f"truncated noise needs one; geometric is the {kind.value} law without a bound",
        )
    if kind not in TRUNCATED and declared.bound is not None:
        yield "bound", str(declared.bound), "only laplace and normal are truncated; leave it out"
    if kind in TRUNCATED and declared.delta is None and declared.claim == "dp":
        yield "delta", "is missing", "truncated noise costs a delta: state the largest you accept"
    if (kind is LawKind.EXPONENTIAL) != (declared.utility is not None):
        value, remedy = "is missing", "name the CSV file of utilities: count, published, utility"
        if declared.utility is not None:
            value, remedy = declared.utility, f"{kind.value} noise has none; leave it out"
        yield "utility", value, remedy
    if kind is LawKind.EXPONENTIAL and declared.delta is None and declared.claim == "dp":
        yield (
            "delta",
            "is missing",
            "the ends of the utility's rows cost a delta: state the largest you accept",
        )
    yield from _refused_composition(declared, kind)
    yield from _refused_drawing(declared)
    yield from _refused_weights(declared, kind)
    if isinstance(declared.split, DeclaredSplit) and declared.split.sums:
        yield from _refused_sums(declared)
    if declared.protects == "household" and declared.largest_household is None:
        yield "largest_household", "is missing", "state how many members the largest household has"


def _refused_composition(declared: DeclaredPrivate, kind: LawKind) -> Iterator[tuple[str, str, str]]:
    if declared.composition == "basic":
        return
    if kind is LawKind.DISCRETE_GAUSSIAN:
        yield (
            "composition",
            declared.composition,
            "rhos add up exactly; leave it out, and state a delta for an epsilon",
        )
    elif kind is LawKind.HELLINGER:
        yield "composition", declared.composition, "hellinger noise is there for comparison; leave it out"
    elif declared.claim == "none":
        yield "composition", f'{declared.composition} with claim = "none"', "leave it out: nothing is claimed"
    elif declared.delta is None or not (_is_number(declared.delta) and Fraction(str(declared.delta)) > 0):
        remedy = (
            f"{declared.composition} composition buys less noise for a delta above 0: state it, such as 1e-9"
        )
        yield "delta", "is missing or 0", remedy


def _refused_drawing(declared: DeclaredPrivate) -> Iterator[tuple[str, str, str]]:
    """Ways to draw that break the guarantee or repeat noise where it must not be."""
    if declared.draw == "description" and declared.snapshot is None:
        remedy = (
            'name the records whose noise may be repeated: snapshot = "2021-final"; or use draw = "fresh"'
        )
        yield "snapshot", 'is missing, with draw = "description"', remedy
    if declared.draw in ("participants", "fresh") and declared.snapshot is not None:
        yield "snapshot", f'together with draw = "{declared.draw}"', 'it goes with draw = "description"'
    if declared.claim == "dp" and declared.draw == "participants":
        remedy = 'such noise breaks every epsilon; leave draw out, or use claim = "none"'
        yield "draw", "same participants, same noise, with a DP claim", remedy
    if declared.claim == "dp" and declared.keep_zeros == "all":
        remedy = 'an unperturbed zero reveals who is absent; use keep_zeros = "structural", or claim = "none"'
        yield "keep_zeros", "unperturbed zeros with a DP claim", remedy
    if declared.draw == "participants" and declared.keep_zeros == "structural":
        yield "keep_zeros", "noise by participants for cells without any", 'use keep_zeros = "all"'


def _refused_weights(declared: DeclaredPrivate, kind: LawKind) -> Iterator[tuple[str, str, str]]:
    """Sums of weights have noise of a law without a bound: a bound on counts means nothing for them."""
    if declared.largest_weight is None:
        return
    if not _is_positive(declared.largest_weight):
        yield "largest_weight", str(declared.largest_weight), "give a number above 0, such as 50"
    if kind not in (LawKind.GEOMETRIC, LawKind.DISCRETE_GAUSSIAN):
        remedy = "use geometric or discrete-gaussian noise for weights"
        yield "largest_weight", f"weights under {kind.value} noise", remedy
    if declared.draw == "participants":
        yield "largest_weight", "weights with noise by participants", 'use draw = "description" or "fresh"'


def _refused_sums(declared: DeclaredPrivate) -> Iterator[tuple[str, str, str]]:
    """Sums of counts that were cut at zero or rounded are biased, and their variance is not that of the noise."""
    kept = {"negatives": "keep", "rounding": 1, "threshold": 0}
    for key, value in kept.items():
        if getattr(declared, key) != value:
            remedy = f"set {key} = {value!r}: sums of counts that were changed after the noise are biased"
            yield key, f"{getattr(declared, key)} together with split.sums", remedy.replace("'", '"')
    if declared.kind == LawKind.EXPONENTIAL.value:
        yield "split", "sums of noise whose mean need not be 0", "use geometric noise, or leave out sums"
    if declared.keep_zeros == "all" or declared.draw == "participants":
        yield "split", "sums of cells whose zeros or groups show", 'sums need draw = "description" or "fresh"'


def _refused_budget(declared: DeclaredPrivate, kind: LawKind) -> Iterator[tuple[str, str, str]]:
    wanted, other = ("rho", "epsilon") if kind is LawKind.DISCRETE_GAUSSIAN else ("epsilon", "rho")
    total = getattr(declared, wanted)
    if total is None:
        yield wanted, "is missing", f"state the budget of the whole programme: {wanted} = 1.0"
    elif not _is_positive(total):
        yield wanted, str(total), 'give a number above 0, such as 0.5 or "1/3"'
    if getattr(declared, other) is not None:
        remedy = f"the budget of {kind.value} is its {wanted}" + (
            "; Gaussian noise is never purely epsilon-private" if wanted == "rho" else ""
        )
        yield other, str(getattr(declared, other)), remedy
    delta = declared.delta
    if delta is not None and not (_is_number(delta) and 0 <= Fraction(str(delta)) < 1):
        yield "delta", str(delta), "give a number from 0 to below 1, such as 1e-9"
    if isinstance(declared.split, DeclaredSplit):
        yield from refused_split(declared.split)


def _is_number(value: object) -> bool:
    try:
        fraction(str(value))
    except ValueError:
        return False
    return True


def _is_positive(value: object) -> bool:
    return _is_number(value) and Fraction(str(value)) > 0
