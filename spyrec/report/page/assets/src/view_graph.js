// The operations as a graph: who reads what of whom, coloured by what is asked, in frames of modules, programs and loops.

import { kind, ramp, withAlpha } from "./colours.js";
import { empty, h, replace } from "./dom.js";
import { bytes, count, digits, micros, plural, ratio } from "./format.js";
import { layOut } from "./graph_layout.js";
import { errorOf, findOp, findTensor } from "./model.js";
import { legend, rampLegend } from "./parts.js";
import { cut, font, Stage } from "./stage.js";
import { go, state } from "./state.js";
import { choice } from "./tabs.js";

const MOST_OPEN = 220;
const COLOURS = [["time", "Time"], ["bytes", "Bytes"], ["memory", "LX or memory"], ["error", "Error / bound"]];
const UNKNOWN = "#8a94a3";
const IN_LX = kind(2);
const IN_MEMORY = kind(1);

export function graphView(context) {
  return new GraphView(context);
}

class GraphView {
  constructor({ report }) {
    this.report = report;
    this.open = new Set();
    this.by = null;
    this.stage = new Stage({
      label: `graph of ${plural(report.ops.length, "operation")}`, zoom: "xy", minimum: 2,
      draw: (context, stage, theme) => this.draw(context, stage, theme),
      describe: (thing) => this.describe(thing),
      activate: (thing) => this.activate(thing),
    });
    this.legend = h("div", { class: "row" });
    this.errors = report.ops.map((op) => errorOf(report, op.id));
    this.wrong = new Set((report.run?.findings ?? []).map((finding) => finding.op));
    this.most = { us: Math.max(1e-9, ...report.ops.map((op) => op.us)), moved: Math.max(1, ...report.ops.map((op) => op.moved)) };
    const bys = [["module", "Modules"], ["program", "Programs"], ["none", "None"]].filter(([key]) => key !== "module" || report.modules.length);
    const first = report.modules.length ? "module" : "program";
    this.colours = choice("Colour", COLOURS, (key) => go({ colour: key === "time" ? null : key }));
    this.groups = choice("Frames", bys, (key) => go({ by: key === first ? null : key }));
    this.first = first;
    this.element = h("div", { class: "view is-full" },
      h("div", { class: "view-head" }, this.colours, this.groups, h("span", { class: "grow" }), this.legend),
      report.ops.length ? h("div", { class: "card is-flex grow" }, this.stage.element) : empty("No operations", "The bundle has no operation that could be drawn.", null));
  }

  update() {
    const by = state().by ?? this.first;
    const colour = state().colour ?? "time";
    this.colours.mark(colour);
    this.groups.mark(by);
    this.colour = colour;
    const op = findOp(this.report, state().op);
    if (by !== this.by) {
      this.by = by;
      this.open = new Set();
      this.make();
    }
    if (op !== null && !this.places.nodes.has(op)) {
      for (let group = this.groupOf(op); group !== null; group = this.tree.get(group).parent) this.open.add(group);
      this.make();
    }
    replace(this.legend, this.makeLegend());
    if (op !== null && this.things.has(op)) this.stage.reveal(this.things.get(op));
    this.stage.draw();
  }

  makeLegend() {
    if (this.colour === "memory") return legend([[IN_LX, "result in LX"], [IN_MEMORY, "in device memory"]]);
    if (this.colour === "error") return this.report.run ? [rampLegend("0", "1 × the bound"), legend([["#d55e00", "beyond it"], [UNKNOWN, "not compared"]])] : legend([[UNKNOWN, "no run was recorded: spyrec run BUNDLE --check --record RUN.json"]]);
    return this.colour === "bytes" ? rampLegend("0 B", bytes(this.most.moved)) : rampLegend("0 µs", micros(this.most.us));
  }

