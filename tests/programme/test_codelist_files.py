"""Codelist files: every accepted form, round trips, mistakes with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.programme.codelist import Code, Codelist, codelist, read_codelist, write_codelist

TREE = [("A", ""), ("a1", "A"), ("a2", "A"), ("B", ""), ("b1", "B"), ("b1x", "b1")]


def file(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def pairs(tree: Codelist) -> list[tuple[str, str]]:
    return [
        (code, tree.codes[parent] if parent >= 0 else "")
        for code, parent in zip(tree.codes, tree.parents, strict=True)
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "code,parent,label\nA,,\na1,A,\na2,A,\nB,,\nb1,B,\nb1x,b1,\n"),
        ("x.csv", "\ufeffcode,parent,label\r\nA,,\r\na1,A,\r\na2,A,\r\nB,,\r\nb1,B,\r\nb1x,b1,\r\n"),
        ("x.csv", "label;code;order;parent\n;A;1;\n;a1;2;A\n;a2;3;A\n;B;4;\n;b1;5;B\n;b1x;6;b1\n"),
        ("x.csv", "code,parent,label\n_T,,all\nA,_T,\na1,A,\na2,A,\nB,_T,\nb1,B,\nb1x,b1,\n"),
        ("x.txt", "code,parent\nA,\na1,A\na2,A\nB,\nb1,B\n\nb1x,b1\n"),
        ("x.hrc", "A\n@a1\n@a2\nB\n@b1\n@@b1x\n"),
        ("x.hrc", "Total\r\n@A\r\n@@a1\r\n@@a2\r\n@B\r\n@@b1\r\n@@@b1x\r\n"),
        ("x.hrc", "_T\n@A\n@@a1\n@@a2\n@B\n@@b1\n@@@b1x"),
        ("x.txt", "@ Total\n@@ A\n@@@ a1\n@@@ a2\n@@ B\n@@@ b1\n@@@@ b1x\n"),
        ("x.txt", "@;Total\n@@;A\n@@@;a1\n@@@;a2\n@@;B\n@@@;b1\n@@@@;b1x\n"),
        ("x.csv", "levels;codes\n@;whole\n@@;A\n@@@;a1\n@@@;a2\n@@;B\n@@@;b1\n@@@@;b1x\n"),
        (
            "x.csv",
            '"level","name"\n"@","tot"\n"@@","A"\n"@@@","a1"\n"@@@","a2"\n"@@","B"\n"@@@","b1"\n"@@@@","b1x"\n',
        ),
        (
            "x.csv",
            '"","level","code"\n"1","@","tot"\n"2","@@","A"\n"3","@@@","a1"\n"4","@@@","a2"\n"5","@@","B"\n"6","@@@","b1"\n"7","@@@@","b1x"\n',
        ),
    ],
)
def test_every_form_gives_the_same_tree(tmp_path: Path, name: str, text: str) -> None:
    assert pairs(read_codelist(file(tmp_path, name, text), "X")) == TREE


def test_another_lead_character(tmp_path: Path) -> None:
    text = "A\n#a1\n#a2\nB\n#b1\n##b1x\n"
    assert pairs(read_codelist(file(tmp_path, "x.hrc", text), "X", "#")) == TREE
    assert pairs(read_codelist(file(tmp_path, "y.hrc", text.replace("#", " ")), "X", " ")) == TREE


def test_a_single_root_that_is_no_total_is_a_code(tmp_path: Path) -> None:
    tree = read_codelist(file(tmp_path, "x.hrc", "NL\n@NL1\n@NL2\n"), "X")
    assert tree.codes == ("NL", "NL1", "NL2")
    assert read_codelist(file(tmp_path, "y.hrc", "Total\nother\n"), "X").codes == ("Total", "other")


def test_quoting_and_labels(tmp_path: Path) -> None:
    text = 'code,parent,label,note\n"a,1",,"says ""hi"", twice\nor so",x\nb,"a,1",\n'
    tree = read_codelist(file(tmp_path, "x.csv", text), "X")
    assert tree.codes == ("a,1", "b")
    assert tree.labels == ('says "hi", twice\nor so', "b")


@pytest.mark.parametrize(
    ("name", "text", "where", "said"),
    [
        ("x.csv", "code,parent,label\nA,,one, two\nB,,x\nC,,a,b,c\n", "line 2", "put quotes around"),
        ("x.csv", 'code,parent,label\nA,,"open\n', "line 2", "broken CSV"),
        ("x.csv", "kode,parent\nA,\n", "line 1", "name the columns code,parent,label"),
        ("x.csv", b"code,label\nA,\xe9\n", "byte 13", "save the codelist as UTF-8"),
        ("x.csv", "", "line 1", "name the columns"),
        ("x.csv", "code,parent,label\n", "codelist X", "no codes"),
        ("x.csv", "code,parent\nA,Z\n", "codelist X", "unknown parent 'Z'"),
        ("x.csv", "code,parent\nA,B\nB,A\n", "codelist X", "is its own ancestor"),
        ("x.csv", "code,parent\nA,\nA,\n", "codelist X", "occurs twice"),
        ("x.hrc", "", "", "has no codes"),
        ("x.hrc", "A\n@@a\n", "line 2", "skips a level"),
        ("x.hrc", "@@A\n@B\n", "line 2", "is above the first code"),
        ("x.hrc", "A\n@\n", "line 2", "a level without a code"),
        ("x.txt", "@;Total\n@@;A\nB\n", "line 3", "no level before 'B'"),
    ],
)
def test_mistakes_name_file_and_line(
    tmp_path: Path, name: str, text: str | bytes, where: str, said: str
) -> None:
    path = file(tmp_path, name, text)
    with pytest.raises(Mistakes) as caught:
        read_codelist(path, "X")
    assert caught.value.problems[0].file == str(path)
    assert caught.value.problems[0].key == where
    assert said in str(caught.value)


def test_every_long_line_is_told(tmp_path: Path) -> None:
    with pytest.raises(Mistakes) as caught:
        read_codelist(file(tmp_path, "x.csv", "code\nA,b\nC\nD,e\n"), "X")
    assert [problem.key for problem in caught.value.problems] == ["line 2", "line 4"]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="cannot be read"):
        read_codelist(tmp_path / "none.csv", "X")
    with pytest.raises(Mistakes, match="cannot be read"):
        read_codelist(tmp_path, "X")


PRINTABLE = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
    lambda text: text.strip() not in ("", "_T")
)
WORDS = st.from_regex(r"\A[A-Za-z0-9_.-]{1,6}\Z").filter(lambda text: text.lower() not in ("_t", "total"))


def trees(codes: st.SearchStrategy[str]) -> st.SearchStrategy[Codelist]:
    @st.composite
    def build(draw: st.DrawFn) -> Codelist:
        names = draw(st.lists(codes, min_size=1, max_size=12, unique=True))
        rows = [
            Code(
                name,
                names[parent] if (parent := draw(st.integers(-1, place - 1))) >= 0 else "",
                draw(PRINTABLE),
            )
            for place, name in enumerate(names)
        ]
        return codelist("X", rows)

    return build()


reuse = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@reuse
@given(trees(PRINTABLE))
def test_csv_round_trip(tmp_path: Path, tree: Codelist) -> None:
    path = tmp_path / "x.csv"
    write_codelist(path, tree)
    back = read_codelist(path, "X")
    assert (back.codes, back.parents, back.labels, back.depths) == (
        tree.codes,
        tree.parents,
        tree.labels,
        tree.depths,
    )


@reuse
@given(
    trees(WORDS),
    st.sampled_from([("x.hrc", "", ""), ("x.txt", "@;Total\n@", ";"), ("x.txt", "@ all\n@", " ")]),
)
def test_indented_round_trip(tmp_path: Path, tree: Codelist, form: tuple[str, str, str]) -> None:
    name, root, between = form
    extra = "@" if root else ""
    lines = [
        f"{extra}{'@' * depth}{between}{code}" for code, depth in zip(tree.codes, tree.depths, strict=True)
    ]
    head = [root.split("\n")[0]] if root else []
    text = "\n".join([*head, *(line if root else line[1:] for line in lines)])
    back = read_codelist(file(tmp_path, name, text), "X")
    assert (back.codes, back.parents) == (tree.codes, tree.parents)


def test_a_file_of_too_many_codes_is_refused_before_it_is_read_for_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.programme.codelist.MOST_CODES", 3)
    path = tmp_path / "codes.csv"
    path.write_text("code,parent,label\na,,\nb,,\nc,,\n")
    assert read_codelist(path, "X").codes == ("a", "b", "c")
    path.write_text("code,parent,label\na,,\nb,,\nc,,\nd,,\n")
    with pytest.raises(Mistakes, match="more than 3 codes; declare larger areas"):
        read_codelist(path, "X")
