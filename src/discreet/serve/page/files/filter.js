// Who of the unit is counted: a declared population, conditions built by choosing categories, or an expression
// for those who write one.

import { open } from "./dialog.js";
import { button, choice, el, replace } from "./dom.js";
import { t } from "./language.js";
import { variableName } from "./names.js";
import { variablesOf } from "./question.js";

const CONDITION = /^\s*([A-Za-z_]\w*)\s*(?:==\s*("[^"\\]*")|in\s*\(([^()]*)\))\s*$/;
const CODE = /"([^"\\]*)"/g;

/** The conditions of an expression that the page itself could have written; null for any other. */
function conditionsIn(where) {
  if (!where.trim()) return [];
  const found = where.split(/\sand\s/).map((part) => {
    const [, variable, one, several] = CONDITION.exec(part) || [];
    return variable ? { variable, codes: [...(one || several).matchAll(CODE)].map((code) => code[1]) } : null;
  });
  const isPlain = found.every((one) => one?.codes.length);
  const isOnce = isPlain && new Set(found.map((one) => one.variable)).size === found.length;
  return isOnce ? found : null;
}

/** The expression of conditions. */
const expressionOf = (conditions) =>
  conditions
    .map(({ variable, codes }) => `${variable} in (${codes.map((code) => `"${code}"`).join(", ")})`)
    .join(" and ");

/** The part of the choices that narrows who is counted; nothing where the office allows none. */
export function filterView(state, actions) {
  const { allowed, bases } = state.world.catalogue.filters;
  if (!allowed && !bases.length) return null;
  const folded = el(
    "details",
    { data: { key: "filter" } },
    el("summary", {}, t("where.title")),
    el(
      "div",
      { class: "filter" },
      bases.length ? baseList(state, actions, bases) : null,
      allowed ? conditionsView(state, actions) : null,
      allowed ? ownView(state, actions) : null,
    ),
  );
  if (state.where) folded.open = true;
  return folded;
}

function baseList(state, actions, bases) {
  return choice(
    t("where"),
    [["", t("where.all")], ...bases.map((base) => [base, base])],
    bases.includes(state.where) ? state.where : "",
    (where) => actions.ask({ where }),
    { data: { key: "base" } },
  );
}

function conditionsView(state, actions) {
  const conditions = conditionsIn(state.where);
  if (!conditions) return null;
  const { catalogue } = state.world;
  const used = conditions.map((one) => one.variable);
  const free = variablesOf(state).filter((one) => !used.includes(one.name));
  const edit = (variable) => editCondition(variable, conditions, state, actions);
  const line = ({ variable, codes }) => {
    const name = variableName(catalogue, variable);
    return el(
      "li",
      { class: "condition" },
      button(`${name}: ${t("categories", { n: codes.length })}`, () => edit(variable), {
        class: "plain",
        data: { key: `condition-${variable}` },
      }),
      button("✕", () => actions.ask({ where: expressionOf(conditions.filter((one) => one.variable !== variable)) }), {
        class: "sign",
        "aria-label": t("remove", { name }),
      }),
    );
  };
  const pairs = [["", t("where.choose")], ...free.map((one) => [one.name, variableName(catalogue, one.name)])];
  return [
    el("ul", {}, conditions.map(line)),
    choice(t("where.add"), pairs, "", (name) => name && edit(name), { data: { key: "condition-add" } }),
  ];
}

/** Choose the categories of a condition; a category includes everything below it. */
async function editCondition(name, conditions, state, actions) {
  const { catalogue } = state.world;
  const { makePicker, topmost, wholeBranches } = await import("./picker.js");
  const codelist = await actions.trying(state.world.codelists.variable(name));
  if (!codelist) return;
  const before = conditions.find((one) => one.variable === name);
  const together = wholeBranches(codelist);
  const chosen = new Set((before?.codes ?? []).flatMap((code) => together(code, true)));
  const foot = el("div", { class: "foot" });
  const dialog = el("dialog", { "aria-labelledby": "condition-title", class: "sheet" });
  const apply = () => {
    const others = conditions.filter((one) => one.variable !== name);
    actions.ask({ where: expressionOf([...others, { variable: name, codes: topmost(codelist, chosen) }]) });
    dialog.close();
  };
  const drawFoot = () =>
    replace(
      foot,
      el(
        "span",
        { class: "quiet", role: "status" },
        t("codes.some", { chosen: chosen.size, all: codelist.codes.length }),
      ),
      button(t("cancel"), () => dialog.close(), { data: { key: "cancel" } }),
      button(t("apply"), apply, { class: "primary", disabled: !chosen.size, data: { key: "apply" } }),
    );
  const picker = makePicker(codelist, chosen, drawFoot, { together, isPlace: codelist.is_place });
  drawFoot();
  dialog.append(
    el("h2", { id: "condition-title" }, t("where.only", { name: variableName(catalogue, name) })),
    el("p", { class: "quiet" }, t("where.rules")),
    ...picker.parts,
    foot,
  );
  open(dialog, before ? `condition-${name}` : "condition-add");
  picker.mark(); // now that the height of the list is known
}

function ownView(state, actions) {
  const field = el("input", {
    type: "text",
    value: state.where,
    data: { key: "where" },
    placeholder: 'AGE == "Y_LT15"',
    spellcheck: "false",
    autocomplete: "off",
    "aria-describedby": "where-hint",
    on: { change: (event) => actions.ask({ where: event.target.value }) },
  });
  return el(
    "details",
    { data: { key: "filter-own" }, open: !conditionsIn(state.where) },
    el("summary", {}, t("where.own")),
    el(
      "label",
      { class: "field" },
      el("span", { class: "unseen" }, t("where.own")),
      field,
      el("small", { id: "where-hint", class: "quiet" }, t("where.hint")),
    ),
  );
}

/** A filter as text, for the head of a table; an expression that the page did not make is shown as it is. */
export function filterWords(where, { catalogue, codelists }) {
  const conditions = conditionsIn(where || "");
  if (!conditions) return where;
  return conditions
    .map(({ variable, codes }) => {
      const labels = codes.map((code) => codelists.label(variable, code));
      return `${variableName(catalogue, variable)}: ${labels.join(", ")}`;
    })
    .join(" · ");
}
