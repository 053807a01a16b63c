// The table on the screen: a real <table> of which only what can be seen is in the document, so that a reader of
// 100,000 cells scrolls through a few hundred elements; and how keys move in it. Its elements are made elsewhere.

import { codeText } from "./answer.js";
import { el } from "./dom.js";
import { heads, lines, widths } from "./grid_parts.js";
import { ROW, sizesOf } from "./grid_sizes.js";
import { t } from "./language.js";
import { variableName } from "./names.js";
import { rangeOf } from "./noise.js";

const SMALL = 1500; // tables of at most this many cells are drawn whole, so that the browser's own search and print find them
const PRINTED = 20_000; // the same when printing
const NEAR = 900; // cells whose noise is requested at once
const BEYOND = 6; // lines drawn outside of what is seen

/** Draw a table into a place. `ask(index)` opens a cell, `sortBy(column)` sorts by a column, `point(cell)` shows what is
 * known of a cell or a header that is pointed at or has the focus. */
export class Grid {
  constructor(view, state, { ask, sortBy, point, fetchNoise }) {
    Object.assign(this, { view, state, ask, sortBy, point, fetchNoise, at: { row: 0, column: 0 }, drawn: "" });
    const nameOf = (axis) => variableName(state.world.catalogue, axis.variable);
    Object.assign(
      this,
      sizesOf(view, (axis, place) => this.textOf(axis, place), nameOf, state.noise === "beside"),
      { rowHeight: ROW },
    );
    this.head = el("thead");
    this.body = el("tbody");
    this.columns = el("colgroup");
    this.table = el(
      "table",
      {
        role: "grid",
        "aria-readonly": "true",
        "aria-labelledby": "result-title",
        class: "grid",
        "aria-rowcount": view.rowCount + this.headRows,
        "aria-colcount": view.columnCount + this.stubCount,
      },
      this.columns,
      this.head,
      this.body,
    );
    this.place = el(
      "div",
      { class: "scroller", tabindex: "0", role: "region", "aria-label": t("table.region"), data: { key: "scroller" } },
      this.table,
    );
    this.listen();
  }

  get stubCount() {
    return Math.max(1, this.view.down.axes.length);
  }

  get headRows() {
    return Math.max(1, this.view.across.axes.length);
  }

  get headTotal() {
    return this.headHeights.reduce((sum, height) => sum + height, 0);
  }

  get isWhole() {
    return this.view.rowCount * this.view.columnCount <= (this.isPrinting ? PRINTED : SMALL);
  }

