"""Both languages over HTTP: how one is chosen, what is said in it, and that kept answers do not mix them."""

import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from httpx import Client, Response
from openpyxl import load_workbook

from discreet.io.register import Register
from discreet.perturb.ledger import Ledger
from discreet.programme.serve import HistoryRule, ServeRule, SparsityRule
from discreet.release.reader import Release
from discreet.serve import page
from discreet.serve.http.jobs import JobWorker
from discreet.serve.http.settings import Limits, RateLimit
from discreet.serve.jobs_store import JobState, Store
from discreet.serve.open import TableBuilder, serve_programme, serve_release
from tests.cases import few
from tests.serve.conftest import NOON, SECRET, query
from tests.serve.http.conftest import Web
from tests.serve.test_budget import GEOMETRIC, declared
from tests.waiting import until

Ruled = Callable[..., TableBuilder]
SMALL = {"axes": ["SEX"]}
ENGLISH = re.compile(r"\b(the|has|are|is|not|with|from|one|of)\b", re.IGNORECASE)


def speaks(answer: Response, language: str) -> Any:
    assert answer.headers["content-language"] == language, answer.text
    assert "accept-language" in answer.headers["vary"].lower()
    return answer.json()


PX1 = "/pxweb/api/v1"


def in_both(client: Client, path: str, **asked: Any) -> tuple[Any, Any]:
    """The same request in English and in German."""
    method = "POST" if "json" in asked else "GET"
    answers = [
        client.request(method, path, headers={"Accept-Language": tag}, **asked) for tag in ("en", "de")
    ]
    assert answers[0].status_code == answers[1].status_code
    return speaks(answers[0], "en"), speaks(answers[1], "de")


@pytest.mark.parametrize(
    ("lang", "header", "own", "chosen"),
    few(
        [
            ("", "", "en", "en"),
            ("", "", "de", "de"),
            ("", "", "de-AT", "de"),
            ("", "", "fr", "en"),
            ("de", "en", "en", "de"),
            ("de-AT", "", "en", "de"),
            ("EN_gb", "de", "de", "en"),
            ("fr", "de", "en", "de"),
            ("xx", "", "de", "de"),
            ("", "de-AT,de;q=0.9,en;q=0.8", "en", "de"),
            ("", "en;q=0.5, de;q=0.7", "en", "de"),
            ("", "de;q=0.5, en", "de", "en"),
            ("", "fr, de;q=0.1", "en", "de"),
            ("", "fr", "de", "de"),
            ("", "fr, *;q=0.5", "de", "de"),
            ("", "de;q=0, *", "de", "en"),
            ("", "de;q=0", "en", "en"),
            ("", ";;,=;q=x,de;q=nonsense", "en", "de"),
        ],
        2,
        4,
        7,
        9,
        15,
        17,
    ),
)
def test_the_address_decides_then_the_browser_then_the_server(
    web: Web, lang: str, header: str, own: str, chosen: str
) -> None:
    client = web(language=own)
    parameters = {"lang": lang} if lang else {}
    said = speaks(
        client.get("/api/v1/catalogue", params=parameters, headers={"Accept-Language": header}), chosen
    )
    assert said["additivity"].startswith({"en": "Each count", "de": "Jede Zahl"}[chosen])
    assert said["noise"].startswith({"en": "Counts are", "de": "Die Zahlen sind"}[chosen])


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"axes": 1}, {"axes": ["SEX", "EDU"]}, "axes", "Die Tabelle hat 2 Achsen; erlaubt sind höchstens 1."),
    (
        {"axes": 1},
        {"axes": ["EDU"], "where": 'SEX == "1"'},
        "axes",
        "Die Tabelle hat 2 Achsen, jene des Filters mitgezählt; erlaubt sind höchstens 1.",
    ),
    ({"cells": 2}, SMALL, "cells", r"Die Tabelle hat 3 Zellen; .* Als Hintergrundauftrag ist sie zu haben\."),
    ({"cells": 2, "job_cells": 2}, SMALL, "cells", r"Die Tabelle hat 3 Zellen; .* weniger Codes .*"),
    ({"counted": 2}, SMALL, "counted", r"Die ganze Tabelle hat mit ihren Summen 3 Zellen; .*"),
    (
        {"forbidden": (("SEX", "EDU"),)},
        {"axes": ["EDU", "SEX"]},
        "forbidden",
        r"Geschlecht und Bildungsabschluss dürfen nicht in einer Tabelle stehen\.",
    ),
    (
        {"filters": False},
        {"axes": ["SEX"], "where": 'EDU == "1"'},
        "filters",
        r"Erlaubt sind nur die Filter .*",
    ),
    (
        {"groupings": ("EDU",)},
        {"axes": [{"breakdown": "AGE", "groups": {"young": ["Y_LT15"]}}]},
        "groupings",
        r"Die Codes von Alter dürfen nicht zusammengefasst werden; erlaubt ist es für: Bildungsabschluss\.",
    ),
    (
        {"place": "GEO", "area_population": 10_000_000},
        {"axes": ["GEO.H", "SEX"]},
        "area_population",
        r"\d+ von \d+ Gebieten .*: Das Gebiet hat zu wenige Personen oder andere Einheiten\.",
    ),
    (
        {"sparsity": SparsityRule(0.05, 0.1)},
        {"axes": ["AGE.H", "CAS.H", "EDU"]},
        "sparsity",
        r"Die Tabelle hat zu viele kleine Zahlen\.",
    ),
    ({"attribute": 0.0}, {"axes": ["AGE.L", "CAS.H"]}, "attribute", r"Die Tabelle hat zu viele Gruppen, .*"),
]


