// The elements of a table: nested headers, row headers and cells of the part that is in sight. It moves nothing and
// asks nothing; `grid` gives what is visible, the sizes, and the names.

import { el } from "./dom.js";
import { labelLang, t } from "./language.js";
import { markOf } from "./noise.js";

/** The widths of the columns, those out of sight together. */
export function widths(grid) {
  const column = (width) => el("col", { style: { width: `${width}px` } });
  const stubs = grid.stubs.length ? grid.stubs : [grid.stubTotal];
  const { left, right } = grid.seen;
  const inner = grid.columnWidths.slice(left, right).map(column);
  return [...stubs.map(column), grid.before && column(grid.before), ...inner, grid.after && column(grid.after)].filter(
    Boolean,
  );
}

/** The rows of the column headers. */
export function heads(grid) {
  const { across } = grid.view;
  const rows = across.axes.length ? [names(grid), ...across.axes.map((_, k) => headRow(grid, k))] : [plainHead(grid)];
  let top = 0;
  return rows.map((cells, k) => {
    const height = grid.headHeights[k];
    const row = el(
      "tr",
      { "aria-rowindex": k + 1, style: { height: `${height}px` } },
      k === 0 ? corners(grid) : [],
      gap(grid.before),
      cells,
      gap(grid.after),
    );
    for (const cell of row.children) cell.style.top = `${top}px`;
    top += height;
    return row;
  });
}

/** The names of the variables above their categories. */
function names(grid) {
  const caption = grid.view.across.axes.map((axis) => grid.nameOf(axis)).filter(Boolean).join(" / ");
  const left = grid.isStuck ? grid.stubTotal + 12 : 12;
  const cell = el(
    caption ? "th" : "td",
    {
      scope: caption ? "colgroup" : null,
      colspan: grid.seen.right - grid.seen.left,
      class: "names",
      data: { full: caption },
      "aria-colindex": 1 + grid.stubCount,
    },
    el("span", { class: "label", style: { left: `${left}px` } }, caption),
  );
  return [cell];
}

function corners(grid) {
  const { axes } = grid.view.down;
  const captions = axes.length ? axes.map((axis) => grid.nameOf(axis)) : [""];
  let left = 0;
  return captions.map((name, k) => {
    const stuck = sticky(grid, left);
    left += grid.stubs[k] || 0;
    return el(
      name ? "th" : "td",
      {
        class: `corner ${stuck.class} ${grid.folds[k]?.size ? "folds" : ""}`,
        scope: name ? "col" : null,
        rowspan: grid.headRows,
        style: stuck.style,
        "aria-colindex": k + 1,
        data: { full: name },
      },
      el("span", { class: "label" }, name),
      foldAll(grid, k),
      edge(grid, `stub-${k}`),
    );
  });
}

/** Opens or closes all categories of a variable. */
function foldAll(grid, k) {
  if (!grid.folds[k]?.size || grid.isPrinting) return null;
  const axis = grid.view.down.axes[k];
  const isShut = Boolean(grid.state.closed[axis.variable]?.length);
  const caption = t(isShut ? "fold.open.all" : "fold.close.all", { name: grid.nameOf(axis) });
  return el(
    "button",
    { type: "button", class: "fold", "aria-label": caption, title: caption, data: { fold: `${k} *`, key: `fold-${axis.variable}` } },
    isShut ? "⊞" : "⊟",
  );
}

/** The edge of a column: dragged, it makes the column wider; keys do the same at its heading. */
const edge = (grid, size) =>
  grid.isPrinting ? null : el("span", { class: "edge", "aria-hidden": "true", title: t("width"), data: { size } });

const sticky = (grid, left) =>
  grid.isStuck ? { class: "stuck", style: { left: `${left}px` } } : { class: "", style: {} };

function plainHead(grid) {
  const index = 1 + grid.stubCount;
  const cell = el(
    "th",
    { scope: "col", class: "leaf", "aria-colindex": index },
    sortButton(grid, 0, grid.view.measure.caption),
    edge(grid, "0"),
  );
  return [sorted(grid, cell, 0)];
}

function headRow(grid, k) {
  const { across } = grid.view;
  const isSame = (a, b) => across.axes.every((_, i) => i > k || grid.view.columnHeader(i, a) === grid.view.columnHeader(i, b));
  const isLeaf = k === across.axes.length - 1;
  const cells = [];
  for (let column = grid.seen.left; column < grid.seen.right;) {
    let until = column + 1;
    while (!isLeaf && until < grid.seen.right && isSame(column, until)) until += 1;
    cells.push(headCell(grid, across.axes[k], k, column, until));
    column = until;
  }
  return cells;
}

