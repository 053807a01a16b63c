"""``discreet ledger``: create, raise, read and check ledgers of privacy budgets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import JSON, emit_json, say
from discreet.errors import mistake
from discreet.io.secret import read_secret
from discreet.maths.cells.keys import derive
from discreet.maths.exact_numbers import fraction
from discreet.maths.privacy.accounting import EpsilonDelta, Neighbours, PrivacyLoss, PureEpsilon, Rho
from discreet.maths.privacy.allowance import Allowance
from discreet.maths.privacy.amounts import amounts, compared, readable, without_rounding
from discreet.maths.privacy.composition import Composition
from discreet.perturb.ledger import Ledger
from discreet.programme.noise import Protects

FAILED = 1
app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

WHERE = Annotated[str, typer.Argument(help="A SQLite file, or a postgresql:// address.")]
SECRET = Annotated[
    str, typer.Option("--secret", help="The secret that seals the ledger: a file, env:NAME or fd:NUMBER.")
]


class AccountComposition(StrEnum):
    """How the charges of an account add up; no other composition is valid where one is chosen after the other."""

    BASIC = "basic"
    ADVANCED = "advanced"


EPSILON = Annotated[str, typer.Option("--epsilon", help="The budget, a number or a fraction.")]
DELTA = Annotated[
    str,
    typer.Option("--delta", help="The budget of delta; geometric noise needs none, truncated noise does."),
]
RHO = Annotated[str, typer.Option("--rho", help="The budget, for Gaussian noise.")]


def ledger_at(where: str, secret: str) -> Ledger:
    """Open a ledger with the seal derived from the secret."""
    return Ledger.open(_place(where), _now, _seal(secret))


@app.command()
def create(where: WHERE, secret: SECRET) -> None:
    """Create a ledger; an existing one is left as it is."""
    Ledger.create(_place(where), _now, _seal(secret))
    say(f"{where}: ready.")


@app.command()
def account(
    where: WHERE,
    name: Annotated[str, typer.Argument(help="The name of the account.")],
    secret: SECRET,
    epsilon: EPSILON = "",
    delta: DELTA = "",
    rho: RHO = "",
    neighbours: Annotated[
        Neighbours,
        typer.Option(
            "--neighbours",
            help="Which populations the budget compares: one record added or removed, or one with other values.",
        ),
    ] = Neighbours.ADD_REMOVE,
    protects: Annotated[
        Protects, typer.Option("--protects", help="Whose presence the budget hides.")
    ] = Protects.PERSON,
    composition: Annotated[
        AccountComposition,
        typer.Option(
            "--composition",
            help="How charges add up: basic (sums) or advanced (more small charges for a delta); fixed for good.",
        ),
    ] = AccountComposition.BASIC,
) -> None:
    """Open an account with a budget that can be used up, and raised only by an entry with a reason."""
    allowance = Allowance(_budget(epsilon, delta, rho), Composition(composition.value))
    opened = ledger_at(where, secret).create_account(
        name, allowance.budget, neighbours, protects.value, allowance.composition
    )
    composed = ", advanced composition" if composition is AccountComposition.ADVANCED else ""
    say(
        f"{opened.name}: {readable(opened.budget)}{composed}, for {compared(opened.neighbours, opened.unit)} "
        f"({opened.neighbours.value})."
    )


@app.command("raise")
def raise_(
    where: WHERE,
    name: Annotated[str, typer.Argument(help="The name of the account.")],
    secret: SECRET,
    reason: Annotated[
        str, typer.Option("--reason", help="Who decided it and why; it stays in the ledger for good.")
    ],
    epsilon: EPSILON = "",
    delta: DELTA = "",
    rho: RHO = "",
) -> None:
    """Give an account a larger budget: the new one, not the difference. The raise is an entry of the chain."""
    ledger = ledger_at(where, secret)
    before = ledger.account(name).budget
    ledger.raise_budget(name, _budget(epsilon, delta, rho), reason)
    say(
        f"{name}: raised from {readable(before)} to {readable(ledger.account(name).budget)}, "
        f"{readable(ledger.remaining(name), down=True)} is left. The guarantee of all releases is now that of the "
        "larger budget."
    )


@app.command()
def show(where: WHERE, secret: SECRET, json: JSON = False) -> None:
    """List the accounts with their budgets and charges."""
    ledger = ledger_at(where, secret)
    accounts = [_described(ledger, name) for name in ledger.accounts()]
    if json:
        emit_json({"accounts": accounts})
        return
    if not accounts:
        say(f"{where}: no account yet; open one with discreet ledger account.")
    for name in ledger.accounts():
        for line in _lines(ledger, name):
            say(line)


def _lines(ledger: Ledger, name: str) -> Iterator[str]:
    """An account for people: its budget, what is spent and left, and its entries in their order."""
    found, spent = ledger.account(name), ledger.spent(name)
    composed = ", advanced composition" if found.composition is Composition.ADVANCED else ""
    yield f"{name} ({found.neighbours.value}: {compared(found.neighbours, found.unit)}{composed})"
    yield f"  budget  {readable(found.budget)}"
    yield f"  spent   {readable(spent)}"
    yield f"  left    {readable(ledger.remaining(name), down=True)}"
    for entry in ledger.entries(name):
        day = f"{entry.at[:10]} {entry.at[11:16]}"
        if entry.charge is None and entry.budget is not None:
            yield f"  {day}  budget raised to {readable(entry.budget.budget)}: {entry.described}"
        elif entry.charge is not None:
            yield f"  {day}  {readable(without_rounding(entry.charge))}: {entry.described}"


def _described(ledger: Ledger, name: str) -> dict[str, object]:
    found = ledger.account(name)
    return {
        "account": name,
        "budget": amounts(found.budget),
        "composition": found.composition.value,
        "spent": amounts(ledger.spent(name)),
        "left": amounts(ledger.remaining(name)),
        "neighbours": found.neighbours.value,
        "protects": found.unit,
        "charges": [
            {"at": entry.at, "charge": amounts(entry.charge), "for": entry.described}
            for entry in ledger.entries(name)
            if entry.charge is not None
        ],
        "raises": [
            {"at": entry.at, "budget": amounts(entry.budget.budget), "reason": entry.described}
            for entry in ledger.entries(name)
            if entry.charge is None and entry.budget is not None
        ],
    }


@app.command()
def verify(where: WHERE, secret: SECRET, json: JSON = False) -> None:
    """Verify the chain of hashes; exit code 1 if an entry was changed or removed."""
    problems = ledger_at(where, secret).verify()
    if json:
        emit_json({"sound": not problems, "problems": [str(problem) for problem in problems]})
    else:
        say("\n".join(str(problem) for problem in problems) or f"{where}: intact.")
    if problems:
        raise typer.Exit(FAILED)


def _budget(epsilon: str, delta: str, rho: str) -> PrivacyLoss:
    if bool(epsilon) == bool(rho):
        remedy = "give the one that the noise is budgeted in"
        raise mistake("", "budget", "not exactly one of --epsilon and --rho", remedy)
    if rho:
        return Rho(_amount(rho, "--rho"))
    whole = _amount(epsilon, "--epsilon")
    allowed = _amount(delta, "--delta") if delta else Fraction(0)
    return EpsilonDelta(whole, allowed) if allowed else PureEpsilon(whole)


def _amount(text: str, option: str) -> Fraction:
    try:
        return fraction(text)
    except ValueError:
        raise mistake(
            "", option, text[:60], "give a number from 1e-100 to 1e15 or a fraction such as 1/3"
        ) from None


def _place(where: str) -> str | Path:
    return where if "://" in where else Path(where)


def _seal(secret: str) -> bytes:
    return derive(read_secret(secret, os.environ), "ledger")


def _now() -> datetime:
    return datetime.now(UTC)
