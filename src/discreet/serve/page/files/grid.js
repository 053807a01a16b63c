// The table on the screen: a real <table> of which only what can be seen is in the document, so that a reader of
// 100,000 cells scrolls through a few hundred elements; and how keys move in it. Its elements are made elsewhere.

import { codeText, foldable, indentsOf } from "./answer.js";
import { byKey, el } from "./dom.js";
import { heads, lines, spacer, widths } from "./grid_parts.js";
import { columnKey, resize, sizesOf, stubKey } from "./grid_sizes.js";
import { t } from "./language.js";
import { variableName } from "./names.js";
import { rangeOf } from "./noise.js";

const SMALL = 1500; // tables of at most this many cells are drawn whole, so that the browser's own search and print find them
const PRINTED = 20_000; // the same when printing
const UPRIGHT = 690; // pixels of a sheet of A4 or letter between its margins
const ACROSS = 950; // the same of one on its side
const SMALLEST = 0.66; // the least scale at which numbers are easy to read on paper: 7 points
const NEAR = 900; // cells whose noise is requested at once
const BEYOND = 4; // lines drawn outside of what is seen
const STEP = 16; // pixels by which a key changes a width
const EDGE = 18; // pixels of a scroll bar and of the border
let roomWidth = 880; // pixels that the last table had; the next one will have the same

/** Draw a table into a place. `ask(index)` opens a cell, `sortBy(column)` sorts by a column, `point(cell)` shows what is
 * known of a cell or a header that is pointed at or has the focus, `fold(axis, codes)` closes or opens categories,
 * `markArea(code)` marks an area, which the map shows too. */