@pytest.mark.parametrize(("rules", "asked", "rule", "german"), few(REFUSED, 1, 6, 8))
def test_every_rule_refuses_in_both_languages(
    web: Web, ruled: Ruled, rules: dict[str, Any], asked: dict[str, Any], rule: str, german: str
) -> None:
    english, said = in_both(web(ruled(**rules)), "/api/v1/table", json=asked)
    assert english["rule"] == said["rule"] == rule
    assert (english["title"], said["title"]) == ("Not allowed", "Nicht erlaubt")
    assert re.fullmatch(german, said["detail"]), said["detail"]
    assert ENGLISH.search(english["detail"])
    assert not ENGLISH.search(said["detail"])
    words = [
        (one["words"], other["words"]) for one, other in zip(english["nearest"], said["nearest"], strict=True)
    ]
    for one, other in words:
        assert re.match("coarser|larger areas|without|the same table", one)
        assert re.match("gröber|größere Gebiete|ohne|dieselbe Tabelle", other)
    assert [one["query"] for one in english["nearest"]] == [one["query"] for one in said["nearest"]]


def test_a_preview_refuses_in_both_languages(web: Web, ruled: Ruled) -> None:
    english, said = in_both(
        web(ruled(axes=1)), "/api/v1/preview?nearest=true", json={"axes": ["SEX", "AGE.M"]}
    )
    assert english["refusal"]["words"].startswith("The table has 2 axes")
    assert said["refusal"]["words"].startswith("Die Tabelle hat 2 Achsen")
    offers = [one["words"] for one in said["refusal"]["nearest"]]
    coarser = "gröber: Alter (grobe Gruppen) statt Fünfjahresgruppen, ohne Geschlecht"
    assert offers == ["ohne Geschlecht", "ohne Alter", coarser]


def test_histories_refuse_and_warn_in_both_languages(web: Web, ruled: Ruled) -> None:
    client = web(ruled(history=HistoryRule(difference=10_000)))
    assert client.post("/api/v1/table", json={"axes": ["EDU"]}).status_code == 200
    asked = {"axes": ["EDU"], "where": 'AGE != "Y_LT15"'}
    english, said = in_both(client, "/api/v1/table", json=asked)
    assert "differ by fewer than 10,000 records; only one of them is answered." in english["detail"]
    assert said["detail"].endswith("um weniger als 10.000 Einheiten; nur eine von beiden wird beantwortet.")
    assert "und für alle " in said["detail"]
    client = web(ruled(history=HistoryRule(warn=0.01)))
    warned = client.post("/api/v1/table?lang=de", json={"axes": ["EDU", "SEX"]}).json()
    assert "mit einer Wahrscheinlichkeit über 0,01 genau bestimmen" in warned["extension"]["warnings"][0]
    assert warned["extension"]["warnings"][0] in warned["note"]


