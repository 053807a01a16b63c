// "My tables": undo and redo, the tables of this visit, and the permanent links made in this browser.

import { button, el, signButton } from "./dom.js";
import { t } from "./language.js";

/** The buttons and the list. */
export function mineView(visits) {
  const step = (sign, name, can, press) =>
    signButton(sign, t(name), press, { class: "sign swap", disabled: !can, data: { key: name } });
  return el(
    "div",
    { class: "row mine" },
    step("↶", "undo", visits.canUndo, visits.undo),
    step("↷", "redo", visits.canRedo, visits.redo),
    el(
      "details",
      { class: "more", data: { key: "mine" } },
      el("summary", { class: "button" }, t("mine", { count: visits.tables.length })),
      el(
        "div",
        { class: "drop wide" },
        el("h2", {}, t("mine.visit")),
        visits.tables.length ? null : el("p", { class: "quiet" }, t("mine.none")),
        el("ul", {}, visits.tables.map((one, k) => tableLine(visits, one, k))),
        el("h2", {}, t("mine.links")),
        visits.links.length ? null : el("p", { class: "quiet" }, t("mine.links.none")),
        el("ul", {}, visits.links.map((one, k) => linkLine(visits, one, k))),
      ),
    ),
  );
}

function tableLine(visits, one, k) {
  const press = (event) => {
    event.currentTarget.closest("details").open = false;
    visits.open(one);
  };
  const caption = [el("span", {}, one.title), el("small", { class: "quiet" }, t("size.shown", { n: one.cells }))];
  return el("li", {}, button(caption, press, { class: "item", data: { key: `mine-${k}` } }));
}

function linkLine(visits, one, k) {
  return el(
    "li",
    { class: "row" },
    el("a", { href: one.link, data: { key: `link-${k}` } }, one.title),
    signButton("✕", t("mine.links.drop", { name: one.title }), () => visits.dropLink(one.link), { data: { key: `link-drop-${k}` } }),
  );
}

/** Ctrl with Z and Y, except where a text is written. */
export function watchKeys(visits) {
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target.closest("input, textarea, dialog")) return;
    const key = event.key.toLowerCase();
    if (key === "z" && !event.shiftKey) visits.undo();
    else if (key === "y" || (key === "z" && event.shiftKey)) visits.redo();
    else return;
    event.preventDefault();
  });
}
