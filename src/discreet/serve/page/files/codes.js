// The dialog in which the categories of an axis are chosen, or combined to groups where the office allows it.

import { aboutView } from "./about.js";
import { open } from "./dialog.js";
import { button, el, replace } from "./dom.js";
import { t } from "./language.js";
import { breakdownName, variableName } from "./names.js";
import { makePicker, topmost } from "./picker.js";
import { axesOf, changed, variableNamed, variableOf } from "./question.js";

const LARGE = 5000; // codes; a tree with more is shown only where the axis itself has them

/** The breakdown whose tree is shown: the finest that is not too large, so that a reader can choose at any level. */
function treeOf(variable, axis) {
  const own = variable.breakdowns.findIndex((one) => one.name === axis.breakdown);
  const fit = variable.breakdowns.filter((one, place) => one.codes <= LARGE || place <= own);
  return (fit.at(-1) ?? variable.breakdowns[Math.max(0, own)]).name;
}

/** Ask for the categories of an axis; one that is not in the table yet is put at the front of the rows. */
export async function editCodes(axis, store, actions, back = `codes-${variableOf(axis)}`) {
  const { catalogue, codelists } = store.state.world;
  const variable = variableNamed(catalogue, variableOf(axis));
  const grouped = Object.keys(axis.groups).length > 0;
  const wanted = grouped ? variable.breakdowns.at(-1).name : treeOf(variable, axis);
  const codelist = await actions.trying(codelists.breakdown(wanted));
  if (!codelist) return;
  const draft = { chosen: new Set(grouped ? [] : axis.codes), groups: { ...axis.groups } };
  const foot = el("div", { class: "foot" });
  const dialog = el("dialog", { "aria-labelledby": "codes-title", class: "sheet" });
  const own = variable.breakdowns.find((one) => one.name === axis.breakdown);
  const every = own ? breakdownName(catalogue, own) : t("categories", { n: codelist.codes.length });
  const drawFoot = () => replace(foot, footParts(draft, codelist, every, apply, () => dialog.close()));
  const picker = makePicker(codelist, draft.chosen, drawFoot, { isPlace: variable.is_place });

  function apply() {
    const made = applied(variable, codelist, axis, draft);
    const isIn = axesOf(store.state).some((one) => variableOf(one) === variable.name);
    actions.ask(isIn ? changed(store.state, made) : { rows: [made, ...store.state.rows] });
    dialog.close();
  }

  drawFoot();
  dialog.append(
    el("h2", { id: "codes-title" }, t(variable.is_place ? "areas.title" : "codes.title", { name: variableName(catalogue, variable.name) })),
    aboutView(variable),
    ...picker.parts,
    ...(variable.may_group ? [groupsView(draft, codelist, picker, drawFoot)] : []),
    foot,
  );
  open(dialog, back);
  picker.mark(); // now that the height of the list is known
}

function footParts(draft, codelist, every, apply, close) {
  const groups = Object.keys(draft.groups).length;
  const chosen = draft.chosen.size
    ? t("codes.some", { chosen: draft.chosen.size, all: codelist.codes.length })
    : t("codes.none", { all: every });
  return [
    el("span", { class: "quiet", role: "status" }, groups ? t("groups.own", { n: groups }) : chosen),
    button(t("cancel"), close, { data: { key: "cancel" } }),
    button(t("apply"), apply, { class: "primary", data: { key: "apply" } }),
  ];
}

/** The axis of what is chosen: nothing chosen means all, and the coarsest breakdown that has all that is chosen is taken. */
function applied(variable, codelist, axis, draft) {
  if (Object.keys(draft.groups).length) return { breakdown: variable.name, codes: [], groups: draft.groups };
  const codes = codelist.codes.filter((code) => draft.chosen.has(code));
  if (!codes.length) return { breakdown: Object.keys(axis.groups).length ? codelist.name : axis.breakdown, codes: [], groups: {} };
  if (codes.length === codelist.codes.length) return { breakdown: codelist.name, codes: [], groups: {} };
  const finest = Math.max(...codelist.codes.flatMap((code, place) => (draft.chosen.has(code) ? [codelist.first[place]] : [])));
  const found = variable.breakdowns[finest];
  return { breakdown: found.name, codes: codes.length === found.codes ? [] : codes, groups: {} };
}

/** Groups of categories: made of what is ticked, by a name. */
function groupsView(draft, codelist, picker, changed) {
  const made = el("ul", { class: "made" });
  const name = el("input", {
    type: "text",
    "aria-label": t("groups.name"),
    placeholder: t("groups.name"),
    data: { key: "group-name" },
    on: { keydown: (event) => event.key === "Enter" && make() },
  });
  const wrong = el("p", { class: "bad", role: "alert" });

  function make() {
    const caption = name.value.trim();
    const codes = topmost(codelist, draft.chosen);
    wrong.textContent = !caption ? t("groups.nameless") : !codes.length ? t("groups.nothing") : "";
    if (!caption || !codes.length) return;
    draft.groups[caption] = codes;
    draft.chosen.clear();
    name.value = "";
    picker.mark();
    draw();
  }

  function drop(caption) {
    delete draft.groups[caption];
    draw();
    name.focus();
  }

  function draw() {
    const lines = Object.entries(draft.groups).map(([caption, codes]) =>
      el(
        "li",
        {},
        `${caption}: ${t("categories", { n: codes.length })} `,
        button(t("groups.drop"), () => drop(caption), { class: "small", "aria-label": t("remove", { name: caption }) }),
      ),
    );
    made.replaceChildren(...lines);
    changed();
  }

  draw();
  return el(
    "fieldset",
    { class: "groups" },
    el("legend", {}, t("groups.title")),
    el("p", { class: "quiet" }, t("groups.hint")),
    el("div", { class: "row" }, name, button(t("groups.make"), make, { class: "small", data: { key: "group-make" } })),
    wrong,
    made,
  );
}
