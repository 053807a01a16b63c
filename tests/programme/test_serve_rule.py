"""The [serve] section: what it resolves to, and every mistake it can hold."""

from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.programme.programme import load_programme
from discreet.programme.serve import SAFE_HISTORY, Action, HistoryRule, ServeRule, SparsityRule
from tests.programme.test_swap_rule import GOOD, programme


def serve(folder: Path, text: str) -> ServeRule:
    path = programme(folder, GOOD)
    path.write_text(path.read_text() + text)
    return load_programme(path).serve


def test_nothing_declared_is_the_default(tmp_path: Path) -> None:
    assert serve(tmp_path, "") == ServeRule(history=SAFE_HISTORY)
    assert serve(tmp_path, "[serve]\n") == ServeRule(history=SAFE_HISTORY)
    assert SAFE_HISTORY.success == 0.5


def test_safe_rules_are_switched_off_by_name_only(tmp_path: Path) -> None:
    assert serve(tmp_path, '[serve]\nrules = "none"\n') == ServeRule()
    some = serve(tmp_path, '[serve]\nrules = "none"\nhistory = { difference = 4 }\n')
    assert some.history == HistoryRule(difference=4)
    less = serve(tmp_path, '[serve]\nhistory = { success = 0.75, difference = 0, anonymous = "together" }\n')
    assert less.history == HistoryRule(success=0.75, largest=SAFE_HISTORY.largest, together=True)


def test_rules_resolve_with_their_defaults(tmp_path: Path) -> None:
    found = serve(
        tmp_path,
        '[serve]\naxes = 3\nplace = "GEO"\narea_population = 50\nsparsity = { ones = 0.1 }\n'
        'forbidden = [["AGE", "GEO"]]\nhistory = { success = 0.1, on_difference = "warn" }\n',
    )
    assert (found.axes, found.place, found.area_population) == (3, "GEO", 50)
    assert found.sparsity == SparsityRule(0.1, 0.5)
    assert found.forbidden == (("AGE", "GEO"),)
    assert found.history == HistoryRule(success=0.1, largest=1000, difference=10, on_difference=Action.WARN)
    assert found.looks_at_cells


def test_the_rules_change_nothing_in_a_release(tmp_path: Path) -> None:
    path = programme(tmp_path, GOOD)
    before = load_programme(path).canonical()
    path.write_text(path.read_text() + "[serve]\naxes = 2\n")
    assert load_programme(path).canonical() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[serve]\nvariables = ["AGEE"]\n', r"serve\.variables: unknown name 'AGEE'; did you mean 'AGE'"),
        ('[serve]\nforbidden = [["AGE", "NIL"]]\n', r"serve\.forbidden: unknown name 'NIL'"),
        ('[serve]\nplace = "GEOO"\n', r"serve\.place: unknown name 'GEOO'"),
        ('[serve]\ngroupings = ["X"]\n', r"serve\.groupings: unknown name 'X'"),
        ("[serve]\narea_population = 5\n", r"serve\.area_population: no place is declared"),
        ("[serve]\ncells = 10\njob_cells = 5\n", r"serve\.job_cells: 5 is below serve\.cells"),
        ("[serve]\naxis = 3\n", r"axes"),
        ('[serve]\nrules = "no"\n', r"serve\.rules"),
        ("[serve]\nhistory = { success = 1.5 }\n", r"serve\.history\.success"),
        ("[serve]\nhistory = { refuse = 0.1 }\n", r"serve\.history: unknown key 'refuse'"),
        ("[serve]\naccount = { each = 1, user = 2 }\n", r"serve\.account: the noise has no guarantee"),
    ],
)
def test_every_mistake_names_its_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Mistakes, match=message):
        serve(tmp_path, text)
