// The table on the screen as a file: layout, order, percentages and texts as shown. Withheld cells are empty.

import { laidOut, codeText } from "./answer.js";
import { t } from "./language.js";
import { variableName } from "./names.js";

/** What is shown, taken apart: the names of the rows' axes, the rows of column headers, and the lines. */
function shownIn(state, layout) {
  const view = laidOut(state.answer.table, { ...state, ...layout });
  const textOf = (axis, place) => codeText(axis, place, state.texts, t("total"));
  const columns = Array.from({ length: view.columnCount }, (_, k) => k);
  const heads = view.across.axes.map((axis, k) => columns.map((column) => textOf(axis, view.columnHeader(k, column))));
  return {
    corner: view.down.axes.map((axis) => variableName(state.world.catalogue, axis.variable)),
    heads: heads.length ? heads : [[t(`values.${state.values}`)]],
    lines: Array.from({ length: view.rowCount }, (_, row) => ({
      stubs: view.down.axes.map((axis, k) => textOf(axis, view.header(k, row))),
      values: columns.map((column) => (view.share ? view.share(row, column) : view.value(row, column))),
    })),
  };
}

/** As CSV; shares as numbers. */
export function seenCsv(state, layout) {
  const { corner, heads, lines } = shownIn(state, layout);
  const headLines = heads.map((head, k) => [
    ...(k === heads.length - 1 ? corner : corner.map(() => "")),
    ...head,
  ]);
  const all = [...headLines, ...lines.map(({ stubs, values }) => [...stubs, ...values.map((value) => value ?? "")])];
  return `${all.map((line) => line.map((cell) => quoted(harmless(cell))).join(",")).join("\n")}\n`;
}

/** A text that no spreadsheet takes for a formula: names of groups may come from other users' links. */
const harmless = (value) => (typeof value === "string" && /^\s*[=@+-]/.test(value) ? `'${value}` : value);
const quoted = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replace(/"/g, '""')}"` : String(value));
