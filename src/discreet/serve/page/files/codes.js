// The dialog in which categories are ticked, or put together to groups where the office allows it.

import { button, el, replace } from "./dom.js";
import { number, t } from "./language.js";
import { variableName } from "./names.js";
import { TOTAL, changed, variableNamed, variableOf } from "./question.js";

const MOST = 400; // lines that are drawn; a search finds the others

/** Ask for the categories of an axis. */
export async function editCodes(axis, store, actions, breakdownOf) {
  const { catalogue } = store.state.world;
  const variable = variableNamed(catalogue, variableOf(axis));
  const grouped = Object.keys(axis.groups).length > 0;
  const codelist = await breakdownOf(grouped ? variable.breakdowns.at(-1).name : axis.breakdown);
  const draft = {
    chosen: new Set(axis.codes.length && !grouped ? axis.codes : codelist.codes),
    groups: { ...axis.groups },
    wanted: "",
    name: "",
  };
  if (grouped) draft.chosen.clear();
  const dialog = el("dialog", { "aria-labelledby": "codes-title", class: "sheet" });
  const draw = () => replace(dialog, ...content());
  const close = () => dialog.close();

  const matches = () =>
    codelist.codes
      .map((code, place) => ({ code, place }))
      .filter(({ code, place }) =>
        `${code} ${codelist.labels[place]}`.toLowerCase().includes(draft.wanted.toLowerCase()),
      );
  const set = (codes, on) => {
    for (const code of codes)
      if (on) draft.chosen.add(code);
      else draft.chosen.delete(code);
    draw();
  };
  const onlyDepth = (depth) => {
    draft.chosen = new Set(codelist.codes.filter((code, place) => code === TOTAL || codelist.depths[place] === depth));
    draw();
  };

  function content() {
    const found = matches();
    const name = variableName(catalogue, variable.name);
    return [
      el("h2", { id: "codes-title" }, t("codes.title", { name })),
      el("input", {
        type: "search",
        "aria-label": t("codes.search"),
        placeholder: t("codes.search"),
        value: draft.wanted,
        data: { key: "codes-search" },
        on: {
          input: (event) => {
            draft.wanted = event.target.value;
            draw();
          },
        },
      }),
      el(
        "div",
        { class: "row" },
        button(
          t("codes.tick"),
          () =>
            set(
              found.map((one) => one.code),
              true,
            ),
          { class: "small", data: { key: "tick" } },
        ),
        button(
          t("codes.untick"),
          () =>
            set(
              found.map((one) => one.code),
              false,
            ),
          { class: "small", data: { key: "untick" } },
        ),
        depthButtons(),
      ),
      el("ul", { class: "codes" }, found.slice(0, MOST).map(line)),
      found.length > MOST ? el("p", { class: "quiet" }, t("codes.more", { count: number(found.length - MOST) })) : null,
      variable.may_group ? groupsView() : null,
      foot(),
    ];
  }

  function depthButtons() {
    const depths = [...new Set(codelist.depths)].filter((depth) => depth > 0);
    return depths.length < 2
      ? []
      : depths.map((depth) =>
          button(
            t("codes.depth", { depth, count: codelist.depths.filter((one) => one === depth).length }),
            () => onlyDepth(depth),
            { class: "small", data: { key: `depth-${depth}` } },
          ),
        );
  }

  function line({ code, place }) {
    const box = el("input", {
      type: "checkbox",
      checked: draft.chosen.has(code),
      data: { key: `code-${code}` },
      on: { change: (event) => set([code], event.target.checked) },
    });
    const words = code === TOTAL ? t("total") : codelist.labels[place];
    return el(
      "li",
      { class: `depth-${Math.min(4, codelist.depths[place])}` },
      el("label", {}, box, el("span", {}, words), el("code", {}, code)),
    );
  }

  function groupsView() {
    const make = () => {
      const codes = [...draft.chosen].filter((code) => code !== TOTAL);
      if (!draft.name.trim() || !codes.length) return;
      draft.groups[draft.name.trim()] = codes;
      draft.chosen.clear();
      draft.name = "";
      draw();
    };
    const drop = (name) => {
      delete draft.groups[name];
      draw();
    };
    return el(
      "fieldset",
      { class: "groups" },
      el("legend", {}, t("groups.title")),
      el("p", { class: "quiet" }, t("groups.hint")),
      el(
        "div",
        { class: "row" },
        el("input", {
          type: "text",
          value: draft.name,
          "aria-label": t("groups.name"),
          placeholder: t("groups.name"),
          data: { key: "group-name" },
          on: {
            input: (event) => {
              draft.name = event.target.value;
            },
          },
        }),
        button(t("groups.make"), make, { class: "small", data: { key: "group-make" } }),
      ),
      el(
        "ul",
        {},
        Object.entries(draft.groups).map(([name, codes]) =>
          el(
            "li",
            {},
            `${name}: ${t("categories", { n: codes.length })} `,
            button(t("groups.drop"), () => drop(name), { class: "small", "aria-label": t("remove", { name }) }),
          ),
        ),
      ),
    );
  }

  function foot() {
    const groups = Object.keys(draft.groups).length;
    const apply = () => {
      actions.ask(changed(store.state, applied(groups)));
      close();
    };
    return el(
      "div",
      { class: "foot" },
      el(
        "span",
        { class: "quiet", role: "status" },
        groups
          ? t("groups.own", { n: groups })
          : t("codes.some", { chosen: draft.chosen.size, all: codelist.codes.length }),
      ),
      button(t("cancel"), close, { data: { key: "cancel" } }),
      button(t("apply"), apply, { class: "primary", disabled: !draft.chosen.size && !groups, data: { key: "apply" } }),
    );
  }

  function applied(groups) {
    if (groups) return { breakdown: variable.name, codes: [], groups: draft.groups };
    const isAll = draft.chosen.size === codelist.codes.length;
    const codes = isAll ? [] : codelist.codes.filter((code) => draft.chosen.has(code));
    return { breakdown: codelist.name, codes, groups: {} };
  }

  open(dialog, draw, `codes-${variable.name}`);
}

/** Show a dialog; the focus goes back to where it came from, which may have been drawn anew. */
export function open(dialog, draw, back) {
  document.body.append(dialog);
  draw();
  dialog.addEventListener("close", () => {
    dialog.remove();
    document.querySelector(`[data-key="${CSS.escape(back)}"]`)?.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.showModal();
}
