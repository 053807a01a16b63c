"""The GeoJSON file of a server's map, checked before the server starts: no browser shall find its mistakes."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from types import NoneType

from discreet.errors import mistake
from discreet.io.serialize import read_json

OPTION = "--geometry"
REMEDY = "give a FeatureCollection whose features have the codes of areas as id or property"
DEPTH = {  # kind of geometry -> how deep its positions are nested (RFC 7946, 3.1)
    "Point": 0,
    "MultiPoint": 1,
    "LineString": 1,
    "MultiLineString": 2,
    "Polygon": 2,
    "MultiPolygon": 3,
}
DEEPEST = 8  # collections within collections


def read_geometry(path: Path) -> int:
    """Check a file of GeoJSON (RFC 7946) and return the number of its features."""
    try:
        content = read_json(path)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise mistake(path, OPTION, reason, "name a GeoJSON file that you may read") from None
    except ValueError:
        raise mistake(path, OPTION, "is not JSON in UTF-8, or nested too deeply", REMEDY) from None
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list) or not features:
        raise mistake(path, OPTION, "is not GeoJSON with features", REMEDY)
    for number, one in enumerate(features):
        if not _is_feature(one):
            raise mistake(path, OPTION, f"features[{number}] is not a GeoJSON feature", REMEDY)
        if one["geometry"] is not None and not _is_geometry(one["geometry"]):
            remedy = "give finite numbers, nested as the type of the geometry demands"
            raise mistake(path, OPTION, f"features[{number}] has a geometry that cannot be drawn", remedy)
    return len(features)


@lru_cache(maxsize=4)
def codes_of_shapes(path: Path, changed: int) -> frozenset[str]:
    """What may be the code of an area in a checked file: ids and properties; ``changed`` is the time of the file."""
    features = read_json(path)["features"]
    ids = {str(one["id"]) for one in features if "id" in one}
    return frozenset(
        ids | {str(value) for one in features for value in (one.get("properties") or {}).values()}
    )


def _is_feature(found: object) -> bool:
    """Whether an object has a geometry (null: no place) and properties."""
    return (
        isinstance(found, dict)
        and isinstance(found.get("geometry", ()), dict | NoneType)
        and isinstance(found.get("properties"), dict | NoneType)
    )


def _is_geometry(found: object, depth: int = 0) -> bool:
    if not isinstance(found, dict):
        return False
    kind = found.get("type")
    if kind == "GeometryCollection":
        parts = found.get("geometries")
        return (
            depth < DEEPEST and isinstance(parts, list) and all(_is_geometry(one, depth + 1) for one in parts)
        )
    return isinstance(kind, str) and kind in DEPTH and _are_positions(found.get("coordinates"), DEPTH[kind])


def _are_positions(found: object, depth: int) -> bool:
    """Whether lists are nested so deep, and end with two or more finite numbers."""
    if not isinstance(found, list):
        return False
    if depth:
        return all(_are_positions(one, depth - 1) for one in found)
    return len(found) >= 2 and all(_is_number(one) for one in found)


def _is_number(found: object) -> bool:
    """Whether it is a finite number; a longer one than browsers read is infinite to them."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    try:
        return math.isfinite(float(found))
    except OverflowError:
        return False
