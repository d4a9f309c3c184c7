// Correctness: how far outputs are from their bounds and who made which part, where a run was first wrong, what sanitizers found.

import { kind, ramp } from "./colours.js";
import { definition, empty, h, replace } from "./dom.js";
import { address, count, digits, percent, plural, ratio, shape } from "./format.js";
import { findOp } from "./model.js";
import { card, cardBody, field, numberInput, opLink, pill, rampLegend, select, tensorLink } from "./parts.js";
import { font, Stage } from "./stage.js";
import { go, state } from "./state.js";
import { Table } from "./table.js";
import { choice, tabs } from "./tabs.js";

// Errors beyond the bound: up to ten times, up to a hundred times, more; the farther, the darker.
const BEYOND = ["#d55e00", "#963c00", "#571c00"];

function beyond(value) {
  return BEYOND[Number.isNaN(value) || value > 100 ? 2 : value > 10 ? 1 : 0];
}

const GUILT = {
  result: "it stored something else than its inputs explain",
  overwritten: "it changed a tensor that it has no business with",
  rounds: "its loops do not go round as often as the graph asks",
  "copy in": "the host's copy to the device does not hold the graph's numbers",
  "copy out": "what the host got is not what the last operation stored",
  given: "all operations are right for their inputs, but the value is not what was given for it",
  altered: "all operations are right for their inputs, but the constants are not those of the bundle",
};
const OF_OPERATION = ["result", "overwritten", "rounds"];
const RECORD = "spyrec run BUNDLE --check --record RUN.json";

export function correctness(context) {
  return new Correctness(context);
}

class Correctness {
  constructor({ report }) {
    this.report = report;
    const findings = report.run?.findings.length ?? 0;
    this.keys = [{ key: "outputs", title: "Outputs" }, { key: "bisect", title: "Bisect" }, { key: "findings", title: "Findings", badge: findings ? String(findings) : null }];
    this.tabs = tabs("correctness", this.keys, (key) => go({ tab: key === "outputs" ? null : key }), "subtabs");
    this.made = new Map();
    const run = report.run;
    const about = run ? `${run.is_same_bundle === false ? "The run is of another bundle. " : ""}numerics ${run.numerics}, engine ${run.engine}${Object.keys(run.dims ?? {}).length ? `, ${Object.entries(run.dims).map(([name, size]) => `${name} = ${size}`).join(", ")}` : ""}` : "No run was recorded.";
    this.element = h("div", { class: "view is-full" }, h("div", { class: "view-head" }, this.tabs.bar, h("p", { class: "view-note", text: about })), this.tabs.panel);
    this.tabs.panel.classList.add("grow", "stack");
  }

  update() {
    const tab = this.keys.some((item) => item.key === state().tab) ? state().tab : "outputs";
    this.tabs.select(tab);
    if (!this.made.has(tab)) this.made.set(tab, { outputs: () => new Outputs(this.report), bisect: () => new Bisect(this.report), findings: () => new Findings(this.report) }[tab]());
    const part = this.made.get(tab);
    if (this.shown !== part) replace(this.tabs.panel, part.elements);
    this.shown = part;
    part.update();
  }
}

class Outputs {
  constructor(report) {
    this.report = report;
    if (!report.outputs.length) {
      this.elements = [empty("No outputs are known", "A bundle without manifest names none.", null)];
      this.update = () => {};
      return;
    }
    this.output = 0;
    this.chosen = null;
    this.stage = new Stage({
      label: "output, part by part", zoom: "", minimum: 1, margin: { left: 64, right: 16, top: 10, bottom: 34 },
      draw: (context, stage, theme) => this.draw(context, stage, theme),
      describe: (thing) => this.describe(thing),
      activate: (thing) => go({ output: this.output, cell: `${thing.row},${thing.column}`, op: this.report.outputs[this.output].op ?? null, tensor: null }),
    });
    const has = (list) => report.run?.[list].length > 0;
    const kinds = [has("checks") ? ["checks", "Error / bound"] : null, has("compares") ? ["compares", "Against given numbers"] : null, ["cores", "Cores"]].filter(Boolean);
    this.kind = kinds[0][0];
    this.kinds = choice("Show", kinds, (key) => { this.kind = key; this.show(); });
    this.choose = select(report.outputs.map((output, place) => [String(place), output.name]), 0, (place) => go({ output: place, cell: null }));
    this.legend = h("div", { class: "row" });
    this.answer = h("div", { class: "answer", role: "status" });
    this.verdict = h("div", { class: "row" });
    this.rowInput = numberInput(0, { min: 0, step: 1 }, () => this.seek());
    this.columnInput = numberInput(0, { min: 0, step: 1 }, () => this.seek());
    const map = h("section", { class: "card is-flex grow chart-card", "aria-label": "Output map" },
      h("div", { class: "card-head" }, field("output", this.choose), this.kinds, field("row", this.rowInput), field("column", this.columnInput), h("span", { class: "grow" }), this.legend), this.answer, this.stage.element);
    this.elements = [this.verdict, map];
  }

