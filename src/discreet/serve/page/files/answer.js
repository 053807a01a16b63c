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
  const at = new Map(codes.map((code, k) => [code, k]));
  return {
    variable: id,
    place,
    codes,
    parents: codes.map((code) => at.get(parent[code]) ?? -1),
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
  return { axes, shown, offsets, count: offsets.length };
}

/** The table in a layout: values and shares by row and column or by the index of a cell, and the places of headers. */
export function laidOut(table, { rows, columns, totals, values, sort }) {
  const down = side(table, rows, totals);
  const across = side(table, columns, totals);
  const order = ordered(table, down, across, sort);
  const index = (row, column) => down.offsets[order[row]] + across.offsets[column];
  const shareAt = shares(table, down, across, values);
  return {
    table,
    down,
    across,
    order,
    index,
    shareAt,
    wholeAt: shareAt?.wholeAt ?? null,
    amountAt: (at) => (shareAt ? shareAt(at) : table.values[at]),
    rowCount: down.count,
    columnCount: across.count,
    value: (row, column) => table.values[index(row, column)],
    share: shareAt && ((row, column) => shareAt(index(row, column))),
    header: (axis, row) => placeIn(down, axis, order[row]),
    columnHeader: (axis, column) => placeIn(across, axis, column),
  };
}

/** The place of a cell along an axis. */
export const placeAt = (axis, index) => Math.floor(index / axis.stride) % axis.codes.length;

/** Which of the percentages are available: they need the totals they are shares of. */
export function possible(table, rows, columns) {
  const has = (names) => names.every((name) => (table.axes.find((axis) => axis.variable === name)?.total ?? 0) >= 0);
  return { count: true, row: has(columns), column: has(rows), total: has(rows) && has(columns) };
}

/** The share of a cell in the published total of its row, of its column or of the table; null where counts are shown. */
function shares(table, down, across, values) {
  const fixed = { row: across.axes, column: down.axes, total: [...down.axes, ...across.axes] }[values];
  if (!fixed || fixed.some((axis) => axis.total < 0)) return null;
  const wholeAt = (index) =>
    fixed.reduce((at, axis) => at + (axis.total - placeAt(axis, index)) * axis.stride, index);
  const shareAt = (index) => {
    const [part, whole] = [table.values[index], table.values[wholeAt(index)]];
    return part === null || !whole ? null : part / whole;
  };
  return Object.assign(shareAt, { wholeAt });
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

/** The order of the rows: by a column inside each group of the outer headers, each category below its own parent. */
function ordered(table, down, across, sort) {
  const lines = down.offsets.map((_, line) => line);
  if (!sort || sort.column >= across.count || !down.axes.length) return lines;
  const axis = down.axes.at(-1);
  const shown = down.shown.at(-1);
  const children = childrenOf(axis, shown);
  const sign = sort.direction === "ascending" ? 1 : -1;
  const order = [];
  for (let from = 0; from < lines.length; from += shown.length) {
    const value = (k) => table.values[down.offsets[from + k] + across.offsets[sort.column]];
    const compare = (a, b) => {
      const [first, second] = [value(a), value(b)];
      if (first === null || second === null) return (first === null) - (second === null) || a - b;
      return sign * (first - second) || a - b;
    };
    const walk = (k) => {
      order.push(from + k);
      [...(children.get(k) ?? [])].sort(compare).forEach(walk);
    };
    const first = (k) => (shown[k] === axis.total ? 0 : 1);
    [...(children.get(-1) ?? [])].sort((a, b) => first(a) - first(b) || compare(a, b)).forEach(walk);
  }
  return order;
}

/** Position in what is shown -> the positions of the categories right below it; -1 -> those without a parent. */
function childrenOf(axis, shown) {
  const at = new Map(shown.map((place, k) => [place, k]));
  const children = new Map();
  shown.forEach((place, k) => {
    let above = axis.parents[place];
    while (above >= 0 && !at.has(above)) above = axis.parents[above];
    const parent = at.get(above) ?? -1;
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(k);
  });
  return children;
}

/** The text of a code. */
export function codeText(axis, place, texts, totalWords) {
  const code = axis.codes[place];
  const label = place === axis.total && axis.labels[place] === "Total" ? totalWords : axis.labels[place];
  if (texts === "codes") return code;
  return texts === "both" && code !== label ? `${code} ${label}` : label;
}
