// The link that restores everything. It is the fragment of the address, which browsers do not send: what a user
// is looking at is in no log.

import { KINDS, METHODS, NOISE } from "./kinds.js";
import { VALUES } from "./measures.js";
import { variableNamed, variableOf } from "./question.js";
import { blank } from "./store.js";

const QUESTION = ["unit", "count", "where", "rows", "columns"];
const LAYOUT = [
  ...["view", "values", "base", "counts", "texts", "totals", "zeros", "singles", "top", "sort", "closed", "density", "noise"],
  ...["picks", "second", "marked", "chart", "levels", "whiskers", "classes", "limits"],
];
const KNOWN = {
  view: ["table", "chart", "map"],
  values: VALUES,
  density: ["normal", "compact"],
  texts: ["labels", "codes", "both"],
  noise: NOISE,
  chart: ["auto", ...KINDS],
  classes: METHODS,
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
  const content = { ...Object.fromEntries(told), lang: state.lang, ...shown };
  return `#${encodeURIComponent(JSON.stringify(content)).replace(/'/g, "%27")}`;
}

/** A fragment as members of the state, and the variables that are not served here; null where it is not one of this page. */
export function read(fragment, catalogue) {
  let content;
  try {
    content = JSON.parse(decodeURIComponent(fragment.slice(1)));
  } catch {
    return null;
  }
  if (!content || typeof content !== "object" || !catalogue.units.includes(content.unit)) return null;
  return {
    ...questionIn(content, catalogue),
    ...layoutIn(content),
    ...(content.lang ? { lang: String(content.lang) } : {}),
    shown: Boolean(content.shown),
    missing: [...axesIn(content.rows), ...axesIn(content.columns)].map(variableOf).filter((name) => !variableNamed(catalogue, name)),
  };
}

const axesIn = (given) => (Array.isArray(given) ? given : []).map(axisIn).filter(Boolean);

function questionIn(content, catalogue) {
  const axes = (given) => axesIn(given).filter((axis) => variableNamed(catalogue, variableOf(axis)));
  return {
    unit: content.unit,
    count: text(content.count),
    where: text(content.where),
    rows: axes(content.rows),
    columns: axes(content.columns),
  };
}

function axisIn(content) {
  if (!content || typeof content.breakdown !== "string") return null;
  const codes = Array.isArray(content.codes) ? content.codes.map(String) : [];
  return {
    breakdown: content.breakdown,
    codes,
    groups: content.groups && typeof content.groups === "object" ? content.groups : {},
  };
}

/** The layout that a link or a saved query holds; what makes no sense is as on a blank page. */
export function layoutIn(content) {
  const layout = picked(blank(), LAYOUT);
  for (const [name, values] of Object.entries(KNOWN)) if (values.includes(content[name])) layout[name] = content[name];
  for (const name of ["totals", "whiskers", "counts", "zeros", "singles"])
    if (typeof content[name] === "boolean") layout[name] = content[name];
  for (const name of ["picks", "levels", "second"])
    if (content[name] && typeof content[name] === "object") layout[name] = content[name];
  const isTexts = (list) => Array.isArray(list) && list.every((one) => typeof one === "string");
  if (isTexts(content.base) && content.base.length === 2) layout.base = content.base;
  if (isTexts(content.marked)) layout.marked = content.marked;
  if (content.closed && typeof content.closed === "object" && Object.values(content.closed).every(isTexts))
    layout.closed = content.closed;
  if (Number.isInteger(content.top) && content.top >= 0) layout.top = content.top;
  if (Array.isArray(content.limits)) layout.limits = content.limits.filter((one) => Number.isFinite(one));
  const { sort } = content;
  layout.sort =
    sort && Number.isInteger(sort.column) && ["ascending", "descending"].includes(sort.direction)
      ? { column: sort.column, direction: sort.direction }
      : null;
  return layout;
}

const text = (value) => (typeof value === "string" ? value : "");
