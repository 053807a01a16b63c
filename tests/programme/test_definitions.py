"""Definitions and translations: from programme, codelists and SDMX structures into the programme, and no further."""

import json
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.programme.codelist import Code, codelist, read_codelist, write_codelist
from discreet.programme.definitions import Definition
from discreet.programme.programme import load_programme
from discreet.programme.sdmx_codelist import read_sdmx_codes
from discreet.text.phrase import Language, others_of, phrase, said, translated

PROGRAMME = """
[population]
persons = "persons.csv"
person_id = "id"

[variables.SEX]
label = {{ en = "Sex", de = "Geschlecht" }}
description = {{ en = "As registered.", de = "Wie eingetragen." }}
source = "Register"
topic = {{ en = "People", de = "Menschen" }}
codelist = "sex.csv"
{variable}

[[cubes]]
id = "one"
title = {{ en = "Residents by sex", de = "Einwohner nach Geschlecht" }}
axes = ["SEX"]

[noise]
kind = "cell-key"
V = 2.0
D = 5
js = 0

[release]
title = {{ en = "Census", de = "Zählung" }}
{release}
"""
CODES = "code,parent,label,label.de,description,source.de,source\n1,,Male,Männlich,,,\n2,,Female,,Or so.,Amt,Office\n"


def written(folder: Path, variable: str = "", release: str = "") -> Path:
    (folder / "persons.csv").write_text("id,sex\n1,1\n2,2\n")
    (folder / "sex.csv").write_text(CODES, encoding="utf-8")
    path = folder / "programme.toml"
    path.write_text(PROGRAMME.format(variable=variable, release=release), encoding="utf-8")
    return path


def test_texts_have_the_language_of_the_release_and_their_translations(tmp_path: Path) -> None:
    programme = load_programme(written(tmp_path))
    labels = programme.labels
    assert (labels.variable("SEX"), said(labels.variable("SEX"), Language.GERMAN)) == ("Sex", "Geschlecht")
    assert said(labels.definition("SEX").description, Language.GERMAN) == "Wie eingetragen."
    assert said(labels.definition("SEX").source, Language.GERMAN) == "Register"
    assert said(labels.topics["SEX"], Language.GERMAN) == "Menschen"
    assert said(programme.release.title, Language.GERMAN) == "Zählung"
    assert said(programme.cubes[0].title, Language.GERMAN) == "Einwohner nach Geschlecht"
    axis = programme.cubes[0].axes[0]
    assert [said(label, Language.GERMAN) for label in axis.labels] == ["Insgesamt", "Männlich", "Female"]
    assert axis.labels == ("Total", "Male", "Female")
    assert axis.definitions == {"2": Definition("Or so.", "Office")}
    assert said(axis.definitions["2"].source, Language.GERMAN) == "Amt"


def test_a_sentence_around_a_label_translates_it(tmp_path: Path) -> None:
    labels = load_programme(written(tmp_path)).labels
    title = labels.title(labels.counted("persons"), ["SEX"])
    assert (str(title), said(title, Language.GERMAN)) == ("persons by Sex", "Personen nach Geschlecht")


def test_another_language_of_the_release(tmp_path: Path) -> None:
    programme = load_programme(written(tmp_path, release='language = "de"'))
    assert programme.labels.variable("SEX") == "Geschlecht"
    assert said(programme.labels.variable("SEX"), Language.ENGLISH) == "Sex"


def test_a_text_that_lacks_the_language_of_the_release(tmp_path: Path) -> None:
    path = written(tmp_path, release='language = "fr"')
    with pytest.raises(Mistakes) as raised:
        load_programme(path)
    keys = [problem.key for problem in raised.value.problems]
    assert "variables.SEX.label" in keys
    assert "cubes[0].title" in keys
    assert "no text in the language of the release, 'fr'" in str(raised.value)


def test_two_variables_may_not_share_a_translated_label(tmp_path: Path) -> None:
    other = (
        '[variables.KIND]\ncolumn = "sex"\nlabel = { en = "Kind", de = "Geschlecht" }\ncodelist = "sex.csv"'
    )
    with pytest.raises(Mistakes, match="'Geschlecht' is also shown for SEX"):
        load_programme(written(tmp_path, other))


