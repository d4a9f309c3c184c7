// What is known of the operation or tensor that is chosen, and where else it can be seen.

import { definition, h, replace } from "./dom.js";
import { address, bytes, count, digits, exactBytes, flops, micros, microsWithin, percent, ratio, shape } from "./format.js";
import { coreText, errorOf, findOp, findTensor, memoryWord } from "./model.js";
import { button, opLink, pill, tensorLink } from "./parts.js";
import { go, state } from "./state.js";

const MOST = 12;

export class Inspector {
  constructor(report) {
    this.report = report;
    this.element = h("aside", { class: "inspector", "aria-label": "what is chosen", hidden: true, tabindex: "-1" });
  }

  show() {
    const [op, tensor] = [findOp(this.report, state().op), findTensor(this.report, state().tensor)];
    const isChosen = op !== null || tensor !== null;
    this.element.hidden = !isChosen;
    if (!isChosen) return isChosen;
    replace(this.element, tensor !== null ? this.tensor(this.report.tensors[tensor]) : this.op(this.report.ops[op]));
    this.element.scrollTop = 0;
    return isChosen;
  }

  head(kind, title) {
    const close = h("button", { type: "button", class: "icon-button", "aria-label": "close", data: { tip: "close" }, text: "×", on: { click: () => go({ op: null, tensor: null }) } });
    const link = h("button", {
      type: "button", class: "icon-button", "aria-label": "copy a link to this", data: { tip: "copy a link to this" }, text: "link",
      on: { click: () => navigator.clipboard?.writeText(location.href).then(() => { link.textContent = "copied"; }, () => {}) },
    });
    return h("div", { class: "inspector-head" }, h("div", {}, h("p", { class: "inspector-kind", text: kind }), h("h2", { class: "inspector-title", text: title })), link, close);
  }

  section(title, ...content) {
    return h("section", {}, h("h3", { text: title }), content);
  }

  list(title, items, make) {
    if (!items.length) return null;
    return this.section(title, h("ul", { class: "link-list" }, items.slice(0, MOST).map((item) => h("li", {}, make(item))),
      items.length > MOST ? h("li", { class: "faint", text: `and ${count(items.length - MOST)} more` }) : null));
  }

  reasons(ids) {
    if (!ids.length) return null;
    const shown = [...ids].sort((one, other) => Math.abs(this.report.decisions[other].saved_bytes) - Math.abs(this.report.decisions[one].saved_bytes)).slice(0, 6);
    return this.section("why", shown.map((id) => reason(this.report.decisions[id])));
  }

  op(op) {
    const { report } = this;
    const error = errorOf(report, op.id);
    const findings = (report.run?.findings ?? []).filter((finding) => finding.op === op.id);
    const readers = report.ops.filter((other) => other.inputs.some((operand) => operand.from === op.id));
    const jump = h("div", { class: "jump" },
      ...[["provenance", "Provenance"], ["graph", "Graph"], ["memory", "Memory", "lx"], ["time", "Time", "timeline"]]
        .filter(([view]) => view !== state().view)
        .map(([view, text, tab]) => button(text, () => go({ view, tab: tab ?? null, line: null, text: null }))));
    return [
      this.head(`operation ${op.id} of ${report.ops.length}`, `${op.op} → ${op.name}`),
      jump,
      h("div", { class: "inspector-body" },
        findings.length || (error !== null && error > 1)
          ? this.section("found wrong", error !== null && error > 1 ? pill(`error ${ratio(error)} its bound`, "is-bad") : null,
            findings.slice(0, 4).map((finding) => h("div", { class: "reason is-bad" }, h("span", { class: "reason-head", text: finding.sanitizer }), h("span", { text: finding.message }))))
          : null,
        this.section("figures", definition([
          ["time", op.us ? microsWithin(op.us, op.uncertainty) : null],
          ["starts at", report.time.schedule.length ? micros(op.start_us) : null],
          ["limited by", op.limit],
          ["executions", count(op.executions)],
          ["read", exactBytes(op.read)],
          ["written", exactBytes(op.written)],
          ["lower bound", `${bytes(op.bound)}${op.bound ? ` (moves ${ratio(op.moved / op.bound)})` : ""}`],
          ["ring", op.ring ? exactBytes(op.ring) : null],
          ["arithmetic", flops(op.flops)],
          ["intensity", op.flops_per_byte !== undefined ? `${digits(op.flops_per_byte)} flop/B, ridge ${digits(op.ridge ?? 0)}` : "no device memory"],
          ["of its peak", op.utilisation !== undefined ? `${percent(op.utilisation)} of ${String(op.unit ?? "").toUpperCase()}` : null],
          ["error / bound", error !== null ? ratio(error) : null],
        ])),
        this.section("where", definition([
          ["cores", `${coreText(op.cores)} (${op.coreCount})`],
          ["division", op.dims.map((dim) => `${dim.name} ${dim.extent} = ${dim.parts} × ${dim.core}`).join(", ")],
          ["loops", op.loops.map((loop) => `${report.loops[loop].name} × ${report.loops[loop].count}`).join(", ")],
          ["program", report.programs.length > 1 ? `${op.program} (${report.programs[op.program]?.directory})` : null],
          ["file", op.file],
          ["node", op.node],
          ["module", op.module !== undefined ? report.modules[op.module] : null],
          ["source", op.source],
          ["model's op", op.origin],
        ])),
        this.list("reads", op.inputs, (operand) => [tensorLink(report, operand.tensor), h("span", { class: "more", text: `${operand.memory}, ${bytes(operand.core_bytes ?? 0)}/core` })]),
        this.list("writes", op.outputs, (operand) => [tensorLink(report, operand.tensor), h("span", { class: "more", text: `${operand.memory}, ${bytes(operand.core_bytes ?? 0)}/core` })]),
        this.list("read by", readers, (other) => opLink(report, other.id)),
        this.reasons(op.decisions)),
    ];
  }

