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

from discreet.errors import Mistakes, mistake
from discreet.maths.privacy.accounting import (
    ARITHMETIC,
    EpsilonDelta,
    PrivacyLoss,
    Rho,
    epsilon_of_drawn_rho,
)
from discreet.maths.privacy.amounts import decimal_text, readable
from discreet.perturb.ledger import Account
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.private import PrivateMechanism
from discreet.programme.noise import Claim

DELTA_UNITS = 10**30  # deltas are charged in whole units of 1e-30, rounded up


def in_units(delta: Fraction) -> Fraction:
    """A delta in whole units of 1e-30, rounded up: what is charged stays short."""
    return Fraction(ceil(delta * DELTA_UNITS), DELTA_UNITS)


def own_cost(chosen: PrivateMechanism) -> PrivacyLoss:
    """What a release costs in its own kind: rho, or epsilon with its certified delta."""
    rule = chosen.rule
    return Rho(rule.budget.spent) if rule.is_gaussian else _approximate(chosen)


def release_cost(chosen: Mechanism, account: Account) -> PrivacyLoss:
    """What a release costs in the kind of an account; what the account is not for is refused with the one to open."""
    if not isinstance(chosen, PrivateMechanism) or chosen.rule.claim is Claim.NONE:
        value = "a ledger with noise without a guarantee"
        raise mistake("", "ledger", value, "omit it, or declare noise with a guarantee")
    rule = chosen.rule
    if (account.neighbours, account.unit) != (rule.neighbours, rule.protects.value):
        value = (
            f"account {account.name!r} is for {account.neighbours.value} of a {account.unit}, the noise for "
            f"{rule.neighbours.value} of a {rule.protects.value}"
        )
        raise mistake("", "ledger", value, _open(chosen, type(account.budget)))
    match account.budget:
        case Rho():
            if rule.is_gaussian:
                return Rho(rule.budget.spent)
            raise _other_kind(chosen, account, "a rho")
        case EpsilonDelta():
            return _gaussian_epsilon(chosen, account) if rule.is_gaussian else _approximate(chosen)
    if rule.is_gaussian:
        raise _other_kind(chosen, account, "an epsilon without a delta")
    loss = _approximate(chosen)
    if loss.delta > ARITHMETIC:
        raise _other_kind(chosen, account, "an epsilon without a delta")
    return loss


def _approximate(chosen: PrivateMechanism) -> EpsilonDelta:
    return EpsilonDelta(chosen.rule.budget.spent, in_units(chosen.plan.delta()))


def _gaussian_epsilon(chosen: PrivateMechanism, account: Account) -> EpsilonDelta:
    """The epsilon of rho at the declared delta, with what the sampler adds: as the release states it."""
    rule = chosen.rule
    if not rule.delta:
        value = f"account {account.name!r} is in epsilon and delta, the noise in rho, and noise.delta is not declared"
        remedy = f"declare noise.delta, at which its rho has an epsilon, or {_open(chosen, Rho)}"
        raise mistake("", "ledger", value, remedy)
    epsilon = epsilon_of_drawn_rho(rule.budget.spent, rule.delta, chosen.plan.distance())
    return EpsilonDelta(Fraction(epsilon), rule.delta)


def _other_kind(chosen: PrivateMechanism, account: Account, budget: str) -> Mistakes:
    cost = own_cost(chosen)
    value = f"account {account.name!r} has {budget}, {chosen.rule.kind.value} noise costs {readable(cost)}"
    return mistake("", "ledger", value, _open(chosen, type(cost)))


def _open(chosen: PrivateMechanism, kind: type[PrivacyLoss]) -> str:
    """The account to open, with what it must have at least."""
    return f"open an account for it: discreet ledger account LEDGER NAME {_options(chosen, kind)}"


def _options(chosen: PrivateMechanism, kind: type[PrivacyLoss]) -> str:
    rule, cost = chosen.rule, own_cost(chosen)
    amounts = f"--rho {_least(cost.rho)}" if isinstance(cost, Rho) else f"--epsilon {_least(cost.epsilon)}"
    if isinstance(cost, EpsilonDelta) and (cost.delta > ARITHMETIC or kind is EpsilonDelta):
        amounts += f" --delta {_least(max(cost.delta, rule.delta, ARITHMETIC))}"
    terms = "" if rule.neighbours.value == "add-remove" else f" --neighbours {rule.neighbours.value}"
    return amounts + terms + ("" if rule.protects.value == "person" else f" --protects {rule.protects.value}")


def _least(amount: Fraction) -> str:
    """An amount to type, at least as large."""
    return decimal_text(amount).partition(" ")[0]
