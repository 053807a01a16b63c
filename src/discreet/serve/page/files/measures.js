// What the numbers of a table are: counts, shares of published totals, or comparisons with one category. Pure functions;
// each number comes from at most two published counts, never from sums.

import { fixed, number, percent, signed, t } from "./language.js";

export const SHARES = ["row", "column", "total"];
export const COMPARED = ["difference", "ratio", "index", "rate"];
export const VALUES = ["count", ...SHARES, ...COMPARED];
const FACTORS = { index: 100, rate: 1000 };
const TEXTS = {
  count: number,
  difference: signed,
  ratio: (amount) => fixed(amount, 2),
  index: (amount) => fixed(amount, 1),
  rate: (amount) => fixed(amount, 1),
};
const VEGA = { count: ",d", difference: "+,d", ratio: ",.2~f", index: ",.1~f", rate: ",.1~f" };
const WIDEST = { difference: "+", ratio: "1,000.00", index: "10,000.0", rate: "10,000.0" };

/** The place of a cell along an axis. */
const placeAt = (axis, index) => Math.floor(index / axis.stride) % axis.codes.length;

/** The published counts. */
export const counted = (table) => ({
  kind: "count",
  id: "count",
  at: (index) => table.values[index],
  wholeAt: null,
  text: number,
  plain: number,
  vega: VEGA.count,
  caption: t("values.count"),
  widest: "",
});

/** The measure that a layout asks for; counts where the table has not what it needs. */
export function measureOf(table, down, across, { values, base }) {
  if (COMPARED.includes(values)) return comparison(table, down, across, values, base);
  const fixedAxes = { row: across.axes, column: down.axes, total: [...down.axes, ...across.axes] }[values];
  if (!fixedAxes || fixedAxes.some((axis) => axis.total < 0)) return counted(table);
  const wholeAt = moved(fixedAxes.map((axis) => [axis, axis.total]));
  return {
    ...made(table, values, wholeAt),
    id: `share ${fixedAxes.map((axis) => axis.variable).join(" ")}`,
    text: percent,
    plain: percent,
    vega: "~%",
    caption: t(`values.${values}`),
    widest: "100.0 %",
  };
}

function comparison(table, down, across, kind, base) {
  const found = baseOf(table, down, across, kind, base);
  if (!found) return counted(table);
  const [axis, place] = found;
  const text = TEXTS[kind];
  return {
    ...made(table, kind, moved([[axis, place]])),
    id: `${kind} ${axis.variable} ${axis.codes[place]}`,
    base: found,
    text,
    plain: kind === "difference" ? number : text,
    vega: VEGA[kind],
    caption: t(`values.${kind}`),
    widest: WIDEST[kind],
  };
}

/** What a comparison is with: [axis, place]; the chosen category, else the total for index and rate, else the first. */
export function baseOf(table, down, across, kind, base) {
  const chosen = table.axes.find((axis) => axis.variable === base?.[0]);
  const place = chosen ? chosen.codes.indexOf(base[1]) : -1;
  if (place >= 0) return [chosen, place];
  const axis = [...across.axes.toReversed(), ...down.axes.toReversed()].find((one) => one.codes.length > 1);
  if (!axis) return null;
  const isWhole = kind in FACTORS && axis.total >= 0;
  return [axis, isWhole ? axis.total : axis.codes.findIndex((_, k) => k !== axis.total)];
}

/** The index of the cell at given places of some axes. */
const moved = (places) => (index) =>
  places.reduce((at, [axis, place]) => at + (place - placeAt(axis, index)) * axis.stride, index);

function made(table, kind, wholeAt) {
  const factor = FACTORS[kind] ?? 1;
  const at = (index) => {
    const [part, whole] = [table.values[index], table.values[wholeAt(index)]];
    if (part === null || whole === null) return null;
    if (kind === "difference") return part - whole;
    return whole ? (factor * part) / whole : null;
  };
  return { kind, at, wholeAt };
}

/** Which measures a table can show: shares need the totals they are shares of, comparisons two categories. */
export function possible(table, rows, columns) {
  const has = (names) => names.every((name) => (table.axes.find((axis) => axis.variable === name)?.total ?? 0) >= 0);
  const compared = table.axes.some((axis) => axis.codes.length > 1);
  return {
    count: true,
    row: has(columns),
    column: has(rows),
    total: has(rows) && has(columns),
    ...Object.fromEntries(COMPARED.map((kind) => [kind, compared])),
  };
}
