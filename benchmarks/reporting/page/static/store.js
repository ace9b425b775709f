// Data files beside the page. `fetch` may not read from disk, so each file is a script that calls `lensData`.
"use strict";

const KEPT_FILES = 24;
const arrived = new Map();
const promised = new Map();

window.lensData = (name, data) => arrived.set(name, data);

/** The data of `lens/<name>.js`, loaded when it is first asked for; the least recently used are let go. */
function loadData(name) {
  const known = promised.get(name);
  promised.delete(name);
  promised.set(name, known ?? loadScript(name));
  if (promised.size > KEPT_FILES) promised.delete(promised.keys().next().value);
  return promised.get(name);
}

function loadScript(name) {
  return new Promise((resolve, reject) => {
    const source = `lens/${name}.js`;
    const fail = (why) => {
      promised.delete(name); // so that the next look tries again
      reject(new Error(`${source} ${why}`));
    };
    const script = el("script", { src: source });
    script.addEventListener("error", () =>
      fail("could not be read; the folder “lens” has to lie beside this page."),
    );
    script.addEventListener("load", () => {
      script.remove();
      if (!arrived.has(name)) return fail("is not a data file of this page.");
      resolve(arrived.get(name));
      arrived.delete(name);
    });
    document.head.append(script);
  });
}
