"""German sentences: English template -> German template."""

ANSWERS = {
    # the form of a question
    "The table has {axes} axes{filtered}; {most} are allowed.": (
        "Die Tabelle hat {axes} Achsen{filtered}; erlaubt sind höchstens {most}."
    ),
    ", those of the filter included": ", jene des Filters mitgezählt",
    "{names} and {last}": "{names} und {last}",
    "{names} may not stand in one table.": "{names} dürfen nicht in einer Tabelle stehen.",
    "Filters are not allowed, but those of the declared tables.": (
        "Erlaubt sind nur die Filter der vorgegebenen Tabellen."
    ),
    "no variable": "kein Merkmal",
    "The codes of {variable} may not be grouped; {allowed} may.": (
        "Die Codes von {variable} dürfen nicht zusammengefasst werden; erlaubt ist es für: {allowed}."
    ),
    "The areas of {variable} are grouped and filtered; do one of both.": (
        "Die Gebiete von {variable} werden zusammengefasst und gefiltert; erlaubt ist eines von beiden."
    ),
    "The table has {cells} cells; {most} are allowed.": (
        "Die Tabelle hat {cells} Zellen; erlaubt sind höchstens {most}."
    ),
    "Ask for it as a background job.": "Als Hintergrundauftrag ist sie zu haben.",
    "Pick fewer codes or coarser breakdowns.": "Abhilfe: weniger Codes oder gröbere Gliederungen wählen.",
    "The whole table has {cells} cells with its margins; {most} can be counted. "
    "Take coarser breakdowns or fewer axes.": (
        "Die ganze Tabelle hat mit ihren Summen {cells} Zellen; gezählt werden können höchstens {most}. "
        "Abhilfe: gröbere Gliederungen oder weniger Achsen."
    ),
    # what the protected counts look like
    "has too few people or other records": "hat zu wenige Personen oder andere Einheiten",
    "has too many small counts": "hat zu viele kleine Zahlen",
    "has too many groups that share one category": (
        "hat zu viele Gruppen, deren Mitglieder alle in derselben Kategorie sind"
    ),
    "The table {why}.": "Die Tabelle {why}.",
    "{blocked} of {areas} areas would be withheld, most because the area {why}.": (
        "{blocked} von {areas} Gebieten müssten zurückgehalten werden, meist aus diesem Grund: Das Gebiet {why}."
    ),
    "The filter picks the area {area}, which {why}.": "Der Filter wählt ein Gebiet, das gesperrt ist: {area} {why}.",
    "The release has no table that holds {axes} of {who}.": (
        "Keine Tabelle der Veröffentlichung enthält {axes} von {who}."
    ),
    "total": "die Gesamtzahl",
    "{unit} where {base}": "{unit} mit {base}",
    # tables that would pass
    "the same table without the filter": "dieselbe Tabelle ohne den Filter",
    "larger areas: {new} for {old}": "größere Gebiete: {new} statt {old}",
    "coarser: {new} for {old}": "gröber: {new} statt {old}",
    "without {variable}": "ohne {variable}",
    "{measure} = {amount}": "{measure} = {amount}",
    # titles and notes
    "{unit} with {count} = 1": "{unit} mit {count} = 1",
    "by {axes}": "nach {axes}",
    "where {base}": "mit {base}",
    "contents": "Inhalt",
    "withheld": "zurückgehalten",
    "Cells with the status withheld belong to areas that the rules of the office do not show.": (
        "Zellen mit dem Status withheld gehören zu Gebieten, die nach den Regeln des Amtes nicht gezeigt werden."
    ),
    # what a user has collected
    "{statistic} could be averaged from {times} representations "
    "(k/t\N{SUPERSCRIPT TWO} = {ratio}) in what you have collected": (
        "{statistic} ließe sich aus {times} bereits abgefragten Darstellungen mitteln "
        "(k/t\N{SUPERSCRIPT TWO} = {ratio})"
    ),
    "{finding}; no further table that adds to it is answered.": (
        "{finding}; weitere Tabellen, die dazu beitragen, werden nicht beantwortet."
    ),
    "The counts of {one} and of {other} differ by fewer than {least} records": (
        "Die Zahlen für {one} und für {other} unterscheiden sich um weniger als {least} Einheiten"
    ),
    "{finding}: their difference tells of few people.": "{finding}: Ihre Differenz sagt etwas über wenige Menschen.",
    "{finding}; only one of them is answered.": "{finding}; nur eine von beiden wird beantwortet.",
    "those with {base}": "alle mit {base}",
    "everybody": "alle",
    # what an answer costs
    "nothing: you have it already": "nichts: diese Tabelle ist schon bezahlt",
    "{price} for {number} new cross-tabulations": "{price}; neue Kreuztabellen: {number}",
    "This table would cost {price}; {left} is left of your privacy budget. "
    "Tables that you already have stay free: ask for fewer axes, or for one of those.": (
        "Diese Tabelle würde {price} kosten; vom Privatheitsbudget sind noch {left} übrig. "
        "Tabellen, die schon bezahlt sind, bleiben kostenlos. Abhilfe: weniger Achsen, oder eine dieser Tabellen."
    ),
    # the noise
    "Each count is perturbed on its own, totals and sub-totals included. A total may therefore differ a little "
    "from the sum of its parts. Use the published total; do not add up its parts to get a better one.": (
        "Jede Zahl wird für sich verändert, auch Summen und Zwischensummen. Eine Summe kann daher ein wenig von der "
        "Summe ihrer Teile abweichen. Maßgeblich ist die veröffentlichte Summe; ihre Teile zusammenzuzählen ergibt "
        "keine bessere."
    ),
    "Before anything was counted, some households exchanged their places with similar households elsewhere. A count "
    "of a small area may hold people from another one; which were exchanged is kept secret.": (
        "Vor dem Zählen haben einige Haushalte ihren Ort mit ähnlichen Haushalten anderswo getauscht. Die Zahl für ein "
        "kleines Gebiet kann daher Menschen aus einem anderen enthalten; welche getauscht wurden, bleibt geheim."
    ),
    "Counts are perturbed by {method}.": "Die Zahlen sind verändert durch {method}.",
    "the cell key method": "die Cell-Key-Methode",
    "{kind} noise in every cell": "Rauschen in jeder Zelle (Art: {kind})",
    "Its parameters are {parameters}.": "Parameter: {parameters}.",
    "cross-tabulations": "Kreuztabellen",
    "noise per cross-tabulation": "Rauschen je Kreuztabelle",
    "The noise has a mean of zero and a variance of at most {variance}.": (
        "Das Rauschen hat den Mittelwert null und eine Varianz von höchstens {variance}."
    ),
    "A published count differs from the count before noise by {bound}.": (
        "Eine veröffentlichte Zahl weicht von der Zahl vor dem Rauschen um {bound} ab."
    ),
    "at most {bound}": "höchstens {bound}",
    "The whole release is differentially private with {budget}, when {change}.": (
        "Die gesamte Veröffentlichung ist differentiell privat mit {budget}, wenn {change}."
    ),
    "epsilon = {epsilon} and delta = {delta}": "epsilon = {epsilon} und delta = {delta}",
    "rho = {rho} (zero-concentrated)": "rho = {rho} (zero-concentrated)",
    "rho = {rho} (zero-concentrated), that is {told}": "rho = {rho} (zero-concentrated), das heißt {told}",
    "one person is added or removed": "eine Person hinzukommt oder wegfällt",
    "one person is replaced by another": "eine Person durch eine andere ersetzt wird",
    "one household of at most {most} members is added or removed": (
        "ein Haushalt mit höchstens {most} Mitgliedern hinzukommt oder wegfällt"
    ),
    "one household of at most {most} members is replaced by another": (
        "ein Haushalt mit höchstens {most} Mitgliedern durch einen anderen ersetzt wird"
    ),
    "All answers to one user together are differentially private with {all} at most; each new cross-tabulation "
    "costs {each}, one that stands in the release what it cost there.": (
        "Alle Antworten an eine Person zusammen sind differentiell privat mit höchstens {all}; jede neue Kreuztabelle "
        "kostet {each}, eine aus der Veröffentlichung so viel wie dort."
    ),
    "Before the noise was added, the count was from {low} to {high}: whatever it was, such a range holds it "
    "with at least {percent}% probability.": (
        "Vor dem Rauschen lag die Zahl zwischen {low} und {high}: Was immer sie war, ein solcher Bereich enthält sie "
        "mit mindestens {percent} % Wahrscheinlichkeit."
    ),
    "Before the noise was added, the count was about from {low} to {high} ({percent}%), judged by the largest "
    "variance of the noise.": (
        "Vor dem Rauschen lag die Zahl ungefähr zwischen {low} und {high} ({percent} %), geschätzt mit der größten "
        "Varianz des Rauschens."
    ),
}


