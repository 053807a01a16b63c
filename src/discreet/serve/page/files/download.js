// The menu of files: the view as it is seen, and the answer from the server in the formats that it writes.

import * as api from "./api.js";
import { button, el, handOver } from "./dom.js";
import { t } from "./language.js";
import { title } from "./names.js";
import { pictureOf } from "./picture.js";
import { seenCsv, seenWorkbook } from "./seen.js";

const FORMATS = ["csv", "xlsx", "px", "sdmx-csv", "parquet", "json-stat"];

/** A menu of formats. */
export function downloadView(state, actions, layout) {
  const item = (caption, key, make) =>
    button(caption, (event) => given(event.currentTarget.closest("details"), make(), actions), {
      class: "item",
      data: { key },
    });
  const csv = async () => ({ blob: new Blob([seenCsv(state, layout)], { type: "text/csv" }), name: "table.csv" });
  const xlsx = async () => ({ blob: await seenWorkbook(state, layout), name: "table.xlsx" });
  const picture = async () => {
    const figure = document.querySelector("figure.chart, figure.map");
    const picks = [...document.querySelectorAll(".picks .field")].map(
      (one) => `${one.firstChild.textContent}: ${one.querySelector("select").selectedOptions[0].textContent}`,
    );
    const caption = [title(state.world.catalogue, state.answer.query), ...picks].join(" · ");
    return { blob: pictureOf(figure, caption), name: "picture.svg" };
  };
  return el(
    "details",
    { class: "menu", name: "menus", data: { key: "download" } },
    el("summary", { class: "button" }, t("download")),
    el(
      "div",
      { class: "drop" },
      el("p", { class: "quiet" }, t("download.shown")),
      state.view === "table" ? null : item(t("download.picture"), "download-picture", picture),
      item(t("format.xlsx"), "download-seen-xlsx", xlsx),
      item(t("format.csv"), "download-seen", csv),
      el("p", { class: "quiet" }, t("download.counts")),
      FORMATS.map((format) =>
        item(t(`format.${format}`), `download-${format}`, () =>
          api.file(state.answer.query, format, layout.columns, state.texts),
        ),
      ),
    ),
  );
}

async function given(menu, promise, actions) {
  const file = await actions.trying(promise);
  if (!file?.blob) return;
  handOver(file.blob, file.name);
  menu.open = false;
  menu.querySelector("summary").focus();
  actions.announce(t("download.done", { name: file.name }));
}
