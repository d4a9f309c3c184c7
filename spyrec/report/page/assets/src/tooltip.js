// One tooltip for the whole page: by pointer, by keyboard focus, gone with Escape.

import { h, replace } from "./dom.js";

const box = h("div", { class: "tooltip", role: "tooltip", id: "tooltip", hidden: true });
let owner = null;

export function mountTooltip() {
  document.body.append(box);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTooltip();
  });
  const begin = (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (target) {
      const place = target.getBoundingClientRect();
      showTooltip({ title: target.dataset.tip, lines: [] }, place.left + place.width / 2, place.bottom, target);
    } else if (owner instanceof Element && owner.dataset.tip) hideTooltip();
  };
  document.addEventListener("pointerover", begin);
  document.addEventListener("focusin", begin);
  document.addEventListener("focusout", () => hideTooltip());
}

// `content`: {title, lines: [[name, value] | text]}; `x`, `y`: the place in the window that it stands beside.
export function showTooltip(content, x, y, by = null) {
  owner = by;
  replace(box, h("p", { class: "tooltip-title", text: content.title }), content.lines.map((line) =>
    Array.isArray(line)
      ? h("p", { class: "tooltip-line" }, h("span", { class: "tooltip-name", text: line[0] }), h("span", { text: line[1] }))
      : h("p", { class: "tooltip-text", text: line })));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = x + 14 + width > window.innerWidth - 8 ? x - width - 14 : x + 14;
  const top = y + 14 + height > window.innerHeight - 8 ? y - height - 10 : y + 14;
  box.style.left = `${Math.max(8, Math.min(left, window.innerWidth - width - 8))}px`;
  box.style.top = `${Math.max(8, top)}px`;
}

export function hideTooltip() {
  box.hidden = true;
  owner = null;
}
