// What is looked at, as the page's address keeps it: #run=…&iteration=…&episode=…&step=…
"use strict";

const LINKED = ["run", "iteration", "episode", "step", "beside", "beside-iteration", "beside-episode"];
const NUMBERS = ["iteration", "step", "beside-iteration"];

/** The view that an address names, or null where it names none. */
function viewOfHash(hash) {
  const found = new URLSearchParams(hash.replace(/^#/, ""));
  if (!found.has("run")) return null;
  const view = {};
  for (const name of LINKED) {
    const value = found.get(name);
    view[name] = value !== null && NUMBERS.includes(name) ? wholeNumber(value) : value;
  }
  return view;
}

function hashOfView(view) {
  const given = LINKED.filter((name) => view[name] !== null && view[name] !== undefined);
  return "#" + new URLSearchParams(given.map((name) => [name, String(view[name])]));
}

const wholeNumber = (text) => (/^\d+$/.test(text) ? Number(text) : null);
