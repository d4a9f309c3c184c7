// What a stick holds: host index and device address of every element, both ways.

import { empty, h, replace } from "./dom.js";
import { address, bytes, count, plural, shape } from "./format.js";
import { Layout } from "./layouts.js";
import { findTensor } from "./model.js";
import { card, field, select } from "./parts.js";
import { go, state } from "./state.js";

export class Sticks {
  constructor(report) {
    this.report = report;
    this.all = report.tensors.filter((tensor) => tensor.layout);
    if (!this.all.length) {
      this.elements = [empty("No layouts are known", "A record alone, or a foreign bundle without an argument table, does not say how tensors lie.", "spyrec report BUNDLE --args ARGS.json -o report.html")];
      this.update = () => {};
      return;
    }
    this.body = h("div", { class: "stack" });
    this.elements = [this.body];
  }

  update() {
    const wanted = findTensor(this.report, state().tensor);
    const tensor = this.all.find((item) => item.id === wanted) ?? this.tensor ?? this.all[0];
    if (tensor === this.tensor) return;
    this.tensor = tensor;
    this.layout = new Layout(tensor);
    this.coordinate = this.layout.sizes.map(() => 0);
    this.build();
  }

  build() {
    const { tensor, layout } = this;
    const choose = select(this.all.map((item) => [String(item.id), item.name]), tensor.id, (id) => go({ tensor: id, op: null }));
    this.indexInputs = tensor.shape.map((extent, dim) => this.input(`index of dim ${dim}`, extent, () => this.fromIndex()));
    this.deviceInputs = layout.sizes.map((extent, dim) => this.input(`device coordinate ${dim}`, extent, () => this.fromDevice()));
    this.addressInput = this.input("byte from the tensor's start", layout.nbytes, () => this.fromAddress());
    this.addressInput.classList.add("is-wide");
    this.said = h("p", { class: "reason", role: "status" });
    this.grid = h("div", { class: "stick-grid", role: "group", "aria-label": "elements of the stick" });
    this.gridTitle = h("p", { class: "faint" });
    const row = (label, inputs) => h("div", { class: "row" }, h("span", { class: "row-label", text: label }), inputs);
    const facts = `${shape(tensor.shape)} ${tensor.dtype ?? ""} on the host; [${layout.sizes.join(", ")}] ${tensor.layout.format ?? ""} on the device, stride map [${layout.strides.join(", ")}]`;
    replace(this.body,
      h("section", { class: "card", "aria-label": "one element" }, h("div", { class: "card-head" }, field("tensor", choose), h("p", { text: facts })),
        h("div", { class: "card-body stack" }, row("host index", this.indexInputs.length ? this.indexInputs : h("span", { class: "soft", text: "a scalar" })), row("device coordinate", this.deviceInputs), row("address", this.addressInput), this.said)),
      card("The stick that it lies in", `128 bytes, ${plural(layout.sizes.at(-1), "element")} of ${layout.word} B; hatched is padding`, h("div", { class: "card-body stack" }, this.gridTitle, this.grid)));
    this.settle();
  }

  input(label, extent, changed) {
    return h("input", { type: "number", class: "index-input", min: 0, max: extent - 1, step: 1, "aria-label": label, on: { change: changed } });
  }

  read(inputs, extents) {
    return inputs.map((input, dim) => Math.max(0, Math.min(extents[dim] - 1, Math.floor(Number(input.value)) || 0)));
  }

  fromIndex() {
    const found = this.layout.coordinate(this.read(this.indexInputs, this.tensor.shape));
    if (found) this.coordinate = found;
    this.settle(found ? null : "The layout gives no single place for this index.");
  }

  fromDevice() {
    this.coordinate = this.read(this.deviceInputs, this.layout.sizes);
    this.settle();
  }

  fromAddress() {
    this.coordinate = this.layout.at(this.read([this.addressInput], [this.layout.nbytes])[0]);
    this.settle();
  }

  settle(problem = null) {
    const { layout, tensor, coordinate } = this;
    const index = layout.index(coordinate);
    const offset = layout.address(coordinate);
    this.deviceInputs.forEach((input, dim) => { input.value = String(coordinate[dim]); });
    if (!problem && index) this.indexInputs.forEach((input, dim) => { input.value = String(index[dim]); });
    this.addressInput.value = String(offset);
    const whole = tensor.address !== undefined ? `${address(tensor.address + offset)} in device memory` : "its address comes with the launch";
    this.said.textContent = problem ?? `${index ? `${tensor.name}[${index.join(", ")}]` : "Padding: no host element"} lies at device coordinate (${coordinate.join(", ")}), byte ${count(offset)} of ${count(layout.nbytes)} (${bytes(layout.nbytes)}), stick ${count(Math.floor(offset / 128))}; ${whole}.`;
    this.drawStick();
  }

  drawStick() {
    const { layout, coordinate } = this;
    const outer = coordinate.slice(0, -1);
    this.gridTitle.textContent = `stick ${count(Math.floor(layout.address([...outer, 0]) / 128))} of ${count(layout.nbytes / 128)}, at device coordinate (${[...outer, "·"].join(", ")})`;
    replace(this.grid, Array.from({ length: layout.sizes.at(-1) }, (_, lane) => {
      const at = [...outer, lane];
      const index = layout.index(at);
      const isChosen = lane === coordinate.at(-1);
      return h("button", {
        type: "button", class: `stick-cell${index ? "" : " is-pad"}`, "aria-pressed": String(isChosen), tabindex: isChosen ? 0 : -1,
        "aria-label": index ? `host index ${index.join(", ")}, byte ${layout.address(at)}` : `padding, byte ${layout.address(at)}`,
        data: { tip: index ? `host (${index.join(", ")}) · byte ${count(layout.address(at))}` : `padding · byte ${count(layout.address(at))}`, lane },
        text: index ? index.join(",") : "·",
        on: { click: () => this.pick(lane), keydown: (event) => this.key(event, lane) },
      });
    }));
  }

  pick(lane) {
    this.coordinate = [...this.coordinate.slice(0, -1), lane];
    this.settle();
    this.grid.querySelector('[aria-pressed="true"]').focus();
  }

  key(event, lane) {
    const to = { ArrowRight: lane + 1, ArrowLeft: lane - 1, ArrowDown: lane + 16, ArrowUp: lane - 16 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to >= 0 && to < this.layout.sizes.at(-1)) this.pick(to);
  }
}
