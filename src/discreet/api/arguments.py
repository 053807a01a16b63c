"""What a notebook sees of an error: it names arguments where a command names options, and shows no local variable.

Every other module writes the options of the command line into its messages (``--register``). A function of the library
raises the same error with the argument (``register=``) in its place, by the table below; anything else, such as the
name of a file or a column, is left as it is. A notebook may show the local variables of a traceback
(``%xmode Verbose``): those of the frames below a function of the library, which may be records or true counts, are
cleared before the error reaches it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from typing import ParamSpec, TypeVar

from discreet.errors import DiscreetError, Mistakes, Problem, mistake

P = ParamSpec("P")
R = TypeVar("R")

SAME = """
    a accept-corrections account alpha another-ptable areas attributes axes b bound by clusters columns composition
    count country counts curves D delta draws earlier engine epsilon format geographies geography geometry groups
    household-id js k key kind known language largest-weight ledger level levels lookup margin mode modulus monotony
    most negatives neighbours order out own-server p-min person-id place population prior private-manifest protects
    pstay ptable public-key published queries rate reach records regions register release report requests rho
    rounding seconds secret seed sensitivity sigma size small-n t tables target targets threads threshold tokens
    tokens-only tolerance tuples unknown utility V variance wanted weights within without wrap x y
"""
OPTIONS = {  # option -> the argument that has its meaning
    **{option: option.replace("-", "_") for option in SAME.split()},
    "filter": "filtered",
    "repeats": "curves",
    "age": "variables",
    "weight": "weights",
}
OPTION = re.compile(r"(?<![\w-])--([A-Za-z][A-Za-z-]*)(?![\w-])")
_OF = 'add of = "person" where it is no one else\'s, else of = "family", "household" or "dwelling"'
COMMANDS = {  # what a message suggests on the command line -> the same in a notebook
    "make one with: discreet secret --out secret.key": 'make one: Secret.new().save("secret.key")',
    "make a pair with: discreet key --out signing.key": 'make a pair: make_key("signing.key")',
    "make one with: discreet token create FILE NAME": "make one: Tokens(path).create(name)",
    "name a ledger with --ledger (discreet ledger create)": "give ledger=open_ledger(path, secret)",
    "use a larger --share, --relative or --size than": "give RiskLimits with a larger share, relative or size than",
    "give --earlier-programme for those of the earlier release": "give earlier= as the release that protect made",
    _OF: 'give Population(.., of="person"), or by column: of={"rooms": "dwelling"}',
    'name the code that they get, missing = "CODE", or complete the records': (
        'give them a code: bands(.., missing="unknown") or Population(.., missing="unknown")'
    ),
    "lower the first limit (-inf for an open band)": "give a lower first limit (-inf for an open band)",
    "list them as missing_values, or": 'list them: variables={"COLUMN": {"missing_values": ["-9"]}}, or',
    'a decimal comma: decimal = "," of the source': 'a decimal comma: {"file": .., "decimal": ","}',
    "decide on a larger budget: discreet ledger raise": "decide on a larger budget: Ledger.raise_budget",
    "use a larger --area-change than": "give RiskLimits with a larger area_change than",
}


def in_arguments(text: str) -> str:
    """A message with arguments in place of options."""
    for command, call in COMMANDS.items():
        text = text.replace(command, call)
    return OPTION.sub(lambda found: f"{OPTIONS[found[1]]}=" if found[1] in OPTIONS else found[0], text)


def names_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose errors name its arguments, and whose tracebacks have no local variables."""

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> R:
        try:
            return function(*given, **named)
        except DiscreetError as error:
            del given, named  # a secret may be among them
            _clear_locals(error)
            # the frames below say nothing to a user who made a mistake
            raise _with_arguments(error).with_traceback(None) from None
        except BaseException as error:
            del given, named
            _clear_locals(error)
            raise

    return call


def require(sound: bool, argument: str, value: str, remedy: str) -> None:
    """Refuse the value of an argument."""
    if not sound:
        raise mistake("", argument, value, remedy)


Choice = TypeVar("Choice", bound=StrEnum)


def chosen(argument: str, given: str, kinds: type[Choice]) -> Choice:
    """The member of an enum that an argument names."""
    if given not in list(kinds):
        raise mistake("", argument, repr(given), f"choose from {', '.join(kinds)}")
    return kinds(given)


def _clear_locals(error: BaseException | None) -> None:
    """Clear the local variables of the frames that an error passed, and those before it."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _with_arguments(error: DiscreetError) -> DiscreetError:
    """The same error, with arguments in place of options."""
    if in_arguments(str(error)) == str(error):
        return error
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
