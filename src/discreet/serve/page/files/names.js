// How things are called: by the labels that the server gives in the reader's language, else by their names.

import { listed, number, t } from "./language.js";
import { breakdownsOf, variableNamed, variableOf } from "./question.js";

/** The name of a variable. */
export const variableName = (catalogue, name) => variableNamed(catalogue, name)?.label || name;

/** Variables by topic, both in the order in which the declared tables use them; those without a topic come last. */
export function topicsOf(variables, catalogue) {
  const used = new Map();
  for (const table of catalogue.tables)
    for (const axis of table.axes) if (!used.has(axis.split(".")[0])) used.set(axis.split(".")[0], used.size);
  const order = (one) => used.get(one.name) ?? used.size;
  const topics = new Map();
  for (const one of [...variables].sort((a, b) => order(a) - order(b)))
    topics.set(one.topic, [...(topics.get(one.topic) || []), one]);
  const none = topics.get("");
  topics.delete("");
  return [...topics, ...(none ? [["", none]] : [])];
}

/** The name of a unit, such as persons. */
export function unitName(unit, catalogue) {
  return catalogue?.unit_labels?.[unit] || unit;
}

/** The office, where it has declared itself: an id that only follows from a folder's name means nothing to readers. */
export function officeOf({ agency, name }) {
  const plain = name.toUpperCase().replace(/[^A-Z0-9_-]+/g, "_").replace(/^[_-]+|[_-]+$/g, "");
  return [plain, `A_${plain}`].includes(agency) ? "" : agency;
}

/** How to cite the table on the screen. */
export function citationOf({ answer, world: { catalogue } }, link = location.href.split("#")[0].split("?")[0]) {
  const office = officeOf(catalogue);
  const texts = { heading: headingOf(catalogue), version: catalogue.version, title: title(catalogue, answer.query), link };
  return `${office ? `${office}: ` : ""}${t("cite", texts)}`;
}

/** The title of the catalogue. */
export const headingOf = (catalogue) => catalogue.title || catalogue.name;

/** What the office calls a level of a variable, such as five-year groups; nothing where it is called by its code. */
function levelLabel({ name, label }) {
  return !name.includes(".") || name.endsWith(`.${label}`) ? "" : label;
}

/** The text of a breakdown in a list: its level, if it has one, and how many categories. */
export function breakdownName(catalogue, breakdown, isShort = false) {
  const variable = variableNamed(catalogue, breakdown.name.split(".")[0]);
  const level = breakdown.name.split(".").slice(1).join(".");
  const count = t(variable?.is_place ? "areas" : "categories", { n: breakdown.finest });
  if (level && isShort) return `${levelLabel(breakdown) || level} (${number(breakdown.finest)})`;
  return level ? `${levelLabel(breakdown) || level} · ${count}` : count;
}

/** A title for a table. */
export function title(catalogue, query) {
  const names = (query.axes || []).map((axis) =>
    variableName(catalogue, variableOf(typeof axis === "string" ? { breakdown: axis } : axis)),
  );
  const counted = unitName(query.unit, catalogue) + (query.count ? ` (${query.count})` : "");
  const unit = counted.charAt(0).toUpperCase() + counted.slice(1);
  return names.length ? t("title", { unit, by: listed(names.map(inside)) }) : unit;
}

/** A name inside a sentence: German nouns keep their capitals. */
const inside = (name) =>
  /^[A-Z][a-z]/.test(name) && document.documentElement.lang === "en"
    ? name.charAt(0).toLowerCase() + name.slice(1)
    : name;

/** A short description of the axes of a question, such as "Age (five-year groups), Sex (2)". */
export function axesText(catalogue, query) {
  return (query.axes || []).map((axis) => {
    const breakdown = typeof axis === "string" ? axis : axis.breakdown;
    const name = variableName(catalogue, breakdown.split(".")[0]);
    const found = breakdownsOf(catalogue, breakdown.split(".")[0]).find((one) => one.name === breakdown);
    const detail = found && (levelLabel(found) || (found.codes > 1 ? number(found.finest) : ""));
    return detail ? `${name} (${detail})` : name;
  });
}
