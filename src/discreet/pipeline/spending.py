"""The account that a release is charged to, what the release costs, and what is left afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.errors import Mistakes
from discreet.maths.privacy.accounting import Neighbours, PrivacyLoss
from discreet.maths.privacy.amounts import amounts, compared, readable, without_rounding
from discreet.perturb.cost import own_cost, release_cost
from discreet.perturb.mechanism import Mechanism

if TYPE_CHECKING:
    from discreet.perturb.ledger import Ledger


@dataclass(frozen=True)
class Paid:
    """What a release with a guarantee costs, and what its account has left of its budget."""

    cost: PrivacyLoss
    neighbours: Neighbours
    unit: str
    account: str = ""  # empty where no ledger was charged
    again: bool = False  # the same noise was charged before: it cost nothing more
    budget: PrivacyLoss | None = None
    spent: PrivacyLoss | None = None
    left: PrivacyLoss | None = None

    def sentences(self) -> Iterator[str]:
        """What was spent and what is left, for people."""
        yield f"Privacy: the release costs {readable(self.cost)}, for {compared(self.neighbours, self.unit)}."
        if self.budget is None or self.spent is None or self.left is None:
            yield "No ledger was charged: what releases cost together is not added up."
            return
        charged = "was charged before and costs nothing more" if self.again else "was charged"
        yield (
            f"Account {self.account} {charged}: {readable(without_rounding(self.spent))} of "
            f"{readable(self.budget)} is spent, {readable(self.left, down=True)} is left."
        )

    def as_json(self) -> Mapping[str, object]:
        """The exact amounts."""
        losses = {"cost": self.cost, "budget": self.budget, "spent": self.spent, "left": self.left}
        return {
            "neighbours": self.neighbours,
            "protects": self.unit,
            "account": self.account or None,
            "charged_before": self.again,
            **{name: None if one is None else amounts(one) for name, one in losses.items()},
        }


@dataclass(frozen=True)
class Spending:
    """The account that a release is charged to."""

    ledger: Ledger
    account: str

    def charge(self, mechanism: Mechanism, release: str, key: str) -> None:
        """Record the charge; the same key (the same noise of the same statistics) is charged only once."""
        self.ledger.charge(self.account, self.loss(mechanism), key, f"release {release}")

    def loss(self, mechanism: Mechanism) -> PrivacyLoss:
        """What a release costs; noise that the account is not for is refused."""
        return release_cost(mechanism, self.ledger.account(self.account))

    def require(self, mechanism: Mechanism, key: str) -> bool:
        """Refuse a release that the account cannot pay, before any work; whether it was charged before.

        All entries are verified first: what is left of a budget is only known from a ledger that was not changed.
        """
        broken = self.ledger.verify()
        if broken:
            raise Mistakes(broken)
        self.ledger.require_affordable(self.account, self.loss(mechanism), key)
        return not self.ledger.is_new(self.account, key)

    def forecast(self, mechanism: Mechanism) -> str:
        """What a release would be charged, for people."""
        cost, left = without_rounding(self.loss(mechanism)), self.ledger.remaining(self.account)
        return (
            f"Account {self.account} can pay for the release: it costs {readable(cost)}, "
            f"{readable(left, down=True)} is left."
        )

    def paid(self, mechanism: Mechanism, again: bool) -> Paid:
        """What a release that was charged has cost, and what is left."""
        account = self.ledger.account(self.account)
        return Paid(
            self.loss(mechanism),
            account.neighbours,
            account.unit,
            self.account,
            again,
            account.budget,
            self.ledger.spent(self.account),
            self.ledger.remaining(self.account),
        )


def uncharged(mechanism: Mechanism) -> Paid | None:
    """What a release costs of which no ledger knows; None where no guarantee is claimed."""
    certified = mechanism.certified()
    if certified is None or not certified.rule.is_guaranteed:
        return None
    rule = certified.rule
    return Paid(own_cost(certified), rule.neighbours, rule.protects.value)
