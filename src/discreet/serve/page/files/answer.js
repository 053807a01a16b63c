// An answer of the server (JSON-stat) as a table to look at: layout, percentages, order. Pure functions; values are
// never added up here, because sums of noisy counts are noisier than the totals that the server gives.

import { counted, measureOf } from "./measures.js";
import { TOTAL, variableOf } from "./question.js";

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
    picked: pickedIn(told.query),
    noise: told.noise,
    warnings: told.warnings,
    blocked: told.blocked,
    blockedCount: told.blocked_count,
    size: dataset.value.length,
  };
}

/** The variables of which a reader chose categories: they are shown as chosen. */
const pickedIn = ({ axes = [] }) =>
  new Set(axes.filter((axis) => axis.codes?.length || axis.groups).map((axis) => variableOf(axis)));

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

/** One side of a table: its axes, the places shown of each with their indents, and the offset of each line into the
 * values. Categories below a closed one are left out, and those that are all of their parent. */
function side(table, names, { totals, closed = {}, singles = false, top = 0 }, isFolding) {
  const axes = names.map((name) => table.axes.find((axis) => axis.variable === name)).filter(Boolean);
  const shown = axes.map((axis, k) => {
    const isRepeated = (place) => isOnly(table, axis, place) && (totals || axis.parents[place] !== axis.total);
    const every = axis.codes.map((_, place) => place).filter((place) => singles || !isRepeated(place));
    const parts = every.filter((place) => place !== axis.total);
    const some = totals || !parts.length ? every : parts;
    const isTop = top > 0 && isFolding && k === axes.length - 1;
    const shut = isFolding && !isTop ? new Set(closed[axis.variable] ?? []) : new Set();
    return shut.size ? some.filter((place) => !isInside(axis, place, shut)) : some;
  });
  let offsets = [0];
  axes.forEach((axis, k) => {
    offsets = offsets.flatMap((offset) => shown[k].map((place) => offset + place * axis.stride));
  });
  return { axes, shown, offsets, count: offsets.length };
}

/** Whether a category is the only one below its parent, which therefore counts the same records: it is not repeated. */
function isOnly(table, axis, place) {
  const above = axis.parents[place];
  return above >= 0 && !table.picked.has(axis.variable) && childCount(axis).get(above) === 1;
}

const counts = new WeakMap(); // axis -> place -> how many categories are right below it

function childCount(axis) {
  if (!counts.has(axis)) {
    const found = new Map();
    for (const above of axis.parents) found.set(above, (found.get(above) ?? 0) + 1);
    counts.set(axis, found);
  }
  return counts.get(axis);
}

/** Whether a category is below one of some codes. */
function isInside(axis, place, codes) {
  for (let above = axis.parents[place]; above >= 0; above = axis.parents[above])
    if (codes.has(axis.codes[above])) return true;
  return false;
}

/** Place -> whether there are categories below it that can be opened and closed; totals always stay open. */
export function foldable(table, axis, singles) {
  const found = new Set(axis.parents.filter((above, place) => above >= 0 && (singles || !isOnly(table, axis, place))));
  // below a category that is not repeated, its own parent is the one that opens
  axis.parents.forEach((above, place) => {
    for (let at = above; !singles && at >= 0 && isOnly(table, axis, at); at = axis.parents[at])
      if (!isOnly(table, axis, place)) found.add(axis.parents[at]);
  });
  found.delete(axis.total);
  return found;
}

/** The table in a layout: numbers by row and column or by the index of a cell, and the places of headers. */
export function laidOut(table, layout) {
  const down = side(table, layout.rows, layout, true);
  const across = side(table, layout.columns, layout, false);
  const measure = measureOf(table, down, across, layout);
  const measures = layout.counts && measure.kind !== "count" ? [counted(table), measure] : [measure];
  if (measures.length > 1) addMeasures(across, measures);
  const measureAt = (column) => measures[column % measures.length];
  const order = ordered(down, across, measureAt, layout);
  const fields = layout.zeros === false ? someValues(table, across, down, order) : across.offsets.map((_, k) => k);
  const rows = layout.zeros === false ? withValues(table, down, across, order) : order;
  const index = (row, column) => down.offsets[rows[row]] + across.offsets[fields[column]];
  return {
    table,
    down,
    across,
    index,
    measure,
    lines: rows,
    fields,
    measureAt: (column) => measureAt(fields[column]),
    amountAt: measure.at,
    rowCount: rows.length,
    columnCount: fields.length,
    value: (row, column) => table.values[index(row, column)],
    amount: (row, column) => measureAt(fields[column]).at(index(row, column)),
    header: (axis, row) => placeIn(down, axis, rows[row]),
    columnHeader: (axis, column) => placeIn(across, axis, fields[column]),
  };
}