  get grid() {
    const output = this.report.outputs[this.output];
    if (this.kind === "cores") return output.grid ?? null;
    return this.report.run[this.kind].find((check) => check.output === this.output)?.map ?? output.grid ?? null;
  }

  get check() {
    return this.kind === "cores" ? null : this.report.run[this.kind].find((check) => check.output === this.output) ?? null;
  }

  update() {
    const wanted = Number(state().output ?? this.report.outputs.findIndex((output) => output.op === findOp(this.report, state().op)));
    const next = this.report.outputs[wanted] ? wanted : this.output;
    this.output = next;
    this.choose.value = String(next);
    this.chosen = /^\d+,\d+$/.test(state().cell ?? "") ? state().cell.split(",").map(Number) : null;
    this.show();
  }

  show() {
    const { grid, report } = this;
    const output = report.outputs[this.output];
    const things = [];
    if (grid) for (let row = 0; row < grid.rows; row += 1) for (let column = 0; column < grid.columns; column += 1) things.push({ x: column, y: row, w: 1, h: 1, row, column, cell: row * grid.columns + column });
    this.stage.setThings(things, { width: grid?.columns ?? 1, height: grid?.rows ?? 1 });
    if (this.chosen && grid) this.stage.focus = things[this.chosen[0] * grid.columns + this.chosen[1]] ?? null;
    this.flat = [output.shape.slice(0, -1).reduce((product, extent) => product * extent, 1), output.shape.at(-1) ?? 1];
    this.rowInput.max = String(this.flat[0] - 1);
    this.columnInput.max = String(this.flat[1] - 1);
    replace(this.legend, this.kind === "cores" ? h("span", { class: "faint", text: "each colour a core; the number stands in the tooltip" }) : [rampLegend("0", "1 × the bound"), ["up to 10 ×", "up to 100 ×", "more"].map((text, step) => h("span", { class: "legend-item legend" }, swatch(BEYOND[step]), h("span", { text })))]);
    this.judge(output);
    this.tell(output);
  }

  judge(output) {
    const { check, report } = this;
    const facts = h("p", { class: "soft", text: `${output.name}: ${shape(output.shape)} ${output.dtype ?? ""}` });
    if (!report.run) {
      replace(this.verdict, pill("not checked"), facts, h("code", { class: "command", text: RECORD }));
      return;
    }
    if (!check) {
      replace(this.verdict, pill("this output was not compared"), facts);
      return;
    }
    const worst = check.worst;
    replace(this.verdict, pill(check.ok ? "within its bounds" : `${plural(check.failed ?? 0, "element")} beyond the bound`, check.ok ? "is-good" : "is-bad"), facts,
      h("p", { class: "soft", text: `largest error ${ratio(Number(check.bound_ratio))} its bound${worst ? `, at [${worst.index.join(", ")}]${worst.core === undefined ? "" : `, made by core ${worst.core}`}: got ${digits(Number(worst.got), 6)}, want ${digits(Number(worst.want), 6)}` : ""}` }));
  }

  seek() {
    const { grid } = this;
    if (!grid) return;
    const cell = [Math.floor(Number(this.rowInput.value) / grid.row_step), Math.floor(Number(this.columnInput.value) / grid.column_step)];
    go({ output: this.output, cell: cell.join(","), op: this.report.outputs[this.output].op ?? null, tensor: null });
  }

  // The host indices of a cell as text: flattened rows, and columns.
  range(grid, row, column) {
    const rows = [row * grid.row_step, Math.min(this.flat[0], (row + 1) * grid.row_step) - 1];
    const columns = [column * grid.column_step, Math.min(this.flat[1], (column + 1) * grid.column_step) - 1];
    const part = ([first, last]) => (first === last ? count(first) : `${count(first)}–${count(last)}`);
    return `rows ${part(rows)}, columns ${part(columns)}`;
  }

