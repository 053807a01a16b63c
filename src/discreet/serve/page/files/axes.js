// Rows and columns: variables as cards that can be dragged, moved by arrow keys or by buttons.

import { byKey, choice, button, el, signButton } from "./dom.js";
import { labelLang, number, t } from "./language.js";
import { breakdownName, variableName } from "./names.js";
import {
  added,
  breakdownsOf,
  changed,
  moved,
  placeOf,
  removed,
  variableNamed,
  variableOf,
} from "./question.js";

const SIDES = ["rows", "columns"];

/** Both sides, each a list of cards; `isWide`: the cards of a side are next to each other. */
export function axesView(state, actions, editCodes, isWide) {
  const drawn = { state, actions, editCodes, isWide };
  return el(
    "div",
    { class: "sides" },
    el("h2", { class: "unseen", id: "shelves-title" }, t("shelves")),
    SIDES.map((side) => sideView(drawn, side)),
    el("p", { class: "quiet hint", id: "move-hint" }, t(isWide ? "move.hint" : "move.hint.narrow")),
  );
}

function sideView(drawn, side) {
  const { state } = drawn;
  const cards = state[side].map((axis, place) => card(drawn, axis, side, place));
  const list = el("ol", { class: "cards", data: { side } }, cards);
  if (!cards.length) list.append(el("li", { class: "blank" }, t(`${side}.blank`)));
  droppable(list, drawn, side);
  return el(
    "div",
    { class: "side", role: "group", "aria-labelledby": `side-${side}` },
    el("h3", { id: `side-${side}` }, t(`side.${side}`)),
    list,
  );
}

function card(drawn, axis, side, place) {
  const { state, isWide } = drawn;
  const name = variableOf(axis);
  const caption = variableName(state.world.catalogue, name);
  const grip = signButton("⠿", t("move.grip", { name: caption }), () => {}, {
    class: "sign grip",
    "aria-describedby": "move-hint",
    data: { key: `grip-${name}` },
    on: { keydown: (event) => byArrow(event, drawn, name) },
  });
  return el(
    "li",
    {
      class: "card",
      draggable: "true",
      data: { variable: name },
      on: {
        dragstart: (event) => dragged(event, name),
        dragend: (event) => event.currentTarget.classList.remove("dragging"),
      },
    },
    grip,
    el("strong", { title: caption, lang: labelLang(), style: { minWidth: `min(8.5em, ${longestWord(caption)}ch)` } }, caption),
    el("div", { class: "card-what" }, breakdownList(drawn, axis, caption), codesButton(drawn, axis, caption)),
    el(
      "div",
      { class: "card-moves" },
      stepButtons(drawn, side, place, caption, name),
      leaveButtons(drawn, side, caption, name),
    ),
  );
}

const longestWord = (caption) => Math.max(4, ...caption.split(/[\s-]+/).map((word) => word.length));

/** Earlier and later in the list; where cards are next to each other, one way is enough to reach every order. */
function stepButtons(drawn, side, place, caption, name) {
  const { state, isWide } = drawn;
  const last = state[side].length - 1;
  const step = (way, sign, aim) =>
    signButton(sign, t(`move.${way}`, { name: caption }), () => to(drawn, name, side, aim), {
      disabled: aim < 0 || aim > last,
      data: { key: `${way}-${name}` },
    });
  if (isWide) return place ? [step("up", "←", place - 1)] : [];
  return last ? [step("up", "↑", place - 1), step("down", "↓", place + 1)] : [];
}

/** To the other side, and out of the table. Touch screens get a text to aim at. */
function leaveButtons(drawn, side, caption, name) {
  const { state, actions, isWide } = drawn;
  const other = side === "rows" ? "columns" : "rows";
  const cross = signButton(
    "⇄",
    t(`move.to.${other}`, { name: caption }),
    () => to(drawn, name, other, state[other].length),
    { data: { key: `other-${name}` } },
  );
  if (!isWide) cross.append(el("span", { "aria-hidden": "true" }, ` ${t(`side.${other}`)}`));
  const out = signButton("✕", t("remove", { name: caption }), () => takeOut(state, actions, name, caption), {
    data: { key: `remove-${name}` },
  });
  return [cross, out];
}