/** Counts and their shares next to each other: the measures are an innermost axis of the columns. */
function addMeasures(across, measures) {
  const kinds = measures.map((one) => one.kind);
  const captions = measures.map((one) => one.caption);
  const depths = kinds.map(() => 0);
  const parents = kinds.map(() => -1);
  across.axes = [
    ...across.axes,
    { variable: "", isMeasure: true, codes: kinds, labels: captions, depths, parents, stride: 0, total: -1 },
  ];
  across.shown = [...across.shown, kinds.map((_, k) => k)];
  across.offsets = across.offsets.flatMap((offset) => kinds.map(() => offset));
  across.count = across.offsets.length;
}

/** Lines of which some number is not zero; all where every one is. */
function withValues(table, down, across, lines) {
  const found = lines.filter((line) => across.offsets.some((offset) => table.values[down.offsets[line] + offset] !== 0));
  return found.length ? found : lines;
}

function someValues(table, across, down, lines) {
  const found = across.offsets
    .map((_, field) => field)
    .filter((field) => lines.some((line) => table.values[down.offsets[line] + across.offsets[field]] !== 0));
  return found.length ? found : across.offsets.map((_, field) => field);
}

/** The place in an axis of the side's line. */
function placeIn(one, axis, line) {
  let inner = 1;
  for (let k = axis + 1; k < one.axes.length; k += 1) inner *= one.shown[k].length;
  return one.shown[axis][Math.floor(line / inner) % one.shown[axis].length];
}

/** Which lines are shown in which order: by a column inside each group of the outer headers, each category below its own
 * parent; or only the largest of the finest categories. */
function ordered(down, across, measureAt, { sort, top }) {
  const lines = down.offsets.map((_, line) => line);
  const isSorted = sort && sort.column < across.count;
  if ((!isSorted && !top) || !down.axes.length) return lines;
  const { column, direction } = isSorted ? sort : { column: wholeColumn(across), direction: "descending" };
  const axis = down.axes.at(-1);
  const shown = down.shown.at(-1);
  const children = childrenOf(axis, shown);
  const sign = direction === "ascending" ? 1 : -1;
  const order = [];
  for (let from = 0; from < lines.length; from += shown.length) {
    const value = (k) => measureAt(column).at(down.offsets[from + k] + across.offsets[column]);
    const compare = (a, b) => {
      const [first, second] = [value(a), value(b)];
      if (first === null || second === null) return (first === null) - (second === null) || a - b;
      return sign * (first - second) || a - b;
    };
    const first = (k) => (shown[k] === axis.total ? 0 : 1);
    if (top) {
      const finest = shown.map((_, k) => k).filter((k) => first(k) && !children.has(k));
      const whole = shown.map((_, k) => k).filter((k) => !first(k));
      order.push(...[...whole, ...finest.sort(compare).slice(0, top)].map((k) => from + k));
      continue;
    }
    const walk = (k) => {
      order.push(from + k);
      [...(children.get(k) ?? [])].sort(compare).forEach(walk);
    };
    [...(children.get(-1) ?? [])].sort((a, b) => first(a) - first(b) || compare(a, b)).forEach(walk);
  }
  return order;
}

/** The column of the totals, else the first. */
function wholeColumn(across) {
  const isWhole = (column) => across.axes.every((axis, k) => axis.isMeasure || placeIn(across, k, column) === axis.total);
  return Math.max(0, across.offsets.findIndex((_, column) => isWhole(column)));
}

/** How deep a category is below the categories that are shown; totals do not count. */
export function indentsOf(axis, shown, isFlat) {
  const here = new Set(shown);
  return new Map(
    shown.map((place) => {
      let depth = 0;
      for (let above = axis.parents[place]; !isFlat && above >= 0; above = axis.parents[above])
        if (here.has(above) && above !== axis.total) depth += 1;
      return [place, depth];
    }),
  );
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
