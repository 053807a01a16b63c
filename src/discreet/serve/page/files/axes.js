// Rows and columns: variables as cards that can be dragged, moved by arrow keys or by buttons.

import { byKey, choice, button, el, signButton } from "./dom.js";
import { number, t } from "./language.js";
import { breakdownName, variableName } from "./names.js";
import {
  added,
  breakdownsOf,
  changed,
  lengthOf,
  moved,
  placeOf,
  removed,
  variableNamed,
  variableOf,
} from "./question.js";

const SIDES = ["rows", "columns"];

/** Both sides, each a list of cards. */
export function axesView(state, actions, editCodes) {
  return el(
    "div",
    { class: "sides" },
    SIDES.map((side) => sideView(state, actions, side, editCodes)),
    el("p", { class: "quiet hint", id: "move-hint" }, t("move.hint")),
  );
}

function sideView(state, actions, side, editCodes) {
  const cards = state[side].map((axis, place) => card(state, actions, axis, side, place, editCodes));
  const list = el("ol", { class: "cards", data: { side } }, cards);
  if (!cards.length) list.append(el("li", { class: "blank" }, t(`${side}.blank`)));
  droppable(list, state, actions, side);
  return el(
    "div",
    { class: "side", role: "group", "aria-labelledby": `side-${side}` },
    el("h3", { id: `side-${side}` }, t(`side.${side}`)),
    list,
  );
}

function card(state, actions, axis, side, place, editCodes) {
  const { catalogue } = state.world;
  const name = variableOf(axis);
  const words = variableName(catalogue, name);
  const grip = signButton("⠿", t("move.grip", { name: words }), () => {}, {
    class: "sign grip",
    "aria-describedby": "move-hint",
    data: { key: `grip-${name}` },
    on: { keydown: (event) => byArrow(event, state, actions, name) },
  });
  const other = side === "rows" ? "columns" : "rows";
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
    el(
      "div",
      { class: "card-top" },
      grip,
      el("strong", {}, words),
      signButton("↑", t("move.up", { name: words }), () => to(state, actions, name, side, place - 1), {
        disabled: place === 0,
        data: { key: `up-${name}` },
      }),
      signButton("↓", t("move.down", { name: words }), () => to(state, actions, name, side, place + 1), {
        disabled: place === state[side].length - 1,
        data: { key: `down-${name}` },
      }),
      signButton(
        "⇄",
        t(`move.to.${other}`, { name: words }),
        () => to(state, actions, name, other, state[other].length),
        { data: { key: `other-${name}` } },
      ),
      signButton("✕", t("remove", { name: words }), () => takeOut(state, actions, name, words), {
        data: { key: `remove-${name}` },
      }),
    ),
    el(
      "div",
      { class: "card-bottom" },
      breakdownList(state, actions, axis, words),
      codesButton(state, axis, words, editCodes),
    ),
  );
}

function breakdownList(state, actions, axis, words) {
  const { catalogue } = state.world;
  const groups = Object.keys(axis.groups || {}).length;
  const pairs = breakdownsOf(catalogue, variableOf(axis)).map((one) => [one.name, breakdownName(catalogue, one)]);
  if (groups) pairs.push([axis.breakdown, t("groups.own", { n: groups })]);
  const pick = (breakdown) => actions.ask(changed(state, { breakdown, codes: [], groups: {} }));
  const list = choice(t("breakdown.of", { name: words }), pairs, axis.breakdown, pick, {
    data: { key: `breakdown-${variableOf(axis)}` },
  });
  list.firstChild.className = "unseen";
  return list;
}

function codesButton(state, axis, words, editCodes) {
  const { catalogue } = state.world;
  const every = breakdownsOf(catalogue, variableOf(axis)).find((one) => one.name === axis.breakdown)?.codes;
  const text =
    axis.codes.length && every
      ? t("codes.some", { chosen: axis.codes.length, all: every })
      : t("codes.all", { all: lengthOf(axis, catalogue) });
  return button(text, () => editCodes(axis), {
    class: "plain",
    "aria-label": `${t("codes.of", { name: words })}: ${text}`,
    data: { key: `codes-${variableOf(axis)}` },
  });
}

function takeOut(state, actions, name, words) {
  actions.ask(removed(state, name));
  actions.announce(t("announce.removed", { name: words }));
  byKey(document, `variable-${name}`)?.focus();
}

function to(state, actions, name, side, place) {
  actions.ask({ ...moved(state, name, side, place), ...(state.sort ? { sort: null } : {}) });
  actions.announce(
    t("announce.moved", {
      name: variableName(state.world.catalogue, name),
      side: t(`side.${side}`),
      place: number(place + 1),
    }),
  );
}

function byArrow(event, state, actions, name) {
  const { side, place } = placeOf(state, name);
  const aims = {
    ArrowUp: [side, place - 1],
    ArrowDown: [side, place + 1],
    ArrowLeft: ["rows", state.rows.length],
    ArrowRight: ["columns", state.columns.length],
  };
  if (event.key === "Delete") takeOut(state, actions, name, variableName(state.world.catalogue, name));
  const aim = aims[event.key];
  if (!aim) return;
  event.preventDefault();
  const isSame = aim[0] === side && (aim[1] < 0 || aim[1] >= state[side].length);
  if (!isSame) to(state, actions, name, ...aim);
}

function dragged(event, name) {
  event.dataTransfer.setData("text/plain", name);
  event.dataTransfer.effectAllowed = "move";
  event.currentTarget.classList.add("dragging");
}

/** Let a list take cards, and variables that are not in the table yet. */
function droppable(list, state, actions, side) {
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
    const held = [...list.querySelectorAll(".card")].filter((one) => one.dataset.variable !== name);
    const before = held.filter((one) => one.getBoundingClientRect().top + one.offsetHeight / 2 < event.clientY).length;
    const isIn = [...state.rows, ...state.columns].some((axis) => variableOf(axis) === name);
    if (isIn) to(state, actions, name, side, before);
    else actions.ask(added(state, variable, side));
  });
}