def test_costs_and_budgets_are_told_in_both_languages(web: Web, census: Path, tmp_path: Path) -> None:
    programme = declared(census, tmp_path / "c", GEOMETRIC, "account = { each = 1, user = 5 }")
    ledger = Ledger.create(str(tmp_path / "l.sqlite"), lambda: NOON)
    store = Store(tmp_path / "s.sqlite", lambda: NOON)
    client = web(
        serve_programme(
            programme, SECRET, store, ledger=ledger, register=Register.of(tmp_path / "register", SECRET)
        )
    )
    english, said = in_both(client, "/api/v1/preview", json={"axes": ["OCC"]})
    assert re.fullmatch(r"epsilon = [\d.]+ for \d+ new cross-tabulations", english["cost"])
    assert re.fullmatch(r"epsilon = [\d,]+; neue Kreuztabellen: \d+", said["cost"])
    english, said = in_both(client, "/api/v1/table", json={"axes": ["OCC", "HAR", "LOC"]})
    assert (english["rule"], said["rule"]) == ("budget", "budget")
    assert "von Ihrem Privatheitsbudget" in said["detail"]
    english, said = in_both(client, "/api/v1/table", json={"axes": ["OCC"]})
    assert "All answers to one user together" in english["extension"]["noise"]
    assert "durch Rauschen in jeder Zelle (Art: geometric)" in said["extension"]["noise"]
    assert "Kreuztabellen = " in said["extension"]["noise"]
    assert "Alle Antworten an eine Person zusammen" in said["extension"]["noise"]
    assert in_both(client, "/api/v1/preview", json={"axes": ["OCC"]})[1]["cost"].startswith("nichts")


def test_a_release_says_what_it_lacks_and_its_noise_in_both_languages(
    web: Web, release: Release, tmp_path: Path
) -> None:
    client = web(serve_release(release, Store(tmp_path / "s.sqlite", lambda: NOON), rule=ServeRule()))
    english, said = in_both(client, "/api/v1/table", json={"axes": ["GEO.H", "EDU"]})
    assert (english["rule"], english["title"], said["title"]) == (
        "not_published",
        "Not found",
        "Nicht gefunden",
    )
    assert (
        said["detail"]
        == "Keine Tabelle der Veröffentlichung enthält Bildungsabschluss x Wohnort (Gemeinden) von Personen."
    )
    noise = in_both(client, "/api/v1/catalogue")[1]["noise"]
    assert noise.startswith("Die Zahlen sind verändert durch die Cell-Key-Methode.")
    assert not ENGLISH.search(noise)


def test_notes_and_noise_ranges_are_said_in_both_languages(web: Web, ruled: Ruled) -> None:
    client = web(ruled(place="GEO", area_population=60, blocked=1.0))
    english, said = in_both(client, "/api/v1/table", json={"axes": ["GEO.H", "SEX"]})
    assert english["value"] == said["value"]
    assert len(said["note"]) == len(english["note"]) == 3
    assert not any(ENGLISH.search(note) for note in said["note"])
    assert {note.split()[0] for note in english["note"]} == {"Each", "Counts", "Cells"}
    cell = next(at for at, value in enumerate(said["value"]) if value is not None)
    asked = {"query": {"axes": ["GEO.H", "SEX"]}, "cells": [cell], "level": 0.999}
    english, said = in_both(client, "/api/v1/noise-ranges", json=asked)
    assert "(99.9%)" in english["ranges"][0]["words"]
    assert "(99,9 %)" in said["ranges"][0]["words"]
    assert said["noise"].startswith("Die Zahlen")


