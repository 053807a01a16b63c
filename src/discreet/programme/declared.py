"""The ``[noise]`` section as it is declared."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from discreet.programme.section import Amount, Declared, Text, text_or_table


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
    js: Annotated[int, Field(ge=0)] | None = None
    pstay: PerRow | None = None
    variance: Literal["at-most", "equal", "equal-where-feasible"] | None = None
    order: Literal["shuffled", "split", "plain"] = "shuffled"
    ptable: Text | None = None


class DeclaredSplit(Declared):
    """Shares of the budget, by the number of axes of a cross-tabulation or by table."""

    by_axes: dict[str, Amount] | None = None
    by_table: dict[str, Amount] | None = None


class DeclaredPrivate(Declared):
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
