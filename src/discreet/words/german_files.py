"""German for what is said in files and of their layout: notes of workbooks, percentages, sheets too large."""

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