@pytest.mark.parametrize(
    ("asked", "german"),
    [
        (
            {"axes": ["SEXX"]},
            "unbekanntes Merkmal 'SEXX' von persons; gemeint ist vielleicht 'SEX'; möglich sind ",
        ),
        ({"axes": ["SEX", "SEX"]}, "axes: SEX kommt 2-mal vor; je Merkmal nur eine Achse behalten"),
        (
            {"axes": ["SEX"], "where": "SEX == ("},
            "'SEX == (' ist kein Filter (Zeile 1, Spalte ",
        ),
        ({"axes": ["SEX"], "where": 'SEX == "9"'}, "where: unbekannter Code '9' von SEX; möglich sind 1, 2"),
        (
            {"axes": [{"breakdown": "AGE", "groups": {"a": []}}]},
            "axes[0].groups: 'a' enthält keine Codes; Codes nennen",
        ),
        ({"axes": 7}, "body.axes: ist keine Liste"),
        ({"nothing": 1}, "body.nothing: ist hier nicht bekannt"),
        ({"unit": "a\x00"}, "body.unit: enthält das Zeichen mit der Nummer 0"),
        ({"unit": "a" * 201}, "body.unit: hat mehr als 200 Zeichen"),
    ],
)
def test_mistakes_are_told_in_both_languages(client: Client, asked: dict[str, Any], german: str) -> None:
    english, said = in_both(client, "/api/v1/table", json=asked)
    assert (english["title"], said["title"]) == (
        "The request cannot be understood",
        "Die Anfrage ist nicht zu verstehen",
    )
    assert german in said["detail"]
    assert [one["key"] for one in english["problems"]] == [one["key"] for one in said["problems"]]
    assert english["problems"][0]["value"] != said["problems"][0]["value"]


def test_what_is_not_there_or_too_much_is_told_in_both_languages(client: Client, web: Web) -> None:
    for path in ("/nowhere", "/api/v1/breakdowns/X", "/api/v1/queries/00", "/api/v1/jobs/00"):
        english, said = in_both(client, path)
        assert (english["title"], said["title"]) == ("Not found", "Nicht gefunden")
        assert not ENGLISH.search(said["detail"])
    few = web(limits=Limits(public=RateLimit(1, 1_000_000)))
    assert few.get("/api/v1/catalogue").status_code == 200
    english, said = in_both(few, "/api/v1/catalogue")
    assert (english["status"], said["detail"]) == (429, "Mehr als 1 Anfragen in 1.000.000 Sekunden.")
    _, said = in_both(client, "/api/v1/catalogue", json={})
    assert said["detail"] == "Für diese Adresse gelten andere Methoden."
    tokens = {"Authorization": "Bearer dsc_unknown", "Accept-Language": "de"}
    assert client.get("/api/v1/catalogue", headers=tokens).json()["title"] == "Das Token ist nicht bekannt"


def test_kept_answers_and_entity_tags_do_not_mix_languages(client: Client) -> None:
    def ask(tag: str, **more: str) -> Response:
        return client.post("/api/v1/table", json=SMALL, headers={"Accept-Language": tag, **more})

    first, second = ask("en"), ask("de")
    assert first.headers["etag"] != second.headers["etag"]
    assert ask("en").json() == first.json() != second.json() == ask("de").json()
    assert ask("de", **{"If-None-Match": second.headers["etag"]}).status_code == 304
    unlike = ask("de", **{"If-None-Match": first.headers["etag"]})
    assert (unlike.status_code, unlike.json()) == (200, second.json())


def test_a_saved_query_is_answered_in_the_language_of_the_one_who_follows_it(client: Client) -> None:
    link = client.post("/api/v1/queries?lang=de", json={"query": SMALL}).json()["link"]
    english, said = in_both(client, link)
    assert english["note"][0].startswith("Each count")
    assert said["note"][0].startswith("Jede Zahl")


def test_sdmx_errors_have_the_language_they_are_written_in(client: Client) -> None:
    answer = client.get("/sdmx/data/NOTHING?lang=de")
    assert answer.headers["content-language"] == "de"
    assert '<com:Text xml:lang="de">Keine Ergebnisse' in answer.text
    asked = {"Accept": "application/json", "Accept-Language": "de"}
    assert client.get("/sdmx/data/NOTHING", headers=asked).json()["detail"].startswith("Keine Ergebnisse")


def test_labels_titles_and_definitions_have_the_language_of_the_request(client: Client) -> None:
    english, said = in_both(client, "/api/v1/breakdowns/SEX")
    assert (english["labels"], said["labels"]) == (
        ["Total", "Male", "Female"],
        ["Insgesamt", "Männlich", "Weiblich"],
    )
    english, said = in_both(client, "/api/v1/catalogue")
    assert (english["title"], said["title"]) == ("Synthetic census", "Synthetische Volkszählung")
    assert (english["unit_labels"]["persons"], said["unit_labels"]["persons"]) == ("persons", "Personen")
    variable = {one["name"]: one for one in said["variables"]}["COC"]
    assert (variable["label"], variable["topic"]) == ("Staatsangehörigkeit", "Zuwanderung")
    assert variable["description"].startswith("Das Land, dessen Staatsangehörigkeit")
    assert [one["label"] for one in variable["breakdowns"]][-1] == "Länder"
    titles = {one["id"]: one["title"] for one in said["tables"]}
    assert titles["3.1"].startswith("Personen nach Wohnort (Gemeinden), Geschlecht, Alter"), titles["3.1"]


