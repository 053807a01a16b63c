"""The tree of exceptions.

DiscreetError                 anything Discreet raises on purpose; its text never contains a true count or a key
├── Mistakes                  mistakes in what a user declared or supplied; has every Problem found
│   └── AbsentData            declared data are missing, and nothing else is wrong
├── DatabaseUnavailable       a ledger or a server's store refuses or does not answer; it may do so later
├── InfeasiblePTable          no perturbation table meets the required constraints
├── UncoveredCount            a p-table has no row or no interval for a count or key it must perturb
├── BudgetExceeded            a release would spend more of a privacy budget than is left
├── GateBroken                a release would disclose more than its programme allows
└── BrokenRelease             the files of a release do not match its manifest
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SHOWN = 20  # mistakes of one file
SECRET = re.compile(r"[0-9a-fA-F]{40,}")  # all or most of its digits
HIDDEN = "(digits that could be a secret)"
LONGEST = 500  # characters of a part of a message


@dataclass(frozen=True)
class Problem:
    """One mistake: where it is, what is wrong, and how to correct it.

    >>> str(Problem("census.toml", "noise.V", "99.0", "give a variance of at most 25"))
    'census.toml: noise.V: 99.0; give a variance of at most 25'
    """

    file: str
    key: str
    value: str
    remedy: str

    def __str__(self) -> str:
        what = ": ".join(_shortened(part) for part in (self.file, self.key, self.value) if part)
        return f"{what}; {_shortened(self.remedy)}"


def _shortened(text: str) -> str:
    """A text as long as a reader wants it, and no secret.

    A file that was named by mistake may be that of the secret; a code of the records may have millions of characters.
    """
    text = SECRET.sub(HIDDEN, text)  # first: a cut through a secret would leave half of it
    return _cut(text, LONGEST)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2]} .. {text[-longest // 4 :]}"


class DiscreetError(Exception):
    """Anything Discreet raises on purpose."""


class Mistakes(DiscreetError):
    """All mistakes in what a user declared or supplied; the text has the first ones of each file.

    >>> Mistakes([Problem("", "V", "99.0", "give a variance of at most 25")]).problems[0].key
    'V'
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(_lines(self.problems)))

    def __reduce__(self) -> tuple[type[Mistakes], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


def _lines(problems: Iterable[Problem]) -> Iterator[str]:
    """A line for each problem, and one for those of a file that is wrong throughout."""
    found: Counter[str] = Counter()
    for problem in problems:
        found[problem.file] += 1
        if found[problem.file] <= SHOWN:
            yield str(problem)
    for file, number in found.items():
        if number > SHOWN:
            yield str(Problem(file, "", f"{number - SHOWN:,} more mistakes", "correct these first"))


class AbsentData(Mistakes):
    """Declared data are missing, and nothing else is wrong; a forecast does not need them."""


def mistake(file: object, key: str, value: str, remedy: str) -> Mistakes:
    """Build the error for a single problem, ready to raise."""
    return Mistakes([Problem(str(file), key, value, remedy)])


class DatabaseUnavailable(DiscreetError):
    """A database refused or did not answer; what was not acknowledged before need not have been written."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))

    def __reduce__(self) -> tuple[type[DatabaseUnavailable], tuple[Problem]]:
        return type(self), (self.problem,)


class InfeasiblePTable(DiscreetError):
    """No perturbation table meets the required constraints; the text names the nearest feasible ones."""


class UncoveredCount(DiscreetError):
    """A p-table does not cover a count that it must perturb; absent protection is an error."""


class BudgetExceeded(DiscreetError):
    """A release would spend more of a privacy budget than is left; nothing was charged and nothing may be published."""


class GateBroken(DiscreetError):
    """A release would disclose more than its programme's gates allow; nothing was published."""


class BrokenRelease(DiscreetError):
    """The files of a release do not match its manifest; lines of the text are as long as those of a problem."""

    def __init__(self, text: str) -> None:
        super().__init__("\n".join(_cut(line, 2 * LONGEST) for line in text.split("\n")))
