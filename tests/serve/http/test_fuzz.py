"""Whatever the OpenAPI document allows, and what it does not, is answered without an error of the server's own."""

from contextlib import suppress
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.result import Ok

FEW, MANY = 2, 40  # requests of each route: in every run, and in the long one
TOLD = ("application/problem+json", "application/xml")  # the second to clients of SDMX
QUICK = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def described(address: str) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("requests", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_no_request_is_answered_with_an_error_of_the_server(
    described: schemathesis.BaseSchema, mode: GenerationMode, requests: int
) -> None:
    operations = [found.ok() for found in described.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) > 20
    if mode is GenerationMode.NEGATIVE and requests == FEW:
        operations = [one for one in operations if has_more_than_a_path(one)]
    asked = [answered(operation.as_strategy(generation_mode=mode), requests) for operation in operations]
    assert sum(map(bool, asked)) > len(operations) / 2


def has_more_than_a_path(operation: schemathesis.APIOperation[Any, Any, Any, Any]) -> bool:
    """Whether a request can be wrong by more than text in its path, for which nearly everything is right."""
    parts = (operation.body, operation.query, operation.headers, operation.cookies)
    return any(len(list(part)) > 0 for part in parts)


def answered(cases: st.SearchStrategy[schemathesis.Case[Any]], requests: int) -> int:
    """Ask at random and judge what comes back; the number of questions, 0 where there is nothing to ask."""
    number = 0

    @given(case=cases)
    @settings(QUICK, max_examples=requests)
    def asked(case: schemathesis.Case[Any]) -> None:
        nonlocal number
        answer = case.call()
        assert answer.status_code < 500, f"{case.as_curl_command()[:2000]}\n{answer.text[:2000]}"
        if answer.status_code >= 400:
            assert answer.headers["content-type"][0].startswith(TOLD)
        number += 1

    with suppress(Unsatisfiable):  # of a route without parameters nothing can be wrong
        asked()
    return number


def test_the_document_names_the_routes(described: schemathesis.BaseSchema) -> None:
    paths = set(described.raw_schema["paths"])
    assert {"/api/v1/table", "/api/v2/tables/{id}/data", "/q/{name}", "/api/v1/jobs/{name}/result"} <= paths


@pytest.mark.parametrize("form", ["json-stat", "csv", "xlsx", "px", "parquet", "sdmx-csv"])
def test_the_document_names_what_a_table_comes_as(
    described: schemathesis.BaseSchema, address: str, form: str
) -> None:
    answer = httpx.post(f"{address}/api/v1/table", params={"format": form}, json={"axes": ["SEX"]})
    told = described.raw_schema["paths"]["/api/v1/table"]["post"]["responses"]["200"]["content"]
    assert answer.headers["content-type"].partition(";")[0] in told
