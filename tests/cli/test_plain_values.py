"""Values of options that are read without pydantic are those that Typer would read with it."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from discreet.cli.app import COMMANDS
from discreet.cli.group import built
from discreet.cli.plain_values import NoPlainValue, plain, reading_plain_values_first


class Kind(StrEnum):
    GEOMETRIC = "geometric"
    LAPLACE = "laplace"


def command(
    text: Annotated[str | None, typer.Option()] = None,
    whole: Annotated[int, typer.Option()] = 3,
    few: Annotated[int | None, typer.Option(min=1, max=9)] = None,
    number: Annotated[float, typer.Option()] = 0.5,
    share: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    path: Annotated[Path, typer.Option()] = Path("x"),
    kind: Annotated[Kind, typer.Option()] = Kind.LAPLACE,
    paths: Annotated[list[Path] | None, typer.Option()] = None,
    whole_numbers: Annotated[list[int] | None, typer.Option()] = None,
    switch: Annotated[bool, typer.Option()] = False,
    folder: Annotated[Path | None, typer.Option(file_okay=False)] = None,
) -> None:
    """Every kind of option that the commands have."""


def read(name: str, value: object, *, plainly: bool) -> Any:
    """What a command makes of a value: its type and representation, or the mistake."""
    app = typer.Typer()
    app.command()(command)
    made = get_command(app)
    ctx = typer.Context(made)
    parameters = made.get_params(ctx)
    if plainly:
        parameters = reading_plain_values_first(parameters)
    parameter = next(one for one in parameters if one.name == name)
    try:
        found = parameter.process_value(ctx, value)
    except typer.BadParameter as mistake:
        return mistake.message
    return type(found), repr(found)


TEXTS = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
    st.text("0123456789-+._eE ٣", max_size=20),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["geometric", "Laplace", "laplace", "/", ".", "nan", "inf", "1_0", "-0", "007", "1.0"]),
    st.sampled_from(["x" * 300, "/etc/passwd/x"]),
)


@pytest.mark.parametrize(
    "name", ["text", "whole", "few", "number", "share", "path", "kind", "switch", "folder"]
)
@given(text=TEXTS)
def test_text_is_read_as_by_typer(name: str, text: str) -> None:
    assert read(name, text, plainly=True) == read(name, text, plainly=False)


@pytest.mark.parametrize("name", ["paths", "whole_numbers"])
@given(texts=st.lists(TEXTS, max_size=3))
def test_repeated_options_are_read_as_by_typer(name: str, texts: list[str]) -> None:
    assert read(name, tuple(texts), plainly=True) == read(name, tuple(texts), plainly=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("text", None), ("whole", None), ("paths", None), ("whole", 3), ("number", 0.5), ("number", 1)),
        *(
            ("path", Path("x")),
            ("kind", Kind.LAPLACE),
            ("kind", "laplace"),
            ("few", 0),
            ("few", 10),
            ("share", 1.5),
        ),
        *(("whole", True), ("whole", 2.0), ("text", b"x"), ("folder", Path(__file__)), ("switch", False)),
    ],
)
def test_defaults_are_read_as_by_typer(name: str, value: object) -> None:
    assert read(name, value, plainly=True) == read(name, value, plainly=False)


def test_a_path_that_cannot_be_read_is_left_to_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.F_OK)
    assert "is not readable" in read("path", __file__, plainly=True)
    with pytest.raises(NoPlainValue):
        plain(__file__, Path)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "serve"])
def test_no_parameter_of_a_command_waits_for_pydantic(name: str) -> None:
    """An option that declares more than a type would bring pydantic back on the way of its command."""

    def check(one: Any) -> None:
        for parameter in one.get_params(typer.Context(one)):
            converter = parameter.get_runtime_param
            assert type(converter).__name__ == "_PlainFirst", (name, parameter.name)
        for below in getattr(one, "modules", None) or getattr(one, "commands", {}):
            check(one.get_command(typer.Context(one), below))

    check(built(name, name))
