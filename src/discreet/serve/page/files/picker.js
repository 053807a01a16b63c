// Choosing categories: a tree that opens and closes, found by a search, chosen one by one, by level or by branch. It
// changes a set of codes and reports it; the caller decides what the set means. Only the lines in sight are elements.

import { button, el, replace } from "./dom.js";
import { labelLang, number, t } from "./language.js";
import { TOTAL } from "./question.js";
import { branchOf, inSight, levelsOf, makeTree, openAtFirst, pathOf, searched } from "./tree.js";

const HEIGHT = 34; // pixels of a line, as in the style
const AROUND = 10; // lines that are drawn beyond sight
const CHIPS = 8;

/** Chosen codes without those below other chosen ones, where a code includes its whole branch. */
export function topmost(codelist, chosen) {
  const parentOf = new Map(codelist.codes.map((code, place) => [code, codelist.parents[place]]));
  const isCovered = (code) => {
    for (let above = parentOf.get(code); above && above !== TOTAL; above = parentOf.get(above))
      if (chosen.has(above)) return true;
    return false;
  };
  return codelist.codes.filter((code) => code !== TOTAL && chosen.has(code) && !isCovered(code));
}

/** Where a code includes its whole branch: what is ticked with it, and what cannot stay ticked without it. */
export function wholeBranches(codelist) {
  const tree = makeTree(codelist);
  const above = (place) => (place < 0 ? [] : [tree.codes[place], ...above(tree.above[place])]);
  return (code, on) => {
    const place = tree.at.get(code);
    const whole = branchOf(tree, place).map((one) => tree.codes[one]);
    return on ? whole : [...above(place), ...whole];
  };
}

/** The tree with its search, shortcuts and what is chosen. `chosen` is a set of codes, `changed` is called when it is
 * another one; `together` gives the codes that a tick changes. */
