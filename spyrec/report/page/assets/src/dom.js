// Elements are made here and nowhere else: text is set as text, so that no name from a file is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

// Makes an element. `properties`: attributes, and three words of its own: `text`, `on` ({event: listener}), `data`.
// An attribute that is null, undefined or false is left out. Children that are strings become text nodes.
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "style" || name.startsWith("on")) throw new Error(`no ${name} as an attribute: the policy forbids it`);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return parent;
}

// A place for what a screen reader should say when it changes.
export function announcer() {
  return h("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
}

// What a view shows where there is nothing: what is missing, and the command that would bring it.
export function empty(title, words, command) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title", text: title }), h("p", { text: words }),
    command ? h("code", { class: "command", text: command }) : null);
}

export function definition(pairs) {
  const list = h("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(h("dt", { text: name }), h("dd", {}, value instanceof Node ? value : document.createTextNode(String(value))));
  }
  return list;
}

let lastId = 0;

export function freshId(stem) {
  lastId += 1;
  return `${stem}-${lastId}`;
}
