"""The ``[serve]`` section: what the table builder may answer and to whom, and its checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from discreet.programme.declared import DeclaredAccount, DeclaredHistory, DeclaredServe
from discreet.programme.filter import alternatives
from discreet.programme.noise import NoiseRule
from discreet.programme.population import Variable
from discreet.programme.reading import Findings


class Action(StrEnum):
    """What the history guard does at its level."""

    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True)
class SparsityRule:
    """Among the interior cells of an area: the largest shares of ones, and of ones and twos, of those not empty."""

    ones: float = 0.25
    ones_and_twos: float = 0.5


@dataclass(frozen=True)
class HistoryRule:
    """What a user may collect: levels of k/t^2 (see maths.redundancy), and how alike two populations may be."""

    warn: float | None = None  # a statistic whose representations reach a k/t^2 below this is warned of
    refuse: float | None = None  # below this it is refused
    difference: int | None = None  # populations that differ by fewer records
    on_difference: Action = Action.REFUSE


@dataclass(frozen=True)
class AccountRule:
    """Noise with a guarantee: what each new cross-tabulation costs a user, and all that a user may spend."""

    each: Fraction  # epsilon, or rho for the discrete Gaussian
    user: Fraction


@dataclass(frozen=True)
class ServeRule:
    """Everything declared."""

    variables: tuple[str, ...] | None = None  # that may be asked for; None: all
    counts: tuple[str, ...] = ()  # 0/1 columns that may be counted beside those of the cubes
    filters: bool = True  # whether users may filter by expressions other than the bases of the cubes
    groupings: tuple[str, ...] = ()  # variables whose codes users may group
    axes: int = 5  # most axes of a table, variables of its filter included
    cells: int = 100_000  # most cells of an answer at once
    job_cells: int = 1_000_000  # most cells of a background job
    counted: int = (
        20_000_000  # most cells, margins included, of the table that is counted or judged for an answer
    )
    place: str | None = None  # the variable whose areas are judged alone
    area_population: int | None = None  # an area with fewer records is blocked
    blocked: float = 0.5  # the largest share of areas that may be blocked
    sparsity: SparsityRule | None = None
    attribute: float | None = None  # largest share of groups that are concentrated in one category
    forbidden: tuple[
        tuple[str, ...], ...
    ] = ()  # variables or breakdowns that may not stand in one table together
    history: HistoryRule = HistoryRule()
    account: AccountRule | None = None

    @property
    def looks_at_cells(self) -> bool:
        """Whether some rule is judged on protected values."""
        return any(rule is not None for rule in (self.area_population, self.sparsity, self.attribute))


DEFAULT_SERVE = ServeRule()


ON_CELLS = ("area_population", "sparsity", "attribute")


def resolve_serve(
    declared: DeclaredServe, variables: Mapping[str, Variable], noise: NoiseRule | None, findings: Findings
) -> ServeRule:
    """The rules of the table builder; every name in them must exist."""
    _check_names(declared, variables, findings)
    _check_sizes(declared, findings)
    _check_noise(declared, noise, findings)
    history, sparsity = declared.history, declared.sparsity
    return ServeRule(
        None if declared.variables is None else tuple(declared.variables),
        tuple(declared.counts),
        declared.filters,
        tuple(declared.groupings),
        declared.axes,
        declared.cells,
        declared.job_cells,
        declared.counted,
        declared.place,
        declared.area_population,
        declared.blocked,
        SparsityRule(sparsity.ones, sparsity.ones_and_twos) if sparsity else None,
        declared.attribute,
        tuple(tuple(names) for names in declared.forbidden),
        HistoryRule(history.warn, history.refuse, history.difference, Action(history.on_difference)),
        _account(declared.account, findings) if declared.account else None,
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
        findings.add("serve.account", "the noise has no guarantee to account for", "take the section out")
    for key in ON_CELLS if guaranteed else ():
        if getattr(declared, key) is not None:
            value = "a rule on noisy counts beside a guarantee"
            findings.add(
                f"serve.{key}",
                value,
                "take it out: judging would cost budget, and the noise protects already",
            )
    if guaranteed and declared.history != DeclaredHistory():
        value = "a guard on history beside a guarantee"
        findings.add(
            "serve.history", value, "take it out: the account of a user bounds all that is collected"
        )
    if noise is not None and noise.is_fresh and declared != DeclaredServe():
        findings.add(
            "serve",
            "noise that is drawn afresh",
            'use draw = "description": a repeated question needs its answer',
        )


def _account(declared: DeclaredAccount, findings: Findings) -> AccountRule:
    each, user = (
        _amount(f"serve.account.{key}", getattr(declared, key), findings) for key in ("each", "user")
    )
    if each > user:
        findings.add("serve.account.user", f"{user} is below what one table costs", "raise it, or lower each")
    return AccountRule(each, user)


def _amount(key: str, value: float | str, findings: Findings) -> Fraction:
    try:
        amount = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        amount = Fraction(0)
    if amount <= 0:
        findings.add(key, repr(value), 'give a positive number, or a fraction such as "1/3"')
    return amount
