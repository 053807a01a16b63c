"""The texts of errors: every mistake, but few lines of a file that is wrong throughout."""

import pickle

import pytest

from discreet.errors import SHOWN, BrokenRelease, Mistakes, Problem


def problems(file: str, number: int) -> list[Problem]:
    return [Problem(file, f"line {line}", "x", "correct it") for line in range(number)]


def test_every_mistake_is_a_line() -> None:
    found = problems("a", SHOWN) + problems("b", 2)
    assert str(Mistakes(found)).splitlines() == [str(one) for one in found]


def test_a_file_that_is_wrong_throughout_hides_no_other() -> None:
    found = problems("a", 3000) + problems("b", 2)
    error = Mistakes(found)
    assert str(error).splitlines() == [
        *(str(one) for one in (*found[:SHOWN], *found[-2:])),
        f"a: {3000 - SHOWN:,} more mistakes; correct these first",
    ]
    assert error.problems == tuple(found)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("digits", [64, 60, 40])
def test_a_secret_is_never_shown(digits: int) -> None:
    """The file of the secret may be named by mistake where a codelist or a p-table belongs."""
    secret = "d62b78efc3772fd9ac8cdd46798a4a852045170225320bc667f19c14e486bc73"[:digits]
    text = str(Problem("p.toml", "header", f"'{secret}'", f"use one of {secret}"))
    assert secret not in text
    assert text.count("digits that could be a secret") == 2
    cut = str(Problem("", "", "x" * 230 + secret + "x" * 5_000, ""))
    assert secret[:20] not in cut


def test_a_value_of_any_length_is_shown_in_part() -> None:
    """A column may have a text of millions of characters where a code belongs."""
    text = str(Problem("f.csv", "key", "x" * 5_000_000 + "end", "correct it"))
    assert len(text) < 1_000
    assert text.startswith("f.csv: key: xxx")
    assert text.endswith("xend; correct it")


def test_lines_of_a_broken_release_are_shortened() -> None:
    """The name of a key of a damaged manifest may be of any length."""
    first, second = str(BrokenRelease("x" * 5_000_000 + "end\nfetch it again")).split("\n")
    assert len(first) < 1_000
    assert first.endswith("xend")
    assert second == "fetch it again"
