"""German for what clients of PxWebApi are told: tables and codelists that are not there, selections and formats."""

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
