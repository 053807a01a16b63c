"""HEAD of a table answers as GET would, without values; one table has one stated limit of cells."""

import json
from collections.abc import Callable

from httpx import Client

from discreet.serve.answer import Refusal
from discreet.serve.open import TableBuilder
from tests.serve.conftest import query


def test_head_of_a_table(client: Client) -> None:
    asked = {"query": json.dumps({"axes": ["AGE.L", "SEX"]}), "format": "csv"}
    found, whole = client.head("/api/v1/table", params=asked), client.get("/api/v1/table", params=asked)
    assert found.status_code == whole.status_code == 200
    assert found.headers["content-type"] == whole.headers["content-type"]
    assert found.content == b""
    assert client.head("/api/v1/table", params={"query": '{"axes": ["NONE"]}'}).status_code == 400


def test_a_table_that_is_too_large_has_one_stated_limit(ruled: Callable[..., TableBuilder]) -> None:
    builder = ruled(cells=10, job_cells=20)
    large = query("AGE.L", "SEX")
    said = builder.ask(large, "u")
    assert isinstance(said, Refusal)
    before = builder.preview(large, "u").refusal
    assert before is not None
    assert (
        str(said.message)
        == str(before.message)
        == "The table has 21 cells; 20 are allowed. Pick fewer codes or coarser breakdowns."
    )
