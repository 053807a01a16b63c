"""Structures as SDMX-ML 2.1, SDMX-ML 3.0 and SDMX-JSON 2.0; pysdmx writes them, and what clients stumble over goes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pysdmx.io.format import Format
from pysdmx.io.writer import write_sdmx
from pysdmx.model import Hierarchy, Organisation
from pysdmx.model.message import Header

from discreet.release.sdmx_ids import component_id
from discreet.release.sdmx_structures import PREPARED, readable
from discreet.serve.http.problems import HttpProblem
from discreet.serve.sdmx.media import STRUCTURE_2_1, STRUCTURE_3_0, STRUCTURE_JSON, Media
from discreet.words.phrase import phrase

_FORMATS = {
    STRUCTURE_2_1: Format.STRUCTURE_SDMX_ML_2_1,
    STRUCTURE_3_0: Format.STRUCTURE_SDMX_ML_3_0,
    STRUCTURE_JSON: Format.STRUCTURE_SDMX_JSON_2_0_0,
}
_NO_COMPONENTS = re.compile(r"\s*<str:DataStructureComponents>\s*</str:DataStructureComponents>")


def write_structures(artefacts: Sequence[Any], media: Media, agency: str) -> bytes:
    """A structure message; an SDMX-ML 2.1 one has no hierarchies, which are of 3.0."""
    if media is STRUCTURE_2_1:
        artefacts = [one for one in artefacts if not isinstance(one, Hierarchy)]
    if not artefacts:
        words = phrase("No results in {one}; ask for {other}.", one=media.text, other=STRUCTURE_3_0.text)
        raise HttpProblem(404, words)
    header = Header(id="STRUCTURES", prepared=PREPARED, sender=Organisation(id=component_id(agency)))
    text = write_sdmx(list(artefacts), _FORMATS[media], header=header, prettyprint=False) or ""
    if media is STRUCTURE_JSON:
        return _without_empty_components(text)
    return readable(_NO_COMPONENTS.sub("", text)).encode()


def _without_empty_components(text: str) -> bytes:
    """A stub of a data structure has no components, rather than an empty list of them."""
    message = json.loads(text)
    for structure in message["data"].get("dataStructures", ()):
        components = structure.get("dataStructureComponents", {})
        if not components.get("dimensionList", {}).get("dimensions"):
            structure.pop("dataStructureComponents", None)
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
