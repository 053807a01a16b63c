// An answer of the server (JSON-stat) as a table to look at: layout, percentages, order. Pure functions; values are
// never added up here, because sums of noisy counts are noisier than the totals that the server gives.

import { TOTAL } from "./question.js";

/** An answer with its axes taken apart. */
export function parsed(dataset) {
  const axes = dataset.id.map((id, place) => axisIn(dataset, id, place));
  let stride = 1;
  for (const axis of [...axes].reverse()) {
    axis.stride = stride;
    stride *= axis.codes.length;
  }
  const told = dataset.extension;
  return {
    axes,
    values: dataset.value,
    query: told.query,
    noise: told.noise,
    warnings: told.warnings,
    blocked: told.blocked,
    blockedCount: told.blocked_count,
    size: dataset.value.length,
  };
}

function axisIn(dataset, id, place) {
  const { category } = dataset.dimension[id];
  const codes = Object.keys(category.index).sort((a, b) => category.index[a] - category.index[b]);
  const parent = {};
  for (const [above, below] of Object.entries(category.child || {})) for (const code of below) parent[code] = above;
  const depth = (code) => (code in parent ? 1 + depth(parent[code]) : 0);
  return {
    variable: id,
    place,
    codes,
    labels: codes.map((code) => category.label[code]),
    depths: codes.map(depth),
    isPlace: (dataset.role?.geo || []).includes(id),
    total: codes.indexOf(TOTAL),
  };
}

/** One side of a table: its axes, the places shown of each, and the offset of each line into the values. */
function side(table, names, totals) {
  const axes = names.map((name) => table.axes.find((axis) => axis.variable === name)).filter(Boolean);
  const shown = axes.map((axis) => {
    const every = axis.codes.map((_, place) => place);
    const parts = every.filter((place) => place !== axis.total);
    return totals || !parts.length ? every : parts;
  });
  let offsets = [0];
  axes.forEach((axis, k) => {
    offsets = offsets.flatMap((offset) => shown[k].map((place) => offset + place * axis.stride));
  });
  const hasTotals = axes.every((axis) => axis.total >= 0);
  const totalOffset = axes.reduce((sum, axis) => sum + Math.max(0, axis.total) * axis.stride, 0);
  return { axes, shown, offsets, hasTotals, totalOffset, count: offsets.length };
}

/** The table in a layout: `value(row, column)`, `share(row, column)` and the places of headers. */
export function laidOut(table, { rows, columns, totals, values, sort }) {
  const down = side(table, rows, totals);
  const across = side(table, columns, totals);
  const order = ordered(table, down, across, sort);
  const index = (row, column) => down.offsets[order[row]] + across.offsets[column];
  return {
    table,
    down,
    across,
    order,
    index,
    rowCount: down.count,
    columnCount: across.count,
    value: (row, column) => table.values[index(row, column)],
    share: shares(table, down, across, order, values),
    header: (axis, row) => placeIn(down, axis, order[row]),
    columnHeader: (axis, column) => placeIn(across, axis, column),
  };
}

/** Which of the percentages are available: they need the totals they are shares of. */
export function possible(table, rows, columns) {
  const has = (names) => names.every((name) => (table.axes.find((axis) => axis.variable === name)?.total ?? 0) >= 0);
  return { count: true, row: has(columns), column: has(rows), total: has(rows) && has(columns) };
}

function shares(table, down, across, order, values) {
  const whole = {
    row: across.hasTotals && ((row) => down.offsets[order[row]] + across.totalOffset),
    column: down.hasTotals && ((_, column) => down.totalOffset + across.offsets[column]),
    total: down.hasTotals && across.hasTotals && (() => down.totalOffset + across.totalOffset),
  }[values];
  if (!whole) return null;
  return (row, column) => {
    const part = table.values[down.offsets[order[row]] + across.offsets[column]];
    const all = table.values[whole(row, column)];
    return part === null || !all ? null : part / all;
  };
}

/** The place in an axis of the side's line. */
function placeIn(one, axis, line) {
  let inner = 1;
  for (let k = axis + 1; k < one.axes.length; k += 1) inner *= one.shown[k].length;
  return one.shown[axis][Math.floor(line / inner) % one.shown[axis].length];
}

/** How many lines a header of an axis spans. */
export function span(one, axis) {
  let inner = 1;
  for (let k = axis + 1; k < one.axes.length; k += 1) inner *= one.shown[k].length;
  return inner;
}

/** The order of the rows: by a column inside each group of the outer headers, totals first, withheld cells last. */
function ordered(table, down, across, sort) {
  const lines = down.offsets.map((_, line) => line);
  if (!sort || sort.column >= across.count || !down.axes.length) return lines;
  const last = down.axes.length - 1;
  const size = down.shown[last].length;
  const sign = sort.direction === "ascending" ? 1 : -1;
  const value = (line) => table.values[down.offsets[line] + across.offsets[sort.column]];
  const isTotal = (line) => placeIn(down, last, line) === down.axes[last].total;
  const compare = (a, b) => {
    if (isTotal(a) !== isTotal(b)) return isTotal(a) ? -1 : 1;
    const [first, second] = [value(a), value(b)];
    if (first === null || second === null) return (first === null) - (second === null);
    return sign * (first - second) || a - b;
  };
  const groups = [];
  for (let from = 0; from < lines.length; from += size) groups.push(lines.slice(from, from + size).sort(compare));
  return groups.flat();
}

/** The text of a code. */
export function codeText(axis, place, texts, totalWords) {
  const code = axis.codes[place];
  const label = place === axis.total && axis.labels[place] === "Total" ? totalWords : axis.labels[place];
  if (texts === "codes") return code;
  return texts === "both" && code !== label ? `${code} ${label}` : label;
}
