// What a reader did in this visit: the steps, to undo and redo, the tables that were shown, and permanent links. Steps and
// tables are stored in this tab, links in this browser; nothing is sent.

import { fragmentOf, read } from "./link.js";
import { title } from "./names.js";
import { queryOf, sameness } from "./question.js";

const STEPS = 100;
const TABLES = 20;
const LINKS = 50;
const MOST_CELLS = 2_000_000; // of the answers that are cached
const VISIT = "table-builder-visit";
const SAVED = "table-builder-links";

/** Follow a store; `changed` is called when something of it is to be drawn again. */
export function makeVisits(store, actions, changed) {
  let steps = [];
  let at = -1;
  let tables = listIn(() => sessionStorage, VISIT);
  let links = listIn(() => localStorage, SAVED);
  const answers = new Map(); // sameness of a question -> its answer, the latest last

  /** A step is what the choices are after all changes of one event. */
  function note() {
    const { catalogue } = store.state.world;
    const now = bare(store.state);
    if (now === steps[at] || !catalogue.units.includes(store.state.unit)) return;
    steps = [...steps.slice(0, at + 1), now].slice(-STEPS);
    at = steps.length - 1;
    changed();
  }

  function noteTable() {
    const { answer, world } = store.state;
    if (answer.status !== "ready" || !answer.table || sameness(queryOf(store.state)) !== answer.asked) return;
    answers.delete(answer.asked);
    answers.set(answer.asked, answer);
    let cells = [...answers.values()].reduce((sum, one) => sum + one.table.size, 0);
    for (const [key, one] of answers)
      if (cells > MOST_CELLS && key !== answer.asked) {
        answers.delete(key);
        cells -= one.table.size;
      }
    const shown = { key: answer.asked, title: title(world.catalogue, answer.query), fragment: fragmentOf(store.state), cells: answer.table.size };
    const isNew = tables[0]?.key !== shown.key || tables[0]?.title !== shown.title;
    tables = [shown, ...tables.filter((one) => one.key !== shown.key)].slice(0, TABLES);
    keep(() => sessionStorage, VISIT, tables);
    if (isNew) changed();
  }

  /** Show what a fragment describes; a table that was shown in this visit is there at once, and free. */
  function go(fragment) {
    const members = read(fragment, store.state.world.catalogue);
    if (!members) return;
    const { shown, lang, missing, ...rest } = members;
    const key = sameness(queryOf({ ...store.state, ...rest }));
    const known = answers.get(key);
    const isEmpty = !rest.rows.length && !rest.columns.length;
    const answer = isEmpty ? { status: "none" } : known;
    actions.ask({ ...rest, cell: null, ...(answer ? { answer } : {}) });
  }

  function step(by) {
    note(); // the last change may not be noted yet
    if (!steps[at + by]) return;
    at += by;
    go(steps[at]);
    changed();
  }

  return {
    note,
    noteTable,
    undo: () => step(-1),
    redo: () => step(1),
    get canUndo() {
      return at > 0;
    },
    get canRedo() {
      return at < steps.length - 1;
    },
    get tables() {
      return tables;
    },
    get links() {
      return links;
    },
    open: (one) => go(one.fragment),
    addLink(link, caption) {
      links = [{ link, title: caption }, ...links.filter((one) => one.link !== link)].slice(0, LINKS);
      keep(() => localStorage, SAVED, links);
      changed();
    },
    dropLink(link) {
      links = links.filter((one) => one.link !== link);
      keep(() => localStorage, SAVED, links);
      changed();
    },
  };
}

/** The choices, without whether their table is shown. */
const bare = (state) => fragmentOf({ ...state, answer: { status: "none" }, lang: "" });

function listIn(storage, key) {
  try {
    const found = JSON.parse(storage().getItem(key) || "[]");
    return Array.isArray(found) ? found.filter((one) => one && typeof one.title === "string") : [];
  } catch {
    return []; // storage is switched off
  }
}

function keep(storage, key, list) {
  try {
    storage().setItem(key, JSON.stringify(list));
  } catch {
    // storage is switched off or full: the list ends with the visit
  }
}
