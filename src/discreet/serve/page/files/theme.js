// Light or dark: as the reader's system, unless the reader chooses; stored in this browser.

const KEY = "table-builder-theme";
export const THEMES = ["auto", "light", "dark"];

export function keptTheme() {
  try {
    const held = localStorage.getItem(KEY);
    return THEMES.includes(held) ? held : "auto";
  } catch {
    return "auto"; // storage is switched off
  }
}

export function applyTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // storage is switched off: the choice holds for this visit
  }
}
