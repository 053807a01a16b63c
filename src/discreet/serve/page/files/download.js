// The menu of files: the view as it is seen, and the answer from the server in the formats that it writes.

import * as api from "./api.js";
import { button, el, handOver } from "./dom.js";
import { t } from "./language.js";
import { title } from "./names.js";
import { chartData, chartPicture } from "./chart.js";
import { pictureOf } from "./picture.js";
import { seenLayout, seenQuery } from "./seen.js";

const FORMATS = ["csv", "px", "sdmx-csv", "parquet", "json-stat"];

/** A menu of formats. */
export function downloadView(state, actions, layout) {
  const item = (caption, key, make) =>
    button(caption, (event) => given(event.currentTarget.closest("details"), make(), actions), {
      class: "item",
      data: { key },
    });
  const named = (blob, ending) => blob && { blob, name: `${fileName(state)}.${ending}` };
  const server = (format) => async () => {
    const file = await api.file(state.answer.query, format, layout.columns);
    return { ...file, name: nameIn(format, file.name, state) };
  };
  const seen = (format) => () => api.laidOutFile(seenQuery(state, layout), format, seenLayout(state, layout));
  return el(
    "details",
    { class: "menu", name: "menus", data: { key: "download" } },
    el("summary", { class: "button" }, t("download")),
    el(
      "div",
      { class: "drop" },
      pictures(state, named).map(([caption, key, make]) => item(caption, key, make)),
      el("p", { class: "quiet" }, t("download.shown")),
      item(t("format.xlsx"), "download-xlsx", seen("xlsx")),
      item(t("format.csv"), "download-seen", seen("csv")),
      el("p", { class: "quiet" }, t("download.counts")),
      FORMATS.map((format) => item(t(`format.${format}`), `download-${format}`, server(format))),
    ),
  );
}

/** The files of a chart or a map: caption, key, and what makes it. */
function pictures(state, named) {
  if (state.view === "chart")
    return [
      [t("download.png"), "download-png", async () => named(await chartPicture(state, "png"), "png")],
      [t("download.picture"), "download-picture", async () => named(await chartPicture(state, "svg"), "svg")],
      [t("download.data"), "download-data", async () => named(await chartData(), "csv")],
    ];
  if (state.view !== "map") return [];
  const picture = async () => {
    const caption = title(state.world.catalogue, state.answer.query);
    return named(pictureOf(document.querySelector("figure.map"), caption), "svg");
  };
  return [[t("download.picture"), "download-picture", picture]];
}

/** The title of the table as the name of a file. */
function fileName(state) {
  const caption = title(state.world.catalogue, state.answer.query).normalize("NFKD").toLowerCase();
  return caption.replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 80) || "table";
}

const KINDS = { csv: "-ranges", "sdmx-csv": "-sdmx" }; // three kinds of files end with .csv

/** The name of a file of the server, with its kind. */
function nameIn(format, name, state) {
  if (format === "json-stat") return `${fileName(state)}.json`;
  return name.replace(/(\.\w+)$/, `${KINDS[format] ?? ""}$1`);
}

async function given(menu, promise, actions) {
  const file = await actions.trying(promise);
  if (!file?.blob) return;
  handOver(file.blob, file.name);
  menu.open = false;
  menu.querySelector("summary").focus();
  actions.announce(t("download.done", { name: file.name }));
}
