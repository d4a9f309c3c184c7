// Where the nodes of the graph stand: dagre for what people can read at once, layers in a grid for what they cannot.

const NODE = { width: 168, height: 40 };
const GAP = { across: 24, down: 40 };
const MOST_FOR_DAGRE = 260;

// `nodes`: [{id, group}], `edges`: [[from, to]], `groups`: [{id, parent, title}]. Returns {nodes: Map id -> {x, y, w, h}, groups: Map, edges, width, height}.
export function layOut(nodes, edges, groups) {
  return nodes.length <= MOST_FOR_DAGRE ? byDagre(nodes, edges, groups) : byLayers(nodes, edges, groups);
}

function byDagre(nodes, edges, groups) {
  const graph = new dagre.graphlib.Graph({ compound: true });
  graph.setGraph({ ranksep: GAP.down, nodesep: GAP.across, marginx: 16, marginy: 16, ranker: nodes.length > 120 ? "longest-path" : "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  const used = new Set(nodes.map((node) => node.group).filter((group) => group !== null));
  const byId = new Map(groups.map((group) => [group.id, group]));
  for (const id of [...used]) for (let at = byId.get(id); at; at = byId.get(at.parent)) used.add(at.id);
  for (const id of used) graph.setNode(`g${id}`, { label: "" });
  for (const id of used) if (byId.get(id).parent !== null) graph.setParent(`g${id}`, `g${byId.get(id).parent}`);
  for (const node of nodes) {
    graph.setNode(`n${node.id}`, { ...NODE, ...(node.size ?? {}) });
    if (node.group !== null) graph.setParent(`n${node.id}`, `g${node.group}`);
  }
  edges.forEach(([from, to]) => graph.setEdge(`n${from}`, `n${to}`));
  dagre.layout(graph);
  const box = ({ x, y, width, height }) => ({ x: x - width / 2, y: y - height / 2, w: width, h: height });
  const found = { nodes: new Map(), groups: new Map(), edges: [], width: graph.graph().width, height: graph.graph().height };
  for (const node of nodes) found.nodes.set(node.id, box(graph.node(`n${node.id}`)));
  for (const id of used) {
    const place = box(graph.node(`g${id}`));
    found.groups.set(id, { x: place.x, y: place.y - 12, w: place.w, h: place.h + 12 });
  }
  for (const [from, to] of edges) found.edges.push({ from, to, points: graph.edge(`n${from}`, `n${to}`).points });
  return found;
}

// Layers by the longest path; groups one below the other, each in a frame of its own, so that nothing crosses their borders.
function byLayers(nodes, edges, groups) {
  const into = new Map(nodes.map((node) => [node.id, []]));
  for (const [from, to] of edges) into.get(to)?.push(from);
  const layer = new Map();
  const seat = new Map();
  const found = { nodes: new Map(), groups: new Map(), edges: [], width: 0, height: 0 };
  let top = 16;
  const rows = [];
  let previous = null;
  for (const node of nodes) {
    const sources = (into.get(node.id) ?? []).filter((id) => layer.has(id));
    const isNew = node.group !== previous;
    const least = isNew ? rows.length : Math.max(rows.length - 1, 0);
    const at = Math.max(least - (isNew ? 0 : 3), ...sources.map((id) => layer.get(id) + 1), isNew ? rows.length : 0);
    previous = node.group;
    layer.set(node.id, at);
    while (rows.length <= at) rows.push([]);
    rows[at].push(node.id);
  }
  for (const row of rows) {
    row.sort((one, other) => middle(one) - middle(other));
    row.forEach((id, place) => {
      seat.set(id, place - (row.length - 1) / 2);
      found.nodes.set(id, { x: seat.get(id) * (NODE.width + GAP.across), y: top, w: NODE.width, h: NODE.height });
    });
    top += row.length ? NODE.height + GAP.down : 0;
  }
  function middle(id) {
    const sources = (into.get(id) ?? []).filter((source) => seat.has(source));
    return sources.length ? sources.reduce((sum, source) => sum + seat.get(source), 0) / sources.length : 0;
  }
  const left = Math.min(...[...found.nodes.values()].map((place) => place.x)) - 40;
  for (const place of found.nodes.values()) place.x -= left;
  found.width = Math.max(...[...found.nodes.values()].map((place) => place.x + place.w)) + 40;
  found.height = top + 16;
  const parents = new Map(groups.map((group) => [group.id, group.parent]));
  const depth = (id) => (id === null || id === undefined ? 0 : 1 + depth(parents.get(id)));
  for (const node of nodes) {
    const place = found.nodes.get(node.id);
    for (let id = node.group; id !== null && id !== undefined; id = parents.get(id)) {
      const frame = found.groups.get(id) ?? { x: Infinity, y: Infinity, right: -Infinity, bottom: -Infinity };
      const pad = 12;
      found.groups.set(id, { x: Math.min(frame.x, place.x - pad), y: Math.min(frame.y, place.y - 22), right: Math.max(frame.right, place.x + place.w + pad), bottom: Math.max(frame.bottom, place.y + place.h + pad) });
    }
  }
  for (const [id, frame] of found.groups) found.groups.set(id, { x: frame.x, y: frame.y, w: frame.right - frame.x, h: frame.bottom - frame.y, depth: depth(id) });
  for (const [from, to] of edges) {
    const [one, other] = [found.nodes.get(from), found.nodes.get(to)];
    if (one && other) found.edges.push({ from, to, points: [{ x: one.x + one.w / 2, y: one.y + one.h }, { x: other.x + other.w / 2, y: other.y }] });
  }
  return found;
}