function headCell(grid, axis, k, column, until) {
  const place = grid.view.columnHeader(k, column);
  const caption = grid.textOf(axis, place);
  const leaf = k === grid.view.across.axes.length - 1;
  const left = grid.isStuck ? grid.stubTotal + 12 : 12;
  const cell = el(
    "th",
    {
      scope: leaf ? "col" : "colgroup",
      colspan: until - column,
      data: { full: caption },
      class: (leaf ? "leaf" : "group") + (place === axis.total ? " total" : ""),
      "aria-colindex": column + 1 + grid.stubCount,
    },
    leaf
      ? sortButton(grid, column, caption, langOf(axis, place))
      : el("span", { class: "label", lang: langOf(axis, place), style: { left: `${left}px` } }, caption),
    leaf ? edge(grid, String(column)) : null,
  );
  return leaf ? sorted(grid, cell, column) : cell;
}

function sorted(grid, cell, column) {
  const { sort } = grid.state;
  cell.setAttribute("aria-sort", sort?.column === grid.view.fields[column] ? sort.direction : "none");
  return cell;
}

/** The language of a header: the text for totals is the page's. */
const langOf = (axis, place) => (place === axis.total || axis.isMeasure ? null : labelLang());

function sortButton(grid, column, caption, lang = null) {
  const label = el("span", { class: "label", lang, style: { webkitLineClamp: String(grid.headLines) } }, caption);
  if (grid.isPrinting) return el("span", { class: "sort" }, label); // headings with buttons are printed on one page only
  const { sort } = grid.state;
  const sign = sort?.column === grid.view.fields[column] ? (sort.direction === "descending" ? "▼" : "▲") : "↕";
  return el(
    "button",
    {
      type: "button",
      class: "sort",
      data: { sort: column, key: `sort-${column}` },
      "aria-description": t("sort.by", { column: caption }),
    },
    el("span", { class: "mark", "aria-hidden": "true" }, sign),
    label,
  );
}

const gap = (width) => (width ? [el("td", { class: "gap", "aria-hidden": "true" })] : []);

/** The rows in sight, and room for those before and after. */
export function lines(grid) {
  const { top, bottom } = grid.seen;
  grid.totalColumns = totalColumns(grid);
  const before = [...grid.body.querySelectorAll("tr[data-line]")];
  const rows = Array.from({ length: bottom - top }, (_, k) => line(grid, top + k, before[k]));
  const [above, below] = grid.spacers;
  above.style.height = `${top * grid.rowHeight}px`;
  below.style.height = `${(grid.view.rowCount - bottom) * grid.rowHeight}px`;
  return [...(top ? [above] : []), ...rows, ...(bottom < grid.view.rowCount ? [below] : [])];
}

/** Room for rows that are not in the document. */
export const spacer = () => el("tr", { class: "spacer", "aria-hidden": "true" }, el("td", { colspan: 1 }));

/** Whether a line is the total of its innermost variable: it is bold as a whole. Were all categories of an outer total
 * bold, too, a screen of a nested table would be bold throughout. */
function isTotalLine(axes, placeOf) {
  const k = axes.findLastIndex((axis) => !axis.isMeasure && axis.codes.length > 1);
  return k >= 0 && axes[k].total >= 0 && placeOf(k) === axes[k].total;
}

/** A row; the one that was there before it is filled again, since that costs the browser less than another one. */
function line(grid, row, before = null) {
  const { left, right } = grid.seen;
  const { axes } = grid.view.down;
  const cells = before ? before.querySelectorAll("td[data-row]") : [];
  const made = before ?? el("tr");
  put(made, "aria-rowindex", row + 1 + grid.headRows);
  put(made, "data-line", row);
  put(made, "class", isTotalLine(axes, (k) => grid.view.header(k, row)) ? "total" : "");
  made.style.height = `${grid.rowHeight}px`;
  const filled = Array.from({ length: right - left }, (_, k) => cell(grid, row, left + k, cells[k]));
  const isSame = before && cells.length === right - left && before.dataset.gaps === `${grid.before} ${grid.after}`;
  made.dataset.gaps = `${grid.before} ${grid.after}`;
  const stubs = isSame && made.stubKey === stubKeyOf(grid, row) ? null : stubCells(grid, row).filter(Boolean);
  made.stubKey = stubKeyOf(grid, row);
  if (!stubs) return made;
  if (isSame) {
    for (const stub of made.querySelectorAll("th")) stub.remove();
    made.prepend(...stubs);
  } else made.replaceChildren(...[stubs, gap(grid.before), filled, gap(grid.after)].flat().filter(Boolean));
  return made;
}

/** What the headers of a row depend on. */
const stubKeyOf = ({ view, state, seen, stubs, isPrinting }, row) =>
  JSON.stringify([
    view.down.axes.map((_, k) => [view.header(k, row), row > seen.top && view.header(k, row - 1)]),
    ...[state.texts, state.closed, state.marked, state.density, state.lang, state.top, state.singles, state.totals],
    ...[view.down.axes.length > 1 ? [view.lines.length, seen.top, seen.bottom, row] : 0, stubs, isPrinting],
  ]);

