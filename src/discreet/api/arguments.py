"""Messages for notebooks: they name arguments of functions where those of commands name options.

Every other module writes the options of the command line into its messages (``--register``). A function of the library
raises the same error with the argument (``register=``) in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from discreet.errors import DiscreetError, Mistakes, Problem

P = ParamSpec("P")
R = TypeVar("R")

OPTION = re.compile(r"--([A-Za-z][A-Za-z-]*)")
OTHER_NAMES = {
    "filter": "filtered",
    "repeats": "curves",
    "age": "variables",
    "weight": "weights",
}  # option -> argument
_OF = 'add of = "person" where it is no one else\'s, else of = "family", "household" or "dwelling"'
COMMANDS = {  # what a message suggests on the command line -> the same in a notebook
    "make one with: discreet secret --out secret.key": 'make one: Secret.new().save("secret.key")',
    "name a ledger with --ledger (discreet ledger create)": "give ledger=open_ledger(path, secret)",
    "use a larger --share, --relative or --size than": "give RiskLimits with a larger share, relative or size than",
    "give --earlier-programme for those of the earlier release": "give earlier= as the release that protect made",
    _OF: 'give Population(.., of="person"), or by column: of={"rooms": "dwelling"}',
    "use a larger --area-change than": "give RiskLimits with a larger area_change than",
}


def in_arguments(text: str) -> str:
    """A message with arguments in place of options."""
    for command, call in COMMANDS.items():
        text = text.replace(command, call)
    return OPTION.sub(lambda found: f"{argument(found[1])}=", text)


def argument(option: str) -> str:
    """The argument that has the meaning of an option."""
    return OTHER_NAMES.get(option, option.replace("-", "_"))


def names_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose errors name its arguments."""

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> R:
        try:
            return function(*given, **named)
        except DiscreetError as error:
            if in_arguments(str(error)) == str(error):
                raise
            raise _with_arguments(error) from None

    return call


def _with_arguments(error: DiscreetError) -> DiscreetError:
    if not isinstance(error, Mistakes):
        error.args = tuple(in_arguments(one) if isinstance(one, str) else one for one in error.args)
        return error
    problems = (
        Problem(
            one.file, in_arguments(one.key).rstrip("="), in_arguments(one.value), in_arguments(one.remedy)
        )
        for one in error.problems
    )
    return type(error)(problems)
