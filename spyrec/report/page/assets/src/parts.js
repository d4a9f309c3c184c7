// Small parts that several views show: cards, figures, links to operations and tensors, legends.

import { rampSteps } from "./colours.js";
import { h } from "./dom.js";
import { opTitle } from "./model.js";
import { go } from "./state.js";

export function card(title, note, ...children) {
  return h("section", { class: "card is-flex", "aria-label": title },
    h("div", { class: "card-head" }, h("h2", { text: title }), note ? h("p", { text: note }) : null), children);
}

export function cardBody(...children) {
  return h("div", { class: "card-body" }, children);
}

export function tile(name, value, more, tone = "") {
  return h("div", { class: `tile ${tone}` }, h("span", { class: "tile-name", text: name }), h("span", { class: "tile-value", text: value }),
    more ? h("span", { class: "tile-more", text: more }) : null);
}

export function opLink(report, id) {
  return h("button", { type: "button", class: "button-link", text: opTitle(report, id), on: { click: () => go({ op: id, tensor: null }) } });
}

export function tensorLink(report, id) {
  const tensor = report.tensors[id];
  return h("button", { type: "button", class: "button-link", text: tensor ? tensor.name : "?", on: { click: () => go({ tensor: id, op: null }) } });
}

export function button(text, act, tip = null) {
  return h("button", { type: "button", class: "button", text, data: tip ? { tip } : {}, on: { click: act } });
}

export function legend(items) {
  return h("div", { class: "legend" }, items.map(([colour, text]) => {
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.backgroundColor = colour;
    return h("span", { class: "legend-item" }, swatch, h("span", { text }));
  }));
}

export function rampLegend(low, high) {
  return h("span", { class: "ramp legend" }, h("span", { text: low }), h("span", { class: "ramp-bar", "aria-hidden": "true" }, rampSteps(12).map((colour) => {
    const step = h("span");
    step.style.backgroundColor = colour;
    return step;
  })), h("span", { text: high }));
}

export function field(label, control) {
  return h("label", { class: "field" }, h("span", { text: label }), control);
}

export function select(options, chosen, changed) {
  const control = h("select", { on: { change: () => changed(control.value) } }, options.map(([value, text]) => h("option", { value, text })));
  control.value = String(chosen);
  return control;
}

export function numberInput(value, { min = 0, max = null, step = "any" }, changed) {
  const control = h("input", { type: "number", min, max, step, on: { change: () => changed(Number(control.value)) } });
  control.value = String(value);
  return control;
}

export function pill(text, tone = "") {
  return h("span", { class: `pill ${tone}`, text });
}
