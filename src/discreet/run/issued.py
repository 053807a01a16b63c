"""The record of what a secret was used for by the cell key method, and the refusal of another p-table under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from discreet.errors import Mistakes, mistake
from discreet.io.register import Issue, Register
from discreet.maths.attacks.ptable_change import chance_alone, chance_together, same_key, unrelated_keys
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.perturb.mechanism import Mechanism
from discreet.programme.programme import Programme
from discreet.run.identity import RunDigests


@dataclass(frozen=True)
class Issuing:
    """A release or a table builder that is about to be issued, and the register that it is recorded in."""

    register: Register
    issue: Issue

    def require(self) -> None:
        """Refuse another p-table than those that the secret was used with; to be called before any work."""
        self.register.require_place()
        if not self.issue.forced:
            self._refuse(self.register.others(self.issue))

    def record(self) -> None:
        """Record it, unless another run has just recorded another p-table; to be called before it can be seen."""
        self._refuse(self.register.record(self.issue))

    @property
    def notes(self) -> tuple[str, ...]:
        """The risk of a forced issue, in a line; none where it has none."""
        others = self.register.others(self.issue)
        return (_risk(others, self.issue),) if others else ()

    def _refuse(self, others: Sequence[Issue]) -> None:
        if others:
            raise another_ptable(self.register, others, self.issue)


def issuing(
    programme: Programme,
    chosen: Mechanism,
    digests: RunDigests,
    register: Register | None,
    *,
    run_id: str,
    time: datetime,
    forced: bool,
    served: bool = False,
) -> Issuing | None:
    """What is recorded; None without a register, and for noise that has no cell keys."""
    if register is None or not isinstance(chosen, CellKeyMechanism):
        return None
    issue = Issue(
        release=f"table builder of {programme.release.name}" if served else programme.release.name,
        version=programme.release.version,
        run_id=run_id,
        time=time,
        ptable=digests.ptable,
        keys=chosen.keys.value,
        large=chosen.large,
        inputs=digests.inputs,
        parameters=digests.parameters,
        forced=forced,
    )
    return Issuing(register, issue)


def another_ptable(register: Register, others: Sequence[Issue], issue: Issue) -> Mistakes:
    """The refusal, with the risk."""
    remedy = "make a new secret, or accept the risk with --another-ptable"
    return mistake(register.path, "p-table", _risk(others, issue), remedy)


def _risk(others: Sequence[Issue], issue: Issue) -> str:
    """What an attacker with both releases and both p-tables can do, for the riskiest of the earlier ones."""
    joints = (
        (same_key if one.keys == issue.keys else unrelated_keys)(one.large, issue.large) for one in others
    )
    together, worst = max(
        (chance_together(joint), one.release) for joint, one in zip(joints, others, strict=True)
    )
    alone = max(chance_alone(issue.large), *(chance_alone(one.large) for one in others))
    return (
        f"release {worst!r} has another one, or other keys, under this secret; from both {together:.0%} of large "
        f"counts are guessed exactly, from one {alone:.0%}"
    )
