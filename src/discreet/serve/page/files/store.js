// The one object that says what the page shows. Views are drawn from it and from nothing else; whoever changes it
// hands over the members that are new.

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
    texts: "labels",
    totals: true,
    sort: null, // {column: number, direction: "descending" | "ascending"}
    picks: {}, // map: variable -> code that is shown
    preview: { status: "none" }, // none | loading | ready | failed
    answer: { status: "none" }, // none | loading | ready | failed
    cell: null, // {index, status, range}
    jobs: [],
    submitting: false, // a job is on its way to the server
    search: "",
    lang: "en",
    theme: "auto",
    world: null, // what the server told at the start: catalogue, settings, codelists
  };
}

/** Holds the state and tells the views of each change. */
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