  tell(output) {
    const { grid, chosen, report } = this;
    if (!chosen || !grid) {
      replace(this.answer, h("p", { class: "soft", text: grid ? "Select a part of the output: who made it, and how far it is from its bound." : "Nothing says which core made which part." }));
      return;
    }
    const [row, column] = chosen;
    const cell = row * grid.columns + column;
    const core = grid.cores?.[cell];
    const error = grid.ratio?.[cell];
    replace(this.answer, h("p", {}, h("strong", { text: `${output.name}, ${this.range(grid, row, column)}: ` }),
      output.op === undefined ? "an input, passed on" : ["made by ", opLink(report, output.op)], core === undefined || core < 0 ? "" : ` on core ${core}`,
      error === undefined ? "" : `; largest error ${ratio(Number(error))} its bound${grid.worst?.[cell] ? ` at row ${count(grid.worst[cell][0])}, column ${count(grid.worst[cell][1])}` : ""}`));
  }

  describe({ row, column, cell }) {
    const { grid, report } = this;
    const output = report.outputs[this.output];
    const core = grid.cores?.[cell];
    return {
      title: `${output.name}: ${this.range(grid, row, column)}`,
      lines: [...(grid.ratio ? [["error / bound", ratio(Number(grid.ratio[cell]))]] : []), ["core", core === undefined || core < 0 ? "not known" : String(core)], ...(output.op === undefined ? [] : [["made by", `${output.op} ${report.ops[output.op].op}`]])],
    };
  }

  draw(context, stage, theme) {
    const { grid } = this;
    context.font = font(11);
    context.textAlign = "center";
    if (!grid) {
      context.fillStyle = theme.inkFaint;
      context.fillText("no map is known", stage.width / 2, stage.height / 2);
      return;
    }
    for (const thing of stage.things) {
      const value = grid.ratio ? Number(grid.ratio[thing.cell]) : null;
      const core = grid.cores?.[thing.cell] ?? -1;
      context.fillStyle = value !== null ? (Number.isNaN(value) || value > 1 ? beyond(value) : ramp(value)) : core < 0 ? theme.surface2 : kind(core);
      if (value === null && core >= 0) context.globalAlpha = 0.35 + 0.5 * ((Math.floor(core / 8) % 4) / 3);
      const [x, y] = [stage.sx(thing.x), stage.sy(thing.y)];
      context.fillRect(x, y, stage.view.kx + 0.5, stage.view.ky + 0.5);
      context.globalAlpha = 1;
    }
    if (grid.cores?.length) this.borders(context, stage, theme, grid);
    if (this.chosen) {
      context.lineWidth = 3;
      context.strokeStyle = theme.focus;
      context.strokeRect(stage.sx(this.chosen[1]), stage.sy(this.chosen[0]), stage.view.kx, stage.view.ky);
    }
    context.fillStyle = theme.inkFaint;
    const base = stage.height - stage.margin.bottom;
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const [column, row] = [Math.min(grid.columns - 1, Math.round(share * grid.columns)), Math.min(grid.rows - 1, Math.round(share * grid.rows))];
      context.textAlign = share === 1 ? "right" : share === 0 ? "left" : "center";
      context.fillText(count(Math.min(this.flat[1] - 1, column * grid.column_step)), stage.sx(share * grid.columns), base + 12);
      context.textAlign = "right";
      if (grid.rows > 4 || share === 0) context.fillText(count(Math.min(this.flat[0] - 1, row * grid.row_step)), stage.margin.left - 8, stage.sy(share * grid.rows) + (share === 0 ? 6 : share === 1 ? -6 : 0));
    }
    context.textAlign = "center";
    context.fillText("column of the output", stage.sx(grid.columns / 2), base + 25);
  }

  // Lines where the core changes.
  borders(context, stage, theme, grid) {
    context.strokeStyle = theme.ink;
    context.globalAlpha = 0.35;
    context.lineWidth = 1;
    context.beginPath();
    for (const { row, column, cell } of stage.things) {
      if (column + 1 < grid.columns && grid.cores[cell] !== grid.cores[cell + 1]) {
        context.moveTo(stage.sx(column + 1), stage.sy(row));
        context.lineTo(stage.sx(column + 1), stage.sy(row + 1));
      }
      if (row + 1 < grid.rows && grid.cores[cell] !== grid.cores[cell + grid.columns]) {
        context.moveTo(stage.sx(column), stage.sy(row + 1));
        context.lineTo(stage.sx(column + 1), stage.sy(row + 1));
      }
    }
    context.stroke();
    context.globalAlpha = 1;
  }
}

function swatch(colour) {
  const made = h("span", { class: "swatch", "aria-hidden": "true" });
  made.style.backgroundColor = colour;
  return made;
}

