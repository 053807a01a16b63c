// The link that restores everything. It is the fragment of the address, which browsers do not send: what a user
// is looking at is in no log.

import { variableNamed, variableOf } from "./question.js";
import { blank } from "./store.js";

const QUESTION = ["unit", "count", "where", "rows", "columns"];
const LAYOUT = ["view", "values", "texts", "totals", "sort", "picks"];
const KNOWN = {
  view: ["table", "chart", "map"],
  values: ["count", "row", "column", "total"],
  texts: ["labels", "codes", "both"],
};

const picked = (state, names) => Object.fromEntries(names.map((name) => [name, state[name]]));

/** What a saved query stores in addition to the question. */
export const layoutOf = (state) => ({
  ...picked(state, [...LAYOUT, "lang"]),
  rows: state.rows.map(variableOf),
  columns: state.columns.map(variableOf),
});

/** The part of the address behind the #; what is as on a blank page is left out. */
export function fragmentOf(state) {
  const first = blank();
  const shown = state.answer.status === "none" ? {} : { shown: 1 };
  const lean = (axis) => Object.fromEntries(Object.entries(axis).filter(([, value]) => Object.keys(value).length));
  const whole = {
    ...picked(state, [...QUESTION, ...LAYOUT]),
    rows: state.rows.map(lean),
    columns: state.columns.map(lean),
  };
  const told = Object.entries(whole).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(first[name]));
  const said = { ...Object.fromEntries(told), lang: state.lang, ...shown };
  return `#${encodeURIComponent(JSON.stringify(said)).replace(/'/g, "%27")}`;
}

/** A fragment as members of the state; null where it is not one of this page. */
export function read(fragment, catalogue) {
  let said;
  try {
    said = JSON.parse(decodeURIComponent(fragment.slice(1)));
  } catch {
    return null;
  }
  if (!said || typeof said !== "object" || !catalogue.units.includes(said.unit)) return null;
  return {
    ...questionIn(said, catalogue),
    ...layoutIn(said),
    ...(said.lang ? { lang: String(said.lang) } : {}),
    shown: Boolean(said.shown),
  };
}

function questionIn(said, catalogue) {
  const axes = (given) =>
    (Array.isArray(given) ? given : [])
      .map(axisIn)
      .filter((axis) => axis && variableNamed(catalogue, variableOf(axis)));
  return {
    unit: said.unit,
    count: text(said.count),
    where: text(said.where),
    rows: axes(said.rows),
    columns: axes(said.columns),
  };
}

function axisIn(said) {
  if (!said || typeof said.breakdown !== "string") return null;
  const codes = Array.isArray(said.codes) ? said.codes.map(String) : [];
  return {
    breakdown: said.breakdown,
    codes,
    groups: said.groups && typeof said.groups === "object" ? said.groups : {},
  };
}

/** The layout that a link or a saved query holds; what makes no sense is as on a blank page. */
export function layoutIn(said) {
  const layout = picked(blank(), LAYOUT);
  for (const [name, values] of Object.entries(KNOWN)) if (values.includes(said[name])) layout[name] = said[name];
  if (typeof said.totals === "boolean") layout.totals = said.totals;
  if (said.picks && typeof said.picks === "object") layout.picks = said.picks;
  const { sort } = said;
  layout.sort =
    sort && Number.isInteger(sort.column) && ["ascending", "descending"].includes(sort.direction)
      ? { column: sort.column, direction: sort.direction }
      : null;
  return layout;
}

const text = (value) => (typeof value === "string" ? value : "");
