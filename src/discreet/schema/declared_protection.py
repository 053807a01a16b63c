"""The sections of a programme file that protect: swap, noise, gates and what the table builder may answer.

It owns the form of their keys alone; records, variables and cubes are declared elsewhere.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from discreet.schema.declared_forms import STRICT, Text, text_or_table


class _Declared(BaseModel):
    model_config = STRICT


def _one_or_rows(value: object) -> str:
    return "|rows" if isinstance(value, list) else "|one"


Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PerRow = Annotated[
    Annotated[Number, Tag("|one")] | Annotated[list[Number], Field(min_length=1), Tag("|rows")],
    Discriminator(_one_or_rows),
]


class DeclaredCellKey(_Declared):
    """Noise by the cell key method: parameters of a p-table, or a file with one."""

    kind: Literal["cell-key"]
    V: PerRow | None = None
    D: Annotated[int, Field(ge=1, le=1000)] | None = None
    js: Annotated[int, Field(ge=0)] | None = None
    pstay: PerRow | None = None
    variance: Literal["at-most", "equal", "equal-where-feasible"] | None = None
    order: Literal["shuffled", "split", "plain"] = "shuffled"
    ptable: Text | None = None


Amount = int | float | str  # a number, or a fraction such as "1/3"


class DeclaredSplit(_Declared):
    """Shares of the budget, by the number of axes of a cross-tabulation or by table."""

    by_axes: dict[str, Amount] | None = None
    by_table: dict[str, Amount] | None = None


class DeclaredPrivate(_Declared):
    """Noise of a known law in every cell, with a differential privacy guarantee unless none is claimed."""

    kind: Literal["laplace", "normal", "geometric", "discrete-gaussian", "hellinger"]
    epsilon: Amount | None = None
    rho: Amount | None = None
    delta: Amount | None = None
    bound: Annotated[int, Field(ge=1, le=100_000)] | None = None
    draw: Literal["participants", "description", "fresh"] = "description"
    keep_zeros: Literal["structural", "all"] = "structural"
    negatives: Literal["keep", "zero"] = "zero"
    rounding: Annotated[int, Field(ge=1)] = 1
    threshold: Annotated[int, Field(ge=0)] = 0
    neighbours: Literal["add-remove", "substitute"] = "add-remove"
    protects: Literal["person", "household"] = "person"
    largest_household: Annotated[int, Field(ge=1, le=10_000)] | None = None
    split: Annotated[
        Annotated[Literal["even"], Tag("|text")] | Annotated[DeclaredSplit, Tag("|table")],
        Discriminator(text_or_table),
    ] = "even"
    claim: Literal["dp", "none"] = "dp"
    large_delta: bool = False


PRIVATE_KINDS = ("laplace", "normal", "geometric", "discrete-gaussian", "hellinger")


def _kind_of_noise(value: object) -> str:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return "|private" if kind in PRIVATE_KINDS else "|cell-key"


NoiseEntry = Annotated[
    Annotated[DeclaredCellKey, Tag("|cell-key")] | Annotated[DeclaredPrivate, Tag("|private")],
    Discriminator(_kind_of_noise),
]


Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Quota = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class DeclaredComposition(_Declared):
    """Similarity by the members of a household, counted by a cross of breakdowns."""

    composition: list[Text]


class DeclaredQuotas(_Declared):
    """The most that may be exchanged, by level and in each region of a level."""

    levels: dict[str, Quota] = {}
    regions: dict[str, Quota] = {}


AlikeEntry = Annotated[
    Annotated[Text, Tag("|text")] | Annotated[DeclaredComposition, Tag("|table")],
    Discriminator(text_or_table),
]


class DeclaredSwap(_Declared):
    """Targeted record swapping of households before anything is counted."""

    k: Annotated[int, Field(ge=2)] = 3
    risk: list[Text] = []
    similar: Annotated[list[Annotated[list[AlikeEntry], Field(min_length=1)]], Field(min_length=1)]
    rate: Share = 0.0
    cap: Quota | None = None
    levels: Annotated[list[Text], Field(min_length=1)] | None = None
    donors: Literal["risk", "uniform"] = "risk"
    inside_parent: bool = True
    carry: list[Text] = []
    exclude: Text | None = None
    risk_column: Text | None = None
    exclude_zero_risk: bool = False
    quotas: DeclaredQuotas = DeclaredQuotas()


Within = Annotated[float, Field(gt=0, lt=1)]
Most = Annotated[int, Field(ge=0)]


class DeclaredPosteriorGate(_Declared):
    """How sure a Bayesian adversary may become that somebody is there."""

    prior: Within = 0.5
    above: Within = 0.95
    share: Quota = 0.0
    largest: Annotated[int, Field(ge=1, le=1000)] = 10
    alone: bool = True


class DeclaredDifferencingGate(_Declared):
    """What two geographies that do not nest may give away by subtraction."""

    pairs: Annotated[list[Annotated[list[Text], Field(min_length=2, max_length=2)]], Field(min_length=1)]
    threshold: Annotated[int, Field(ge=2, le=10_000)] = 10
    above: Within = 0.68
    revealed: Most = 0


class DeclaredReconstructionGate(_Declared):
    """How much of the microdata of sampled areas a solver may find again."""

    place: Text | None = None
    variables: Annotated[list[Text], Field(min_length=1)] | None = None
    quasi: Annotated[list[Text], Field(min_length=1)] | None = None
    errors: dict[Text, Quota] = {}
    areas: Annotated[int, Field(ge=1, le=100_000)] = 20
    seconds: Annotated[float, Field(gt=0, le=86_400)] = 10.0
    reconstructed: Quota = 1.0
    reidentified: Quota = 1.0


class DeclaredGates(_Declared):
    """What a release may at most give away; one that gives away more is not finished."""

    averaging: Within | None = None
    bound_revealed: Quota | None = None
    pinned_cells: Most | None = None
    epsilon: Amount | None = None
    delta: Amount | None = None
    true_uniques: Quota | None = None
    true_attributes: Quota | None = None
    posterior: DeclaredPosteriorGate | None = None
    differencing: DeclaredDifferencingGate | None = None
    reconstruction: DeclaredReconstructionGate | None = None


Few = Annotated[int, Field(ge=1, le=16)]
Many = Annotated[int, Field(ge=1, le=10**10)]
Ratio = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class DeclaredSparsity(_Declared):
    """How many small counts the interior cells of an area may hold."""

    ones: Quota = 0.25
    ones_and_twos: Quota = 0.5


class DeclaredHistory(_Declared):
    """What one user may collect."""

    warn: Ratio | None = None
    refuse: Ratio | None = None
    difference: Annotated[int, Field(ge=1)] | None = None
    on_difference: Literal["warn", "refuse"] = "refuse"


class DeclaredAccount(_Declared):
    """What answers cost where the noise has a guarantee, and what each user may spend."""

    each: Amount
    user: Amount


class DeclaredServe(_Declared):
    """What the table builder may answer."""

    variables: Annotated[list[Text], Field(min_length=1)] | None = None
    counts: list[Text] = []
    filters: bool = True
    groupings: list[Text] = []
    axes: Few = 5
    cells: Many = 100_000
    job_cells: Many = 1_000_000
    counted: Many = 20_000_000
    place: Text | None = None
    area_population: Annotated[int, Field(ge=1)] | None = None
    blocked: Quota = 0.5
    sparsity: DeclaredSparsity | None = None
    attribute: Quota | None = None
    forbidden: list[Annotated[list[Text], Field(min_length=1)]] = []
    history: DeclaredHistory = DeclaredHistory()
    account: DeclaredAccount | None = None