  // Frames as a tree: of modules or programs, loops inside of programs.
  frames() {
    const { report } = this;
    this.tree = new Map();
    const add = (id, parent, title, loop = false) => this.tree.has(id) || this.tree.set(id, { id, parent, title, loop });
    if (this.by === "module") {
      report.modules.forEach((path, place) => {
        const parent = path.includes(".") ? report.modules.indexOf(path.slice(0, path.lastIndexOf("."))) : -1;
        add(`m${place}`, parent >= 0 ? `m${parent}` : null, path);
      });
    }
    if (this.by === "program" && report.programs.length > 1) report.programs.forEach((program, place) => add(`p${place}`, null, `program ${place} (${program.directory})`));
    if (this.by !== "module") {
      report.loops.forEach((loop, place) => {
        const outer = loop.parent !== undefined && loop.parent !== null ? `l${loop.parent}` : this.tree.has(`p${loop.program}`) ? `p${loop.program}` : null;
        add(`l${place}`, outer, `loop ${loop.name} × ${count(loop.count)}${loop.dim ? ` over ${loop.dim}` : ""}`, true);
      });
    }
    this.members = new Map([...this.tree.keys()].map((id) => [id, []]));
    for (const op of report.ops) for (let id = this.groupOf(op.id); id !== null; id = this.tree.get(id).parent) this.members.get(id).push(op.id);
    for (const [id, ops] of this.members) if (!ops.length) this.tree.delete(id);
    // a frame around nothing but one frame, or around everything, tells nothing: its content takes its place
    for (const [id, frame] of [...this.tree]) {
      const inner = [...this.tree.values()].filter((other) => other.parent === id);
      const isHollow = !frame.loop && inner.length === 1 && this.members.get(inner[0].id).length === this.members.get(id).length;
      if (isHollow || (!frame.loop && this.members.get(id).length === report.ops.length)) {
        for (const other of inner) other.parent = frame.parent;
        if (inner.length || !this.report.ops.some((op) => this.groupOf(op.id) === id)) this.tree.delete(id);
      }
    }
  }

  groupOf(op) {
    const { report, tree } = this;
    const record = report.ops[op];
    if (this.by === "module") {
      let path = record.module === undefined || record.module === null ? null : report.modules[record.module];
      while (path) {
        const id = `m${report.modules.indexOf(path)}`;
        if (tree.has(id)) return id;
        path = path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : null;
      }
      return null;
    }
    if (record.loops.length && tree.has(`l${record.loops.at(-1)}`)) return `l${record.loops.at(-1)}`;
    return tree.has(`p${record.program}`) ? `p${record.program}` : null;
  }

  make() {
    this.frames();
    const { report } = this;
    const isLarge = report.ops.length > MOST_OPEN;
    // the outermost closed frame stands for all that is in it
    const standIn = (op) => {
      let chosen = null;
      if (isLarge) for (let id = this.groupOf(op); id !== null; id = this.tree.get(id).parent) if (!this.open.has(id)) chosen = id;
      return chosen;
    };
    const stands = report.ops.map((op) => standIn(op.id));
    const nodeOf = (op) => stands[op] ?? op;
    const nodes = new Map();
    for (const op of report.ops) {
      const id = nodeOf(op.id);
      if (!nodes.has(id)) nodes.set(id, { id, group: typeof id === "string" ? this.tree.get(id).parent : this.groupOf(op.id) });
    }
    const edges = new Map();
    for (const op of report.ops) {
      for (const operand of op.inputs) {
        if (operand.from === undefined || operand.from === null || operand.from === op.id) continue;
        const [from, to] = [nodeOf(operand.from), nodeOf(op.id)];
        if (from !== to) edges.set(`${from}>${to}`, [from, to, operand.tensor]);
      }
    }
    this.places = layOut([...nodes.values()], [...edges.values()], [...this.tree.values()]);
    this.tensors = new Map([...edges].map(([key, edge]) => [key, edge[2]]));
    this.things = new Map();
    const things = [];
    const frames = [...this.places.groups].map(([id, box]) => ({ ...box, frame: id, isFrame: true })).sort((one, other) => other.w * other.h - one.w * one.h);
    this.frameThings = frames;
    for (const [id, box] of this.places.nodes) {
      const thing = { ...box, id, isGroup: typeof id === "string" };
      this.things.set(id, thing);
      things.push(thing);
    }
    things.sort((one, other) => one.y - other.y || one.x - other.x);
    this.stage.setThings(things, { width: Math.max(1, this.places.width), height: Math.max(1, this.places.height) });
    if (this.places.height > 2400) this.begin(things[0]);
  }

  // A long graph begins at its top, large enough to read.
  begin(first) {
    const start = () => {
      if (!this.stage.width) return requestAnimationFrame(start);
      const scale = Math.min(0.8, Math.max(this.stage.view.kx, (this.stage.width - 40) / this.places.width));
      Object.assign(this.stage.view, { kx: scale, ky: scale, x: this.places.width / 2 - this.stage.width / scale / 2, y: -12 / scale });
      this.stage.isFit = false;
      const op = findOp(this.report, state().op);
      if (op !== null && this.things.has(op)) this.stage.reveal(this.things.get(op));
      else if (first) this.stage.draw();
    };
    requestAnimationFrame(start);
  }

  figure(ids, read) {
    return ids.reduce((sum, id) => sum + read(this.report.ops[id]), 0);
  }

