// How things are called: labels from the office first, then names that the page knows, then the codes themselves.

import { isOwn, listed, maybe, number, t } from "./language.js";
import { breakdownsOf, variableNamed, variableOf } from "./question.js";

// Codes such as LOC mean something only inside the EU census programme, so the page believes that it speaks of that
// programme only where several of its codes occur together.
const TOPICS = ["GEO", "SEX", "AGE", "LMS", "CAS", "OCC", "IND", "SIE", "EDU", "POB", "COC", "YAE", "FST", "HST"];
const ALWAYS = ["GEO", "SEX", "AGE"];
const ENOUGH = 5;

/** The name of a variable. */
export function variableName(catalogue, name) {
  const found = variableNamed(catalogue, name);
  if (found && isLabel(`topic.${name}`, found.label, name)) return found.label;
  const isProgramme = TOPICS.filter((one) => variableNamed(catalogue, one)).length >= ENOUGH;
  return (isProgramme || ALWAYS.includes(name) ? maybe(`topic.${name}`) : "") || found?.label || name;
}

/** Whether the office gave a label of its own: one that the page knows is shown in the reader's language instead. */
const isLabel = (key, label, name) => Boolean(label) && label !== name && !isOwn(key, label);

/** The name of a unit, such as persons. */
export function unitName(unit, catalogue) {
  const label = catalogue?.unit_labels?.[unit];
  return isLabel(`unit.${unit}`, label, unit) ? label : maybe(`unit.${unit}`) || unit;
}

/** The title of the catalogue. */
export const headingOf = (catalogue) => catalogue.title || catalogue.name;

/** What the office calls a level of a variable, such as five-year groups; nothing where it is called by its code. */
function levelLabel({ name, label }) {
  if (!name.includes(".") || name.endsWith(`.${label}`)) return "";
  return isOwn(`level.${name}`, label) ? maybe(`level.${name}`) : label;
}

/** The text of a breakdown in a list: its level, if it has one, and how many categories. */
export function breakdownName(catalogue, breakdown) {
  const variable = variableNamed(catalogue, breakdown.name.split(".")[0]);
  const level = breakdown.name.split(".").slice(1).join(".");
  const count = t(variable?.is_place ? "areas" : "categories", { n: breakdown.finest });
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
