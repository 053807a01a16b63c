"""What is confidential stays out of sight in memory, too: in what is shown, copied, and in tracebacks with locals."""

import copy
import io
import pickle
import re
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.traceback import Traceback

import discreet as ds
from discreet.api import protect as protecting
from discreet.api.arguments import names_arguments
from discreet.tabulate.tables import ConfidentialTable
from tests.api.test_protect import CUBE, FRAME, KEY, NOISE, census

TRUE = {
    len(FRAME),
    *FRAME["sex"].value_counts(),
    *FRAME["lau"].value_counts(),
    *FRAME["nuts3"].value_counts(),
}


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\b\d+\b", text))


def secret_things() -> list[Any]:
    found = census()
    programme = found.programme(CUBE, NOISE)
    return [
        found,
        programme,
        ds.Secret(KEY),
        ConfidentialTable(programme.cubes[0], np.full(4, 2000, dtype=np.uint64)),
    ]


def test_nothing_confidential_is_shown() -> None:
    for one in secret_things():
        shown = repr(one) + str(one) + f"{one}" + getattr(one, "_repr_html_", str)()
        assert not set(map(str, TRUE)) & numbers(shown), type(one).__name__
        assert KEY.hex() not in shown
        for name in (
            "to_pandas",
            "to_arrow",
            "to_polars",
            "__array__",
            "__arrow_c_stream__",
            "_repr_mimebundle_",
        ):
            assert not hasattr(one, name), name


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_nothing_confidential_is_pickled_or_copied(duplicate: Callable[[Any], Any]) -> None:
    for one in secret_things():
        with pytest.raises(TypeError):
            duplicate(one)


def test_fields_show_no_count() -> None:
    found = census()
    ds.protect(found, CUBE, NOISE, secret=KEY, progress=False)  # codes and values are known afterwards
    for one in (vars(found), vars(found._tables), vars(found.programme(CUBE, NOISE))):
        assert not set(map(str, TRUE)) & numbers(repr(one))
    release = ds.protect(found, [CUBE], NOISE, secret=KEY, progress=False)
    assert KEY.hex() not in repr(vars(release)) + repr(release.origin)
    assert repr(KEY) not in repr(vars(release)) + repr(release.origin)


def shown_with_locals(error: BaseException) -> str:
    """A traceback as the standard library and as rich (so notebooks) show it with local variables, below the caller."""
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    plain = traceback.TracebackException(type(error), error, frames, capture_locals=True)
    page = io.StringIO()
    drawn = Traceback.from_exception(type(error), error, frames, show_locals=True)
    Console(file=page, width=200).print(drawn)
    return "".join(plain.format()) + page.getvalue()


@pytest.mark.parametrize(
    "wrong",
    [
        {"gates": {"averaging": 0.01}},  # judged after everything is counted
        {"gates": {"nothing": 1}},  # a mistake in the declaration
    ],
)
def test_a_refusal_shows_no_local_variable(wrong: dict[str, Any]) -> None:
    with pytest.raises(ds.DiscreetError) as refused:
        ds.protect(census(), [CUBE], NOISE, secret=KEY, progress=False, **wrong)
    shown = shown_with_locals(refused.value)
    assert "census.py" not in shown
    assert not set(map(str, TRUE)) & (numbers(shown) - numbers(str(refused.value)))
    assert repr(KEY) not in shown
    names = [frame.name for frame in traceback.extract_tb(refused.tb)]
    assert names[-1] == "call", "frames below the function of the library are left out"


def test_a_programme_with_mistakes_can_be_shown_in_a_traceback() -> None:
    wrong = census().programme(CUBE, NOISE, gates={"nothing": 1})
    assert repr(wrong) == "Programme(with mistakes: see check)"
    with pytest.raises(ds.Mistakes, match="unknown key 'nothing'") as refused:
        _ = wrong.cubes
    shown = shown_with_locals(refused.value)
    assert "census.py" not in shown
    assert not set(map(str, TRUE)) & (numbers(shown) - numbers(str(refused.value)))


def test_an_unexpected_error_shows_where_but_no_local_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any, **named: Any) -> None:
        counts = np.full(3, 987654)
        raise ZeroDivisionError(f"after {len(counts)} cells")

    monkeypatch.setattr(protecting, "publish", broken)
    with pytest.raises(ZeroDivisionError) as failed:
        ds.protect(census(), CUBE, NOISE, secret=KEY, progress=False)
    shown = shown_with_locals(failed.value)
    assert "broken" in shown
    assert "987654 987654" not in shown
    assert repr(KEY) not in shown


def test_errors_before_an_error_have_no_local_variables() -> None:
    @names_arguments
    def outer() -> None:
        counts = {"F": 987654}
        try:
            _ = counts["M"]
        except KeyError as error:
            raise ValueError("unreadable") from error

    with pytest.raises(ValueError, match="unreadable") as failed:
        outer()
    assert isinstance(failed.value.__cause__, KeyError)
    assert "{'F': 987654}" not in shown_with_locals(failed.value)


def test_protected_tables_may_be_shown_stored_and_sent() -> None:
    table = ds.protect(census(), CUBE, NOISE, secret=KEY, progress=False)
    again = pickle.loads(pickle.dumps(table))
    assert again.to_arrow().equals(table.to_arrow())
    assert again.release is None
    assert copy.deepcopy(table).release is None
    assert repr(KEY).encode() not in pickle.dumps(table)
    assert KEY not in pickle.dumps(table)


def test_a_chart_is_shown_without_a_script_from_elsewhere() -> None:
    table = ds.protect(census(), CUBE, NOISE, secret=KEY, progress=False)
    for chart in (
        table.sel(lau="_T").chart(),
        ds.ptable(V=2, D=5).chart(),
        table.sel(lau="_T").chart().properties(width=90),
    ):
        bundle: Any = chart._repr_mimebundle_(None, None)
        assert set(bundle) == {"image/svg+xml", "text/plain"}
        assert bundle["image/svg+xml"].startswith("<svg")
        assert "<script" not in bundle["image/svg+xml"]
        assert type(chart).__name__ in ("Chart", "LayerChart")
