"""German for what is said of requests: names that do not exist, and mistakes in questions, groups and filters."""

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
