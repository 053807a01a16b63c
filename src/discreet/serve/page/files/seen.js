// The table on the screen as a file: layout, order, percentages and texts as shown. Withheld cells are empty.

import { laidOut, span, codeText } from "./answer.js";
import { filterWords } from "./filter.js";
import { t } from "./language.js";
import { headingOf, title, variableName } from "./names.js";
import { STYLES, address, workbook } from "./workbook.js";

/** What is shown, taken apart: the names of the rows' axes, the rows of column headers, and the lines. */
function shownIn(state, layout) {
  const view = laidOut(state.answer.table, { ...state, ...layout });
  const textOf = (axis, place) => codeText(axis, place, state.texts, t("total"));
  const columns = Array.from({ length: view.columnCount }, (_, k) => k);
  const heads = view.across.axes.map((axis, k) => columns.map((column) => textOf(axis, view.columnHeader(k, column))));
  return {
    view,
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

/** As a workbook, with its title, its filter and what a reader must know of the numbers. */
export function seenWorkbook(state, layout) {
  const { view, corner, heads, lines } = shownIn(state, layout);
  const { catalogue } = state.world;
  const { table, query } = state.answer;
  const filter = filterWords(query.where, state.world);
  const above = [
    [{ value: title(catalogue, query), style: STYLES.title }],
    [{ value: filter ? t("where.shown", { filter }) : "" }],
    [{ value: t(`values.${view.share ? state.values : "count"}`) }],
    [],
  ];
  const style = view.share ? STYLES.share : STYLES.count;
  const body = lines.map(({ stubs, values }) => [
    ...stubs.map((value) => ({ value })),
    ...values.map((value) => ({ value, style })),
  ]);
  const headLines = heads.map((head, k) => [
    ...corner.map((value) => ({ value: k ? "" : value, style: STYLES.head })),
    ...head.map((value, column) => ({ value: column % wide(view, k) ? "" : value, style: STYLES.head })),
  ]);
  const withheld = table.blockedCount ? [t("blocked", { n: table.blockedCount })] : [];
  const notes = [[], ...[table.noise, ...withheld, ...table.warnings, source(catalogue)].map((value) => [{ value }])];
  const fixed = { rows: above.length + heads.length, columns: Math.max(1, corner.length) };
  const merged = merges(view, corner, heads, above.length);
  return workbook({ lines: [...above, ...headLines, ...body, ...notes], merged, fixed });
}

const source = (catalogue) =>
  [catalogue.agency, headingOf(catalogue), catalogue.version].filter(Boolean).join(" · ");
const wide = (view, k) => (view.across.axes.length ? span(view.across, k) : 1);

/** Headers over what they head. */
function merges(view, corner, heads, top) {
  const found = [];
  if (heads.length > 1)
    corner.forEach((_, k) => found.push(`${address(top, k)}:${address(top + heads.length - 1, k)}`));
  heads.forEach((head, k) => {
    const step = wide(view, k);
    for (let at = 0; step > 1 && at < head.length; at += step)
      found.push(`${address(top + k, corner.length + at)}:${address(top + k, corner.length + at + step - 1)}`);
  });
  return found;
}
