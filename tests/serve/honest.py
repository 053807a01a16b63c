"""A session of a person who studies housing, age and education in several regions: 50 tables, 8 of them filtered."""

from discreet.serve.query import Axis, Query

REGION = "GEO.M"
WORKING = 'AGE in ("Y15-29", "Y30-49", "Y50-64")'
OLD = 'AGE in ("Y65-84", "Y_GE85")'


def asked(*axes: str, where: str = "", unit: str = "persons") -> Query:
    return Query(unit, tuple(map(Axis, axes)), where)


SESSION = (
    asked("GEO.H"),
    asked("GEO.H", "SEX"),
    asked("GEO.H", "AGE.L"),
    asked("GEO.H", "AGE.M", "SEX"),
    asked(REGION, "AGE.H"),
    asked("GEO.H", "EDU"),
    asked(REGION, "EDU", "SEX"),
    asked(REGION, "EDU", "AGE.L"),
    asked("EDU", "AGE.M", "SEX"),
    asked("GEO.H", "HAR"),
    asked(REGION, "HAR", "AGE.L"),
    asked("HAR", "AGE.M", "SEX"),
    asked("GEO.H", "CAS.L"),
    asked(REGION, "CAS.L", "AGE.L"),
    asked(REGION, "CAS.H", "SEX"),
    asked("CAS.H", "EDU", "SEX"),
    asked(REGION, "EDU", "CAS.L", where=WORKING),
    asked(REGION, "SEX", "CAS.L", where=WORKING),
    asked("EDU", "CAS.H", "SEX", where=WORKING),
    asked(REGION, "OCC", "SEX"),
    asked("OCC", "EDU"),
    asked("OCC", "AGE.L", "SEX"),
    asked(REGION, "IND.L", "SEX"),
    asked("IND.L", "EDU"),
    asked(REGION, "HST.M", "AGE.L"),
    asked("GEO.H", "HST.L"),
    asked("HST.H", "AGE.M", "SEX"),
    asked(REGION, "HST.M", where=OLD),
    asked(REGION, "HAR", "SEX", where=OLD),
    asked("HST.H", "SEX", where=OLD),
    asked("GEO.H", "FST.L"),
    asked(REGION, "FST.M", "AGE.L"),
    asked(REGION, "FST.L", "EDU"),
    asked("GEO.H", "LMS.L"),
    asked(REGION, "LMS.H", "AGE.L"),
    asked("LMS.H", "AGE.M", "SEX"),
    asked(REGION, "LMS.L", "EDU"),
    asked("GEO.H", "POB.L"),
    asked(REGION, "POB.M", "EDU"),
    asked("POB.M", "AGE.L", "SEX"),
    asked(REGION, "YAE.L"),
    asked(REGION, "POB.L", "CAS.L", where=WORKING),
    asked("POB.M", "EDU", "SEX", where=WORKING),
    asked("GEO.H", "LOC"),
    asked("LOC", "SEX"),
    asked("GEO.H", "TOB", unit="dwellings"),
    asked("GEO.H", "OWS", unit="dwellings"),
    asked(REGION, "OWS", "NOR", unit="dwellings"),
    asked(REGION, "TOB", "POC", unit="dwellings"),
    asked("GEO.H", "NOR", unit="dwellings"),
)