  listen() {
    let waiting = false;
    this.place.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        this.draw();
      });
    });
    this.table.addEventListener("click", (event) => this.onClick(event));
    this.table.addEventListener("focusin", (event) => {
      if (event.target.matches("td[data-row]"))
        this.at = { row: Number(event.target.dataset.row), column: Number(event.target.dataset.column) };
    });
    this.table.addEventListener("keydown", (event) => this.onKey(event));
    for (const kind of ["pointerover", "focusin"])
      this.table.addEventListener(kind, (event) => {
        const cell = event.target.closest("td[data-row], th");
        if (cell) this.point(this, cell, kind === "focusin");
      });
    for (const kind of ["pointerleave", "focusout"]) this.table.addEventListener(kind, () => this.point(this, null));
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  /** Draw everything for printing, up to the limit, and what is visible afterwards. */
  print(isPrinting) {
    this.isPrinting = isPrinting;
    this.drawn = "";
    this.draw();
  }

  textOf(axis, place) {
    return codeText(axis, place, this.state.texts, t("total"));
  }

  /** Which rows and columns are near enough to be drawn. */
  window() {
    const { rowCount, columnCount } = this.view;
    if (this.isWhole) return { top: 0, bottom: rowCount, left: 0, right: columnCount };
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.place;
    const top = Math.max(0, Math.floor(scrollTop / this.rowHeight) - BEYOND);
    const tall = Math.ceil((clientHeight || 600) / this.rowHeight) + 2 * BEYOND;
    const left = Math.max(0, this.columnAt(scrollLeft) - 2);
    const right = Math.min(columnCount, this.columnAt(scrollLeft + (clientWidth || 800)) + 3);
    return { top, bottom: Math.min(rowCount, top + tall), left, right };
  }

  /** The cells in the document near the focus or the pointer: their noise is requested together. */
  cellsInSight() {
    const { top, bottom, left, right } = this.seen;
    const cells = [];
    for (let row = top; row < bottom && cells.length < NEAR; row += 1)
      for (let column = left; column < right; column += 1) cells.push(this.view.index(row, column));
    return cells.slice(0, NEAR);
  }

  /** The column at a distance from the first one. */
  columnAt(distance) {
    let [low, high] = [0, this.view.columnCount - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.lefts[middle] <= distance) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  draw() {
    const seen = this.window();
    const drawn = JSON.stringify(seen);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.seen = seen;
    const focused = this.body.contains(document.activeElement);
    this.before = this.lefts[seen.left];
    this.after = this.lefts.at(-1) - this.lefts[seen.right];
    this.columns.replaceChildren(...widths(this));
    this.head.replaceChildren(...heads(this));
    this.body.replaceChildren(...lines(this));
    this.markNoise();
    this.table.style.width = `${this.stubTotal + this.lefts.at(-1)}px`;
    if (focused) (this.focusable() ?? this.place).focus({ preventScroll: true });
  }

  /** Draw the numbers again with their noise, when it has arrived. */
  async markNoise() {
    if (this.state.noise === "off") return;
    const { drawn } = this;
    const before = this.cellsInSight().filter((index) => !rangeOf(this.view.table, index)).length;
    if (!before) return;
    await this.fetchNoise(this.cellsInSight()).catch(() => null); // the numbers are there without it
    if (drawn !== this.drawn || !this.place.isConnected) return;
    const focused = this.body.contains(document.activeElement);
    this.body.replaceChildren(...lines(this));
    if (focused) this.focusable()?.focus({ preventScroll: true });
  }

  /** Show which cell is being explained. */
  mark(index) {
    this.state = { ...this.state, cell: index === null ? null : { index } };
    for (const cell of this.body.querySelectorAll("td[data-row]")) {
      const chosen = this.view.index(Number(cell.dataset.row), Number(cell.dataset.column)) === index;
      if (chosen) cell.setAttribute("aria-selected", "true");
      else cell.removeAttribute("aria-selected");
    }
  }

  focusable() {
    return this.body.querySelector(`td[data-row="${this.at.row}"][data-column="${this.at.column}"]`);
  }

  onClick(event) {
    const sort = event.target.closest("button[data-sort]");
    if (sort) {
      this.sortBy(Number(sort.dataset.sort));
      return;
    }
    const cell = event.target.closest("td[data-row]");
    if (cell) this.choose(Number(cell.dataset.row), Number(cell.dataset.column));
  }

  choose(row, column) {
    this.goTo(row, column);
    this.ask(this.view.index(row, column), row, column);
  }

  onKey(event) {
    if (!event.target.matches("td[data-row]")) return;
    const { row, column } = this.at;
    const page = Math.max(1, Math.floor(this.place.clientHeight / this.rowHeight) - 2);
    const lastRow = this.view.rowCount - 1;
    const lastColumn = this.view.columnCount - 1;
    const aims = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + page, column],
      PageUp: [row - page, column],
      Home: [event.ctrlKey ? 0 : row, 0],
      End: [event.ctrlKey ? lastRow : row, lastColumn],
    };
    if (event.key === "Enter" || event.key === " ") this.choose(row, column);
    else if (event.key in aims) this.goTo(...aims[event.key]);
    else return;
    event.preventDefault();
  }

  /** Move the focus to a cell and bring it into sight, past the headers that stay. */
  goTo(row, column) {
    this.at = {
      row: Math.max(0, Math.min(row, this.view.rowCount - 1)),
      column: Math.max(0, Math.min(column, this.view.columnCount - 1)),
    };
    for (const old of this.body.querySelectorAll('td[tabindex="0"]')) old.tabIndex = -1;
    const top = this.at.row * this.rowHeight;
    const left = this.lefts[this.at.column];
    const width = this.columnWidths[this.at.column];
    const room = this.place.clientHeight - this.headTotal;
    const wide = this.place.clientWidth - this.stubTotal;
    if (top < this.place.scrollTop) this.place.scrollTop = top;
    else if (top + this.rowHeight > this.place.scrollTop + room)
      this.place.scrollTop = top + this.rowHeight - room + 12;
    if (left < this.place.scrollLeft) this.place.scrollLeft = left;
    else if (left + width > this.place.scrollLeft + wide) this.place.scrollLeft = left + width - wide + 12;
    this.draw();
    const cell = this.focusable();
    if (!cell) return;
    cell.tabIndex = 0;
    cell.focus({ preventScroll: true });
    this.intoWindow(cell.getBoundingClientRect());
  }

  /** A cell that has the focus is not below or above the window, nor under the headers. */
  intoWindow({ top, bottom }) {
    const over = bottom + 8 - window.innerHeight;
    const under = top - this.headTotal - 8;
    if (over > 0) window.scrollBy(0, over);
    else if (under < 0) window.scrollBy(0, under);
  }
}
