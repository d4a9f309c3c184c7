// The order of execution as a tree with times: loops are not written out, any moment is found by dividing.

export class Schedule {
  constructor(report) {
    this.report = report;
    const pattern = (op) => report.time.patterns[report.ops[op].pattern];
    const build = (step, start) => {
      if (step.op !== undefined) return { op: step.op, start, us: pattern(step.op)?.us ?? 0 };
      const count = step.loop !== undefined ? Number(step.count) : 1;
      let at = 0;
      const body = (step.body ?? []).map((item) => {
        const made = build(item, at);
        at += made.us;
        return made;
      });
      return { loop: step.loop, program: step.program, count, body, round: at, start, us: at * count };
    };
    let at = 0;
    this.body = report.time.schedule.map((step) => {
      const made = build(step, at);
      at += made.us;
      return made;
    });
    this.us = at;
  }

  // The execution at a moment: {op, start, us, rounds: [{loop, round}], program}; null beyond the end.
  at(moment) {
    let [body, base, inside] = [this.body, 0, moment];
    const rounds = [];
    let program = null;
    for (;;) {
      const item = body.find((step) => inside >= step.start && inside < step.start + step.us);
      if (!item) return null;
      base += item.start;
      inside -= item.start;
      if (item.op !== undefined) return { op: item.op, start: base, us: item.us, rounds, program };
      if (item.program !== undefined) program = item.program;
      const round = Math.min(item.count - 1, Math.floor(inside / item.round));
      if (item.loop !== undefined) rounds.push({ loop: item.loop, round, count: item.count });
      base += round * item.round;
      inside -= round * item.round;
      body = item.body;
    }
  }

  // Calls `execution({op, start, us})` for what is seen between two moments, `block(start, us, step)` for what is too short to be told apart.
  walk(from, to, least, execution, block) {
    const visit = (body, base) => {
      for (const item of body) {
        const start = base + item.start;
        if (start + item.us < from || start > to) continue;
        if (item.op !== undefined) execution({ op: item.op, start, us: item.us });
        else if (item.us < least || (item.count > 1 && item.round < least)) block(start, item.us, item);
        else {
          const first = Math.max(0, Math.floor((from - start) / item.round));
          const last = Math.min(item.count - 1, Math.floor((to - start) / item.round));
          for (let round = first; round <= last; round += 1) visit(item.body, start + round * item.round);
        }
      }
    };
    visit(this.body, 0);
  }

  startOf(op) {
    const seek = (body, base) => {
      for (const item of body) {
        if (item.op === op) return base + item.start;
        if (item.body) {
          const found = seek(item.body, base + item.start);
          if (found !== null) return found;
        }
      }
      return null;
    };
    return seek(this.body, 0);
  }
}

// What each engine of a core does at a moment of an execution: [{engine, doing: "works" | "waits" | "idle", why}].
export function doingAt(report, op, core, moment, covers) {
  const pattern = report.time.patterns[report.ops[op].pattern];
  const group = pattern?.groups.find((item) => covers(item.cores, core));
  if (!group) return null;
  return report.time.engines.map((engine, number) => {
    const span = (group.spans ?? []).find(([of, first, last]) => of === number && first <= moment && moment < last);
    if (span) return { engine, doing: "works", first: span[1], last: span[2] };
    const wait = (group.waits ?? []).find(([of, first, last]) => of === number && first <= moment && moment < last);
    return wait ? { engine, doing: "waits", why: report.time.waits[wait[3]], first: wait[1], last: wait[2] } : { engine, doing: "idle" };
  });
}
