"""The texts of errors: every mistake, but few lines of a file that is wrong throughout."""

import pickle

from discreet.errors import SHOWN, Mistakes, Problem


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


def test_a_value_of_any_length_is_shown_in_part() -> None:
    """A column may have a text of millions of characters where a code belongs."""
    text = str(Problem("f.csv", "key", "x" * 5_000_000 + "end", "correct it"))
    assert len(text) < 1_000
    assert text.startswith("f.csv: key: xxx")
    assert text.endswith("xend; correct it")
