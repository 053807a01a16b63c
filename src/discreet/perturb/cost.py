"""What a release with a guarantee costs, stated in the kind of the account that pays for it.

| account | geometric, hellinger | laplace, normal, exponential | discrete-gaussian |
|---|---|---|---|
| epsilon | epsilon; its delta is that of arithmetic | refused: it has a delta | refused: it has a rho |
| epsilon and delta | (epsilon, delta) | (epsilon, delta) | the epsilon of its rho at the declared delta |
| rho | refused: it has an epsilon | refused | rho |

A charge is never converted in a way that needs a delta that was not declared; a refusal names the account to open.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from discreet.errors import Mistakes, mistake
from discreet.maths.privacy.accounting import (
    ARITHMETIC,
    EpsilonDelta,
    PrivacyLoss,
    Rho,
    epsilon_of_drawn_rho,
)
from discreet.maths.privacy.amounts import decimal_text, readable
from discreet.perturb.mechanism import Certified, Mechanism
from discreet.programme.noise import Claim

if TYPE_CHECKING:
    from discreet.perturb.ledger import Account


DELTA_UNITS = 10**30  # deltas are charged in whole units of 1e-30, rounded up


def in_units(delta: Fraction) -> Fraction:
    """A delta in whole units of 1e-30, rounded up: what is charged stays short."""
    return Fraction(ceil(delta * DELTA_UNITS), DELTA_UNITS)


def own_cost(certified: Certified) -> PrivacyLoss:
    """What a release costs in its own kind: rho, or epsilon with its certified delta."""
    rule = certified.rule
    return Rho(rule.budget.spent) if rule.is_gaussian else _approximate(certified)


def release_cost(chosen: Mechanism, account: Account) -> PrivacyLoss:
    """What a release costs in the kind of an account; what the account is not for is refused with the one to open."""
    certified = chosen.certified()
    if certified is None or certified.rule.claim is Claim.NONE:
        value = "a ledger with noise without a guarantee"
        raise mistake("", "ledger", value, "omit it, or declare noise with a guarantee")
    rule = certified.rule
    if (account.neighbours, account.unit) != (rule.neighbours, rule.protects.value):
        value = (
            f"account {account.name!r} is for {account.neighbours.value} of a {account.unit}, the noise for "
            f"{rule.neighbours.value} of a {rule.protects.value}"
        )
        raise mistake("", "ledger", value, _open(certified, type(account.budget)))
    match account.budget:
        case Rho():
            if rule.is_gaussian:
                return Rho(rule.budget.spent)
            raise _other_kind(certified, account, "a rho")
        case EpsilonDelta():
            return _gaussian_epsilon(certified, account) if rule.is_gaussian else _approximate(certified)
    if rule.is_gaussian:
        raise _other_kind(certified, account, "an epsilon without a delta")
    loss = _approximate(certified)
    if loss.delta > ARITHMETIC:
        raise _other_kind(certified, account, "an epsilon without a delta")
    return loss


def _approximate(certified: Certified) -> EpsilonDelta:
    return EpsilonDelta(certified.rule.budget.spent, in_units(certified.delta))


def _gaussian_epsilon(certified: Certified, account: Account) -> EpsilonDelta:
    """The epsilon of rho at the declared delta, with what the sampler adds: as the release states it."""
    rule = certified.rule
    if not rule.delta:
        value = f"account {account.name!r} is in epsilon and delta, the noise in rho, and noise.delta is not declared"
        remedy = f"declare noise.delta, at which its rho has an epsilon, or {_open(certified, Rho)}"
        raise mistake("", "ledger", value, remedy)
    epsilon = epsilon_of_drawn_rho(rule.budget.spent, rule.delta, certified.distance)
    return EpsilonDelta(Fraction(epsilon), rule.delta)


def _other_kind(certified: Certified, account: Account, budget: str) -> Mistakes:
    cost = own_cost(certified)
    value = f"account {account.name!r} has {budget}, {certified.rule.kind.value} noise costs {readable(cost)}"
    return mistake("", "ledger", value, _open(certified, type(cost)))


def _open(certified: Certified, kind: type[PrivacyLoss]) -> str:
    """The account to open, with what it must have at least."""
    return f"open an account for it: discreet ledger account LEDGER NAME {_options(certified, kind)}"


def _options(certified: Certified, kind: type[PrivacyLoss]) -> str:
    rule, cost = certified.rule, own_cost(certified)
    amounts = f"--rho {_least(cost.rho)}" if isinstance(cost, Rho) else f"--epsilon {_least(cost.epsilon)}"
    if isinstance(cost, EpsilonDelta) and (cost.delta > ARITHMETIC or kind is EpsilonDelta):
        amounts += f" --delta {_least(max(cost.delta, rule.delta, ARITHMETIC))}"
    terms = "" if rule.neighbours.value == "add-remove" else f" --neighbours {rule.neighbours.value}"
    return amounts + terms + ("" if rule.protects.value == "person" else f" --protects {rule.protects.value}")


def _least(amount: Fraction) -> str:
    """An amount to type, at least as large."""
    return decimal_text(amount).partition(" ")[0]
