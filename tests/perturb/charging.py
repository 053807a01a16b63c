"""A process that charges a ledger as fast as it can, telling each charge once it is acknowledged."""

import sys
from datetime import UTC, datetime
from fractions import Fraction

from discreet.errors import BudgetExceeded
from discreet.maths.privacy.accounting import PureEpsilon
from discreet.perturb.ledger import Ledger


def main(where: str, account: str, name: str, count: str, amount: str) -> None:
    ledger = Ledger.open(where, lambda: datetime.now(UTC))
    charge = PureEpsilon(Fraction(amount))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()  # all start together
    for number in range(int(count)):
        key = f"{name}-{number}"
        try:
            ledger.charge(account, charge, key)
        except BudgetExceeded:
            sys.stdout.write("exceeded\n")
            continue
        sys.stdout.write(f"{key}\n")
        sys.stdout.flush()