def test_files_have_the_language_of_the_request(client: Client) -> None:
    body = {"axes": ["SEX"]}
    dataset = client.post("/api/v1/table?lang=de", json=body).json()
    assert dataset["label"] == "Personen nach Geschlecht"
    assert dataset["dimension"]["SEX"]["category"]["label"] == {
        "_T": "Insgesamt",
        "1": "Männlich",
        "2": "Weiblich",
    }
    assert dataset["dimension"]["SEX"]["note"] == [
        "Das Geschlecht einer Person, wie es eingetragen ist oder angegeben wurde."
    ]
    text = client.post("/api/v1/table?lang=de&format=csv", json=body).text
    assert "Männlich" in text
    assert "Male" not in text
    px = client.post("/api/v1/table?lang=de&format=px", json=body).content.decode()
    assert 'VALUES("Geschlecht")="Insgesamt","Männlich","Weiblich";' in px
    assert 'NOTE("Geschlecht")=' in px


def test_other_interfaces_have_the_language_of_the_request(client: Client) -> None:
    tables = client.get("/api/v2/tables?lang=de").json()["tables"]
    assert "Geschlecht" in tables[0]["variableNames"]
    first = client.get(f"/api/v2/tables/{tables[0]['id']}/metadata?lang=de").json()
    assert first["dimension"]["SEX"]["category"]["label"]["1"] == "Männlich"
    old = client.get(f"{PX1}/de").json()[0]["dbid"]
    told = client.get(f"{PX1}/de/{old}/{tables[0]['id']}").json()["variables"]
    assert {one["code"]: one["valueTexts"] for one in told}["SEX"][1] == "Männlich"
    structure = client.get("/sdmx/structure/codelist/*/CL_SEX/*").text
    assert '<com:Name xml:lang="en">Male</com:Name><com:Name xml:lang="de">Männlich</com:Name>' in structure
    concepts = client.get("/sdmx/structure/conceptscheme").text
    assert '<com:Description xml:lang="de">Das Geschlecht einer Person' in concepts


def test_a_search_finds_variables_by_their_definition_and_categories_with_their_path(client: Client) -> None:
    found = client.get("/api/v1/search?text=foreign&unit=persons").json()
    assert [one["name"] for one in found["variables"]] == ["POB", "COC"]
    found = client.get("/api/v1/search", params={"text": "osterreich", "lang": "de"}).json()
    hit = found["categories"][0]
    assert (hit["variable"], hit["label"], hit["breakdown"]) == ("POB", "Österreich", "POB.H")
    assert hit["path"] == ["Im Ausland geboren", "Anderer Mitgliedstaat der Europäischen Union"]
    assert client.get("/api/v1/search?text=sex+marital").json()["tables"]
    nothing = client.get("/api/v1/search?text=zzzz").json()
    assert (nothing["variables"], nothing["categories"], nothing["tables"]) == ([], [], [])
    assert client.get("/api/v1/search?text=tenure&unit=persons").json()["variables"] == []


def test_a_job_speaks_the_language_of_the_one_who_asked_for_it(client: Client) -> None:
    body = {"query": {"axes": ["EDU"]}, "format": "json-stat"}
    job = client.post("/api/v1/jobs?lang=de", json=body).json()
    assert job["language"] == "de"
    done = finished(client, job["id"])
    assert done["state"] == "done", done
    found = client.get(done["result"], headers={"Accept-Language": "en"})
    assert speaks(found, "de")["note"][0].startswith("Jede Zahl")


