// Room for the table: the side panel folds away, and the result fills the screen.

import { el, signButton } from "./dom.js";
import { t } from "./language.js";

const KEY = "table-builder-panel";
const root = document.documentElement;

const isFolded = () => root.dataset.panel === "folded";
const isFull = () => root.dataset.full === "yes";

/** The panel as the reader left it. */
export function restorePanel() {
  try {
    if (localStorage.getItem(KEY) === "folded") root.dataset.panel = "folded";
  } catch {
    // storage is switched off
  }
}

/** The button that folds the side panel away, or brings it back. */
export function panelView() {
  const caption = t(isFolded() ? "panel.open" : "panel.fold");
  const place = el("div", { class: "panel-fold" });
  const press = () => {
    root.dataset.panel = isFolded() ? "open" : "folded";
    try {
      localStorage.setItem(KEY, root.dataset.panel);
    } catch {
      // storage is switched off: the choice holds for this visit
    }
    place.replaceWith(panelView());
    document.querySelector('[data-key="panel"]').focus();
  };
  const options = { "aria-expanded": String(!isFolded()), "aria-controls": "builder", data: { key: "panel" } };
  place.append(signButton(isFolded() ? "»" : "«", caption, press, options));
  return place;
}

/** The button that lets the result fill the screen. */
export function fullView(redraw) {
  const press = () => {
    setFull(!isFull());
    redraw();
  };
  return signButton(isFull() ? "⤡" : "⤢", t(isFull() ? "full.leave" : "full"), press, {
    class: "sign swap",
    "aria-pressed": String(isFull()),
    data: { key: "full" },
  });
}

function setFull(isOn) {
  root.dataset.full = isOn ? "yes" : "no";
  if (isOn) root.requestFullscreen?.().catch(() => {}); // the window is filled without it too
  else if (document.fullscreenElement) document.exitFullscreen();
}

/** Escape, or leaving the browser's full screen, brings the page back. */
export function watchFull(redraw) {
  const leave = () => {
    if (!isFull()) return;
    setFull(false);
    redraw();
    document.querySelector('[data-key="full"]')?.focus();
  };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open], details.menu[open], details.more[open]")) leave();
  });
  document.addEventListener("fullscreenchange", () => {
    if (!document.fullscreenElement) leave();
  });
}
