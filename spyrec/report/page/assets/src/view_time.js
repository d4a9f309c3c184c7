// Time: what is the roof of each operation, and what every core and engine does at any moment.

import { kind, withAlpha } from "./colours.js";
import { empty, h, replace } from "./dom.js";
import { bytes, count, digits, micros, microsWithin, percent } from "./format.js";
import { coreText, findOp, hasCore, opTitle } from "./model.js";
import { card, field, legend, numberInput, opLink, pill } from "./parts.js";
import { doingAt } from "./schedule.js";
import { cut, font, Stage, ticks } from "./stage.js";
import { go, state } from "./state.js";
import { Table } from "./table.js";
import { tabs } from "./tabs.js";

const TABS = [{ key: "timeline", title: "Timeline" }, { key: "roofline", title: "Roofline" }];
const LIMIT_COLOUR = { memory: kind(0), compute: kind(5), ring: kind(2) };
const WAIT_WORDS = { start: "the launch of the operation", operands: "operands from device memory", compute: "the compute engine", ring: "partial sums of other cores", store: "results to be stored", "other cores": "other cores" };

export function timeView(context) {
  return new TimeView(context);
}

class TimeView {
  constructor({ report, schedule }) {
    Object.assign(this, { report, schedule });
    this.tabs = tabs("time", TABS, (key) => go({ tab: key === "timeline" ? null : key }), "subtabs");
    this.about = h("p", { class: "view-note", text: this.origin() });
    this.made = new Map();
    this.element = h("div", { class: "view is-full" }, h("div", { class: "view-head" }, this.tabs.bar, this.about), this.tabs.panel);
    this.tabs.panel.classList.add("grow", "stack");
  }

  origin() {
    const { time, totals } = this.report;
    const from = { run: "as a recorded run executed it", predicted: "predicted, every loop with its most rounds" }[time.from];
    return from ? `${microsWithin(time.us || totals.us, totals.uncertainty)}, ${from}; all times are simulated` : "";
  }

  update() {
    const tab = state().tab === "roofline" ? "roofline" : "timeline";
    this.tabs.select(tab);
    if (!this.made.has(tab)) this.made.set(tab, tab === "roofline" ? new Roofline(this.report) : new Timeline(this.report, this.schedule));
    const part = this.made.get(tab);
    if (this.shown !== part) replace(this.tabs.panel, part.elements);
    this.shown = part;
    part.update();
  }
}

class Roofline {
  constructor(report) {
    this.report = report;
    const { roof } = report.time;
    this.rows = report.ops.filter((op) => op.us > 0);
    this.table = new Table({
      label: "limits of operations", rows: this.rows, sort: { key: "us", down: true },
      columns: [
        { key: "id", title: "op", width: "3.5rem", numeric: true, value: (op) => op.id },
        { key: "op", title: "function", width: "8rem", value: (op) => op.op },
        { key: "name", title: "writes", width: "minmax(8rem, 2fr)", value: (op) => op.name },
        { key: "us", title: "time", width: "9rem", numeric: true, value: (op) => op.us, text: (op) => microsWithin(op.us, op.uncertainty) },
        { key: "limit", title: "limited by", width: "7rem", value: (op) => op.limit ?? "–", colour: (op) => LIMIT_COLOUR[op.limit] ?? "#8a94a3" },
        { key: "intensity", title: "flop/B", width: "6rem", numeric: true, value: (op) => op.flops_per_byte ?? null, text: (op) => (op.flops_per_byte === undefined ? "no bytes" : digits(op.flops_per_byte)) },
        { key: "ridge", title: "ridge", width: "5rem", numeric: true, value: (op) => op.ridge ?? null, text: (op) => (op.ridge === undefined ? "–" : digits(op.ridge)), tip: "flops per byte from which compute is the roof" },
        { key: "peak", title: "of peak", width: "6rem", numeric: true, value: (op) => op.utilisation ?? null, text: (op) => (op.utilisation === undefined ? "–" : percent(op.utilisation)), bar: (op) => op.utilisation ?? 0 },
      ],
      activate: (op) => go({ op: op.id, tensor: null }),
      chosen: (op) => op.id === findOp(report, state().op),
    });
    const points = this.rows.filter((op) => op.flops > 0 && op.flops_per_byte > 0);
    const tableCard = card("Limits", "select an operation", this.table.element);
    tableCard.classList.add("grow", "fill-table");
    if (!roof || !points.length) {
      this.elements = [card("Roofline", null, empty("No roof can be drawn", "The report knows no operation with both arithmetic and device memory traffic.", null)), tableCard];
      return;
    }
    this.roof = roof;
    this.frame(points);
    this.stage = new Stage({
      label: "roofline", zoom: "", height: 320, minimum: 10, margin: { left: 92, right: 24, top: 14, bottom: 44 },
      draw: (context, stage, theme) => this.draw(context, stage, theme),
      describe: ({ op }) => ({
        title: opTitle(report, op.id),
        lines: [["intensity", `${digits(op.flops_per_byte)} flop/B`], ["reached", rate(op.flops / op.us)], ["time", microsWithin(op.us, op.uncertainty)], ["limited by", op.limit ?? "–"], ["of its peak", op.utilisation === undefined ? "–" : percent(op.utilisation)]],
      }),
      activate: ({ op }) => go({ op: op.id, tensor: null }),
    });
    const most = Math.max(...points.map((op) => op.us));
    const things = points.map((op) => {
      const size = 0.1 + 0.16 * Math.sqrt(op.us / most);
      return { x: this.x(op.flops_per_byte) - size / 2, y: this.y(op.flops / op.us) - size / 2, w: size, h: size, op };
    }).sort((one, other) => other.op.us - one.op.us);
    this.stage.setThings(things, { width: this.span[0], height: this.span[1] });
    const chart = h("section", { class: "card is-fixed", "aria-label": "Roofline" }, h("div", { class: "card-head" }, h("h2", { text: "Roofline" }), h("p", { text: "an operation's arithmetic per byte, and what it reaches; larger is longer" }), legend(Object.entries(LIMIT_COLOUR).map(([name, colour]) => [colour, `limited by ${name}`]))), this.stage.element);
    this.elements = [chart, tableCard];
  }

