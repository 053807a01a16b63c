"""Values of options that are read without pydantic: Typer imports it for every option, even for one that is not given.

Only values are read here of which pydantic would make the same: everything else, mistakes included, is left to Typer.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

WHOLE = re.compile(r"-?[0-9]{1,15}")
DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
SIMPLE = {  # what a parameter declares when its values need no more than their type
    **dict.fromkeys(
        ("parser", "clamp", "exists", "allow_dash", "resolve_path", "writable", "path_type"), False
    ),
    **dict.fromkeys(("file_okay", "dir_okay", "readable", "case_sensitive"), True),
}


class NoPlainValue(ValueError):
    """Text that is left to Typer."""


class _PlainFirst:
    """Reads the values of a parameter; in place of Typer's own converter, which is made when it is needed."""

    def __init__(self, parameter: Any) -> None:
        self.typers = parameter.get_runtime_param
        self.kind = parameter.type_descriptor.annotation
        self.declared = parameter.type_descriptor.parameter_info

    def __call__(self) -> _PlainFirst:
        """What Typer asks a parameter for."""
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of the parameter's type."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        try:
            if get_origin(self.kind) is not list:
                return self._plain(value, self.kind)
            if several and not isinstance(value, str):
                return [self._plain(one, get_args(self.kind)[0]) for one in value]
        except NoPlainValue:
            pass
        return self.typers().coerce(value, param=param, ctx=ctx)

    def _plain(self, value: Any, kind: Any) -> Any:
        found = plain(value, kind)
        if isinstance(found, int | float):
            least, most = self.declared.min, self.declared.max
            if (least is not None and found < least) or (most is not None and found > most):
                raise NoPlainValue
        return found


def plain(value: Any, kind: Any) -> Any:
    """A value of a type: one that has it already, or text whose meaning is beyond doubt."""
    if type(value) is kind and kind in {str, int, float}:
        return value
    if kind is Path and isinstance(value, str | Path):
        if not os.access(value, os.F_OK) or os.access(value, os.R_OK):  # as where a name is too long
            return Path(value)
    elif isinstance(value, str) and kind is int and WHOLE.fullmatch(value):
        return int(value)
    elif isinstance(value, str) and kind is float and DECIMAL.fullmatch(value):
        return float(value)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        for choice in kind:
            if value is choice or value == choice.value:
                return choice
    raise NoPlainValue


def reading_plain_values_first(parameters: list[Any]) -> list[Any]:
    """Parameters of a command that read plain values without pydantic.

    With a Typer that has no such converter they stay as they are, and take longer to start.
    """
    for parameter in parameters:
        descriptor = getattr(parameter, "type_descriptor", None)
        converter = getattr(parameter, "get_runtime_param", None)
        if descriptor is None or converter is None or isinstance(converter, _PlainFirst):
            continue
        declared = descriptor.parameter_info
        if all(bool(getattr(declared, name, None)) is usual for name, usual in SIMPLE.items()):
            parameter.get_runtime_param = _PlainFirst(parameter)
    return parameters


def read_plain_values_first(command: Any) -> None:
    """Let a command and its subcommands do so."""
    parameters = command.get_params  # with --help, which is made when it is needed
    command.get_params = lambda ctx: reading_plain_values_first(parameters(ctx))
    for subcommand in getattr(command, "commands", {}).values():
        if subcommand is not None:  # one of a group that builds it on demand
            read_plain_values_first(subcommand)
