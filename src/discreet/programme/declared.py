"""The programme file as its author writes it: keys, types and defaults; unknown keys are refused."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

FORM = "form"  # error type whose context holds the remedy
LONGEST_LABEL = 200


def _matching(pattern: str, remedy: str) -> AfterValidator:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise PydanticCustomError(FORM, "'{value}' does not fit", {"value": value, "remedy": remedy})
        return value

    return AfterValidator(check)


def _word(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", value) or keyword.iskeyword(value):
        remedy = (
            "start with a letter, go on with letters, digits or _, and avoid and, or, not, in and the like"
        )
        raise PydanticCustomError(FORM, "name '{value}'", {"value": value, "remedy": remedy})
    return value


Word = Annotated[str, AfterValidator(_word)]
Identifier = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
        "use up to 64 letters, digits, '.', '_' or '-': it becomes a file name",
    ),
]
Agency = Annotated[
    str,
    _matching(
        r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*", "write an SDMX agency such as NSI or NSI.CENSUS"
    ),
]
Version = Annotated[
    str, _matching(r"\d{1,6}\.\d{1,6}(\.\d{1,6})?", 'write a version such as "1.0" or "1.0.2", in quotes')
]
Text = Annotated[str, Field(min_length=1)]


def _label(value: str) -> str:
    if not value.strip() or not value.isprintable() or len(value) > LONGEST_LABEL:
        remedy = f"write one line of up to {LONGEST_LABEL} characters, or leave the key out"
        raise PydanticCustomError(FORM, "{shown}", {"shown": repr(value[:60]), "remedy": remedy})
    return value.strip()


Label = Annotated[
    str, AfterValidator(_label)
]  # what readers see: it stands in headings, XML and file properties


STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)  # of every table of the file


def text_or_table(value: object) -> str:
    """Which of two forms a value has, as the mark of a tagged union."""
    return "|text" if isinstance(value, str) else "|table"


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


UNITS = ("persons", "households", "families", "dwellings")
ID_KEYS = {
    "persons": "person_id",
    "households": "household_id",
    "families": "family_id",
    "dwellings": "dwelling_id",
}
UnitName = Literal["persons", "households", "families", "dwellings"]


class DeclaredSource(_Declared):
    """A table or query of a database, or a query over files."""

    uri: Text | None = None
    table: Text | None = None
    query: Text | None = None


class DeclaredCodelist(_Declared):
    """A codelist file whose indentation is not written with ``@``."""

    file: Text
    lead: Annotated[str, Field(min_length=1, max_length=1)] = "@"


SourceEntry = Annotated[
    Annotated[Text, Tag("|text")] | Annotated[DeclaredSource, Tag("|table")], Discriminator(text_or_table)
]
CodelistEntry = Annotated[
    Annotated[Text, Tag("|text")] | Annotated[DeclaredCodelist, Tag("|table")], Discriminator(text_or_table)
]


def _level_or_codes(value: object) -> str:
    return "|codes" if isinstance(value, list) else "|level"


BreakdownEntry = Annotated[
    Annotated[int, Field(ge=0, le=100), Tag("|level")]
    | Annotated[list[Text], Field(min_length=1), Tag("|codes")],
    Discriminator(_level_or_codes),
]


class DeclaredPopulation(_Declared):
    """Where the records are and what identifies them."""

    persons: SourceEntry | None = None
    households: SourceEntry | None = None
    families: SourceEntry | None = None
    dwellings: SourceEntry | None = None
    person_id: Text | None = None
    household_id: Text | None = None
    family_id: Text | None = None
    dwelling_id: Text | None = None
    record_key: Text | None = None
    geography: list[Text] = []


class DeclaredVariable(_Declared):
    """One variable: its column, its codelist and the breakdowns that cubes may use."""

    column: Text | None = None
    units: Annotated[list[UnitName], Field(min_length=1)] | None = None
    codelist: CodelistEntry | None = None
    breakdowns: Annotated[dict[Word, BreakdownEntry], Field(min_length=1)] | None = None
    label: Label | None = None
    breakdown_labels: dict[Text, Label] = {}


class DeclaredStandard(_Declared):
    """Built-in cubes, whole or in part."""

    programme: Literal["eu-census-2021"]
    tables: Annotated[list[Text], Field(min_length=1)] | None = None


class DeclaredCounts(_Declared):
    """A ready-made table of counts with cell keys."""

    file: Text
    count: Text = "count"
    key: Text = "key"
    modulus: Annotated[int, Field(ge=2, le=2**62)] = 2**32


class DeclaredCube(_Declared):
    """One table: a cross of breakdowns."""

    id: Identifier
    title: str = ""
    unit: UnitName = "persons"
    axes: Annotated[list[Text], Field(min_length=1, max_length=16)]
    base: Text | None = None
    count: Text | None = None
    weight: Text | None = None
    counts: DeclaredCounts | None = None


class DeclaredStructuralZero(_Declared):
    """Combinations of codes that cannot occur."""

    where: Text


class DeclaredRelease(_Declared):
    """What is written and what it tells of the noise."""

    name: Identifier | None = None
    title: Label | None = None
    unit_labels: dict[UnitName, Label] = {}
    agency: Agency = "DISCREET"
    version: Version = "1.0"
    formats: list[Literal["parquet", "csv", "sdmx-csv", "json-stat", "xlsx", "px"]] = ["parquet"]
    disclose: Literal["law", "variance", "none"] = "variance"


class DeclaredLimits(_Declared):
    """What a programme may at most ask for."""

    cells: Annotated[int, Field(ge=1)] = 200_000_000
    published: Annotated[int, Field(ge=1)] = 50_000_000


class DeclaredProgramme(_Declared):
    """The whole file.

    A list may hold None only while mistakes are gathered: an entry that does not fit is taken out so that the
    rest can still be looked at, and the entries after it keep their place.
    """

    population: DeclaredPopulation | None = None
    variables: dict[Word, DeclaredVariable] = {}
    standard: DeclaredStandard | None = None
    cubes: list[DeclaredCube | None] = []
    structural_zeros: list[DeclaredStructuralZero | None] = []
    swap: DeclaredSwap | None = None
    noise: NoiseEntry | None = None
    release: DeclaredRelease = DeclaredRelease()
    limits: DeclaredLimits = DeclaredLimits()
    gates: DeclaredGates = DeclaredGates()
    serve: DeclaredServe = DeclaredServe()


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The declared models that an annotation mentions, however nested."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in models_in(part)]


def keys_at(path: tuple[int | str, ...]) -> list[str]:
    """The keys that may stand in the table at a path of the file."""
    models: list[type[BaseModel]] = [DeclaredProgramme]
    for step in path:
        fields = [model.model_fields[step] for model in models if step in model.model_fields]
        if fields:  # a step that is no key is the name of a variable or a place in a list
            models = [model for field in fields for model in models_in(field.annotation)]
    return sorted({key for model in models for key in model.model_fields})


def all_keys() -> set[str]:
    """Every key that a programme file may hold, as ``section.key``."""
    return set(_keys_below("", DeclaredProgramme))


def _keys_below(path: str, model: type[BaseModel]) -> Iterator[str]:
    for key, field in model.model_fields.items():
        yield path + key
        for below in models_in(field.annotation):
            yield from _keys_below(f"{path}{key}.", below)
