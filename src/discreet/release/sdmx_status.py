"""The two attributes of an SDMX observation that say whether its value is shown; it owns their codes, nothing else."""

from __future__ import annotations

from pysdmx.model import Code, Codelist

STATUS, CONFIDENTIALITY = "OBS_STATUS", "CONF_STATUS"
PUBLISHED = {STATUS: "A", CONFIDENTIALITY: "F"}
SUPPRESSED = {STATUS: "Q", CONFIDENTIALITY: "C"}
ATTRIBUTES = {  # attribute -> name, and its codes with their labels, which are those that SDMX recommends
    STATUS: ("Status of the observation", {"A": "Normal value", "Q": "Suppressed value"}),
    CONFIDENTIALITY: ("Confidentiality", {"F": "Free for publication", "C": "Confidential"}),
}


def attribute_lists(agency: str, version: str) -> dict[str, Codelist]:
    """Attribute -> its codelist."""
    return {
        name: Codelist(
            id=f"CL_{name}",
            name=said,
            agency=agency,
            version=version,
            items=tuple(Code(id=code, name=label) for code, label in labels.items()),
        )
        for name, (said, labels) in ATTRIBUTES.items()
    }
