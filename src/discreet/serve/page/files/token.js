// The API token of a trusted user: entered once, stored only in this tab, sent with each question.

import * as api from "./api.js";
import { open } from "./dialog.js";
import { button, el } from "./dom.js";
import { t } from "./language.js";

/** The button that opens the dialog; nothing where the server knows no tokens. */
export function tokenView(state, changed) {
  if (!state.world.settings.tokens) return null;
  const caption = api.hasToken() ? t("token.held") : t("token");
  return button(caption, () => signIn(changed), { data: { key: "token" }, "aria-haspopup": "dialog" });
}

/** Ask for a token; `changed` is called when it changes. */
export function signIn(changed) {
  const dialog = el("dialog", { class: "sheet", "aria-labelledby": "token-title" });
  const field = el("input", {
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "dsc_…",
    data: { key: "token-field" },
    "aria-describedby": "token-wrong token-hint",
    on: { keydown: (event) => event.key === "Enter" && take() },
  });
  const wrong = el("p", { class: "bad", id: "token-wrong", role: "alert" });
  const close = () => {
    dialog.close();
    changed();
  };

  async function take() {
    const before = api.heldToken();
    api.holdToken(field.value.trim());
    try {
      await api.jobs(); // the least that a token that is not known is refused for
      close();
    } catch (problem) {
      api.holdToken(before);
      wrong.textContent = problem.message || t("unreachable");
      field.setAttribute("aria-invalid", "true");
      field.focus();
    }
  }

  const drop = () => {
    api.holdToken("");
    close();
  };
  dialog.append(
    el("h2", { id: "token-title" }, t("token.title")),
    el("p", { class: "quiet", id: "token-hint" }, t("token.hint")),
    el("label", { class: "field" }, el("span", {}, t("token.field")), field),
    wrong,
    el(
      "div",
      { class: "foot" },
      ...(api.hasToken() ? [button(t("token.drop"), drop, { data: { key: "token-drop" } })] : []),
      button(t("cancel"), () => dialog.close(), { data: { key: "cancel" } }),
      button(t("token.take"), take, { class: "primary", data: { key: "token-take" } }),
    ),
  );
  open(dialog, "token");
}
