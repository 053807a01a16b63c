"""GeoJSON that no browser could draw is refused before the server starts, in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import Mistakes
from discreet.serve.http.geometry import read_geometry

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1.5], [0, 0]]]}


def feature(geometry: Any, **more: Any) -> str:
    return json.dumps(
        {
            "type": "FeatureCollection",
            "features": [{"type": "Feature", "geometry": geometry, "properties": {}, **more}],
        }
    )


@pytest.mark.parametrize(
    "geometry",
    [
        SQUARE,
        None,
        {"type": "Point", "coordinates": [1, 2, 3]},
        {"type": "MultiPolygon", "coordinates": [SQUARE["coordinates"]] * 2},
        {"type": "GeometryCollection", "geometries": [SQUARE, {"type": "LineString", "coordinates": []}]},
    ],
)
def test_sound_features_are_accepted(tmp_path: Path, geometry: Any) -> None:
    (tmp_path / "g.json").write_text(feature(geometry, id="A"))
    assert read_geometry(tmp_path / "g.json") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"features":' * 50_000, "nested too deeply"),
        ("{", "not JSON"),
        ('{"a": NaN}', "not JSON"),
        ('{"name": "\\ud800", "features": [{}]}', "not JSON"),
        ("null", "not GeoJSON with features"),
        ("5", "not GeoJSON with features"),
        ('{"features": []}', "not GeoJSON with features"),
        ('{"features": [null]}', "features[0] is not a GeoJSON feature"),
        ('{"features": [5]}', "features[0] is not a GeoJSON feature"),
        ('{"features": [{"properties": {}}]}', "features[0] is not a GeoJSON feature"),
        ('{"features": [{"geometry": null, "properties": 1}]}', "features[0] is not a GeoJSON feature"),
        (feature({"type": "Polygon", "coordinates": None}), "cannot be drawn"),
        (feature({"type": "Polygon", "coordinates": [[0, 0]]}), "cannot be drawn"),
        (feature({"type": "Polygon", "coordinates": [[[None, 0]]]}), "cannot be drawn"),
        (feature({"type": "Polygon", "coordinates": [[["0", "0"]]]}), "cannot be drawn"),
        (feature({"type": "Point", "coordinates": [True, 0]}), "cannot be drawn"),
        (feature({"type": "Point", "coordinates": [10**400, 0]}), "cannot be drawn"),
        (
            feature({"type": "Point", "coordinates": [0, 0]}).replace("[0, 0]", "[1e400, 0]"),
            "cannot be drawn",
        ),
        (feature({"type": "Ball", "coordinates": [0, 0]}), "cannot be drawn"),
        (feature({"type": "GeometryCollection", "geometries": [5]}), "cannot be drawn"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "g.json").write_text(text)
    with pytest.raises(Mistakes) as error:
        read_geometry(tmp_path / "g.json")
    assert says in str(error.value)
    assert str(error.value).count("\n") == 0


def test_collections_within_collections_are_bounded(tmp_path: Path) -> None:
    geometry: Any = SQUARE
    for _ in range(50):
        geometry = {"type": "GeometryCollection", "geometries": [geometry]}
    (tmp_path / "g.json").write_text(feature(geometry))
    with pytest.raises(Mistakes, match="cannot be drawn"):
        read_geometry(tmp_path / "g.json")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="no such file"):
        read_geometry(tmp_path / "none.json")