  frame(points) {
    const { roof } = this;
    const peaks = Object.entries(roof.flops_per_us ?? {}).filter(([, value]) => value > 0);
    const xs = [...points.map((op) => op.flops_per_byte), ...peaks.map(([, value]) => value / roof.bytes_per_us)];
    const ys = [...points.map((op) => op.flops / op.us), ...peaks.map(([, value]) => value)];
    this.low = [Math.floor(Math.log10(Math.min(...xs)) - 0.3), Math.floor(Math.log10(Math.min(...ys)) - 0.2)];
    this.high = [Math.log10(Math.max(...xs)) + 0.6, Math.log10(Math.max(...ys)) + 0.6];
    this.span = [this.high[0] - this.low[0], this.high[1] - this.low[1]];
    this.peaks = peaks;
  }

  x(value) {
    return Math.log10(value) - this.low[0];
  }

  y(value) {
    return this.high[1] - Math.log10(value);
  }

  draw(context, stage, theme) {
    const { left, top, right, bottom } = stage.margin;
    context.font = font(11);
    context.lineWidth = 1;
    for (let power = this.low[0]; power <= this.high[0]; power += 1) {
      const x = stage.sx(power - this.low[0]);
      line(context, x, top, x, stage.height - bottom, theme.line);
      context.textAlign = "center";
      context.fillStyle = theme.inkFaint;
      context.fillText(digits(10 ** power), x, stage.height - bottom + 14);
    }
    for (let power = this.low[1]; power <= this.high[1]; power += 1) {
      const y = stage.sy(this.high[1] - power);
      line(context, left, y, stage.width - right, y, theme.line);
      context.textAlign = "right";
      context.fillStyle = theme.inkFaint;
      context.fillText(rate(10 ** power), left - 8, y);
    }
    context.textAlign = "center";
    context.fillText("flops per byte of device memory", (left + stage.width - right) / 2, stage.height - 12);
    stage.clip(context);
    const highest = Math.max(...this.peaks.map(([, value]) => value), 1);
    const ridge = highest / this.roof.bytes_per_us;
    context.lineWidth = 2;
    const [x0, x1] = [10 ** this.low[0], ridge];
    line(context, stage.sx(this.x(x0)), stage.sy(this.y(x0 * this.roof.bytes_per_us)), stage.sx(this.x(x1)), stage.sy(this.y(highest)), theme.inkSoft);
    for (const [unit, value] of this.peaks) {
      const y = stage.sy(this.y(value));
      const from = stage.sx(this.x(value / this.roof.bytes_per_us));
      line(context, from, y, stage.width - right, y, theme.inkSoft);
      context.textAlign = "right";
      context.fillStyle = theme.inkSoft;
      context.font = font(11, 600);
      context.fillText(`${unit.toUpperCase()} ${rate(value)}`, stage.width - right - 6, y - 9);
    }
    context.textAlign = "left";
    context.save();
    context.translate(stage.sx(this.x(x0 * 1.4)), stage.sy(this.y(x0 * 1.4 * this.roof.bytes_per_us)));
    context.rotate(Math.atan2(-stage.view.ky, stage.view.kx));
    context.fillText(`device memory ${bytes(this.roof.bytes_per_us * 1e6)}/s`, 4, -9);
    context.restore();
    const chosen = findOp(this.report, state().op);
    for (const thing of stage.things) {
      const colour = LIMIT_COLOUR[thing.op.limit] ?? "#8a94a3";
      const radius = Math.max(4, (thing.w * stage.view.kx) / 4);
      context.beginPath();
      context.arc(stage.sx(thing.x + thing.w / 2), stage.sy(thing.y + thing.h / 2), radius, 0, 7);
      context.fillStyle = withAlpha(colour, 0.7);
      context.fill();
      context.lineWidth = thing.op.id === chosen ? 3 : 1;
      context.strokeStyle = thing.op.id === chosen ? theme.focus : theme.surface;
      context.stroke();
    }
    context.restore();
  }

