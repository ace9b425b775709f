// Building elements and writing numbers. Text from records only ever becomes text nodes and attributes' values.
"use strict";

/** An element. Attributes that are null or false are left out; `--name` sets a CSS variable; strings become text. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    if (name.startsWith("--")) node.style.setProperty(name, String(value));
    else if (name === "click") node.addEventListener("click", value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const byId = (id) => document.getElementById(id);

/** Choices of a select: [value, words] pairs. */
function fillSelect(select, choices, chosen) {
  select.replaceChildren(...choices.map(([value, words]) => el("option", { value }, words)));
  select.value = chosen;
}

/** `0.524`; an em dash for what was not measured. */
function decimal(value, digits = 3) {
  return value === null ? "—" : value.toFixed(digits).replace("-", "−");
}

/** `+0.524`. */
function signed(value, digits = 3) {
  return value === null ? "—" : (value >= 0 ? "+" : "") + decimal(value, digits);
}

const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
