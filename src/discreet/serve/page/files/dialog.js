// Dialogs: shown over the page, closed by Escape, by a press beside them or by their buttons.

/** Show a dialog; the focus goes back to where it came from, which may have been drawn anew. */
export function open(dialog, back) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    document.querySelector(`[data-key="${CSS.escape(back)}"]`)?.focus();
  });
  let pressed = null; // a press that begins inside and ends beside, as when text is marked, does not close
  dialog.addEventListener("pointerdown", (event) => {
    pressed = event.target;
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog && pressed === dialog) dialog.close();
  });
  dialog.showModal();
}