export function makePicker(codelist, chosen, changed, { together = (code) => [code], isPlace = false } = {}) {
  const tree = makeTree(codelist);
  const open = openAtFirst(tree, chosen);
  const chips = el("div", { class: "chips" });
  const listed = el("p", { class: "quiet listed", role: "status" });
  const about = el("p", { class: "quiet about", id: "code-about" });
  const space = el("div", { class: "space", role: "none" });
  const list = el(
    "div",
    {
      class: "codes",
      role: "tree",
      "aria-label": t("codes.tree"),
      "aria-multiselectable": "true",
      on: { keydown: byKeys, scroll: () => drawLines(), click: pressed, mouseover: hovered, focusin: hovered },
    },
    space,
  );
  let wanted = "";
  let shown = [];
  let current = 0; // the place that has the focus, or would get it

  const label = (place) => (tree.codes[place] === TOTAL ? t("total") : tree.labels[place]);

  function set(codes, on) {
    for (const code of codes)
      if (on) chosen.add(code);
      else chosen.delete(code);
    mark();
    changed();
  }

  function only(codes) {
    chosen.clear();
    set(codes, true);
  }

  /** Show what is chosen, after the set was changed from outside too. */
  function mark() {
    drawLines();
    drawChips();
  }

  function draw() {
    shown = wanted ? searched(tree, wanted) : inSight(tree, open);
    if (!shown.includes(current)) current = shown[0] ?? 0;
    space.style.height = `${shown.length * HEIGHT}px`;
    listed.textContent = !wanted ? "" : shown.length ? t(isPlace ? "areas.listed" : "codes.listed", { n: shown.length }) : t("found.nothing");
    drawLines();
  }

  function drawLines() {
    const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - AROUND);
    const last = Math.min(shown.length, Math.ceil((list.scrollTop + (list.clientHeight || 400)) / HEIGHT) + AROUND);
    const lines = shown.slice(first, last).map((place, k) => line(place, first + k));
    if (shown.includes(current) && !shown.slice(first, last).includes(current)) lines.push(line(current, shown.indexOf(current)));
    replace(space, lines);
  }

  function line(place, row) {
    const code = tree.codes[place];
    const below = tree.below.get(place) || 0;
    const isTree = !wanted && below > 0;
    const path = wanted ? pathOf(tree, place) : [];
    const depth = wanted ? 1 : Math.max(1, tree.depths[place]);
    return el(
      "div",
      {
        role: "treeitem",
        class: "line",
        style: { top: `${row * HEIGHT}px`, paddingInlineStart: `${(depth - 1) * 20}px` },
        tabindex: place === current ? "0" : "-1",
        "aria-level": depth,
        "aria-posinset": wanted ? row + 1 : tree.position[place],
        "aria-setsize": wanted ? shown.length : tree.children.get(tree.above[place]).length,
        "aria-expanded": isTree ? String(open.has(place)) : null,
        "aria-checked": String(chosen.has(code)),
        "aria-describedby": tree.definitions?.[code] ? "code-about" : null,
        data: { key: `code-${code}`, place },
      },
      el("span", { class: "twist", "aria-hidden": "true", data: isTree ? { twist: place } : {} }, isTree ? (open.has(place) ? "▾" : "▸") : ""),
      el("span", { class: "box", "aria-hidden": "true" }),
      el(
        "span",
        { class: "text", title: label(place), lang: code === TOTAL ? null : labelLang() },
        label(place),
        path.length ? el("small", { class: "path" }, path.join(" › ")) : null,
      ),
      tree.definitions?.[code] ? el("span", { class: "defined", "aria-hidden": "true" }, "i") : null,
      below ? branchButton(place, below) : null,
      small("only", code, t("codes.only"), t("codes.only.of", { name: label(place) })),
    );
  }

  const small = (what, code, caption, long) =>
    el("button", { type: "button", class: `small ${what}`, tabindex: "-1", title: long, "aria-label": long, data: { key: `${what}-${code}`, what } }, caption);

  const branchButton = (place, below) =>
    small("branch", tree.codes[place], t("codes.branch", { n: below }), t("codes.branch.of", { name: label(place), n: below }));

  function toggleBranch(place) {
    const codes = branchOf(tree, place).map((one) => tree.codes[one]);
    set(codes, !codes.every((code) => chosen.has(code)));
  }

  function toggleOpen(place, on = !open.has(place)) {
    if (on) open.add(place);
    else open.delete(place);
    draw();
  }

  function pressed(event) {
    const item = event.target.closest(".line");
    if (!item) return;
    const place = Number(item.dataset.place);
    current = place;
    const what = event.target.closest("[data-what]")?.dataset.what;
    if (event.target.closest("[data-twist]")) toggleOpen(place);
    else if (what === "only") only([tree.codes[place]]);
    else if (what === "branch") toggleBranch(place);
    else toggle(place);
    go(place);
  }

  function toggle(place) {
    const on = !chosen.has(tree.codes[place]);
    set(together(tree.codes[place], on), on);
  }

  /** The definition of the line that has the focus or the pointer. */
  function hovered(event) {
    const item = event.target.closest(".line");
    const found = item && tree.definitions?.[tree.codes[Number(item.dataset.place)]];
    about.textContent = found ? [found.description, found.source && t("source", { source: found.source })].filter(Boolean).join(" ") : "";
  }

  /** Bring a line into sight and give it the focus. */
  function go(place) {
    const row = shown.indexOf(place);
    if (row < 0) return;
    current = place;
    const top = row * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
    drawLines();
    space.querySelector(`[data-place="${place}"]`)?.focus({ preventScroll: true });
  }

  function byKeys(event) {
    const item = event.target.closest(".line");
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    const place = Number(item.dataset.place);
    const row = shown.indexOf(place);
    const below = !wanted && (tree.below.get(place) || 0) > 0;
    const page = Math.max(1, Math.floor(list.clientHeight / HEIGHT) - 1);
    const moves = { ArrowDown: row + 1, ArrowUp: row - 1, Home: 0, End: shown.length - 1, PageDown: row + page, PageUp: row - page };
    if (event.key in moves) go(shown[Math.max(0, Math.min(shown.length - 1, moves[event.key]))]);
    else if (event.key === "ArrowRight" && below && !open.has(place)) toggleOpen(place, true);
    else if (event.key === "ArrowRight" && below) go(shown[row + 1]);
    else if (event.key === "ArrowLeft" && below && open.has(place)) toggleOpen(place, false);
    else if (event.key === "ArrowLeft" && tree.above[place] >= 0) go(tree.above[place]);
    else if (event.key === " ") toggle(place);
    else if (event.key === "Enter") only([tree.codes[place]]);
    else if (event.key === "*") toggleBranch(place);
    else return;
    event.preventDefault();
    if (["ArrowRight", "ArrowLeft"].includes(event.key)) go(current);
  }

  function drawChips() {
    const codes = tree.codes.filter((code) => chosen.has(code));
    const some = codes.slice(0, CHIPS).map((code) =>
      button([el("span", { lang: code === TOTAL ? null : labelLang() }, label(tree.at.get(code))), el("span", { "aria-hidden": "true" }, " ✕")], () => set(together(code, false), false), {
        class: "chip",
        "aria-label": t("remove", { name: label(tree.at.get(code)) }),
        data: { key: `chip-${code}` },
      }),
    );
    const more = codes.length > CHIPS ? el("span", { class: "quiet" }, t("codes.chips.more", { n: codes.length - CHIPS })) : null;
    replace(chips, some, more);
  }

  const search = el("input", {
    type: "search",
    "aria-label": t(isPlace ? "areas.search" : "codes.search"),
    placeholder: t(isPlace ? "areas.search" : "codes.search"),
    data: { key: "codes-search" },
    on: {
      input: (event) => {
        wanted = event.target.value.trim();
        list.scrollTop = 0;
        draw();
      },
      keydown: (event) => {
        if (event.key !== "ArrowDown" || !shown.length) return;
        event.preventDefault();
        go(shown[0]);
      },
    },
  });
  const shortcut = (caption, key, press) => button(caption, press, { class: "small", data: { key } });
  const codesOf = (places) => places.map((place) => tree.codes[place]);
  const withTotal = (codes) => (tree.at.has(TOTAL) ? [TOTAL, ...codes] : codes);
  const every = levelsOf(tree).filter((one) => one.places.length > 1);
  const levels = every.some((one) => one.name) ? every.filter((one) => one.name) : every; // a number is no name
  draw();
  drawChips();
  return {
    parts: [
      search,
      el(
        "div",
        { class: "row shortcuts" },
        shortcut(t("codes.tick"), "tick", () => set(codesOf(wanted ? shown : tree.codes.map((_, place) => place)), true)),
        shortcut(t("codes.untick"), "untick", () => (wanted ? set(codesOf(shown), false) : only([]))),
        every.length > 1 ? levels.map((one) => shortcut(levelText(one), `depth-${one.depth}`, () => only(withTotal(codesOf(one.places))))) : null,
      ),
      chips,
      listed,
      list,
      about,
      el("p", { class: "quiet hint" }, t("codes.keys")),
    ],
    mark,
  };
}

const levelText = ({ depth, name, places }) =>
  name ? t("codes.level", { count: number(places.length), name }) : t("codes.depth", { depth, count: number(places.length) });