const put = (node, name, value) => {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
};

function stubCells(grid, row) {
  const { down } = grid.view;
  if (!down.axes.length) {
    const place = { scope: "row", class: "stub stuck", style: { left: "0px" }, "aria-colindex": 1 };
    return [el("th", place, t("total"))];
  }
  let left = 0;
  return down.axes.map((axis, k) => {
    const isLeaf = k === down.axes.length - 1;
    const isSame = (a, b) => down.axes.every((_, i) => i > k || grid.view.header(i, a) === grid.view.header(i, b));
    const begins = isLeaf || row === grid.seen.top || !isSame(row - 1, row);
    let until = row + 1;
    while (begins && !isLeaf && until < grid.seen.bottom && isSame(row, until)) until += 1;
    const stuck = sticky(grid, left);
    left += grid.stubs[k];
    return begins ? stub(grid, axis, k, row, until - row, stuck) : null;
  });
}

function stub(grid, axis, k, row, tall, stuck) {
  const place = grid.view.header(k, row);
  const caption = grid.textOf(axis, place);
  const leaf = k === grid.view.down.axes.length - 1;
  const indent = Math.min(4, grid.indents[k].get(place) ?? 0) * (grid.narrow ? 6 : 14);
  const style = { paddingInlineStart: `${indent}px`, ...(leaf ? {} : { top: `${grid.headTotal + 7}px` }) };
  const label = el("span", { class: "label", lang: langOf(axis, place) }, caption);
  const isArea = leaf && axis.isPlace && place !== axis.total && grid.markArea;
  const isMarked = isArea && grid.state.marked.includes(axis.codes[place]);
  return el(
    "th",
    {
      scope: leaf ? "row" : "rowgroup",
      rowspan: leaf ? null : tall,
      data: isArea ? { full: caption, area: axis.codes[place] } : { full: caption },
      style: stuck.style,
      class: `stub ${leaf ? "" : "outer"} ${place === axis.total ? "total" : ""} ${stuck.class}`,
      "aria-colindex": k + 1,
      "aria-selected": isMarked ? "true" : null,
    },
    el("span", { class: "line", style }, foldSign(grid, axis, k, place, caption), label),
  );
}

/** Opens or closes what is below a category; where others have such a sign, room for it. */
function foldSign(grid, axis, k, place, caption) {
  if (!grid.folds[k].size || grid.isPrinting) return null;
  if (!grid.folds[k].has(place)) return el("span", { class: "fold", "aria-hidden": "true" });
  const isShut = Boolean(grid.state.closed[axis.variable]?.includes(axis.codes[place]));
  const what = `${k} ${axis.codes[place]}`;
  return el(
    "button",
    {
      type: "button",
      class: "fold",
      tabindex: "-1",
      "aria-expanded": String(!isShut),
      "aria-label": t("fold.below", { name: caption }),
      data: { fold: what, key: `fold-${what}` },
    },
    isShut ? "▸" : "▾",
  );
}

const CELL = el("td", { tabindex: "-1" });

/** A cell; there are hundreds of them in each drawing, so they are copies of one and only what is new is written. */
function cell(grid, row, column, before = null) {
  const { view, state } = grid;
  const index = view.index(row, column);
  const made = before ?? CELL.cloneNode();
  put(made, "aria-colindex", column + 1 + grid.stubCount);
  put(made, "data-row", row);
  put(made, "data-column", column);
  put(made, "tabindex", row === grid.at.row && column === grid.at.column ? "0" : "-1");
  if (index === state.cell?.index) made.setAttribute("aria-selected", "true");
  else made.removeAttribute("aria-selected");
  if (view.table.values[index] === null) {
    made.className = "withheld";
    made.replaceChildren(el("span", { "aria-hidden": "true" }, "•"), el("span", { class: "unseen" }, t("withheld")));
    return made;
  }
  const measure = view.measureAt(column);
  const amount = measure.at(index);
  const caption = amount === null ? "–" : measure.text(amount);
  if (made.textContent !== caption) made.textContent = caption;
  const kind = grid.totalColumns.has(column) ? "total" : "";
  if (made.className !== kind) made.className = kind;
  if (state.noise !== "off") addNoise(made, markOf(view, index, state.noise, measure));
  return made;
}

function addNoise(cell, { beside, isUnreliable }) {
  if (beside) cell.append(el("small", { class: "beside" }, ` ${beside}`));
  if (!isUnreliable) return;
  cell.classList.add("unreliable");
  cell.append(el("span", { class: "unseen" }, ` ${t("noise.unreliable")}`));
}

/** The columns in sight that belong to a total. */
const totalColumns = (grid) => {
  const { left, right } = grid.seen;
  const isTotal = (column) => isTotalLine(grid.view.across.axes, (k) => grid.view.columnHeader(k, column));
  return new Set(Array.from({ length: right - left }, (_, k) => left + k).filter(isTotal));
};