function breakdownList({ state, actions }, axis, caption) {
  const { catalogue } = state.world;
  const groups = Object.keys(axis.groups || {}).length;
  const pairs = breakdownsOf(catalogue, variableOf(axis)).map((one) => [one.name, breakdownName(catalogue, one, true)]);
  if (groups) pairs.push([axis.breakdown, t("groups.own", { n: groups })]);
  const pick = (breakdown) => actions.ask(changed(state, { breakdown, codes: [], groups: {} }));
  const list = choice(t("breakdown.of", { name: caption }), pairs, axis.breakdown, pick, {
    data: { key: `breakdown-${variableOf(axis)}` },
  });
  list.firstChild.className = "unseen";
  return list;
}

function codesButton({ state, editCodes }, axis, caption) {
  const { catalogue } = state.world;
  const every = breakdownsOf(catalogue, variableOf(axis)).find((one) => one.name === axis.breakdown)?.codes;
  const text =
    axis.codes.length && every
      ? t("codes.some", { chosen: axis.codes.length, all: every })
      : t("codes.all");
  return button(text, () => editCodes(axis), {
    class: "plain",
    "aria-label": `${t("codes.of", { name: caption })}: ${text}`,
    data: { key: `codes-${variableOf(axis)}` },
  });
}

function takeOut(state, actions, name, caption) {
  actions.ask(removed(state, name));
  actions.announce(t("announce.removed", { name: caption }));
  byKey(document, `variable-${name}`)?.focus();
}

function to({ state, actions }, name, side, place) {
  const pressed = document.activeElement;
  actions.ask({ ...moved(state, name, side, place), ...(state.sort ? { sort: null } : {}) });
  actions.announce(
    t("announce.moved", {
      name: variableName(state.world.catalogue, name),
      side: t(`side.${side}`),
      place: number(place + 1),
    }),
  );
  const lost = !document.activeElement || document.activeElement === document.body;
  if (lost && pressed !== document.body) byKey(document, `grip-${name}`)?.focus();
}

/** Keys go where the cards would: along the list, and between rows above and columns below, or left and right of it. */
function byArrow(event, drawn, name) {
  const { state, actions, isWide } = drawn;
  const { side, place } = placeOf(state, name);
  const along = isWide ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  const between = isWide ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
  const aims = {
    [along[0]]: [side, place - 1],
    [along[1]]: [side, place + 1],
    [between[0]]: ["rows", state.rows.length],
    [between[1]]: ["columns", state.columns.length],
  };
  if (event.key === "Delete") takeOut(state, actions, name, variableName(state.world.catalogue, name));
  const aim = aims[event.key];
  if (!aim) return;
  event.preventDefault();
  const isSame = aim[0] === side && (aim[1] < 0 || aim[1] >= state[side].length);
  if (!isSame) to(drawn, name, ...aim);
}

function dragged(event, name) {
  event.dataTransfer.setData("text/plain", name);
  event.dataTransfer.effectAllowed = "move";
  event.currentTarget.classList.add("dragging");
}

/** How many cards are before a point, which may be in a later line of a list that is broken into lines. */
function cardsBefore(list, name, isWide, { clientX, clientY }) {
  const boxes = [...list.querySelectorAll(".card")]
    .filter((one) => one.dataset.variable !== name)
    .map((one) => one.getBoundingClientRect());
  return boxes.filter((box) =>
    isWide && clientY >= box.top && clientY <= box.bottom
      ? box.left + box.width / 2 < clientX
      : box.top + box.height / 2 < clientY,
  ).length;
}

/** Let a list take cards, and variables that are not in the table yet. */
function droppable(list, drawn, side) {
  const { state, actions } = drawn;
  list.addEventListener("dragover", (event) => {
    event.preventDefault();
    list.classList.add("target");
  });
  list.addEventListener("dragleave", () => list.classList.remove("target"));
  list.addEventListener("drop", (event) => {
    event.preventDefault();
    list.classList.remove("target");
    const name = event.dataTransfer.getData("text/plain");
    const variable = variableNamed(state.world.catalogue, name);
    if (!variable) return;
    const isIn = [...state.rows, ...state.columns].some((axis) => variableOf(axis) === name);
    if (isIn) to(drawn, name, side, cardsBefore(list, name, drawn.isWide, event));
    else actions.ask(added(state, variable, side));
  });
}