  update() {
    this.table.refresh();
    const op = findOp(this.report, state().op);
    if (op !== null) this.table.reveal((row) => row.id === op);
    this.stage?.draw();
  }
}

function rate(perMicro) {
  const value = perMicro * 1e6;
  for (const [unit, factor] of [["Pflop/s", 1e15], ["Tflop/s", 1e12], ["Gflop/s", 1e9], ["Mflop/s", 1e6]]) if (value >= factor) return `${digits(value / factor)} ${unit}`;
  return `${digits(value)} flop/s`;
}

function line(context, x0, y0, x1, y1, colour) {
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

const OPEN = 24;
const OPS_LANE = 26;

class Timeline {
  constructor(report, schedule) {
    Object.assign(this, { report, schedule });
    if (!schedule.us) {
      this.elements = [empty("No timeline is known", "Without a schedule of the run nothing says what happens when.", "spyrec run BUNDLE --record RUN.json")];
      this.update = () => {};
      return;
    }
    const { engines } = report.time;
    this.cores = report.bundle.cores;
    this.row = this.cores > 16 ? 10 : 18;
    this.height = OPS_LANE + this.cores * this.row + engines.length * OPEN + 22;
    this.stage = new Stage({
      label: "timeline of cores and engines", zoom: "x", height: this.height + 36, margin: { left: 92, right: 16, top: 8, bottom: 28 },
      draw: (context, stage, theme) => this.draw(context, stage, theme),
      describe: (thing) => this.describe(thing),
      activate: (thing) => this.choose(thing),
      find: (x, _, screenX, screenY) => this.find(x, screenX, screenY),
    });
    this.stage.next = (direction) => this.next(direction);
    this.coreInput = numberInput(0, { min: 0, max: this.cores - 1, step: 1 }, (core) => this.seek(core, Number(this.atInput.value)));
    this.atInput = numberInput(0, { min: 0, max: Math.ceil(schedule.us) }, (at) => this.seek(Number(this.coreInput.value), at));
    this.answer = h("div", { class: "answer", role: "status" });
    const colours = engines.map((name, number) => [kind(number), name]);
    this.elements = [h("section", { class: "card is-flex grow timeline-card", "aria-label": "Timeline" },
      h("div", { class: "card-head" }, field("core", this.coreInput), field("at µs", this.atInput), h("span", { class: "grow" }), legend([...colours, ["#8a94a3", "waits"]]), this.stage.bar),
      this.answer, h("div", { class: "timeline-scroll grow" }, this.stage.element))];
  }

  seek(core, at) {
    const found = this.schedule.at(Math.max(0, Math.min(this.schedule.us * (1 - 1e-12), at)));
    go({ core, at: digits(at, 9), op: found?.op ?? null, tensor: null });
  }

  get core() {
    const core = Number(state().core ?? 0);
    return Number.isInteger(core) && core >= 0 && core < this.cores ? core : 0;
  }

  update() {
    const { core } = this;
    const op = findOp(this.report, state().op);
    let at = state().at === undefined ? null : Number(state().at);
    const execution = at === null || Number.isNaN(at) ? null : this.schedule.at(at);
    if (op !== null && execution?.op !== op) {
      const start = this.schedule.startOf(op);
      at = start === null ? at : start + (this.pattern(op)?.us ?? 0) / 2;
    }
    this.moment = at;
    this.coreInput.value = String(core);
    this.atInput.value = at === null ? "" : digits(at, 6).replaceAll(",", "");
    this.tell(core, at);
    const found = at === null ? null : this.schedule.at(at);
    if (found) {
      const thing = { x: found.start, w: found.us, y: 0, h: 1, execution: found, core, engine: null };
      const [left, right] = [this.stage.sx(found.start), this.stage.sx(found.start + found.us)];
      if (this.stage.width && (right < this.stage.margin.left || left > this.stage.width - 16)) this.stage.reveal(thing);
      this.stage.focus = this.thing(found, core, null);
    }
    if (this.stage.content.width !== this.schedule.us) this.stage.setThings([this.thing(this.schedule.at(0), 0, null)].filter(Boolean), { width: this.schedule.us, height: this.height });
    this.stage.draw();
  }

  pattern(op) {
    return this.report.time.patterns[this.report.ops[op].pattern];
  }

  tell(core, at) {
    const { report } = this;
    if (at === null) {
      replace(this.answer, h("p", { class: "soft", text: "Select a place in the timeline, or give a core and a time: what the core's engines do then is told here." }));
      return;
    }
    const found = this.schedule.at(at);
    if (!found) {
      replace(this.answer, h("p", { text: `At ${micros(at)} nothing runs: the run takes ${micros(this.schedule.us)}.` }));
      return;
    }
    const rounds = found.rounds.map(({ loop, round, count: rounds_ }) => `round ${count(round + 1)} of ${count(rounds_)} of ${report.loops[loop].name}`).join(", ");
    const doing = doingAt(report, found.op, core, at - found.start, hasCore);
    const lead = h("p", {}, h("strong", { text: `Core ${core} at ${micros(at)}: ` }), doing ? "" : "no share in ", opLink(report, found.op), ` (${micros(found.start)} to ${micros(found.start + found.us)}${rounds ? `, ${rounds}` : ""})`);
    const engines = doing ? h("div", { class: "row" }, doing.map(({ engine, doing: what, why }) =>
      pill(what === "works" ? `${engine} works` : what === "waits" ? `${engine} waits for ${WAIT_WORDS[why] ?? why}` : `${engine} has nothing to do`, what === "works" ? "is-good" : ""))) : h("p", { class: "soft", text: "It takes no part in this operation." });
    replace(this.answer, lead, engines);
  }

  thing(execution, core, engine) {
    if (!execution) return null;
    const y = engine === null ? OPS_LANE + core * this.row : OPS_LANE + this.cores * this.row + 22 + engine * OPEN;
    return { x: execution.start, w: execution.us, y, h: engine === null ? this.row : OPEN, execution, core, engine };
  }

  find(x, screenX, screenY) {
    const execution = screenX < this.stage.margin.left ? null : this.schedule.at(x);
    if (!execution) return null;
    const y = screenY - this.stage.margin.top;
    if (y < 0) return null;
    if (y < OPS_LANE) return { ...this.thing(execution, this.core, null), y: 0, h: OPS_LANE, isOp: true, at: x };
    const core = Math.floor((y - OPS_LANE) / this.row);
    if (core < this.cores) return { ...this.thing(execution, core, null), at: x };
    const engine = Math.floor((y - OPS_LANE - this.cores * this.row - 22) / OPEN);
    return engine >= 0 && engine < this.report.time.engines.length ? { ...this.thing(execution, this.core, engine), at: x } : null;
  }

  next([dx, dy]) {
    const { execution, core } = this.stage.focus;
    if (dy) return this.thing(execution, Math.max(0, Math.min(this.cores - 1, core + dy)), null);
    const at = dx > 0 ? execution.start + execution.us * (1 + 1e-9) + 1e-9 : execution.start - 1e-6;
    return this.thing(this.schedule.at(Math.max(0, at)), core, null) ?? this.stage.focus;
  }

  choose(thing) {
    const at = thing.at ?? thing.execution.start + thing.execution.us / 2;
    go({ core: thing.core, at: digits(at, 9).replaceAll(",", ""), op: thing.execution.op, tensor: null });
  }

  describe(thing) {
    const { report } = this;
    const { execution, core } = thing;
    const op = report.ops[execution.op];
    const at = thing.at ?? execution.start + execution.us / 2;
    const doing = thing.isOp ? null : doingAt(report, execution.op, core, at - execution.start, hasCore);
    const lines = [["from", micros(execution.start)], ["takes", microsWithin(execution.us, op.uncertainty)], ...execution.rounds.map(({ loop, round, count: rounds }) => [report.loops[loop].name, `round ${count(round + 1)} of ${count(rounds)}`])];
    if (thing.isOp) return { title: opTitle(report, op.id), lines: [...lines, ["limited by", op.limit ?? "–"], ["cores", coreText(op.cores)]] };
    if (!doing) return { title: `core ${core}: no share`, lines: [[`op ${op.id}`, `${op.op} → ${op.name}`], ...lines] };
    const said = doing.filter(({ doing: what, engine }) => what !== "idle" || engine === report.time.engines[thing.engine]).map(({ engine, doing: what, why }) => [engine, what === "waits" ? `waits for ${WAIT_WORDS[why] ?? why}` : what === "idle" ? "nothing to do" : "works"]);
    return { title: `core ${core} at ${micros(at)}: ${op.op} → ${op.name}`, lines: [...lines, ...said] };
  }

  draw(context, stage, theme) {
    const { report, schedule } = this;
    const { left, right, top } = stage.margin;
    const lanes = top + OPS_LANE + this.cores * this.row;
    this.rows(context, stage, theme, lanes);
    const [from, to] = [stage.wx(left), stage.wx(stage.width - right)];
    const chosen = findOp(report, state().op);
    stage.clip(context);
    const runs = [];
    schedule.walk(from, to, 1.2 / stage.view.kx, (execution) => runs.push(execution), (start, us, step) => this.block(context, stage, theme, start, us, step));
    for (const execution of runs) this.execution(context, stage, theme, execution, chosen);
    if (this.moment !== null && this.moment !== undefined) {
      const x = stage.sx(this.moment);
      context.lineWidth = 2;
      line(context, x, top, x, stage.height - stage.margin.bottom, theme.focus);
      context.strokeStyle = theme.focus;
      context.strokeRect(left + 1, top + OPS_LANE + this.core * this.row, stage.width - left - right - 2, this.row);
    }
    context.restore();
    this.axis(context, stage, theme, from, to);
  }

  rows(context, stage, theme, lanes) {
    const { left, right, top } = stage.margin;
    context.textAlign = "right";
    context.font = font(10);
    const every = this.row < 13 ? 4 : 1;
    context.fillStyle = theme.inkSoft;
    context.fillText("operations", left - 8, top + OPS_LANE / 2);
    for (let core = 0; core < this.cores; core += 1) {
      const y = top + OPS_LANE + core * this.row;
      if (core % 2 === 0) {
        context.fillStyle = theme.surface2;
        context.fillRect(left, y, stage.width - left - right, this.row);
      }
      const isChosen = core === this.core;
      context.fillStyle = isChosen ? theme.focus : theme.inkFaint;
      context.font = font(10, isChosen ? 700 : 400);
      const nearChosen = Math.abs(core - this.core) * this.row < 10;
      if (isChosen || (core % every === 0 && !nearChosen)) context.fillText(`core ${core}`, left - 8, y + this.row / 2);
    }
    context.textAlign = "left";
    context.font = font(11, 600);
    context.fillStyle = theme.ink;
    context.fillText(`engines of core ${this.core}`, left, lanes + 11);
    context.font = font(11);
    context.textAlign = "right";
    this.report.time.engines.forEach((name, number) => {
      const y = lanes + 22 + number * OPEN;
      context.fillStyle = theme.surface2;
      context.fillRect(left, y + 2, stage.width - left - right, OPEN - 4);
      context.fillStyle = theme.inkSoft;
      context.fillText(name, left - 8, y + OPEN / 2);
    });
  }

  axis(context, stage, theme, from, to) {
    const { left, right } = stage.margin;
    context.font = font(11);
    context.textAlign = "center";
    context.fillStyle = theme.inkFaint;
    const y = stage.height - stage.margin.bottom;
    for (const value of ticks(Math.max(0, from), Math.min(this.schedule.us, to), Math.max(2, (stage.width - left - right) / 100))) {
      const x = stage.sx(value);
      if (x < left || x > stage.width - right - 12) continue;
      line(context, x, y, x, y + 5, theme.lineStrong);
      context.fillText(micros(value), x, y + 15);
    }
  }

  block(context, stage, theme, start, us, step) {
    const [x, w] = [stage.sx(start), Math.max(1, us * stage.view.kx)];
    const top = stage.margin.top;
    context.fillStyle = withAlpha(kind(4), 0.45);
    context.fillRect(x, top + 3, w, OPS_LANE - 6);
    context.fillStyle = withAlpha(kind(7), 0.35);
    context.fillRect(x, top + OPS_LANE, w, this.cores * this.row);
    const title = step.loop === undefined ? "" : `↻ ${this.report.loops[step.loop].name} × ${count(step.count)}`;
    if (w > 40 && title) {
      context.fillStyle = theme.ink;
      context.font = font(11);
      context.textAlign = "left";
      context.fillText(cut(context, title, w - 8), Math.max(x, stage.margin.left) + 4, top + OPS_LANE / 2);
    }
  }

  execution(context, stage, theme, { op, start, us }, chosen) {
    const pattern = this.pattern(op);
    const { top, left } = stage.margin;
    const [x, w] = [stage.sx(start), us * stage.view.kx];
    const record = this.report.ops[op];
    context.fillStyle = op === chosen ? theme.focus : LIMIT_COLOUR[record.limit] ?? "#8a94a3";
    context.globalAlpha = op === chosen ? 1 : 0.25 + 0.25 * (op % 2);
    context.fillRect(x, top + 3, Math.max(1, w - (w > 4 ? 1 : 0)), OPS_LANE - 6);
    context.globalAlpha = 1;
    if (w > 34) {
      context.font = font(11, op === chosen ? 600 : 400);
      context.textAlign = "left";
      context.fillStyle = op === chosen ? theme.page : theme.ink;
      const shown = Math.max(x, left);
      context.fillText(cut(context, `${record.op} → ${record.name}`, Math.min(x + w, stage.width) - shown - 8), shown + 4, top + OPS_LANE / 2);
    }
    for (const group of pattern?.groups ?? []) {
      for (const [first, past] of group.cores) {
        const y = top + OPS_LANE + first * this.row;
        this.group(context, stage, group, x, y, past - first, w);
        if (first <= this.core && this.core < past) this.engines(context, stage, theme, group, start, top + OPS_LANE + this.cores * this.row + 22);
      }
    }
  }

  // All cores of a group at once: each engine is a thin band of each row.
  group(context, stage, group, x, y, cores, w) {
    const bands = this.report.time.engines.length;
    const band = (this.row - 1) / bands;
    if (w < 3) {
      const longest = (group.spans ?? []).reduce((most, span) => (span[2] - span[1] > most[2] - most[1] ? span : most), [7, 0, 0]);
      context.fillStyle = withAlpha(kind(longest[0]), 0.6);
      context.fillRect(x, y, Math.max(1, w), cores * this.row - 1);
      return;
    }
    for (const [engine, first, last] of group.spans ?? []) {
      const [from, width] = [x + first * stage.view.kx, Math.max(0.8, (last - first) * stage.view.kx)];
      context.fillStyle = kind(engine);
      for (let core = 0; core < cores; core += 1) context.fillRect(from, y + core * this.row + engine * band, width, Math.max(1, band - 0.2));
    }
  }

  engines(context, stage, theme, group, start, y) {
    for (const [engine, first, last, wait] of group.waits ?? []) {
      const [x, w] = [stage.sx(start + first), (last - first) * stage.view.kx];
      const row = y + engine * OPEN;
      context.fillStyle = withAlpha("#8a94a3", 0.35);
      context.fillRect(x, row + 5, Math.max(0.8, w), OPEN - 10);
      if (w > 44) {
        context.font = font(10);
        context.textAlign = "left";
        context.fillStyle = theme.inkSoft;
        const shown = Math.max(x, stage.margin.left);
        context.fillText(cut(context, `waits: ${this.report.time.waits[wait]}`, Math.min(x + w, stage.width) - shown - 6), shown + 3, row + OPEN / 2);
      }
    }
    for (const [engine, first, last] of group.spans ?? []) {
      const [x, w] = [stage.sx(start + first), (last - first) * stage.view.kx];
      context.fillStyle = kind(engine);
      context.fillRect(x, y + engine * OPEN + 3, Math.max(1, w), OPEN - 6);
    }
  }
}

