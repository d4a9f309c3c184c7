// Light or dark: as the system says, until the button says otherwise.

import { h } from "./dom.js";
import { forgetColours } from "./stage.js";

const KEY = "spyrec.report.theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // a file opened where storage is forbidden
  }
}

// Returns the button; `changed` redraws what is on canvases.
export function themeButton(changed) {
  const button = h("button", { type: "button", class: "icon-button theme-button", on: { click: () => turn() } });
  let asked = remembered();
  const isDark = () => (asked ? asked === "dark" : system.matches);
  function settle() {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
    const title = isDark() ? "show light colours" : "show dark colours";
    button.setAttribute("aria-label", title);
    button.dataset.tip = title;
    button.textContent = isDark() ? "☀" : "☾";
    forgetColours();
    changed();
  }
  function turn() {
    asked = isDark() ? "light" : "dark";
    try {
      localStorage.setItem(KEY, asked);
    } catch {
      // it holds for this visit
    }
    settle();
  }
  system.addEventListener("change", settle);
  settle();
  return button;
}
