from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.page.markup import (
    As,
    Column,
    Tile,
    count,
    decimal,
    paragraph,
    safe,
    several,
    share,
    table,
    tiles,
)


class Read(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_no_text_is_taken_for_markup(words: str) -> None:
    reader = Read()
    reader.feed(f"<p>{safe(words)}</p>")
    reader.close()
    assert reader.tags == ["p"]
    assert reader.words == words


def test_names_from_files_cannot_break_out_of_a_table() -> None:
    evil = '"><script>alert(1)</script>'
    shown = table(evil, [Column(evil), Column("n", As.COUNT)], [(evil, 1), (evil, 2)])
    assert "<script" not in shown + paragraph(evil) + tiles([Tile(evil, evil, evil)])


def test_numbers_sort_by_value_and_missing_ones_say_so() -> None:
    shown = table("t", [Column("share", As.SHARE)], [(0.5,), (None,), (12345678,)])
    assert 'data-value="0.5">50%' in shown
    assert '<td data-value="">–</td>' in shown
    assert "sortable" in shown
    assert "sortable" not in table("t", [Column("a")], [("one row",)])


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.0, "0%"), (1.0, "100%"), (0.0004, "<0.1%"), (0.9999, ">99.9%"), (0.123, "12.3%"), (12.0, "1,200%")],
)
def test_a_share_never_looks_like_none_or_all_when_it_is_not(value: float, told: str) -> None:
    assert share(value) == told


def test_numbers_are_for_people() -> None:
    assert count(1234567) == "1,234,567"
    assert decimal(1.41421) == "1.41"
    assert decimal(1234.5) == "1,234"
    assert decimal(1.5e-7) == "1.5e-07"
    assert decimal(3.3e-16) == decimal(-3.3e-16) == "below 1e-12"
    assert decimal(0.0) == "0"
    assert share(-3.3e-16) == "0%"
    assert several(1, "table", "tables") == "1 table"
    assert share(None) == count(None) == decimal(None) == "–"
