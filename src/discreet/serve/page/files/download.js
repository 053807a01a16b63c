// The view as a file: from the server in the formats that it writes, or as it is seen, percentages and order included.

import * as api from "./api.js";
import { laidOut, wordsOf } from "./answer.js";
import { button, el, handOver } from "./dom.js";
import { t } from "./language.js";
import { variableName } from "./names.js";

const FORMATS = ["csv", "xlsx", "px", "sdmx-csv", "parquet", "json-stat"];

/** A menu of formats. */
export function downloadView(state, actions, layout) {
  const fetched = (format) => async (event) => {
    const menu = event.currentTarget.closest("details");
    try {
      const { name, blob } = await api.file(state.answer.query, format, layout.columns, state.texts);
      handOver(blob, name);
      menu.open = false;
    } catch (problem) {
      actions.tell(problem.message || t("unreachable"));
    }
  };
  const seen = (event) => {
    handOver(new Blob([asSeen(state, layout)], { type: "text/csv" }), "table-as-shown.csv");
    event.currentTarget.closest("details").open = false;
  };
  return el(
    "details",
    { class: "menu", name: "menus", data: { key: "download" } },
    el("summary", { class: "button" }, t("download")),
    el(
      "div",
      { class: "drop" },
      button(t("download.seen"), seen, { class: "item", data: { key: "download-seen" } }),
      FORMATS.map((format) =>
        button(t(`format.${format}`), fetched(format), { class: "item", data: { key: `download-${format}` } }),
      ),
    ),
  );
}

/** The table on the screen as CSV: shares as numbers, withheld cells empty. */
export function asSeen(state, layout) {
  const view = laidOut(state.answer.table, { ...state, ...layout });
  const words = (axis, place) => wordsOf(axis, place, state.texts, t("total"));
  const columns = Array.from({ length: view.columnCount }, (_, k) => k);
  const corner = view.down.axes.map((axis) => variableName(state.world.catalogue, axis.variable));
  const heads = view.across.axes.map((axis, k) => [
    ...(k === view.across.axes.length - 1 ? corner : corner.map(() => "")),
    ...columns.map((column) => words(axis, view.columnHeader(k, column))),
  ]);
  if (!heads.length) heads.push([...corner, t(`values.${state.values}`)]);
  const lines = Array.from({ length: view.rowCount }, (_, row) => [
    ...view.down.axes.map((axis, k) => words(axis, view.header(k, row))),
    ...columns.map((column) => (view.share ? view.share(row, column) : view.value(row, column)) ?? ""),
  ]);
  return [...heads, ...lines].map((line) => line.map(quoted).join(",")).join("\n") + "\n";
}

const quoted = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replace(/"/g, '""')}"` : String(value));
