// What is shown stands in the address, so that a link shows the same: #view=memory&op=12. Views listen.

const listeners = new Set();
let current = read();

function read() {
  const found = {};
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) found[name] = value;
  return found;
}

export function state() {
  return current;
}

// Changes some of the state; a value of null takes its name away. Each change is a step that "back" undoes.
export function go(changes) {
  const next = { ...current };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") delete next[name];
    else next[name] = String(value);
  }
  const hash = hashOf(next);
  if (hash === hashOf(current)) return;
  history.pushState(null, "", hash);
  settle(next);
}

export function linkTo(changes) {
  return location.href.split("#")[0] + hashOf({ ...current, ...changes });
}

export function listen(listener) {
  listeners.add(listener);
}

function hashOf(values) {
  return `#${new URLSearchParams(Object.entries(values))}`;
}

function settle(next) {
  const before = current;
  current = next;
  for (const listener of listeners) listener(current, before);
}

window.addEventListener("popstate", () => {
  if (hashOf(read()) !== hashOf(current)) settle(read());
});
