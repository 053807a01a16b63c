// What the noise may have done to cells: ranges of true counts, requested for many cells at once and stored with their
// answer; and the note beside a cell that states them.

import * as api from "./api.js";
import { number, percent, t } from "./language.js";
import { hideTip, showTip } from "./tip.js";

export const NOISE = ["off", "beside", "grey"];
const UNRELIABLE = 0.2; // half of a range as a share of its number
const MOST = 1000; // cells of one request
const ranges = new WeakMap(); // table -> {level, known: index -> {low, high}, coming: Set of indices}

const storedOf = (table) => {
  if (!ranges.has(table)) ranges.set(table, { level: 0.95, known: new Map(), coming: new Map() });
  return ranges.get(table);
};

/** The range of a cell that has arrived: {low, high}, both null where nothing is known of the noise. */
export const rangeOf = (table, index) => storedOf(table).known.get(index);
export const levelOf = (table) => percent(storedOf(table).level).replace(/[.,]0/, "");

/** Request the ranges of cells that have not arrived; resolves when all are here. */
export async function fetchRanges({ table, query }, cells) {
  const stored = storedOf(table);
  const missing = cells.filter((one) => !stored.known.has(one) && !stored.coming.has(one) && table.values[one] !== null);
  for (let from = 0; from < missing.length; from += MOST) {
    const some = missing.slice(from, from + MOST);
    const arriving = api.ranges(query, some).then(
      ({ level, ranges: found }) => {
        stored.level = level;
        for (const { cell, low, high } of found) stored.known.set(cell, { low, high });
      },
    );
    const done = arriving.finally(() => some.forEach((one) => stored.coming.delete(one)));
    for (const one of some) stored.coming.set(one, done);
  }
  await Promise.all(new Set(cells.map((one) => stored.coming.get(one)).filter(Boolean)));
}

/** What the switch of the noise adds to a cell: a text beside its number, or that it is unreliable. */
export function markOf(view, index, kind) {
  const value = view.table.values[index];
  const range = kind === "off" || value === null ? null : rangeOf(view.table, index);
  if (!range || range.low === null) return { beside: "", isUnreliable: false };
  const reach = Math.max(range.high - value, value - range.low);
  const whole = view.wholeAt ? view.table.values[view.wholeAt(index)] : 1;
  const beside = view.shareAt ? `± ${percent(whole ? reach / whole : 0)}` : `± ${number(reach)}`;
  return { beside: kind === "beside" ? beside : "", isUnreliable: kind === "grey" && reach > UNRELIABLE * value };
}

/** A cell as text, such as "97,167; true value 97,164 to 97,170 with 95 %". */
export function cellText(view, index) {
  const { table } = view;
  const value = table.values[index];
  if (value === null) return t("withheld.long");
  const share = view.shareAt ? view.shareAt(index) : null;
  const shown = share === null ? number(value) : `${percent(share)} (${number(value)})`;
  const range = rangeOf(table, index);
  if (!range) return shown;
  if (range.low === null) return `${shown}; ${t("cell.unknown")}`;
  return `${shown}; ${t("cell.tip", { low: range.low, high: range.high, level: levelOf(table) })}`;
}

/** Makes the function that shows a note beside a cell or a header that is pointed at or has the focus. */
export function makePointer(answerOf, announce) {
  let now = null;
  return async (grid, cell, isFocus) => {
    now = cell;
    if (!cell) {
      hideTip();
      return;
    }
    if (cell.matches("th")) {
      if (isClipped(cell)) showTip(cell, cell.dataset.full);
      else hideTip();
      return;
    }
    const index = grid.view.index(Number(cell.dataset.row), Number(cell.dataset.column));
    const { table } = grid.view;
    const answer = answerOf();
    if (answer.table !== table) return;
    showTip(cell, cellText(grid.view, index));
    if (!rangeOf(table, index) && table.values[index] !== null) {
      const shown = grid.cellsInSight();
      await fetchRanges(answer, [index, ...shown]).catch(() => null); // the note then shows the value only
      if (now !== cell || !cell.isConnected) return;
      showTip(cell, cellText(grid.view, index));
    }
    if (isFocus) announce(cellText(grid.view, index));
  };
}

/** Whether a header shows only a part of its text. */
function isClipped(cell) {
  const label = cell.querySelector(".label, span:not([aria-hidden])") ?? cell;
  return label.scrollWidth > label.clientWidth + 1 || label.scrollHeight > label.clientHeight + 1;
}
