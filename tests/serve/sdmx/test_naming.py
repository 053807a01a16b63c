"""Names, versions and Accept headers: what they mean."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.serve.http.problems import HttpProblem
from discreet.serve.sdmx import negotiation as media
from discreet.serve.sdmx.registry import matches, matches_version

numbers = st.integers(0, 12)


@pytest.mark.parametrize("asked", ["all", "*", "", "NSI", "OTHER+NSI", "OTHER,NSI"])
def test_names_match_themselves_lists_and_all(asked: str) -> None:
    assert matches(asked, "NSI")
    assert matches(asked, "NS") == (asked in ("all", "*", ""))


@pytest.mark.parametrize(
    ("asked", "held", "is_meant"),
    [
        ("latest", "1.0", True),
        ("+", "1.0.0", True),
        ("~", "1.0.0", True),
        ("1.0", "1.0.0", True),
        ("1.0.0", "1.0", True),
        ("1", "1.0.0", True),
        ("1.1", "1.0.0", False),
        ("0.9,1.0", "1.0.0", True),
        ("1.0+", "1.4.0", True),
        ("1.0.3+", "1.0.2", False),
        ("1.2+.0", "1.3.0", True),
        ("1.2+.0", "2.3.0", False),
        ("2+.3.1", "3.0.0", True),
        ("2+.3.1", "2.3.0", False),
        ("1.0-draft", "1.0", False),
        ("one", "1.0", False),
    ],
)
def test_versions_match_as_sdmx_has_it(asked: str, held: str, is_meant: bool) -> None:
    assert matches_version(asked, held) is is_meant


@given(st.tuples(numbers, numbers, numbers), st.tuples(numbers, numbers, numbers))
def test_a_plus_on_the_first_number_means_that_version_or_a_later_one(
    asked: tuple[int, ...], held: tuple[int, ...]
) -> None:
    text = f"{asked[0]}+.{asked[1]}.{asked[2]}"
    assert matches_version(text, ".".join(map(str, held))) == (held >= asked)


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", media.GENERIC),
        ("*/*", media.GENERIC),
        ("application/xml", media.GENERIC),
        ("application/*", media.GENERIC),
        ("text/csv", media.CSV_2),
        ("application/vnd.sdmx.data+csv", media.CSV_2),
        ("application/vnd.sdmx.data+csv;version=2.0.0;labels=id", media.CSV_2),
        ("application/vnd.sdmx.data+csv; version=1.0.0", media.CSV_1),
        ("application/vnd.sdmx.structurespecificdata+xml;version=2.1", media.SPECIFIC),
        ("application/vnd.sdmx.data+json;version=3.0.0, text/csv;q=0.5, */*;q=0.1", media.CSV_2),
        ("application/vnd.sdmx.data+json;version=2.0.0, text/csv;q=0.5, */*;q=0.1", media.JSON_2),
        ("application/vnd.sdmx.data+json;version=1.0", media.JSON_1),
        ("application/json", media.JSON_2),
        ("application/vnd.sdmx.data+xml;version=3.0.0", media.DATA_3_0),
        ("text/csv;q=nonsense", media.CSV_2),
    ],
)
def test_accept_headers_choose_the_format(accept: str, wanted: media.Media) -> None:
    assert media.wanted(accept, media.DATA) is wanted


@given(st.text(max_size=80))
def test_no_accept_header_is_more_than_not_acceptable(accept: str) -> None:
    media.prefers_json(accept)
    with suppress(NotAcceptable):
        assert _chosen(accept) in media.DATA


class NotAcceptable(Exception):
    pass


def _chosen(accept: str) -> media.Media:
    try:
        return media.wanted(accept, media.DATA)
    except HttpProblem as problem:
        if problem.status == 406:
            raise NotAcceptable from None
        raise
