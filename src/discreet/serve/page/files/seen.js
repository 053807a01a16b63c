// The table on the screen as the server is to write it into a file: which rows and columns in which order, and which numbers.

import { laidOut } from "./answer.js";
import { SHARES } from "./measures.js";
import { variableOf } from "./question.js";

/** The question with its axes in the order of the layout: rows, then columns. */
export function seenQuery({ answer }, { rows, columns }) {
  const axes = [...rows, ...columns].map((name) => answer.query.axes.find((axis) => variableOf(axis) === name));
  return { ...answer.query, axes };
}

/** The layout as the API takes it. */
export function seenLayout(state, layout) {
  const view = laidOut(state.answer.table, { ...state, ...layout });
  const { measure } = view;
  const across = view.across.axes.filter((axis) => !axis.isMeasure);
  const lines = places(view.down.axes, view.rowCount, view.header);
  const fields = [...new Set(places(across, view.columnCount, view.columnHeader))];
  const [axis, place] = measure.base ?? [];
  return {
    columns: layout.columns,
    texts: state.texts,
    percent: SHARES.includes(measure.kind) ? measure.kind : null,
    compare: axis ? { kind: measure.kind, variable: axis.variable, code: axis.codes[place] } : null,
    counts: state.counts,
    ranges: state.noise === "beside",
    lines,
    fields,
  };
}

/** The position of each line among all combinations of the codes of its axes. */
const places = (axes, count, headerOf) =>
  Array.from({ length: count }, (_, line) => axes.reduce((at, axis, k) => at * axis.codes.length + headerOf(k, line), 0));