def test_a_job_fails_in_the_language_of_the_one_who_asked_for_it(
    builder: TableBuilder, tmp_path: Path
) -> None:
    store = Store(tmp_path / "s.sqlite", lambda: datetime.now(UTC))
    extra = [json.dumps({"format": "csv", **more}) for more in ({"language": "de"}, {})]
    jobs = [store.add_job("ann", query("NOTHING"), one) for one in extra]
    worker = JobWorker(builder, store, Limits())
    worker.start()
    try:
        until(lambda: all(one.state is JobState.FAILED for one in store.jobs("ann")))
    finally:
        worker.stop()
    german, english = (one.message if (one := store.job(job.id)) else "" for job in jobs)
    assert "unbekanntes Merkmal 'NOTHING' von persons; möglich sind" in german
    assert "unknown variable 'NOTHING' of persons; use one of" in english


def finished(client: Client, name: str) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        job: dict[str, Any] = client.get(f"/api/v1/jobs/{name}").json()
        return job if job["state"] in ("done", "failed") else None

    return until(ended) or {}


def test_files_have_their_notes_and_titles_in_the_language(client: Client) -> None:
    def get(form: str) -> bytes:
        answer = client.post(f"/api/v1/table?format={form}&lang=de", json={"axes": ["SEX"], "count": "works"})
        assert answer.headers["content-language"] == "de"
        return answer.content

    notes = pq.read_schema(io.BytesIO(get("parquet"))).metadata[b"discreet.notes"].decode()
    assert notes.startswith("Jede Zahl")
    px = get("px").decode()
    assert 'NOTEX="Jede Zahl' in px
    assert 'DATASYMBOL2="zurückgehalten"' in px
    assert re.search(r'TITLE=".* mit works = 1 nach ', px)
    sheet = load_workbook(io.BytesIO(get("xlsx")))["Notes"]
    assert "Jede Zahl" in str([cell.value for row in sheet.iter_rows() for cell in row])


def test_pxweb_offers_the_languages_and_speaks_them(web: Web) -> None:
    client = web(language="de-AT")
    config = client.get("/api/v2/config").json()
    assert config["languages"] == [{"id": "de-AT", "label": "Deutsch"}, {"id": "en", "label": "English"}]
    assert config["defaultLanguage"] == "de-AT"
    english, said = in_both(client, "/api/v2/tables/wide/metadata")
    assert (english["language"] if "language" in english else english["extension"]["px"]["language"]) == "en"
    assert said["extension"]["px"]["language"] == "de-AT"
    assert said["note"][0].startswith("Jede Zahl")
    assert (english["dimension"]["ContentsCode"]["label"], said["dimension"]["ContentsCode"]["label"]) == (
        "contents",
        "Inhalt",
    )
    english, said = in_both(client, "/api/v2/tables/wide/data", params={"valueCodes[SEX]": "1,2"})
    assert english["value"] == said["value"]
    assert english["label"] != said["label"]
    assert said["extension"]["discreet"]["noise"].startswith("Die Zahlen")
    english, said = in_both(client, "/api/v2/tables/wide/data", params={"valueCodes[SEX]": "7"})
    assert said["detail"] == "SEX hat keinen Wert '7'; die Metadaten der Tabelle nennen alle"
    assert client.get("/api/v2/tables?lang=fr").headers["content-language"] == "de"


def test_the_language_in_an_address_of_pxwebapi_1_holds_for_errors_too(client: Client) -> None:
    assert {"id": "de", "text": "Deutsch"} in client.get("/pxweb/api/v1").json()
    answer = client.get("/pxweb/api/v1/de/nothing", headers={"Accept-Language": "en"})
    assert speaks(answer, "de")["detail"].startswith("Diese Datenbank gibt es nicht")


def test_the_line_below_every_table_promises_no_more_than_is_proven(
    client: Client, builder: TableBuilder
) -> None:
    """The page shows the server's sentence, which is computed from the noise."""
    assert builder.catalogue.noise.guarantee is None
    english = client.get("/api/v1/catalogue", headers={"Accept-Language": "en"}).json()["protection"]
    german = client.get("/api/v1/catalogue", headers={"Accept-Language": "de"}).json()["protection"]
    assert "no formal guarantee that no one can be recognised" in english
    assert "keine formale Garantie" in german
    files = Path(page.__file__).parent / "files"
    assert "catalogue.protection" in (files / "main.js").read_text()
    texts = "".join((files / "texts" / f"{name}.js").read_text() for name in ("en", "de"))
    assert not re.search(r"cannot be recognised|zu erkennen|small random change|ein wenig", texts)
