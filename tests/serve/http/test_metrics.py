"""Metrics for operators: complete, for administrators only, and without counts or what was asked."""

import re
from pathlib import Path

from discreet.serve.http.security import Role, create_token
from tests.serve.http.conftest import Web
from tests.serve.http.test_native import Ruled


def test_metrics_count_requests_refusals_and_files_and_show_no_query(
    web: Web, ruled: Ruled, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens.json"
    bearer = {"Authorization": f"Bearer {create_token(tokens, 'ann', Role.ADMIN, '')}"}
    client = web(ruled(axes=2), tokens=tokens)
    assert client.get("/metrics").status_code == 403
    before = client.get("/metrics", headers=bearer).text
    assert 'discreet_file_cache_total{result="hit"}' not in before
    for _ in range(2):
        assert client.post("/api/v1/table", json={"axes": ["SEX"]}).status_code == 200
    assert client.post("/api/v1/table", json={"axes": ["NOSUCHTHING"]}).status_code == 400
    assert client.get("/secret/place").status_code == 404
    assert client.post("/api/v1/table", json={"axes": ["SEX", "AGE.L", "EDU"]}).status_code == 403
    found = client.get("/metrics", headers=bearer).text
    assert 'discreet_requests_total{method="POST",route="/api/v1/table",status="200"} 2.0' in found
    assert 'discreet_requests_total{method="GET",route="-",status="404"} 1.0' in found
    assert 'discreet_request_seconds_count{route="/api/v1/table"} 4.0' in found
    assert 'discreet_refusals_total{rule="axes"} 1.0' in found
    assert 'discreet_file_cache_total{result="hit"} 1.0' in found
    assert "discreet_queue 0.0" in found
    assert not re.search("SEX|NOSUCHTHING|secret|ann", found)
