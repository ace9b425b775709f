// An episode as it went: what it came to, its steps at a glance, then each step with its credit.
"use strict";

const LONG_TEXT = 900;
const SHOWN_OF_LONG = 600;
const OUTCOME_WORDS = { solved: "solved", failed: "not solved", errored: "errored" };
const FATE_WORDS = {
  trained: null,
  dropped:
    "Not trained on: dynamic sampling dropped its group, as all its rewards were equal or the batch was full.",
  errored:
    "Not trained on: the environment failed, so this episode is left out of training and of every rate.",
  skipped: "Not trained on: it was kept, but its iteration made no update from it.",
};

const nameOf = (run) => `${run.label} · seed ${run.seed}`;

/** `3 · group 2, sample 1`, with the attempt where there was more than one. */
function placeOf({ iteration, attempt, group, sample }) {
  return `${iteration} · ${attempt ? `attempt ${attempt}, ` : ""}group ${group}, sample ${sample}`;
}

/** One episode. `entry` is its line in the index, `told` its part of a chunk with credit by name. */
function episodePane(run, entry, told, scales, chooseStep) {
  const pane = el("article", { class: "episode", "aria-label": `${nameOf(run)}: ${entry.task}` });
  pane.append(
    episodeHead(run, entry, told),
    told.turns.length
      ? creditStrip(told.turns, scales, chooseStep)
      : el("p", { class: "message" }, "No step was taken."),
    el("div", { class: "remarks" }, ...remarks(entry, told)),
    el(
      "ol",
      { class: "steps" },
      ...told.turns.map((turn, step) => el("li", {}, stepCard(turn, step, scales))),
    ),
  );
  return pane;
}

function episodeHead(run, entry, told) {
  const facts = [
    `reward ${decimal(told.reward, 2)}`,
    `score ${decimal(entry.score, 2)}`,
    counted(told.turns.length, "step"),
    counted(told.sampled_tokens, "token"),
    `ended: ${told.end}`,
  ];
  return el(
    "header",
    { class: "episode-head" },
    el("p", { class: "eyebrow" }, `${nameOf(run)} · iteration ${placeOf(entry)}`),
    el("h3", {}, entry.task),
    el(
      "p",
      { class: "outcome" },
      el("span", { class: `badge ${entry.outcome}` }, OUTCOME_WORDS[entry.outcome]),
      entry.type ? el("span", { class: "type" }, entry.type) : null,
      el("span", {}, facts.join(" · ")),
    ),
  );
}

function remarks(entry, told) {
  const said = [FATE_WORDS[entry.fate], told.error && `Error: ${told.error}`].filter(Boolean);
  if (!entry.tokens && told.turns.length) {
    said.push("The tokens of this episode were not recorded one by one, so its text is not shaded.");
  }
  const notes = said.map((text) => el("p", { class: "message" }, text));
  return told.opening === null
    ? notes
    : [...notes, el("dl", { class: "said" }, ...spoken("Opening", told.opening, "observation"))];
}

/** One step: what was thought, done and seen, and beside it the credit. */
function stepCard(turn, step, scales) {
  const card = el("div", {
    class: "step",
    role: "group",
    tabindex: -1,
    "data-step": step,
    "aria-label": `Step ${step + 1}`,
  });
  card.append(
    el(
      "header",
      {},
      el("h4", {}, `Step ${step + 1}`),
      check(turn.well_formed, "well-formed"),
      check(turn.action_valid, "valid action"),
      el("span", { class: "count" }, counted(turn.tokens, "token")),
    ),
    el("div", { class: "told" }, saidList(turn, scales), turn.written && tokenTable(turn.written)),
    turn.credit
      ? creditList(turn.credit, scales)
      : el("p", { class: "untrained" }, "Not trained on: no credit was given."),
  );
  return card;
}

const check = (holds, words) =>
  el(
    "span",
    { class: holds ? "check" : "check failed" },
    holds ? `✓ ${words}` : `✗ not ${words === "valid action" ? "a " : ""}${words}`,
  );

function saidList(turn, scales) {
  const wrote = turn.written
    ? [el("div", {}, el("dt", {}, "Wrote"), el("dd", {}, shadedTokens(turn.written, scales)))]
    : spoken("Thought", turn.thought, "thought");
  return el(
    "dl",
    { class: "said" },
    ...wrote,
    ...spoken("Action", turn.action, "action"),
    ...spoken("Observation", turn.observation, "observation"),
  );
}

/** A labelled text; a long one is cut until the reader asks for the rest. */
function spoken(name, text, kind) {
  const body = el("p", { class: kind }, text === "" ? el("em", {}, "nothing") : text);
  const said = el("dd", {}, body);
  if (text.length > LONG_TEXT) {
    body.textContent = `${text.slice(0, SHOWN_OF_LONG)}…`;
    const more = el(
      "button",
      { type: "button", class: "quiet" },
      `Show all ${text.length.toLocaleString("en")} characters`,
    );
    more.addEventListener("click", () => {
      body.textContent = text;
      more.remove();
      body.tabIndex = -1;
      body.focus();
    });
    said.append(more);
  }
  return [el("div", {}, el("dt", {}, name), said)];
}

/** Marks the current step in every pane, and makes its button the one that Tab reaches. */
function markStep(panes, step) {
  for (const pane of panes.querySelectorAll(".episode")) {
    pane.querySelectorAll(".step").forEach((card, place) => card.classList.toggle("current", place === step));
    pane.querySelectorAll(".strip button").forEach((button, place) => {
      button.tabIndex = place === step ? 0 : -1;
      if (place === step) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
  }
}
