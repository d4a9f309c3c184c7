// Search over everything that has a name: operations, tensors, modules, files, decisions. "/" comes here from anywhere.

import { freshId, h, replace } from "./dom.js";
import { memoryWord } from "./model.js";
import { go } from "./state.js";

const MOST = 40;

export function searchBox(report) {
  const listId = freshId("found");
  const input = h("input", {
    type: "search", role: "combobox", placeholder: "Find operation, tensor, node …", "aria-label": "find anything by name", "aria-expanded": "false", "aria-controls": listId, "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
    on: { input: () => seek(), keydown: (event) => key(event), focus: () => input.value && seek(), blur: () => setTimeout(close, 150) },
  });
  const list = h("div", { class: "search-found", role: "listbox", id: listId, "aria-label": "what was found", hidden: true });
  const box = h("div", { class: "search", role: "search" }, input, h("kbd", { text: "/", "aria-hidden": "true" }), list);
  let found = [];
  let at = 0;

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });

  function seek() {
    const word = input.value.trim().toLowerCase();
    at = 0;
    found = word ? matches(report, word) : [];
    list.hidden = !word;
    input.setAttribute("aria-expanded", String(Boolean(word)));
    draw();
  }

  function draw() {
    replace(list, found.length ? found.map((item, place) => h("div", {
      class: "search-item", role: "option", id: `${listId}-${place}`, "aria-selected": String(place === at),
      on: { mousedown: (event) => { event.preventDefault(); choose(item); } },
    }, h("span", { class: "search-kind", text: item.kind }), h("span", { class: "search-name", text: item.name }), h("span", { class: "search-more", text: item.more }))) : h("p", { class: "search-none", text: "Nothing has this in its name." }));
    if (found.length) input.setAttribute("aria-activedescendant", `${listId}-${at}`);
    else input.removeAttribute("aria-activedescendant");
    list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  function key(event) {
    if (event.key === "Escape") {
      close();
      input.blur();
    } else if (event.key === "Enter" && found.length) choose(found[at]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      at = Math.max(0, Math.min(found.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)));
      draw();
    }
  }

  function choose(item) {
    close();
    go({ text: null, line: null, finding: null, decision: null, ...item.where });
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  }

  return box;
}

function matches(report, word) {
  const found = [];
  const add = (name, item) => {
    if (found.length < 4 * MOST && name.toLowerCase().includes(word)) found.push({ ...item, name, rank: name.toLowerCase() === word ? 0 : name.toLowerCase().startsWith(word) ? 1 : 2 });
  };
  for (const op of report.ops) add(`${op.op} → ${op.name}`, { kind: `op ${op.id}`, more: op.file, where: { op: op.id, tensor: null } });
  for (const op of report.ops) if (op.file?.toLowerCase().includes(word)) add(op.file, { kind: `op ${op.id}`, more: op.op, where: { op: op.id, tensor: null } });
  for (const tensor of report.tensors) add(tensor.name, { kind: tensor.role, more: memoryWord(tensor.memory), where: { tensor: tensor.id, op: null } });
  report.modules.forEach((path, id) => {
    const first = report.ops.find((op) => op.module === id);
    if (first) add(path, { kind: "module", more: `from op ${first.id}`, where: { view: "graph", by: "module", op: first.id, tensor: null } });
  });
  for (const item of report.decisions) add(item.subject, { kind: item.kind, more: item.reason, where: { view: "why", kind: null, decision: item.id, tensor: item.tensor ?? null, op: item.tensor === undefined ? item.ops[0] ?? null : null } });
  return found.sort((one, other) => one.rank - other.rank).slice(0, MOST);
}
