// A tree of categories as lines: what is open, what a search finds, which level a line belongs to. Pure functions; a
// codelist may have tens of thousands of codes, so nothing here is computed for each line that is drawn.

import { TOTAL } from "./question.js";

/** A codelist with its children, in the order of its codes; the total is a line of its own above the tree. */
export function makeTree(codelist) {
  const at = new Map(codelist.codes.map((code, place) => [code, place]));
  const above = codelist.parents.map((code) => (code && code !== TOTAL ? (at.get(code) ?? -1) : -1));
  const children = new Map(); // place, or -1 for the top, -> places
  const position = above.map((upper, place) => {
    if (!children.has(upper)) children.set(upper, []);
    return children.get(upper).push(place); // among its siblings, from 1
  });
  const below = new Map();
  for (let place = above.length - 1; place >= 0; place -= 1)
    if (above[place] >= 0) below.set(above[place], (below.get(above[place]) || 0) + 1 + (below.get(place) || 0));
  return { ...codelist, at, above, children, position, below, folded: codelist.labels.map(fold) };
}

/** A text as it is compared: without accents and capitals. */
export const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** The labels of all that a line is in, the outermost first. */
export function pathOf(tree, place) {
  const path = [];
  for (let upper = tree.above[place]; upper >= 0; upper = tree.above[upper]) path.unshift(tree.labels[upper]);
  return path;
}

/** The places of a whole branch, its top first. */
export function branchOf(tree, place) {
  const last = place + (tree.below.get(place) || 0);
  return Array.from({ length: last - place + 1 }, (_, k) => place + k);
}

/** The places that are in sight while some branches are open. */
export function inSight(tree, open) {
  const shown = [];
  let place = 0;
  while (place < tree.codes.length) {
    shown.push(place);
    place += open.has(place) ? 1 : 1 + (tree.below.get(place) || 0);
  }
  return shown;
}

/** The places that a search finds: every word in the label, or the code as it is. */
export function searched(tree, wanted) {
  const words = fold(wanted).split(/\s+/).filter(Boolean);
  const whole = wanted.trim().toLowerCase();
  const found = [];
  tree.folded.forEach((label, place) => {
    if (words.every((word) => label.includes(word)) || tree.codes[place].toLowerCase() === whole) found.push(place);
  });
  return found;
}

/** The levels below the total: their names, where they have one, and places. */
export function levelsOf(tree) {
  const places = new Map();
  tree.depths.forEach((depth, place) => {
    if (tree.codes[place] === TOTAL) return;
    if (!places.has(depth)) places.set(depth, []);
    places.get(depth).push(place);
  });
  return [...places]
    .sort(([a], [b]) => a - b)
    .map(([depth, some]) => ({ depth, name: tree.levels?.[depth - 1] || "", places: some }));
}

/** What is open at the start: everything of a short list, else the ways to what is chosen. */
export function openAtFirst(tree, chosen, short = 60) {
  const open = new Set();
  if (tree.codes.length <= short) for (const place of tree.below.keys()) open.add(place);
  for (const code of chosen)
    for (let upper = tree.above[tree.at.get(code)] ?? -1; upper >= 0; upper = tree.above[upper]) open.add(upper);
  const top = tree.children.get(-1) || [];
  const only = top.filter((place) => tree.codes[place] !== TOTAL);
  if (only.length === 1) open.add(only[0]);
  return open;
}
