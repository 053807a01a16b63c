// The dialog in which the categories of an axis are chosen, or combined to groups where the office allows it.

import { open } from "./dialog.js";
import { button, el, replace } from "./dom.js";
import { t } from "./language.js";
import { variableName } from "./names.js";
import { makePicker, topmost } from "./picker.js";
import { changed, variableNamed, variableOf } from "./question.js";

/** Ask for the categories of an axis. */
export async function editCodes(axis, store, actions) {
  const { catalogue, codelists } = store.state.world;
  const variable = variableNamed(catalogue, variableOf(axis));
  const grouped = Object.keys(axis.groups).length > 0;
  const wanted = grouped ? variable.breakdowns.at(-1).name : axis.breakdown;
  const codelist = await actions.trying(codelists.breakdown(wanted));
  if (!codelist) return;
  const draft = {
    chosen: new Set(grouped ? [] : axis.codes.length ? axis.codes : codelist.codes),
    groups: { ...axis.groups },
  };
  const foot = el("div", { class: "foot" });
  const dialog = el("dialog", { "aria-labelledby": "codes-title", class: "sheet" });
  const drawFoot = () => replace(foot, footParts(draft, codelist, apply, () => dialog.close()));
  const picker = makePicker(codelist, draft.chosen, drawFoot);

  function apply() {
    actions.ask(changed(store.state, applied(variable, codelist, draft)));
    dialog.close();
  }

  drawFoot();
  dialog.append(
    el("h2", { id: "codes-title" }, t("codes.title", { name: variableName(catalogue, variable.name) })),
    ...picker.parts,
    ...(variable.may_group ? [groupsView(draft, codelist, picker, drawFoot)] : []),
    foot,
  );
  open(dialog, `codes-${variable.name}`);
}

function footParts(draft, codelist, apply, close) {
  const groups = Object.keys(draft.groups).length;
  const chosen = { chosen: draft.chosen.size, all: codelist.codes.length };
  return [
    el("span", { class: "quiet", role: "status" }, groups ? t("groups.own", { n: groups }) : t("codes.some", chosen)),
    button(t("cancel"), close, { data: { key: "cancel" } }),
    button(t("apply"), apply, { class: "primary", disabled: !draft.chosen.size && !groups, data: { key: "apply" } }),
  ];
}

function applied(variable, codelist, draft) {
  if (Object.keys(draft.groups).length) return { breakdown: variable.name, codes: [], groups: draft.groups };
  const isAll = draft.chosen.size === codelist.codes.length;
  const codes = isAll ? [] : codelist.codes.filter((code) => draft.chosen.has(code));
  return { breakdown: codelist.name, codes, groups: {} };
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
