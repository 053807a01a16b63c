"""German for problems over HTTP: titles, limits, what is not there, and what SDMX clients ask for in vain."""

PROBLEMS = {
    # titles
    "The request cannot be understood": "Die Anfrage ist nicht zu verstehen",
    "The token is not known": "Das Token ist nicht bekannt",
    "Not allowed": "Nicht erlaubt",
    "Not found": "Nicht gefunden",
    "Method not allowed": "Methode nicht erlaubt",
    "Not acceptable": "Kein annehmbares Format",
    "The request took too long to arrive": "Die Anfrage kam zu langsam an",
    "Not ready": "Noch nicht fertig",
    "The request is too large": "Die Anfrage ist zu groß",
    "Unsupported media type": "Nicht unterstütztes Format",
    "The request cannot be answered": "Die Anfrage kann nicht beantwortet werden",
    "Too many requests": "Zu viele Anfragen",
    "Something went wrong": "Etwas ist schiefgegangen",
    "Not offered": "Nicht im Angebot",
    "The server is busy": "Der Server ist ausgelastet",
    "Error": "Fehler",
    # the server and its limits
    "The server made a mistake; it has been noted.": "Der Server hat einen Fehler gemacht; er wurde vermerkt.",
    "The server cannot reach its books; try again later.": (
        "Der Server kann gerade nicht auf seine Bücher zugreifen; bitte später noch einmal versuchen."
    ),
    "More than {calls} requests in {seconds} seconds.": "Mehr als {calls} Anfragen in {seconds} Sekunden.",
    "There are too many connections.": "Es bestehen zu viele Verbindungen.",
    "Too many tables are asked for at once.": "Zu viele Tabellen werden gleichzeitig abgefragt.",
    "The table took too long; ask for a smaller one or for a background job.": (
        "Die Tabelle brauchte zu lange. Abhilfe: eine kleinere Tabelle oder ein Hintergrundauftrag."
    ),
    "The body of the request did not arrive in time.": "Der Inhalt der Anfrage kam nicht rechtzeitig an.",
    "A request may have {most} bytes.": "Eine Anfrage darf höchstens {most} Bytes haben.",
    "extra may have {most} characters.": "extra darf höchstens {most} Zeichen haben.",
    "Tables are answered to those who have an API token.": "Tabellen gibt es nur mit einem API-Token.",
    "This API token is not known, or was revoked.": "Dieses API-Token ist nicht bekannt oder wurde widerrufen.",
    "This is for administrators.": "Nur für die Verwaltung des Servers.",
    # what is not there
    "There is nothing at this address.": "Unter dieser Adresse gibt es nichts.",
    "This address takes other methods.": "Für diese Adresse gelten andere Methoden.",
    "There is no such breakdown; the catalogue lists them.": (
        "Diese Gliederung gibt es nicht; der Katalog nennt alle."
    ),
    "There is no such variable; the catalogue lists them.": (
        "Dieses Merkmal gibt es nicht; der Katalog nennt alle."
    ),
    "There is no saved query of this id.": "Unter dieser Kennung ist keine Abfrage gespeichert.",
    "The page has no such file.": "Die Seite hat keine solche Datei.",
    "This server has no map of its areas.": "Dieser Server hat keine Karte der Gebiete.",
    "The answer has {cells} cells, numbered from 0.": "Die Antwort hat {cells} Zellen, gezählt ab 0.",
    # jobs
    "You have no job of this id; results are kept for a limited time.": (
        "Unter dieser Kennung gibt es keinen eigenen Auftrag; Ergebnisse werden nur eine Zeit lang aufbewahrt."
    ),
    "You have {most} unfinished jobs; wait for one of them.": (
        "Unfertige Aufträge: {most}, mehr sind nicht erlaubt; bitte warten, bis einer fertig ist."
    ),
    "The job is not finished.": "Der Auftrag ist noch nicht fertig.",
    # the form of a request
    "see {address}": "siehe {address}",
    "is no number": "ist keine Zahl",
    "is no whole number": "ist keine ganze Zahl",
    "is no list": "ist keine Liste",
    "is no table": "ist keine Tabelle",
    "is no text": "ist kein Text",
    "is missing": "fehlt",
    "is not known here": "ist hier nicht bekannt",
    "is no JSON": "ist kein JSON",
    "holds a character of code 0": "enthält das Zeichen mit der Nummer 0",
    "cannot be written as JSON": "lässt sich nicht als JSON schreiben",
    "has more than {most} characters": "hat mehr als {most} Zeichen",
    "has more than {most} entries": "hat mehr als {most} Einträge",
    "has fewer than {least} entries": "hat weniger als {least} Einträge",
    "is below {least}": "ist kleiner als {least}",
    "is above {most}": "ist größer als {most}",
    "is none of {expected}": "ist keines von {expected}",
    "is not of the form {form}": "hat nicht die Form {form}",
    # SDMX
    "Would pass: {table}": "Möglich wäre: {table}",
    "There is no {kind} here: ask for structures, data or availability.": (
        "Angeboten wird hier nichts der Art {kind}; zu haben sind Strukturen, Daten und Verfügbarkeit."
    ),
    "No results: there is no {kind} of this agency, id and version.": (
        "Keine Ergebnisse: Von dieser Agentur, mit dieser Kennung und Version, gibt es nichts der Art {kind}."
    ),
    "No results: {artefact} has no such item.": "Keine Ergebnisse: {artefact} hat keinen solchen Eintrag.",
    "No results: the only provider is {provider}.": "Keine Ergebnisse: Der einzige Anbieter ist {provider}.",
    "No results: {flow} has the dimensions {names}.": "Keine Ergebnisse: {flow} hat die Dimensionen {names}.",
    "No results: {flow} has no observation with this key.": (
        "Keine Ergebnisse: {flow} hat keine Beobachtung mit diesem Schlüssel."
    ),
    "No results in {one}; ask for {other}.": "Keine Ergebnisse in {one}; zu haben sind sie in {other}.",
    "{number} dataflows are meant ({some}, ..); ask for one of them. For a key of dots alone write all: "
    "clients take /.. for a step up.": (
        "Gemeint sind {number} Datenflüsse ({some}, ..); bitte einen davon nennen. Statt eines Schlüssels nur aus "
        "Punkten bitte all schreiben: Programme verstehen /.. als Schritt nach oben."
    ),
    "The address has {parts} parts; it may have {most}.": (
        "Die Adresse hat {parts} Teile; erlaubt sind höchstens {most}."
    ),
    "Write {address}.": "Richtig ist {address}.",
    "kind of artefact": "Art des Artefakts",
    "{name}: unknown {value}; use one of {names}.": "{name}: unbekannt ist {value}; möglich sind {names}.",
    "{name}: write a number above 0.": "{name}: nötig ist eine Zahl größer als 0.",
    "None of the accepted formats can be sent; ask for {formats}.": (
        "Keines der angenommenen Formate ist zu haben; möglich sind {formats}."
    ),
    "Send the key as {form}: key=...": "Der Schlüssel wird als {form} gesendet: key=...",
    "An answer may have {most} observations.": "Eine Antwort darf höchstens {most} Beobachtungen haben.",
    "A key of {flow} has {number} positions, {names}; this one has {found}.": (
        "Ein Schlüssel von {flow} hat {number} Stellen, {names}; dieser hat {found}."
    ),
    "A request may have {most} filters; name the codes in its key.": (
        "Eine Anfrage darf höchstens {most} Filter haben; Codes lassen sich im Schlüssel nennen."
    ),
    "A request may have {most} keys; ask for the rest in another one.": (
        "Eine Anfrage darf höchstens {most} Schlüssel haben; weitere bitte in einer anderen."
    ),
    "These keys span too much; ask for them one by one.": (
        "Diese Schlüssel umspannen zu viel; bitte einzeln abfragen."
    ),
    "{flow} has no dimension {name}; filter by {names}.": (
        "{flow} hat keine Dimension {name}; gefiltert werden kann nach {names}."
    ),
    "Unknown operator {operator}; use one of {names}.": "Unbekannter Operator {operator}; möglich sind {names}.",
}
