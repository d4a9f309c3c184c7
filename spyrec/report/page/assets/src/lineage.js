// What a line comes from and what came of it: walks over the texts, forward by a table that is made once.

export class Lineage {
  constructor(report) {
    this.texts = report.texts;
    this.children = this.texts.map(() => []);
    for (const text of this.texts) if (text.of !== undefined && text.of !== null) this.children[text.of].push(text.id);
    this.forward = new Map();
  }

  from(text, line) {
    const found = this.texts[text].from[line];
    if (found === null || found === undefined) return [];
    return Array.isArray(found) ? found : [found];
  }

  opsOf(text, line) {
    const found = this.texts[text].ops[line];
    if (found === null || found === undefined) return [];
    return Array.isArray(found) ? found : [found];
  }

  // Lines of a text by the line that they come from.
  linesFrom(text) {
    if (!this.forward.has(text)) {
      const table = new Map();
      this.texts[text].from.forEach((_, line) => {
        for (const parent of this.from(text, line)) {
          if (!table.has(parent)) table.set(parent, []);
          table.get(parent).push(line);
        }
      });
      this.forward.set(text, table);
    }
    return this.forward.get(text);
  }

  // Marks all relatives of lines: a map per text from line to "self", "ancestor" or "descendant".
  relatives(starts) {
    const marks = this.texts.map(() => new Map());
    for (const [text, line] of starts) {
      this.climb(text, [line], marks);
      this.descend(text, [line], marks);
    }
    for (const [text, line] of starts) marks[text].set(line, "self");
    return marks;
  }

  climb(text, lines, marks) {
    let [at, here] = [text, lines];
    while (this.texts[at].of !== undefined && this.texts[at].of !== null && here.length) {
      const parents = [...new Set(here.flatMap((line) => this.from(at, line)))];
      at = this.texts[at].of;
      for (const line of parents) if (!marks[at].has(line)) marks[at].set(line, "ancestor");
      here = parents;
    }
  }

  descend(text, lines, marks) {
    for (const child of this.children[text]) {
      const table = this.linesFrom(child);
      const found = [...new Set(lines.flatMap((line) => table.get(line) ?? []))];
      for (const line of found) if (!marks[child].has(line)) marks[child].set(line, "descendant");
      if (found.length) this.descend(child, found, marks);
    }
  }

  // The lines of products that are about an operation, and of each text that names it.
  linesOfOp(op) {
    if (!this.byOp) {
      this.byOp = new Map();
      for (const text of this.texts) {
        text.ops.forEach((_, line) => {
          for (const id of this.opsOf(text.id, line)) {
            if (!this.byOp.has(id)) this.byOp.set(id, []);
            this.byOp.get(id).push([text.id, line]);
          }
        });
      }
    }
    return this.byOp.get(op) ?? [];
  }

  // The operations of a line, of what came of it, or else of what it comes from directly.
  opsAround(text, line) {
    const found = new Set(this.opsOf(text, line));
    if (!found.size) {
      const marks = this.texts.map(() => new Map());
      this.descend(text, [line], marks);
      marks.forEach((lines, id) => {
        for (const other of lines.keys()) for (const op of this.opsOf(id, other)) found.add(op);
      });
    }
    return [...found].sort((one, other) => one - other);
  }
}
