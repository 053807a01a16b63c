// A list of categories to tick: found by a search, by their level, or a branch at a time. It changes a set of codes
// and reports it; the caller decides what the set means.

import { button, el } from "./dom.js";
import { labelLang, number, t } from "./language.js";
import { TOTAL } from "./question.js";

const MOST = 2000; // lines that are drawn; a search finds the others

/** The codes below each code that has some, the total aside. */
export function branchesOf({ codes, parents }) {
  const parentOf = new Map(codes.map((code, place) => [code, parents[place]]));
  const below = new Map();
  for (const code of codes)
    for (let above = parentOf.get(code); above && above !== TOTAL; above = parentOf.get(above)) {
      if (!below.has(above)) below.set(above, []);
      below.get(above).push(code);
    }
  return below;
}

/** Chosen codes without those below other chosen ones, where a code includes its whole branch. */
export function topmost(codelist, chosen) {
  const covered = new Set();
  for (const [code, below] of branchesOf(codelist)) if (chosen.has(code)) for (const one of below) covered.add(one);
  return codelist.codes.filter((code) => code !== TOTAL && chosen.has(code) && !covered.has(code));
}

/** Where a code includes its whole branch: what is ticked with it, and what cannot stay ticked without it. */
export function wholeBranches(codelist) {
  const below = branchesOf(codelist);
  const parentOf = new Map(codelist.codes.map((code, place) => [code, codelist.parents[place]]));
  const above = (code) => (code ? [code, ...above(parentOf.get(code))] : []);
  return (code, on) => [...(on ? [code] : above(code)), ...(below.get(code) || [])];
}

/** The list with its search and its shortcuts. `chosen` is a set of codes, `changed` is called when it is another one,
 * `together` gives the codes that a tick changes. */
export function makePicker(codelist, chosen, changed, together = (code) => [code]) {
  const branches = branchesOf(codelist);
  const known = new Set(codelist.codes);
  const list = el("ul", { class: "codes", on: { keydown: byArrow } });
  const listed = el("p", { class: "quiet listed", role: "status" });
  let wanted = "";

  const found = () =>
    codelist.codes
      .map((code, place) => ({ code, place }))
      .filter(({ code, place }) => `${code} ${codelist.labels[place]}`.toLowerCase().includes(wanted));

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

  function mark() {
    for (const box of list.querySelectorAll("input")) box.checked = chosen.has(box.value);
  }

  function draw() {
    const all = found();
    list.replaceChildren(...all.slice(0, MOST).map(line));
    const more = all.length > MOST ? ` ${t("codes.more", { count: number(all.length - MOST) })}` : "";
    listed.textContent = wanted || more ? t("codes.listed", { n: all.length }) + more : "";
  }

  function line({ code, place }) {
    const caption = code === TOTAL ? t("total") : codelist.labels[place];
    const box = el("input", {
      type: "checkbox",
      value: code,
      checked: chosen.has(code),
      data: { key: `code-${code}` },
      on: { change: (event) => set(together(code, event.target.checked), event.target.checked) },
    });
    const branch = branches.get(code);
    return el(
      "li",
      { class: `depth-${Math.min(4, codelist.depths[place])}` },
      el("label", {}, box, el("span", { lang: code === TOTAL ? null : labelLang() }, caption), el("code", {}, code)),
      branch ? branchButton(code, branch, caption) : null,
    );
  }

  function branchButton(code, branch, caption) {
    const whole = [code, ...branch];
    return button(t("codes.branch", { n: branch.length }), () => set(whole, !whole.every((one) => chosen.has(one))), {
      class: "small branch",
      "aria-label": t("codes.branch.of", { name: caption, n: branch.length }),
      title: t("codes.branch.of", { name: caption, n: branch.length }),
      data: { key: `branch-${code}` },
    });
  }

  function byArrow(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const boxes = [...list.querySelectorAll("input")];
    const next = boxes[boxes.indexOf(event.target) + (step ?? 0)];
    if (!step || !boxes.includes(event.target) || !next) return;
    event.preventDefault();
    next.focus();
  }

  const search = el("input", {
    type: "search",
    "aria-label": t("codes.search"),
    placeholder: t("codes.search"),
    data: { key: "codes-search" },
    on: {
      input: (event) => {
        wanted = event.target.value.trim().toLowerCase();
        draw();
      },
    },
  });
  const shortcut = (caption, key, press) => button(caption, press, { class: "small", data: { key } });
  const codesFound = () => found().map((one) => one.code);
  draw();
  return {
    parts: [
      search,
      el(
        "div",
        { class: "row" },
        shortcut(t("codes.tick"), "tick", () => set(codesFound(), true)),
        shortcut(t("codes.untick"), "untick", () => set(codesFound(), false)),
        levels(codelist).map(([depth, codes]) =>
          shortcut(t("codes.depth", { depth, count: number(codes.length) }), `depth-${depth}`, () =>
            only([TOTAL, ...codes].filter((code) => known.has(code))),
          ),
        ),
      ),
      listed,
      list,
    ],
    mark,
  };
}

/** Levels of a codelist with their codes, where it has more than one. */
function levels(codelist) {
  const depths = [...new Set(codelist.depths)].filter((depth) => depth > 0).sort((a, b) => a - b);
  if (depths.length < 2) return [];
  return depths.map((depth) => [depth, codelist.codes.filter((_, place) => codelist.depths[place] === depth)]);
}
