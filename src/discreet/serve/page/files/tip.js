// One small note beside what is pointed at or has the focus; Escape hides it.

import { el } from "./dom.js";

const GAP = 6; // pixels between a thing and its note
let note = null;

function made() {
  note ??= el("div", { id: "tip", class: "tip", role: "tooltip", hidden: true });
  if (!note.isConnected) {
    document.querySelector("main").append(note);
    addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
    addEventListener("scroll", hideTip, { capture: true, passive: true });
  }
  return note;
}

/** Show a text beside a box, or beside an element: below it where there is room, else above. */
export function showTip(target, caption) {
  const tip = made();
  tip.textContent = caption;
  tip.hidden = false;
  const box = target instanceof Element ? target.getBoundingClientRect() : target;
  const own = tip.getBoundingClientRect();
  const below = box.bottom + GAP + own.height < innerHeight;
  const left = Math.max(8, Math.min(box.left + box.width / 2 - own.width / 2, innerWidth - own.width - 8));
  tip.style.left = `${left}px`;
  tip.style.top = `${below ? box.bottom + GAP : Math.max(8, box.top - own.height - GAP)}px`;
}

export function hideTip() {
  if (note) note.hidden = true;
}
