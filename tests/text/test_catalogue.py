"""Every sentence that the source can say stands in every language, with the same things filled in, and nothing else."""

import ast
import re
import string
from functools import cache
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from tools import messages

from discreet.text.phrase import CATALOGUES, Language
from tests.source_rules import nodes, tree

SOURCE = Path(__file__).parents[2] / "src" / "discreet"
LOCALE = SOURCE / "text" / "locale"


def catalogue_file(language: Language) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "discreet.po"


def translations(language: Language) -> dict[str, str]:
    """Template -> translation, as in the file that translators edit."""
    with catalogue_file(language).open("rb") as file:
        return {str(one.id): str(one.string) for one in read_po(file, abort_invalid=True) if one.id}


@cache
def calls() -> tuple[tuple[str, ast.Call], ...]:
    return tuple(
        (f"{path.relative_to(SOURCE)}:{node.lineno}", node)
        for path in SOURCE.rglob("*.py")
        if "phrase" in path.read_text(encoding="utf-8")
        for node in nodes(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "phrase"
    )


def placeholders(template: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(template) if name is not None)


def templates() -> dict[str, str]:
    """Template -> where it stands; a template that is no literal could not be looked up."""
    found = {}
    for where, call in calls():
        first = call.args[0]
        assert isinstance(first, ast.Constant), where
        assert isinstance(first.value, str), where
        found[first.value] = where
    return found


def test_what_is_filled_in_is_what_the_template_has_places_for() -> None:
    for where, call in calls():
        template = ast.literal_eval(call.args[0])
        if all(keyword.arg for keyword in call.keywords):  # ** hands over a table, which running shows
            assert placeholders(template) == sorted(str(one.arg) for one in call.keywords), where


@pytest.mark.parametrize("language", list(CATALOGUES))
def test_a_language_has_every_template_and_no_other(language: Language) -> None:
    said, used = translations(language), templates()
    assert {template: where for template, where in used.items() if not said.get(template)} == {}
    assert set(said) - set(used) == set()


@pytest.mark.parametrize("language", list(CATALOGUES))
def test_a_translation_fills_in_the_same(language: Language) -> None:
    for template, translated in translations(language).items():
        assert placeholders(template) == placeholders(translated), template
        assert template.endswith(".") == translated.endswith("."), template


@pytest.mark.parametrize("language", list(CATALOGUES))
def test_the_files_are_what_make_messages_writes(language: Language) -> None:
    path = catalogue_file(language)
    new = messages.updated(path)
    assert path.read_bytes() == messages.as_po(new), "run make messages"
    assert path.with_suffix(".mo").read_bytes() == messages.as_mo(new), "run make messages"
    assert messages.extracted() == set(templates())


@pytest.mark.parametrize("language", list(CATALOGUES))
def test_the_program_reads_the_translations(language: Language) -> None:
    for template, translated in translations(language).items():
        assert CATALOGUES[language].gettext(template) == translated


@pytest.mark.parametrize("language", list(CATALOGUES))
def test_a_catalogue_names_no_dates_people_or_places_in_the_source(language: Language) -> None:
    text = catalogue_file(language).read_text(encoding="utf-8")
    assert (
        re.findall(r"^#[:.~|].*|^#, .*fuzzy|^\"[\w-]*(?:Date|Translator|Team|Bugs-To):.*", text, re.MULTILINE)
        == []
    )


def test_every_language_but_the_one_of_the_source_has_a_catalogue() -> None:
    assert set(CATALOGUES) == set(Language) - {Language.ENGLISH}
    assert sorted(LOCALE.rglob("*.po")) == sorted(map(catalogue_file, CATALOGUES))


def test_nothing_is_said_over_http_that_has_one_language_only() -> None:
    """Words for people are phrases: neither texts nor f-strings stand where a problem or a refusal takes its words."""
    places = {"HttpProblem": (1,), "Refusal": (1,), "Nearest": (1,), "Problem": (2, 3), "mistake": (2, 3)}
    seen = set()
    for path in (
        path for path in (SOURCE / "serve").rglob("*.py") if path.stem != "server"
    ):  # the operator's
        for node in nodes(tree(path)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            # what is wrong with a file is the operator's matter
            by_file = node.func.id in ("Problem", "mistake")
            ours = not by_file or ast.unparse(node.args[0]) == "''"
            for place in places.get(node.func.id, ()) if ours else ():
                words = node.args[place] if place < len(node.args) else ast.Constant("")
                plain = isinstance(words, ast.JoinedStr) or (isinstance(words, ast.Constant) and words.value)
                assert not plain, f"{path.relative_to(SOURCE)}:{node.lineno}"
                seen.add(node.func.id)
    assert seen == set(places)