def test_definitions_and_translations_do_not_change_the_digest_of_a_programme(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = load_programme(path).canonical()
    path.write_text(
        path.read_text(encoding="utf-8")
        .replace("As registered.", "As stated.")
        .replace("Geschlecht", "Sexus"),
        encoding="utf-8",
    )
    (tmp_path / "sex.csv").write_text("code,parent,label\n1,,Male\n2,,Female\n")
    assert load_programme(path).canonical() == before


def test_a_codelist_is_read_back_as_written(tmp_path: Path) -> None:
    tree = read_codelist_of(tmp_path, CODES)
    write_codelist(tmp_path / "again.csv", tree)
    again = read_codelist(tmp_path / "again.csv", "SEX")
    assert again.definitions == tree.definitions
    assert [others_of(label) for label in again.labels] == [{"de": "Männlich"}, {}]
    plain = codelist("SEX", [Code("1", "", "Male")])
    write_codelist(tmp_path / "plain.csv", plain)
    assert (tmp_path / "plain.csv").read_text() == "code,parent,label\n1,,Male\n"


def read_codelist_of(folder: Path, text: str):  # type: ignore[no-untyped-def]
    (folder / "some.csv").write_text(text, encoding="utf-8")
    return read_codelist(folder / "some.csv", "SEX")


SDMX_2_1 = """<?xml version="1.0" encoding="UTF-8"?>
<mes:Structure xmlns:mes="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message"
 xmlns:str="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure"
 xmlns:com="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/common">
<mes:Structures><str:Codelists>
 <str:Codelist id="CL_GEO"><com:Name xml:lang="en">Areas</com:Name>
  <str:Code id="_T"><com:Name xml:lang="en">Total</com:Name></str:Code>
  <str:Code id="N"><com:Name xml:lang="en">North</com:Name><com:Name xml:lang="de">Norden</com:Name>
   <com:Description xml:lang="en">All in the north.</com:Description><str:Parent><Ref id="_T"/></str:Parent></str:Code>
  <str:Code id="N1"><com:Name xml:lang="en">Town</com:Name><str:Parent><Ref id="N"/></str:Parent></str:Code>
 </str:Codelist>
 {more}
</str:Codelists></mes:Structures></mes:Structure>"""


def test_a_codelist_of_an_sdmx_message(tmp_path: Path) -> None:
    path = tmp_path / "s.xml"
    path.write_text(SDMX_2_1.format(more=""), encoding="utf-8")
    codes = read_sdmx_codes(path)
    assert [(one.code, one.parent, one.label) for one in codes] == [("N", "", "North"), ("N1", "N", "Town")]
    assert said(codes[0].label, Language.GERMAN) == "Norden"
    assert codes[0].definition == Definition("All in the north.")
    assert read_sdmx_codes(path, "CL_GEO", "de")[0].label == "Norden"


def test_one_of_several_codelists_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "s.xml"
    other = '<str:Codelist id="CL_SEX"><str:Code id="1"/></str:Codelist>'
    path.write_text(SDMX_2_1.format(more=other), encoding="utf-8")
    with pytest.raises(Mistakes, match="has 2 codelists"):
        read_sdmx_codes(path)
    assert [one.code for one in read_sdmx_codes(path, "CL_SEX")] == ["1"]
    with pytest.raises(Mistakes, match="no codelist 'CL_AGE'"):
        read_sdmx_codes(path, "CL_AGE")


def test_a_codelist_of_sdmx_json_with_its_hierarchy(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    urn = "urn:sdmx:org.sdmx.infomodel.codelist.Code=A:CL_GEO(1.0)."
    codes = [
        {"id": "N", "name": "North", "names": {"en": "North", "de": "Norden"}},
        {"id": "N1", "name": "Town"},
    ]
    tree = {
        "id": "H",
        "hierarchicalCodes": [{"code": urn + "N", "hierarchicalCodes": [{"code": urn + "N1"}]}],
    }
    message = {"data": {"codelists": [{"id": "CL_GEO", "codes": codes}], "hierarchies": [tree]}}
    path.write_text(json.dumps(message), encoding="utf-8")
    found = read_sdmx_codes(path)
    assert [(one.code, one.parent) for one in found] == [("N", ""), ("N1", "N")]
    assert others_of(found[0].label) == {"de": "Norden"}


@pytest.mark.parametrize("content", ["<a/>", "<a", "{}", "[1]"])
def test_what_is_no_structure_message_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / ("s.json" if content[0] in "{[" else "s.xml")
    path.write_text(content)
    with pytest.raises(Mistakes, match=r"no codelist|no SDMX structure message"):
        read_sdmx_codes(path)


def test_a_phrase_says_the_labels_in_it_in_its_own_language() -> None:
    text = phrase("without {variable}", variable=translated("Geschlecht", {"en": "Sex"}))
    assert (str(text), said(text, Language.ENGLISH)) == ("without Sex", "without Sex")
    assert said(text, Language.GERMAN) == "ohne Geschlecht"