export class Grid {
  constructor(view, state, { ask, sortBy, point, fetchNoise, fold, markArea }) {
    Object.assign(this, { at: { row: 0, column: 0 }, drawn: "" });
    this.room = { scrollTop: 0, scrollLeft: 0, height: 600, width: roomWidth }; // until it is looked at
    this.take(view, state, { ask, sortBy, point, fetchNoise, fold, markArea });
    this.head = el("thead");
    this.body = el("tbody");
    this.columns = el("colgroup");
    this.spacers = [spacer(), spacer()];
    this.table = el(
      "table",
      {
        role: "grid",
        "aria-readonly": "true",
        "aria-labelledby": "result-title",
        class: `grid ${state.density}`,
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

  take(view, state, callbacks) {
    Object.assign(this, { view, state, ...callbacks });
    const { axes, shown } = view.down;
    this.indents = axes.map((axis, k) => indentsOf(axis, shown[k], state.top > 0 && k === axes.length - 1));
    this.folds = axes.map((axis, k) =>
      state.top > 0 && k === axes.length - 1 ? new Set() : foldable(view.table, axis, state.singles),
    );
    this.measure();
  }

  /** Show another view of the same table in the elements that are there. */
  update(view, state, callbacks) {
    const key = this.table.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.take(view, state, callbacks);
    this.table.setAttribute("aria-rowcount", view.rowCount + this.headRows);
    this.table.setAttribute("aria-colcount", view.columnCount + this.stubCount);
    this.table.className = `grid ${state.density}`;
    this.at = { row: Math.min(this.at.row, view.rowCount - 1), column: Math.min(this.at.column, view.columnCount - 1) };
    this.drawn = "";
    this.draw();
    if (key) byKey(this.table, key)?.focus({ preventScroll: true });
  }

  get stubCount() {
    return Math.max(1, this.view.down.axes.length);
  }

  get headRows() {
    const { length } = this.view.across.axes;
    return length ? 1 + length : 1; // the names of the variables are above their categories
  }

  /** Find the sizes of all parts. */
  measure() {
    const { density, noise } = this.state;
    const room = this.isPrinting ? UPRIGHT / SMALLEST : roomWidth - EDGE;
    const options = { room, hasNoise: noise === "beside", density, indents: this.indents, folds: this.folds };
    this.measuredFor = roomWidth;
    Object.assign(this, sizesOf(this.view, (axis, place) => this.textOf(axis, place), (axis) => this.nameOf(axis), options));
  }

  nameOf(axis) {
    return axis.isMeasure ? "" : variableName(this.state.world.catalogue, axis.variable);
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
        this.look();
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
    this.table.addEventListener("pointerdown", (event) => this.onDrag(event));
    this.table.addEventListener("dblclick", (event) => {
      const { size } = event.target.dataset;
      if (size) this.resized(size, null);
    });
    const seen = new ResizeObserver(() => {
      this.look();
      if (!this.place.isConnected) seen.disconnect();
      else if (this.room.width !== this.measuredFor) this.remeasure();
      else this.draw();
    });
    for (const part of [this.place, document.getElementById("result")]) seen.observe(part); // a narrow table in a room that grows
  }

  remeasure() {
    this.measure();
    this.drawn = "";
    this.draw();
  }

  /** Note which part is in sight, and the most room that the next table may take. The browser lays the page out for it,
   * so it is not done in the middle of drawing. */
  look() {
    if (!this.place.isConnected) return;
    const { scrollTop, scrollLeft, clientHeight, parentElement } = this.place;
    const height = parseFloat(getComputedStyle(this.place).maxHeight) || clientHeight;
    roomWidth = parentElement.clientWidth;
    this.room = { scrollTop, scrollLeft, height, width: roomWidth };
  }

  /** The edge of a column is dragged. */
  onDrag(event) {
    const { size } = event.target.dataset;
    if (!size) return;
    event.preventDefault();
    const before = this.widthOf(size);
    const from = event.clientX;
    const move = ({ clientX }) => this.resized(size, before + clientX - from);
    const stop = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", stop);
      removeEventListener("pointercancel", stop);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", stop);
    addEventListener("pointercancel", stop);
  }

  /** The width of a column, or of a row header, by what is written on its edge. */
  widthOf(size) {
    return size.startsWith("stub-") ? (this.stubs[Number(size.slice(5))] ?? this.stubTotal) : this.columnWidths[Number(size)];
  }

  resized(size, width) {
    const { view } = this;
    resize(size.startsWith("stub-") ? stubKey(view.down.axes[Number(size.slice(5))]) : columnKey(view, Number(size)), width);
    this.remeasure();
  }

  /** Draw everything for printing, up to the limit, and what is visible afterwards. A table that is wider than the paper
   * is printed on its side and smaller; one that is wider still in several parts, each with the row headings. */
  print(isPrinting) {
    this.isPrinting = isPrinting;
    this.isOnPaper = false;
    if (this.place.nextElementSibling?.matches(".printed")) this.place.nextElementSibling.remove();
    delete document.documentElement.dataset.paper;
    this.measure();
    if (isPrinting && this.isWhole) this.printParts();
    else this.redrawAll();
  }

  redrawAll() {
    this.drawn = "";
    this.body.replaceChildren();
    this.draw();
  }

  printParts() {
    const width = this.stubTotal + this.lefts.at(-1);
    const fits = [UPRIGHT, ACROSS].find((room) => width * SMALLEST <= room);
    const parts = (room) => this.evenParts(room / SMALLEST - this.stubTotal);
    const paper = fits ?? (parts(UPRIGHT).length <= 2 * parts(ACROSS).length ? UPRIGHT : ACROSS); // a sheet on its side has half the rows
    document.documentElement.dataset.paper = paper === ACROSS ? "across" : "upright";
    const copies = (fits ? [[0, this.view.columnCount]] : parts(paper)).map((part) => {
      this.part = part;
      this.redrawAll();
      return this.table.cloneNode(true);
    });
    const widest = Math.max(...copies.map((copy) => parseFloat(copy.style.width)));
    for (const copy of copies) copy.style.zoom = String(Math.min(1, paper / widest));
    this.part = null;
    this.body.replaceChildren();
    this.isOnPaper = true;
    this.place.after(el("div", { class: "printed", "aria-hidden": "true" }, copies));
  }

  /** As few parts of at most some pixels as possible, about equally wide. */
  evenParts(room) {
    const most = this.partsWithin(room).length;
    const rooms = Array.from({ length: 50 }, (_, k) => this.lefts.at(-1) / most + k * STEP);
    const even = rooms.find((one) => one <= room && this.partsWithin(one).length === most);
    return this.partsWithin(even ?? room);
  }

  /** The columns in parts of at most some pixels, which end with a category of the outermost variable where that fits. */
  partsWithin(room) {
    const { columnCount, across } = this.view;
    const begins = (column) => across.axes.length > 1 && this.view.columnHeader(0, column) !== this.view.columnHeader(0, column - 1);
    const parts = [];
    for (let from = 0; from < columnCount; ) {
      let until = from + 1;
      while (until < columnCount && this.lefts[until + 1] - this.lefts[from] <= room) until += 1;
      let end = until;
      if (until < columnCount) while (end > from && !begins(end)) end -= 1;
      parts.push([from, end > from ? end : until]);
      [, from] = parts.at(-1);
    }
    return parts;
  }

  textOf(axis, place) {
    return codeText(axis, place, this.state.texts, t("total"));
  }

  /** Which rows and columns are near enough to be drawn. */
  window() {
    const { rowCount, columnCount } = this.view;
    if (this.part) return { top: 0, bottom: rowCount, left: this.part[0], right: this.part[1] };
    if (this.isWhole) return { top: 0, bottom: rowCount, left: 0, right: columnCount };
    const { scrollTop, scrollLeft, height, width } = this.room;
    const seen = height - this.headTotal; // the headers stay above the rows
    const top = Math.max(0, Math.min(Math.floor(scrollTop / this.rowHeight), rowCount) - BEYOND);
    const bottom = Math.min(rowCount, Math.ceil((scrollTop + seen) / this.rowHeight) + BEYOND);
    const left = Math.max(0, this.columnAt(scrollLeft) - 1);
    const right = Math.min(columnCount, this.columnAt(scrollLeft + width) + 2);
    return { top, bottom: Math.max(bottom, Math.min(rowCount, top + 1)), left, right };
  }

  /** The cells in the document near the focus or the pointer: their noise is requested together. */
  cellsInSight(measure) {
    const { top, bottom, left, right } = this.seen;
    const cells = [];
    for (let row = top; row < bottom && cells.length < NEAR; row += 1)
      for (let column = left; column < right; column += 1)
        if (this.view.measureAt(column).id === measure.id) cells.push(this.view.index(row, column));
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
    if (this.isOnPaper) return; // the copies are what is printed
    const seen = this.window();
    const drawn = JSON.stringify(seen);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.seen = seen;
    const focused = this.body.contains(document.activeElement);
    this.before = this.part ? 0 : this.lefts[seen.left]; // a part on paper has no room for the others
    this.after = this.part ? 0 : this.lefts.at(-1) - this.lefts[seen.right];
    this.drawHead();
    this.drawBody();
    this.markNoise();
    this.table.style.width = `${this.stubTotal + this.before + this.after + this.lefts[seen.right] - this.lefts[seen.left]}px`;
    if (focused) (this.focusable() ?? this.place).focus({ preventScroll: true });
  }

  /** Draw the widths and headers, unless they are as before: the browser would lay the whole table out again. */
  drawHead() {
    const { seen, state, view, isPrinting } = this;
    const measures = [view.measureAt(0).id, view.measure.id, view.measure.caption];
    const look = [state.sort, state.texts, state.density, state.closed, state.singles, state.top, state.lang];
    const sizes = [this.stubs, this.columnWidths.slice(seen.left, seen.right), this.headHeights, this.before, this.after];
    const key = JSON.stringify([seen.left, seen.right, view.fields.slice(seen.left, seen.right), measures, look, sizes, isPrinting]);
    if (key === this.headKey) return;
    this.headKey = key;
    this.columns.replaceChildren(...widths(this));
    this.head.replaceChildren(...heads(this));
  }

  /** Draw the rows; those that are there are filled again, and stay where they are. */
  drawBody() {
    const rows = lines(this);
    const { children } = this.body;
    if (rows.length !== children.length || rows.some((row, k) => row !== children[k])) this.body.replaceChildren(...rows);
  }

  /** Draw the numbers again with their noise, when it has arrived. */
  async markNoise() {
    if (this.state.noise === "off") return;
    const { drawn } = this;
    const measures = [...new Set([0, this.view.columnCount - 1].map((column) => this.view.measureAt(column)))];
    const missing = measures.filter((one) =>
      this.cellsInSight(one).some((index) => one.at(index) !== null && !rangeOf(this.view.table, index, one)),
    );
    if (!missing.length) return;
    await Promise.all(missing.map((one) => this.fetchNoise(this.cellsInSight(one), one))).catch(() => null); // numbers remain
    if (drawn !== this.drawn || !this.place.isConnected) return;
    const focused = this.body.contains(document.activeElement);
    this.drawBody();
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
      this.sortBy(this.view.fields[Number(sort.dataset.sort)]);
      return;
    }
    const fold = event.target.closest("button[data-fold]");
    if (fold) {
      this.onFold(fold.dataset.fold);
      return;
    }
    const area = event.target.closest("th[data-area]");
    if (area) {
      this.markArea(area.dataset.area);
      return;
    }
    const cell = event.target.closest("td[data-row]");
    if (cell) this.choose(Number(cell.dataset.row), Number(cell.dataset.column));
  }

  choose(row, column) {
    this.goTo(row, column);
    this.ask(this.view.index(row, column), row, column);
  }

  /** Close or open a category of "axis code", or all of an axis where no code is given. */
  onFold(what) {
    const [k, code] = [Number(what.split(" ")[0]), what.slice(what.indexOf(" ") + 1)];
    const axis = this.view.down.axes[k];
    const shut = this.state.closed[axis.variable] ?? [];
    const every = [...this.folds[k]].map((place) => axis.codes[place]);
    if (code === "*") this.fold(axis, shut.length ? [] : every);
    else this.fold(axis, shut.includes(code) ? shut.filter((one) => one !== code) : [...shut, code]);
  }

  /** Alt with an arrow makes a column wider or narrower; in the row headers arrows go to the next sign, or to the cells. */
  onHeaderKey(event) {
    const { sort, fold } = event.target.dataset;
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    const corner = event.target.closest("th.corner");
    const size = sort ?? (corner ? `stub-${Number(corner.getAttribute("aria-colindex")) - 1}` : null);
    if (event.altKey && step && size !== null) this.resized(size, this.widthOf(size) + step);
    else if (fold && !corner && event.key === "ArrowRight") this.goTo(Number(event.target.closest("tr").dataset.line), 0);
    else if (fold && !corner && ["ArrowDown", "ArrowUp"].includes(event.key)) this.toNextFold(event);
    else return;
    event.preventDefault();
  }

  toNextFold(event) {
    const signs = [...this.body.querySelectorAll("button[data-fold]")];
    signs[signs.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  }

  /** The sign that opens or closes the category of a row. */
  foldOf(row) {
    return this.body.querySelector(`tr[data-line="${row}"] button[data-fold]`);
  }

  onKey(event) {
    if (event.target.matches("button")) this.onHeaderKey(event);
    if (!event.target.matches("td[data-row]")) return;
    if (event.key === "ArrowLeft" && this.at.column === 0 && this.foldOf(this.at.row)) {
      event.preventDefault();
      this.foldOf(this.at.row).focus();
      return;
    }
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
    this.look();
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
