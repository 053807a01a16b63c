// The search: shortly after the last letter categories and tables are requested.

import * as api from "./api.js";

const PATIENCE = 200; // milliseconds without a change
const SHORTEST = 2; // letters

/** Ask for what the search of the state means, whenever it or the unit is another one. */
export function makeFinder(store) {
  let timer = 0;

  async function find() {
    const { search, unit } = store.state;
    const text = search.trim();
    if (text.length < SHORTEST) return;
    try {
      const found = await api.search(text, unit);
      if (store.state.search.trim() === text) store.change({ found: { ...found, text, unit } });
    } catch {
      // the variables that the page itself finds stay
    }
  }

  return () => {
    clearTimeout(timer);
    timer = setTimeout(find, PATIENCE);
  };
}
