// Dialogs: shown over the page, closed by Escape, by a press outside or by their buttons.

/** Show a dialog; the focus goes back to where it came from, which may have been redrawn. */
export function open(dialog, back) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    document.querySelector(`[data-key="${CSS.escape(back)}"]`)?.focus();
  });
  let pressed = null; // a press that begins inside and ends outside, as when text is marked, does not close
  dialog.addEventListener("pointerdown", (event) => {
    pressed = event.target;
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog && pressed === dialog) dialog.close();
  });
  dialog.showModal();
}
