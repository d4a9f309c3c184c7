// Tabs as the ARIA practices describe them: one stop of the Tab key, arrows move, Home and End jump.

import { freshId, h } from "./dom.js";

// `items`: [{key, title, badge?}]; `chosen` is told a key. Returns {bar, panel, select}.
export function tabs(label, items, chosen, className = "tabs") {
  const panel = h("div", { class: "tab-panel", role: "tabpanel", id: freshId("panel") });
  const buttons = items.map((item) =>
    h("button", {
      type: "button", role: "tab", id: freshId("tab"), class: "tab", "aria-controls": panel.id, "aria-selected": "false",
      tabindex: "-1", data: { key: item.key }, on: { click: () => chosen(item.key) },
    }, h("span", { text: item.title }), item.badge ? h("span", { class: "badge", text: item.badge }) : null));
  const bar = h("div", { class: className, role: "tablist", "aria-label": label, on: { keydown: (event) => move(event) } }, buttons);

  function move(event) {
    const at = buttons.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const button = buttons[(to + buttons.length) % buttons.length];
    button.focus();
    chosen(button.dataset.key);
  }

  function select(key) {
    for (const button of buttons) {
      const isChosen = button.dataset.key === key;
      button.setAttribute("aria-selected", String(isChosen));
      button.tabIndex = isChosen ? 0 : -1;
      if (isChosen) panel.setAttribute("aria-labelledby", button.id);
    }
  }

  return { bar, panel, select };
}

// A row of buttons of which one is pressed.
export function choice(label, items, chosen, first) {
  const group = h("div", { class: "choice", role: "radiogroup", "aria-label": label });
  const buttons = items.map(([key, title]) =>
    h("button", { type: "button", role: "radio", class: "choice-item", data: { key }, text: title, on: { click: () => pick(key) } }));
  group.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (at < 0 || !step) return;
    event.preventDefault();
    const button = buttons[(at + step + buttons.length) % buttons.length];
    button.focus();
    pick(button.dataset.key);
  });
  function mark(key) {
    for (const button of buttons) {
      button.setAttribute("aria-checked", String(button.dataset.key === key));
      button.tabIndex = button.dataset.key === key ? 0 : -1;
    }
  }
  function pick(key) {
    mark(key);
    chosen(key);
  }
  group.append(h("span", { class: "choice-label", text: label }), ...buttons);
  mark(first ?? items[0][0]);
  group.mark = mark;
  return group;
}