class Bisect {
  constructor(report) {
    this.update = () => {};
    const found = report.run?.bisect;
    if (!found) {
      this.elements = [empty("No bisection was recorded", "It compares every value as it is stored, and names the first operation that is wrong by itself.", "spyrec run BUNDLE --bisect --record RUN.json")];
      return;
    }
    const worst = found.worst;
    const facts = definition([
      ["compared", `${count(found.compared)} of ${plural(found.total, "operation")}`],
      ["nearest to its bound", found.worst_ratio === undefined ? null : h("span", {}, `${ratio(Number(found.worst_ratio))}${found.worst_op === undefined ? "" : " at "}`, found.worst_op === undefined ? "" : opLink(report, found.worst_op))],
      ["what is wrong", found.guilt === undefined ? null : (GUILT[found.guilt] ?? found.guilt)],
      ["operation", found.op === undefined ? null : opLink(report, found.op)],
      ["value", found.tensor !== undefined ? tensorLink(report, found.tensor) : found.tensor_name],
      ["node", found.node],
      ["stands at", found.location],
      ["error", found.error === undefined ? null : `${digits(Number(found.error), 4)}, bound ${digits(Number(found.bound), 4)}`],
      ["elements", found.failed ? `${count(found.failed)} of ${count(found.elements ?? 0)} wrong (${percent(found.failed / Math.max(1, found.elements ?? found.failed))})` : null],
      ["in round", found.iteration?.length ? `[${found.iteration.join(", ")}]` : null],
      ["worst element", worst ? `[${worst.index.join(", ")}], core ${worst.core ?? "not known"}: got ${digits(Number(worst.got), 6)}, want ${digits(Number(worst.want), 6)}` : null],
    ]);
    this.elements = [card("Bisect", "every value against float64, in the order of execution", cardBody(h("div", { class: "stack" }, h("div", {}, pill(found.ok ? "nothing is wrong" : OF_OPERATION.includes(found.guilt) ? "an operation is wrong" : "no operation is wrong, something else is", found.ok ? "is-good" : "is-bad")), facts)))];
  }
}

class Findings {
  constructor(report) {
    this.report = report;
    const run = report.run;
    if (!run?.findings.length) {
      this.update = () => {};
      this.elements = [run ? empty("No findings", "The recorded run has none: either it was not watched, or nothing was to be found.", "spyrec run BUNDLE --sanitize all --record RUN.json") : empty("No run was recorded", "Sanitizers watch a run: bounds, memory that nobody wrote, races.", "spyrec run BUNDLE --sanitize all --record RUN.json")];
      return;
    }
    this.detail = h("div", { class: "stack" });
    this.table = new Table({
      label: "findings of sanitizers", rows: run.findings,
      columns: [
        { key: "sanitizer", title: "sanitizer", width: "7rem", value: (item) => item.sanitizer },
        { key: "message", title: "what", width: "minmax(14rem, 3fr)", value: (item) => item.message },
        { key: "op", title: "op", width: "minmax(8rem, 1fr)", value: (item) => item.op ?? null, text: (item) => (item.op === undefined ? "–" : `${item.op} ${report.ops[item.op].op}`) },
        { key: "core", title: "core", width: "4rem", numeric: true, value: (item) => item.core ?? null },
        { key: "address", title: "address", width: "8rem", numeric: true, value: (item) => item.address ?? null, text: (item) => address(item.address) },
      ],
      activate: (item) => go({ finding: item.id, op: item.op ?? null, tensor: null }),
      chosen: (item) => String(item.id) === state().finding,
    });
    const list = card("Findings", plural(run.findings.length, "finding"), this.table.element);
    list.classList.add("grow", "fill-table");
    this.elements = [list, this.detail];
  }

  update() {
    this.table.refresh();
    const finding = this.report.run.findings[Number(state().finding ?? 0)];
    if (!finding) return;
    replace(this.detail, card(`${finding.sanitizer}: where it is`, finding.message, cardBody(definition([
      ["operation", finding.op === undefined ? null : opLink(this.report, finding.op)],
      ["core", finding.core], ["tensor", finding.tensor === undefined ? null : tensorLink(this.report, finding.tensor)], ["operand", finding.operand],
      ["address", finding.address === undefined ? null : address(finding.address)], ["element", finding.element ? `[${finding.element.join(", ")}]` : null],
      ["device coordinate", finding.device ? `[${finding.device.join(", ")}]` : null], ["in round", finding.iteration?.length ? `[${finding.iteration.join(", ")}]` : null],
      ["field", finding.field], ["comes from", finding.provenance],
    ]), finding.details.map((line) => h("p", { class: "soft", text: line })))));
  }
}
