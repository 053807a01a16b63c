"""The ``[serve]`` section: what the table builder may answer and to whom, and its checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from discreet.programme.filter import alternatives
from discreet.programme.noise import NoiseRule
from discreet.programme.section import Amount, Declared, Findings, Quota, Text, positive
from discreet.programme.variables import Variable

Few = Annotated[int, Field(ge=1, le=16)]
Many = Annotated[int, Field(ge=1, le=10**10)]
Chance = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class DeclaredSparsity(Declared):
    """How many small counts the interior cells of an area may have."""

    ones: Quota = 0.25
    ones_and_twos: Quota = 0.5


class DeclaredHistory(Declared):
    """What one user may collect."""

    success: Chance | None = None
    warn: Chance | None = None
    largest: Annotated[int, Field(ge=1, le=10**12)] | None = None
    difference: Annotated[int, Field(ge=0, le=10**12)] | None = None
    on_difference: Literal["warn", "refuse"] = "refuse"
    anonymous: Literal["each", "together"] = "each"


class DeclaredAccount(Declared):
    """What answers cost where the noise has a guarantee, and what each user and all together may spend."""

    each: Amount
    user: Amount
    all: Amount | None = None


class DeclaredServe(Declared):
    """What the table builder may answer."""

    rules: Literal["safe", "none"] = "safe"
    variables: Annotated[list[Text], Field(min_length=1)] | None = None
    counts: list[Text] = []
    filters: bool = True
    groupings: list[Text] = []
    axes: Few = 5
    cells: Many = 100_000
    job_cells: Many = 1_000_000
    counted: Many = 20_000_000
    place: Text | None = None
    area_population: Annotated[int, Field(ge=1, le=10**12)] | None = None
    blocked: Quota = 0.5
    sparsity: DeclaredSparsity | None = None
    attribute: Quota | None = None
    forbidden: list[Annotated[list[Text], Field(min_length=1)]] = []
    history: DeclaredHistory = Field(default_factory=DeclaredHistory)
    account: DeclaredAccount | None = None


class Action(StrEnum):
    """What the history guard does at its level."""

    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True)
class SparsityRule:
    """Among the interior cells of an area: the largest shares of ones, and of ones and twos, of those not empty."""

    ones: float = 0.25
    ones_and_twos: float = 0.5


@dataclass(frozen=True, kw_only=True)
class HistoryRule:
    """What a user may collect: how likely a count may be found exactly, and how similar two populations may be."""

    success: float | None = None  # the largest probability with which a count may be found exactly
    warn: float | None = None  # warn above this probability
    largest: int | None = None  # only counts of cross-tabulations that typically count fewer are guarded
    difference: int | None = None  # populations that differ by fewer records
    on_difference: Action = Action.REFUSE
    together: bool = False  # whether all users without a token count as one

    @property
    def averages(self) -> bool:
        """Whether averaging is guarded."""
        return self.success is not None or self.warn is not None

    @property
    def is_guarded(self) -> bool:
        """Whether anything is guarded."""
        return self.averages or self.difference is not None


@dataclass(frozen=True)
class AccountRule:
    """NoiseRule with a guarantee: what each new cross-tabulation costs a user, and all that a user may spend."""

    each: Fraction  # epsilon, or rho for the discrete Gaussian
    user: Fraction
    all: Fraction | None = (
        None  # what all users together may learn, each cross-tabulation counted once; None: no cap
    )


@dataclass(frozen=True, kw_only=True)
class ServeRule:
    """Everything declared."""

    variables: tuple[str, ...] | None = None  # that may be requested; None: all
    counts: tuple[str, ...] = ()  # 0/1 columns that may be counted in addition to those of the cubes
    filters: bool = True  # whether users may filter by expressions other than the bases of the cubes
    groupings: tuple[str, ...] = ()  # variables whose codes users may group
    axes: int = 5  # most axes of a table, variables of its filter included
    cells: int = 100_000  # most cells of an answer at once
    job_cells: int = 1_000_000  # most cells of a background job
    counted: int = (
        20_000_000  # most cells, margins included, of the table that is counted or judged for an answer
    )
    place: str | None = None  # the variable whose areas are judged separately
    area_population: int | None = None  # an area with fewer records is blocked
    blocked: float = 0.5  # the largest share of areas that may be blocked
    sparsity: SparsityRule | None = None
    attribute: float | None = None  # largest share of groups that are concentrated in one category
    forbidden: tuple[
        tuple[str, ...], ...
    ] = ()  # variables or breakdowns that may not be crossed in one table
    history: HistoryRule = HistoryRule()
    account: AccountRule | None = None

    @property
    def looks_at_cells(self) -> bool:
        """Whether a rule is checked on protected values."""
        return any(rule is not None for rule in (self.area_population, self.sparsity, self.attribute))


DEFAULT_SERVE = ServeRule()  # of a release, which is public as a whole
SAFE_HISTORY = HistoryRule(
    success=0.5, largest=1000, difference=10
)  # of records, where nothing else is declared


ON_CELLS = ("area_population", "sparsity", "attribute")


def resolve_serve(
    declared: DeclaredServe, variables: Mapping[str, Variable], noise: NoiseRule | None, findings: Findings
) -> ServeRule:
    """The rules of the table builder; every name in them must exist."""
    _check_names(declared, variables, findings)
    _check_sizes(declared, findings)
    _check_noise(declared, noise, findings)
    sparsity = declared.sparsity
    return ServeRule(
        variables=None if declared.variables is None else tuple(declared.variables),
        counts=tuple(declared.counts),
        filters=declared.filters,
        groupings=tuple(declared.groupings),
        axes=declared.axes,
        cells=declared.cells,
        job_cells=declared.job_cells,
        counted=declared.counted,
        place=declared.place,
        area_population=declared.area_population,
        blocked=declared.blocked,
        sparsity=SparsityRule(sparsity.ones, sparsity.ones_and_twos) if sparsity else None,
        attribute=declared.attribute,
        forbidden=tuple(tuple(names) for names in declared.forbidden),
        history=_history(declared, noise),
        account=_account(declared.account, findings) if declared.account else None,
    )


def _history(serve: DeclaredServe, noise: NoiseRule | None) -> HistoryRule:
    """What is declared; of the rest what is safe, unless it is switched off or a budget limits users."""
    if noise is not None and noise.is_guaranteed:
        return HistoryRule()
    declared, default = serve.history, SAFE_HISTORY if serve.rules == "safe" else HistoryRule()
    difference = default.difference if declared.difference is None else declared.difference
    return HistoryRule(
        success=declared.success or default.success,
        warn=declared.warn,
        largest=declared.largest or default.largest,
        difference=difference or None,
        on_difference=Action(declared.on_difference),
        together=declared.anonymous == "together",
    )


def _check_names(declared: DeclaredServe, variables: Mapping[str, Variable], findings: Findings) -> None:
    _known("serve.variables", declared.variables or (), variables, findings)
    _known("serve.groupings", declared.groupings, variables, findings)
    _known("serve.place", [declared.place] if declared.place else [], variables, findings)
    axes = {axis.full_name: None for one in variables.values() for axis in one.breakdowns.values()}
    for names in declared.forbidden:
        _known("serve.forbidden", names, {**variables, **axes}, findings)


def _known(key: str, names: Iterable[str], known: Iterable[str], findings: Findings) -> None:
    listed = tuple(known)
    for name in names:
        if name not in listed and name.partition(".")[0] not in findings.broken_variables:
            findings.add(key, f"unknown name {name!r}", alternatives(name, listed))


def _check_sizes(declared: DeclaredServe, findings: Findings) -> None:
    if declared.job_cells < declared.cells:
        findings.add(
            "serve.job_cells", f"{declared.job_cells} is below serve.cells", "raise it, or lower serve.cells"
        )
    if declared.area_population is not None and declared.place is None:
        findings.add(
            "serve.area_population", "no place is declared", 'add place = "GEO", or the name of your places'
        )


def _check_noise(declared: DeclaredServe, noise: NoiseRule | None, findings: Findings) -> None:
    guaranteed = noise is not None and noise.is_guaranteed
    if declared.account is not None and not guaranteed and noise is not None:
        findings.add("serve.account", "the noise has no guarantee to account for", "remove the section")
    for key in ON_CELLS if guaranteed else ():
        if getattr(declared, key) is not None:
            value = "a rule on noisy counts together with a guarantee"
            findings.add(
                f"serve.{key}",
                value,
                "remove it: checking it would cost budget, and the noise protects already",
            )
    if guaranteed and declared.history != DeclaredHistory():
        value = "a guard on history together with a guarantee"
        findings.add("serve.history", value, "remove it: the account of a user bounds all that is collected")
    if noise is not None and noise.is_fresh and declared != DeclaredServe():
        findings.add(
            "serve",
            "noise that is drawn again for every question",
            "name the records with noise.snapshot: a repeated question needs the same answer",
        )


def _account(declared: DeclaredAccount, findings: Findings) -> AccountRule:
    each, user = (
        positive(f"serve.account.{key}", getattr(declared, key), findings) for key in ("each", "user")
    )
    if each > user:
        findings.add("serve.account.user", f"{user} is below what one table costs", "raise it, or lower each")
    if declared.all is None:
        return AccountRule(each, user)
    together = positive("serve.account.all", declared.all, findings)
    if each > together:
        value = f"{together} is below what one table costs"
        findings.add("serve.account.all", value, "raise it, or lower each")
    return AccountRule(each, user, together)