  colourOf(thing) {
    const ids = thing.isGroup ? this.members.get(thing.id) : [thing.id];
    if (this.colour === "bytes") return ramp(Math.max(...ids.map((id) => this.report.ops[id].moved)) / this.most.moved);
    if (this.colour === "memory") return ids.some((id) => this.report.ops[id].outputs.some((operand) => operand.memory !== "lx")) ? IN_MEMORY : IN_LX;
    if (this.colour === "error") {
      const known = ids.map((id) => this.errors[id]).filter((value) => value !== null);
      if (ids.some((id) => this.wrong.has(id))) return "#d55e00";
      return known.length ? (Math.max(...known) > 1 ? "#d55e00" : ramp(Math.max(...known))) : UNKNOWN;
    }
    return ramp(Math.max(...ids.map((id) => this.report.ops[id].us)) / this.most.us);
  }

  describe(thing) {
    if (thing.isGroup) {
      const ids = this.members.get(thing.id);
      return { title: this.tree.get(thing.id).title, lines: [["operations", count(ids.length)], ["time", micros(this.figure(ids, (op) => op.us))], ["moved", bytes(this.figure(ids, (op) => op.moved))], "select to open"] };
    }
    const op = this.report.ops[thing.id];
    const error = this.errors[op.id];
    return {
      title: `${op.id} ${op.op} → ${op.name}`,
      lines: [["time", micros(op.us)], ["moved", bytes(op.moved)], ["lower bound", bytes(op.bound)], ["limited by", op.limit ?? "–"], ["result in", op.outputs.map((operand) => operand.memory).join(", ")],
        ...(error === null ? [] : [["error / bound", ratio(error)]]), ...(op.loops.length ? [["loops", op.loops.map((loop) => `${this.report.loops[loop].name} × ${this.report.loops[loop].count}`).join(", ")]] : [])],
    };
  }

