"""``discreet ledger``: create, read and check ledgers of privacy budgets."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import JSON, emit_json
from discreet.errors import mistake
from discreet.io.secret import read_secret
from discreet.maths.cells.keys import derive
from discreet.maths.privacy.accounting import EpsilonDelta, Neighbours, PrivacyLoss, PureEpsilon, Rho
from discreet.maths.privacy.allowance import Allowance
from discreet.maths.privacy.composition import Composition
from discreet.perturb.ledger import Ledger
from discreet.programme.noise import Protects

FAILED = 1
app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

WHERE = Annotated[str, typer.Argument(help="A SQLite file, or a postgresql:// address.")]
SECRET = Annotated[
    str, typer.Option("--secret", help="The secret that seals the ledger: a file, env:NAME or fd:NUMBER.")
]


def ledger_at(where: str, secret: str) -> Ledger:
    """Open a ledger with the seal derived from the secret."""
    return Ledger.open(_place(where), _now, _seal(secret))


@app.command()
def create(where: WHERE, secret: SECRET) -> None:
    """Create a ledger; an existing one is left as it is."""
    Ledger.create(_place(where), _now, _seal(secret))
    typer.echo(f"{where}: ready.")


@app.command()
def account(
    where: WHERE,
    name: Annotated[str, typer.Argument(help="The name of the account.")],
    secret: SECRET,
    epsilon: Annotated[str, typer.Option("--epsilon", help="The budget, a number or a fraction.")] = "",
    delta: Annotated[str, typer.Option("--delta", help="The budget of delta.")] = "",
    rho: Annotated[str, typer.Option("--rho", help="The budget, for Gaussian noise.")] = "",
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
        Composition,
        typer.Option(
            "--composition",
            help="How charges add up: basic (sums) or advanced (more small charges for a delta); fixed for good.",
        ),
    ] = Composition.BASIC,
) -> None:
    """Open an account with a budget that can be used up but never raised."""
    allowance = Allowance(_budget(epsilon, delta, rho), composition)
    opened = ledger_at(where, secret).create_account(
        name, allowance.budget, neighbours, protects.value, allowance.composition
    )
    typer.echo(f"{opened.name}: {opened.allowance}, {opened.neighbours.value} of a {opened.unit}.")


@app.command()
def show(where: WHERE, secret: SECRET, json: JSON = False) -> None:
    """List the accounts with their budgets and charges."""
    ledger = ledger_at(where, secret)
    accounts = [_described(ledger, name) for name in ledger.accounts()]
    if json:
        emit_json({"accounts": accounts})
        return
    for one in accounts:
        composed = f" ({one['composition']} composition)" if one["composition"] != Composition.BASIC else ""
        typer.echo(
            f"{one['account']}: budget {one['budget']}{composed}, spent {one['spent']}, left {one['left']}"
        )
        for entry in ledger.entries(str(one["account"])):
            typer.echo(f"  {entry.at}  {entry.charge}  {entry.described}")


def _described(ledger: Ledger, name: str) -> dict[str, object]:
    found = ledger.account(name)
    charges = [
        {"at": entry.at, "charge": str(entry.charge), "for": entry.described}
        for entry in ledger.entries(name)
    ]
    return {
        "account": name,
        "budget": str(found.budget),
        "composition": found.composition.value,
        "spent": str(ledger.spent(name)),
        "left": str(ledger.remaining(name)),
        "neighbours": found.neighbours.value,
        "protects": found.unit,
        "charges": charges,
    }


@app.command()
def verify(where: WHERE, secret: SECRET, json: JSON = False) -> None:
    """Verify the chain of hashes; exit code 1 if an entry was changed or removed."""
    problems = ledger_at(where, secret).verify()
    if json:
        emit_json({"sound": not problems, "problems": [str(problem) for problem in problems]})
    else:
        typer.echo("\n".join(str(problem) for problem in problems) or f"{where}: intact.")
    if problems:
        raise typer.Exit(FAILED)


def _budget(epsilon: str, delta: str, rho: str) -> PrivacyLoss:
    if bool(epsilon) == bool(rho):
        remedy = "give the one that the noise is budgeted in"
        raise mistake("", "budget", "not exactly one of --epsilon and --rho", remedy)
    if rho:
        return Rho(_amount(rho, "--rho"))
    whole = _amount(epsilon, "--epsilon")
    return EpsilonDelta(whole, _amount(delta, "--delta")) if delta else PureEpsilon(whole)


def _amount(text: str, option: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise mistake("", option, text, "give a number or a fraction such as 1/3") from None


def _place(where: str) -> str | Path:
    return where if "://" in where else Path(where)


def _seal(secret: str) -> bytes:
    return derive(read_secret(secret, os.environ), "ledger")


def _now() -> datetime:
    return datetime.now(UTC)
