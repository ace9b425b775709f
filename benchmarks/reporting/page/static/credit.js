// Credit of steps as bars. A measure has one scale over all steps on show; both advantages share theirs.
"use strict";

const MEASURES = [
  { name: "entropy", label: "H", scale: "entropy", write: decimal },
  { name: "entropy_after", label: "H after", scale: "entropy", write: decimal, optional: true },
  { name: "g", label: "g", scale: "g", write: decimal, mark: 1 },
  { name: "f", label: "f next", scale: "f", write: decimal },
  { name: "raw_advantage", label: "raw A", scale: "advantage", write: signed, both: true },
  { name: "advantage", label: "final A", scale: "advantage", write: signed, both: true },
];

/** A turn's credit by name, or null where it was not trained on. */
function creditOf(names, turn) {
  return turn.credit && Object.fromEntries(names.map((name, place) => [name, turn.credit[place]]));
}

/** The largest magnitude of each scale over steps and tokens on show; 1 where there is nothing to measure. */
function scalesOf(turns) {
  const largest = { entropy: 0, g: 0, f: 0, advantage: 0, token: 0 };
  for (const turn of turns) {
    for (const { name, scale } of MEASURES) {
      largest[scale] = Math.max(largest[scale], Math.abs(turn.credit?.[name] ?? 0));
    }
    largest.token = Math.max(largest.token, ...(turn.written?.entropy ?? []));
  }
  return Object.fromEntries(Object.entries(largest).map(([scale, value]) => [scale, value || 1]));
}

/** Where a bar begins and ends on its track, from 0 to 1. */
function extent(value, largest, both) {
  if (!both) return [0, value / largest];
  const end = 0.5 + value / (2 * largest);
  return [Math.min(0.5, end), Math.max(0.5, end)];
}

const signOf = (value) => (value < 0 ? "minus" : value > 0 ? "plus" : "zero");

function bar(measure, value, scales) {
  const [from, to] = extent(value ?? 0, scales[measure.scale], measure.both);
  return el(
    "span",
    { class: `track ${measure.scale}${measure.both ? " both" : ""}`, "aria-hidden": "true" },
    measure.mark ? el("i", { class: "mark", "--at": measure.mark / scales[measure.scale] }) : null,
    el("i", { class: `fill ${signOf(value)} ${measure.name}`, "--from": from, "--to": to }),
  );
}

/** The numbers of a step, each beside its bar. */
function creditList(credit, scales) {
  const shown = MEASURES.filter(({ name, optional }) => !optional || credit[name] !== null);
  return el(
    "dl",
    { class: "credit" },
    ...shown.map((measure) =>
      el(
        "div",
        {},
        el("dt", {}, measure.label),
        el(
          "dd",
          {},
          bar(measure, credit[measure.name], scales),
          el("span", {}, measure.write(credit[measure.name])),
        ),
      ),
    ),
  );
}

/** All steps of an episode at a glance: entropy above, raw (outline) and final advantage below; a button each. */
function creditStrip(turns, scales, choose) {
  const lane = (name) => el("span", { class: `lane-name ${name}`, "aria-hidden": "true" }, name);
  return el(
    "div",
    { class: "strip-frame" },
    lane("H"),
    lane("A"),
    el(
      "ol",
      { class: "strip", "aria-label": "Steps at a glance" },
      ...turns.map((turn, step) => el("li", {}, stripButton(turn, step, scales, choose))),
    ),
  );
}

function stripButton(turn, step, scales, choose) {
  const { credit } = turn;
  const said = credit
    ? `H ${decimal(credit.entropy)}, final advantage ${signed(credit.advantage)}`
    : "not trained on";
  return el(
    "button",
    { type: "button", tabindex: -1, "aria-label": `Step ${step + 1}: ${said}`, click: () => choose(step) },
    el(
      "span",
      { class: credit ? "lanes" : "lanes none", "aria-hidden": "true" },
      ...(credit ? lanes(credit, scales) : []),
    ),
    el("span", { class: "place", "aria-hidden": "true" }, String(step + 1)),
  );
}

function lanes(credit, scales) {
  const lane = (name, value, largest) =>
    el("i", { class: `${name} ${signOf(value)}`, "--size": Math.abs(value) / largest });
  return [
    lane("entropy", credit.entropy, scales.entropy),
    lane("raw", credit.raw_advantage, scales.advantage),
    lane("final", credit.advantage, scales.advantage),
  ];
}