FILES = {
    # headings of the notes
    "Table": "Tabelle",
    "Source": "Quelle",
    "Counted": "Gezählt werden",
    "Population": "Grundgesamtheit",
    "Axes": "Achsen",
    "Totals": "Insgesamt",
    "Note": "Hinweis",
    "Percentages": "Anteile",
    "Empty cells": "Leere Zellen",
    "Rules": "Regeln",
    "Withheld": "Zurückgehalten",
    "Permanent link": "Dauerhafter Link",
    "Question": "Frage",
    # their texts
    "all": "alle",
    "none": "keine",
    "The code _T means the total along a variable.": "Der Code _T bedeutet das Insgesamt eines Merkmals.",
    "Each is a share of the published total of its row.": (
        "Jeder bezieht sich auf das veröffentlichte Insgesamt seiner Zeile."
    ),
    "Each is a share of the published total of its column.": (
        "Jeder bezieht sich auf das veröffentlichte Insgesamt seiner Spalte."
    ),
    "Each is a share of the published total of the table.": (
        "Jeder bezieht sich auf das veröffentlichte Insgesamt der Tabelle."
    ),
    "They are made of published counts, which are perturbed: they need not add up to 100 %, and may exceed it.": (
        "Sie sind aus veröffentlichten, veränderten Zahlen gebildet: sie ergeben zusammen nicht immer 100 % und "
        "können darüber liegen."
    ),
    "Cells without a number are withheld; of percentages also those of a total of 0.": (
        "Zellen ohne Zahl werden zurückgehalten; Anteile fehlen auch, wo das Insgesamt 0 ist."
    ),
    "An area that {reason} is withheld.": "Ein Gebiet wird zurückgehalten, wenn gilt: es {reason}.",
    "{area} {reason}": "{area} {reason}",
    "{areas} areas in all": "insgesamt {areas} Gebiete",
    # layouts that cannot be had
    "columns: {name} is no axis of the table; it has {axes}.": (
        "columns: {name} ist keine Achse der Tabelle; sie hat {axes}."
    ),
    "percent: put variables into rows and columns; columns names those of the columns.": (
        "percent: Merkmale in Zeilen und Spalten stellen; columns nennt die der Spalten."
    ),
    "percent: the table needs the total of {name}, its code _T.": (
        "percent: die Tabelle braucht das Insgesamt von {name}, den Code _T."
    ),
    "percent: CSV and XLSX can have percentages, other formats cannot.": (
        "percent: Anteile gibt es in CSV und XLSX, nicht in anderen Formaten."
    ),
    "A sheet of Excel holds {most_rows} rows and {most_columns} columns, this table has {rows} and {columns}: "
    "put other variables across, or take it as CSV or Parquet.": (
        "Ein Blatt von Excel hat {most_rows} Zeilen und {most_columns} Spalten, diese Tabelle {rows} und {columns}: "
        "andere Merkmale in die Spalten stellen oder CSV oder Parquet nehmen."
    ),
}


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
    "The server's database is unavailable; try again later.": (
        "Die Datenbank des Servers ist nicht verfügbar; bitte später noch einmal versuchen."
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


PXWEB = {
    "There is no such table; the list of tables has their ids.": (
        "Diese Tabelle gibt es nicht; die Liste der Tabellen nennt die Kennungen."
    ),
    "There is no such page; there are {pages}.": "Diese Seite gibt es nicht; die Liste endet mit Seite {pages}.",
    "There is no such codelist.": "Diese Codeliste gibt es nicht.",
    "There is no such database; there is {name}.": "Diese Datenbank gibt es nicht; es gibt nur {name}.",
    "There is no saved query of PxWebApi of this id.": (
        "Unter dieser Kennung ist keine Abfrage von PxWebApi gespeichert."
    ),
    # selections
    "is no variable of this table": "ist kein Merkmal dieser Tabelle",
    "is selected twice": "ist zweimal gewählt",
    "select each variable once": "jedes Merkmal nur einmal wählen",
    "has no codelist {name}": "hat keine Codeliste {name}",
    "choose from {names}": "möglich sind {names}",
    "has no value {value}": "hat keinen Wert {value}",
    "see the metadata of the table": "die Metadaten der Tabelle nennen alle",
    "has more than {most} patterns": "hat mehr als {most} Muster",
    "name the values": "die Werte einzeln nennen",
    "has {call} without a number": "hat {call} ohne eine Zahl",
    "has {call} with other than its values": "hat {call} mit anderen als seinen Werten",
    # formats
    "The format is one of {names}.": "Mögliche Formate sind {names}.",
    "outputFormat is one of {names}.": "Möglich für outputFormat sind {names}.",
    "outputFormatParams are {names}.": "Möglich für outputFormatParams sind {names}.",
    "One of outputFormatParams does not apply to {form}.": (
        "Eine Angabe in outputFormatParams passt nicht zum Format {form}."
    ),
    "Of the Use.. and of the Separator.. parameters one can be given.": (
        "Von den Angaben Use.. und von den Angaben Separator.. ist je eine möglich."
    ),
    "heading and stub name selected variables: {names}.": (
        "heading und stub nennen nur ausgewählte Merkmale: {names}."
    ),
    "heading and stub name each selected variable once, or one of them is left out.": (
        "heading und stub nennen zusammen jedes ausgewählte Merkmal einmal, oder eines von beiden fehlt."
    ),
}


REQUESTS = {
    # names that do not exist
    "there are none": "es gibt keine",
    ".. ({number} in all)": ".. (insgesamt {number})",
    "did you mean {name}?": "gemeint ist vielleicht {name};",
    "use one of {names}": "möglich sind {names}",
    "unknown unit {name}": "unbekannte Einheit {name}",
    "unknown column {name} of {unit}": "unbekannte Spalte {name} von {unit}",
    "unknown variable {name} of {unit}": "unbekanntes Merkmal {name} von {unit}",
    "unknown variable {name} of the programme": "unbekanntes Merkmal {name}",
    "unknown breakdown {name}": "unbekannte Gliederung {name}",
    "unknown breakdown {name} of {variable}": "unbekannte Gliederung {name} von {variable}",
    "unknown code {code}": "unbekannter Code {code}",
    "unknown code {code} of {of}": "unbekannter Code {code} von {of}",
    "unknown key {key}": "unbekannter Schlüssel {key}",
    # the form of a question
    "{variable} stands {times} times": "{variable} kommt {times}-mal vor",
    "keep one axis of each variable": "je Merkmal nur eine Achse behalten",
    "write {example}": "richtig ist {example}",
    "not a list": "keine Liste",
    "not a table": "keine Tabelle",
    "not a text": "kein Text",
    "not a list of codes": "keine Liste von Codes",
    # groups of codes
    "groups beside the breakdown {name}": "Gruppen neben der Gliederung {name}",
    "name the variable alone, {variable}": "nur das Merkmal nennen: {variable}",
    "{number} groups": "{number} Gruppen",
    "use at most {most}": "erlaubt sind höchstens {most}",
    "give each group a name of its own, of up to {most} printable characters, the first none of = + - @": (
        "jede Gruppe braucht einen eigenen Namen aus höchstens {most} druckbaren Zeichen, das erste keines von = + - @"
    ),
    "name {name}": "der Name {name}",
    "{group} holds no codes": "{group} enthält keine Codes",
    "name some": "Codes nennen",
    "{group} shares codes with another group": "{group} teilt Codes mit einer anderen Gruppe",
    "put each code into one group": "jeden Code nur einer Gruppe zuordnen",
    # filters
    'write comparisons like SEX == "1" or AGE.L in ("Y_LT15", "Y15-29"), joined by and, or, not': (
        'richtig sind Vergleiche wie SEX == "1" oder AGE.L in ("Y_LT15", "Y15-29"), verknüpft mit and, or, not'
    ),
    "no record can pass this; take one of its conditions out": (
        "keine Einheit kann das erfüllen; eine der Bedingungen weglassen"
    ),
    "a filter of {length} characters": "ein Filter mit {length} Zeichen",
    "keep it below {most}; compare codes of an upper level": (
        "erlaubt sind weniger als {most}; Codes einer höheren Ebene vergleichen"
    ),
    "(line {line}, column {column})": "(Zeile {line}, Spalte {column})",
    "{text} is no filter": "{text} ist kein Filter",
    "{text} nests too deep": "{text} ist zu tief verschachtelt",
    "use at most {most} levels of brackets": "erlaubt sind höchstens {most} Ebenen von Klammern",
    "only ==, !=, in and not in compare codes": "Codes werden nur mit ==, !=, in und not in verglichen",
    "the name of a variable stands on the left": "links steht der Name eines Merkmals",
    'a list of quoted codes such as ("1", "2") stands on the right': (
        'rechts steht eine Liste von Codes in Anführungszeichen, etwa ("1", "2")'
    ),
    'one quoted code such as "1" stands on the right': (
        'rechts steht ein einzelner Code in Anführungszeichen, etwa "1"'
    ),
    "{text} in a filter": "{text} in einem Filter",
}


PARTS = (ANSWERS, PXWEB, REQUESTS, PROBLEMS, FILES)
GERMAN = {template: said for part in PARTS for template, said in part.items()}
