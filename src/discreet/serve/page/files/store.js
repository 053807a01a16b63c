// The state of the page. Views are drawn only from it; a change passes the new members.

/** What a page without a link shows. */
export function blank() {
  return {
    unit: "",
    count: "",
    where: "",
    rows: [],
    columns: [], // axes as the API takes them: {breakdown, codes, groups}
    view: "table",
    values: "count",
    base: null, // comparisons: [variable, code] that numbers are compared with; null: what suits the kind
    counts: false, // table: whether counts are beside shares and comparisons
    top: 0, // table: how many of the largest rows are shown; 0: all
    zeros: true, // table: whether rows and columns of zeros are shown
    singles: false, // whether a category that is all of its parent has a line of its own
    closed: {}, // table: variable -> codes whose categories below are not shown
    density: "normal", // table: normal or compact
    marked: [], // codes of areas that are marked in table and map
    second: null, // map: picks of a second map beside the first
    texts: "labels",
    totals: true,
    sort: null, // {column: number, direction: "descending" | "ascending"}
    picks: {}, // chart and map: variable -> code that is shown
    chart: "auto", // the kind of chart; auto: what suits the variables
    levels: {}, // chart: variable -> depth that is shown
    noise: "off", // table: whether the noise is shown beside the numbers, or unreliable ones are grey
    whiskers: true, // chart: whether the noise is drawn
    classes: "quantile", // map: how values become shades
    limits: [], // map: limits of one's own between shades
    preview: { status: "none" }, // none | loading | ready | failed
    answer: { status: "none" }, // none | loading | ready | failed
    cell: null, // {index, status, range}
    prices: [], // of each example: {price, left} where tables are charged, {isRefused}
    jobs: [],
    submitting: false, // a job is on its way to the server
    search: "",
    found: null, // {text, unit, variables, categories, tables}: what the server finds for the search
    about: "", // the variable whose definition is shown in the list
    start: { status: "none" }, // what the start page shows: {status, total, ages, areas}
    lang: "en",
    theme: "auto",
    world: null, // loaded from the server at the start: catalogue, settings, codelists
  };
}

/** Stores the state and notifies the views of each change. */
export function makeStore(first) {
  let state = first;
  const views = [];
  return {
    get state() {
      return state;
    },
    change(members) {
      const before = state;
      state = { ...state, ...members };
      for (const view of views) view(state, before);
    },
    /** Draw a view now and whenever one of the members it looks at is another one. */
    watch(members, draw) {
      views.push((now, before) => {
        if (members.some((name) => now[name] !== before[name])) draw(now, before);
      });
    },
  };
}