  activate(thing) {
    if (!thing.isGroup) return go({ op: thing.id, tensor: null });
    this.open.add(thing.id);
    const first = this.members.get(thing.id)[0];
    this.make();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const found = this.things.get(first) ?? this.stage.things.find((item) => item.isGroup && this.members.get(item.id).includes(first));
      if (found) {
        this.stage.reveal(found, 0.8);
        this.stage.focus = found;
      }
    }));
    return undefined;
  }

  draw(context, stage, theme) {
    const scale = stage.view.kx;
    const op = findOp(this.report, state().op);
    const tensor = findTensor(this.report, state().tensor);
    for (const frame of this.frameThings) this.drawFrame(context, stage, theme, frame);
    const near = op === null ? null : new Set([op, ...this.report.ops[op].inputs.map((operand) => operand.from)]);
    for (const edge of this.places.edges) this.drawEdge(context, stage, theme, edge, op, tensor);
    for (const thing of stage.things) {
      if (stage.isSeen(thing)) this.drawNode(context, stage, theme, thing, scale, op, near);
    }
  }

  drawFrame(context, stage, theme, frame) {
    if (!stage.isSeen(frame)) return;
    const about = this.tree.get(frame.frame);
    if (!about) return;
    const [x, y, w, h_] = [stage.sx(frame.x), stage.sy(frame.y), frame.w * stage.view.kx, frame.h * stage.view.ky];
    context.fillStyle = about.loop ? withAlpha(kind(4), 0.1) : theme.surface2;
    context.strokeStyle = about.loop ? kind(4) : theme.lineStrong;
    context.globalAlpha = about.loop ? 1 : 0.75;
    context.lineWidth = about.loop ? 1.5 : 1;
    context.setLineDash(about.loop ? [6, 4] : []);
    rounded(context, x, y, w, h_, 8);
    context.fill();
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
    if (w > 60) {
      context.font = font(Math.max(9, Math.min(12, 12 * stage.view.kx + 2)), 600);
      context.textAlign = "left";
      context.fillStyle = theme.inkSoft;
      context.fillText(cut(context, `${about.loop ? "↻ " : ""}${about.title}`, w - 12), x + 7, Math.max(y + 9, stage.margin.top + 10));
    }
  }

  drawEdge(context, stage, theme, edge, op, tensor) {
    const points = edge.points;
    const [top, bottom] = [points[0], points[points.length - 1]];
    if (stage.sy(Math.max(top.y, bottom.y)) < 0 || stage.sy(Math.min(top.y, bottom.y)) > stage.height) return;
    const isNear = op !== null && (edge.from === op || edge.to === op);
    const isTensor = tensor !== null && this.tensors.get(`${edge.from}>${edge.to}`) === tensor;
    context.strokeStyle = isNear || isTensor ? theme.accent : theme.lineStrong;
    context.lineWidth = isNear || isTensor ? 2 : 1;
    context.beginPath();
    context.moveTo(stage.sx(top.x), stage.sy(top.y));
    if (points.length === 2) {
      const middle = (top.y + bottom.y) / 2;
      context.bezierCurveTo(stage.sx(top.x), stage.sy(middle), stage.sx(bottom.x), stage.sy(middle), stage.sx(bottom.x), stage.sy(bottom.y));
    } else {
      for (let place = 1; place < points.length - 1; place += 1) {
        const [here, next] = [points[place], points[place + 1]];
        const end = place === points.length - 2 ? next : { x: (here.x + next.x) / 2, y: (here.y + next.y) / 2 };
        context.quadraticCurveTo(stage.sx(here.x), stage.sy(here.y), stage.sx(end.x), stage.sy(end.y));
      }
    }
    context.stroke();
    if (stage.view.kx > 0.35) arrow(context, stage.sx(bottom.x), stage.sy(bottom.y), context.strokeStyle);
  }

  drawNode(context, stage, theme, thing, scale, op, near) {
    const [x, y, w, h_] = [stage.sx(thing.x), stage.sy(thing.y), thing.w * scale, thing.h * scale];
    const colour = this.colourOf(thing);
    const isChosen = thing.id === op;
    if (h_ < 7) {
      context.fillStyle = isChosen ? theme.focus : colour;
      context.fillRect(x, y, Math.max(2, w), Math.max(2, h_));
      return;
    }
    rounded(context, x, y, w, h_, 6 * Math.min(1, scale));
    context.fillStyle = theme.surface;
    context.fill();
    context.save();
    context.clip();
    context.fillStyle = colour;
    context.fillRect(x, y, Math.max(5, 8 * scale), h_);
    context.restore();
    rounded(context, x, y, w, h_, 6 * Math.min(1, scale));
    context.strokeStyle = isChosen ? theme.focus : near?.has(thing.id) ? theme.accent : stage.hover === thing ? theme.ink : theme.lineStrong;
    context.lineWidth = isChosen ? 3 : near?.has(thing.id) ? 2 : 1;
    context.stroke();
    if (h_ < 12) return;
    const left = x + Math.max(5, 8 * scale) + 7 * scale;
    const size = Math.max(8, Math.min(13, 12 * scale));
    const room = w - (left - x) - 6;
    context.textAlign = "left";
    context.fillStyle = theme.ink;
    context.font = font(size, 600);
    const record = this.report.ops[thing.id];
    const title = thing.isGroup ? this.tree.get(thing.id).title : `${record.op}`;
    if (h_ < 22) {
      context.fillText(cut(context, title, room), left, y + h_ / 2);
      return;
    }
    context.font = font(size - 1);
    const figure = thing.isGroup ? "" : this.short(record);
    const taken = figure ? context.measureText(figure).width + 6 : 0;
    const hasFigure = taken < room * 0.45;
    context.font = font(size, 600);
    context.fillText(cut(context, title, room - (hasFigure ? taken : 0)), left, y + h_ * 0.32);
    context.font = font(size - 1);
    context.fillStyle = theme.inkSoft;
    context.fillText(cut(context, thing.isGroup ? `${plural(this.members.get(thing.id).length, "operation")}, ${this.groupFigure(thing.id)}` : `${record.name}`, room - (thing.isGroup ? 0 : 40 * scale)), left, y + h_ * 0.7);
    if (!thing.isGroup) {
      context.textAlign = "right";
      if (hasFigure) context.fillText(figure, x + w - 6 * scale, y + h_ * 0.32);
      if (record.loops.length && this.by === "module") context.fillText(`↻${this.report.loops[record.loops.at(-1)].count}`, x + w - 6 * scale, y + h_ * 0.7);
      if (this.wrong.has(record.id)) {
        context.fillStyle = theme.bad;
        context.fillText("⚠", x + w - 6 * scale, y + h_ * 0.7);
      }
    }
  }

  groupFigure(id) {
    const ids = this.members.get(id);
    return this.colour === "bytes" ? bytes(this.figure(ids, (op) => op.moved)) : micros(this.figure(ids, (op) => op.us));
  }

  short(op) {
    if (this.colour === "bytes") return bytes(op.moved);
    if (this.colour === "memory") return op.outputs.map((operand) => operand.memory).join(", ");
    if (this.colour === "error") return this.errors[op.id] === null ? "" : `${digits(this.errors[op.id])} ×`;
    return micros(op.us);
  }
}

function arrow(context, x, y, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 4, y - 7);
  context.lineTo(x + 4, y - 7);
  context.fill();
}

export function rounded(context, x, y, w, h_, radius) {
  const most = Math.min(radius, w / 2, h_ / 2);
  context.beginPath();
  context.roundRect(x, y, w, h_, Math.max(0, most));
}