  tensor(tensor) {
    const { report } = this;
    const inLx = report.memory.lx.flatMap((map) => map.regions.filter((region) => region.tensor === tensor.id));
    const own = tensor.decisions;
    const decided = own.length ? own : report.decisions.filter((item) => item.tensor === tensor.id).map((item) => item.id);
    const jump = h("div", { class: "jump" },
      tensor.layout ? button("Sticks", () => go({ view: "memory", tab: "sticks" })) : null,
      inLx.length ? button("Scratchpads", () => go({ view: "memory", tab: "lx" })) : null,
      tensor.address !== undefined || tensor.memory === "pool" ? button("Device memory", () => go({ view: "memory", tab: "device" })) : null,
      decided.length ? button("Why", () => go({ view: "why" })) : null);
    return [
      this.head(`${tensor.role} tensor`, tensor.name),
      jump,
      h("div", { class: "inspector-body" },
        this.section("figures", definition([
          ["lies in", memoryWord(tensor.memory)],
          ["shape", `${shape(tensor.shape)} ${tensor.dtype ?? ""}`],
          ["size", exactBytes(tensor.size)],
          ["read", exactBytes(tensor.read)],
          ["written", exactBytes(tensor.written)],
          ["address", tensor.address !== undefined ? `${address(tensor.address)} (segment ${tensor.segment ?? 0})` : null],
          ["device size", tensor.layout ? `[${tensor.layout.device_size.join(", ")}]` : null],
          ["stride map", tensor.layout?.stride_map ? `[${tensor.layout.stride_map.join(", ")}]` : null],
          ["format", tensor.layout?.format],
        ])),
        decided.length ? this.reasons(decided) : this.whereNot(tensor, inLx),
        inLx.length ? this.section("in the scratchpads", inLx.slice(0, 4).map((region) => definition([
          ["bytes", `[${count(region.first)}, ${count(region.past)}) of each core`],
          ["from, to", `operation ${region.begin} to ${region.end}`],
          ["in memory", `${bytes(region.memory_bytes ?? 0)} more would move`],
        ]))) : null,
        this.list("written by", tensor.writers, (id) => opLink(report, id)),
        this.list("read by", tensor.readers, (id) => opLink(report, id))),
    ];
  }

  whereNot(tensor, inLx) {
    if (inLx.length || tensor.memory === "lx") return null;
    const words = tensor.role === "intermediate"
      ? "The plan notes no decision about it: the planner never had it as a candidate for the scratchpads."
      : `It is ${tensor.role === "output" ? "an" : "a"} ${tensor.role} of the model: it begins or ends in device memory, whatever lies in the scratchpads meanwhile.`;
    return this.section("why", h("p", { class: "soft", text: words }));
  }
}

export function reason(decision, isWhole = false) {
  const saved = [decision.saved_bytes ? `${bytes(decision.saved_bytes)}` : null, decision.saved_us ? micros(decision.saved_us) : null].filter(Boolean).join(", ");
  return h("div", { class: decision.kind === "spilled" ? "reason is-bad" : "reason" },
    h("span", { class: "reason-head", text: `${decision.kind}: ${decision.subject}` }),
    h("span", { text: decision.reason }),
    decision.alternative ? h("span", { class: "faint", text: `instead of ${decision.alternative}${saved ? `, which costs ${saved} more` : ""}` })
      : saved ? h("span", { class: "faint", text: `saves ${saved}` }) : null,
    isWhole && decision.considered.length ? considered(decision) : null);
}

// The ways that the planner weighed; what has no figure is not possible.
function considered(decision) {
  const has = (key) => decision.considered.some((item) => item[key] !== undefined);
  const columns = [
    ["programs", has("programs"), (item) => item.programs],
    ["time", has("us"), (item) => (item.us === undefined ? "–" : micros(item.us))],
    ["bytes", has("bytes"), (item) => (item.bytes === undefined ? "–" : bytes(item.bytes))],
  ].filter(([, isThere]) => isThere);
  return h("table", { class: "considered" },
    h("caption", { text: `what was weighed: ${decision.measure}` }),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "way" }), columns.map(([title]) => h("th", { scope: "col", class: "is-number", text: title })))),
    h("tbody", {}, decision.considered.map((item) => h("tr", { class: item.chosen ? "is-chosen" : "" },
      h("th", { scope: "row", text: item.chosen ? `${item.text} (chosen)` : item.text }),
      columns.map(([, , text]) => h("td", { class: "is-number", text: String(text(item)) }))))));
}
