"""German for what is said of answers: refusals, tables that would pass, noise, costs and notes."""

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
