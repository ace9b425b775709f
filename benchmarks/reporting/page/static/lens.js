// The credit lens: what is chosen decides what is loaded, and only what was loaded is drawn.
"use strict";

const NO_SECOND_EPISODE = { "beside-iteration": null, "beside-episode": null };
const PARTS = [
  "run",
  "scope",
  "outcome",
  "type",
  "text",
  "status",
  "groups",
  "more",
  "viewer",
  "beside",
  "beside-episode",
  "panes",
];

class Lens {
  #episodes;
  #part = Object.fromEntries(PARTS.map((name) => [name, byId(`lens-${name}`)]));
  #shown = null; // what is on the page, as `Episodes.resolve` gives it
  #latest = 0; // number of the last view that was asked for
  #limit = GROUPS_SHOWN;

  constructor(episodes) {
    this.#episodes = episodes;
    this.#listenToChoices();
    this.#listenToBeside();
    byId("lens").addEventListener("keydown", (event) => this.#onKey(event));
    addEventListener("popstate", () => {
      const view = viewOfHash(location.hash);
      if (view) this.show(view, "keep");
    });
  }

  /** Changes what is shown; a later call wins over one that still loads. `address`: push, replace or keep. */
  async show(change, address = "push") {
    const ticket = ++this.#latest;
    const slow = setTimeout(() => this.#say("Loading …"), 150);
    try {
      const next = await this.#episodes.resolve({
        ...addressOf(this.#shown),
        scope: this.#shown?.scope,
        ...change,
      });
      if (ticket !== this.#latest) return;
      this.#draw(next);
      if (address !== "keep") this.#writeAddress(address);
    } catch (error) {
      if (ticket === this.#latest) this.#say(error.message);
    } finally {
      clearTimeout(slow);
    }
  }

  /** Moves the focus to the current step, or to the whole episode at its first one. */
  focus() {
    if (this.#shown?.step) return this.#focusStep();
    this.#part.viewer.focus({ preventScroll: true });
    this.#part.viewer.scrollIntoView();
  }

  #draw(next) {
    const before = this.#shown;
    this.#shown = next;
    this.#drawControls();
    this.#drawBesideControls();
    if (before?.run !== next.run || before.scope !== next.scope) this.#relist(GROUPS_SHOWN);
    else markEpisode(this.#part.groups, next.entry);
    this.#drawPanes();
    this.#say(`${counted(this.#passing().length, "episode")} listed. ${sentenceOf(next)}`);
  }

  #say(words) {
    this.#part.status.textContent = words;
  }

  #drawControls() {
    const { run, episodes, scope, entry } = this.#shown;
    fillSelect(this.#part.run, this.#runChoices(), run.key);
    const iterations = [...new Set(episodes.map(({ iteration }) => iteration))];
    fillSelect(
      this.#part.scope,
      [["all", `all (${iterations.length})`], ...iterations.map((one) => [one, one])],
      scope,
    );
    const types = [...new Set(episodes.map(({ type }) => type))].sort(collator.compare);
    const kept = types.includes(this.#part.type.value) ? this.#part.type.value : ANY_TYPE;
    fillSelect(this.#part.type, [[ANY_TYPE, "all"], ...types.map((type) => [type, type || "none"])], kept);
    this.#part.viewer.setAttribute("aria-label", `Episode: ${entry.task}`);
  }

  #drawBesideControls() {
    const { beside } = this.#shown;
    fillSelect(this.#part.beside, [["", "nothing"], ...this.#runChoices()], beside?.run.key ?? "");
    const choices = (beside?.choices ?? []).map((one) => [
      keyOf(one),
      `iteration ${placeOf(one)} · ${OUTCOME_WORDS[one.outcome]}`,
    ]);
    fillSelect(this.#part["beside-episode"], choices, beside?.entry ? keyOf(beside.entry) : "");
    this.#part["beside-episode"].disabled = choices.length === 0;
  }

  #runChoices() {
    return this.#episodes.runs.map((run) => [run.key, nameOf(run)]);
  }

  #passing() {
    const { episodes, scope, tolds } = this.#shown;
    const { outcome, type, text } = this.#part;
    const filters = { scope, outcome: outcome.value, type: type.value, text: text.value };
    return filterEpisodes(episodes, filters, (episode) => tolds.get(episode.id));
  }

  #relist(limit) {
    this.#limit = limit;
    const passing = this.#passing();
    const options = {
      limit,
      withIteration: this.#shown.scope === "all",
      choose: (episode) => this.#open(episode),
    };
    drawEpisodes(this.#part.groups, this.#part.more, passing, options);
    markEpisode(this.#part.groups, this.#shown.entry);
    return passing.length;
  }

  #drawPanes() {
    const { panes } = this.#part;
    const { beside } = this.#shown;
    const focused = panes.contains(document.activeElement);
    const both = beside?.entry ? [this.#shown, beside] : [this.#shown];
    const scales = scalesOf(both.flatMap(({ told }) => told.turns));
    const drawn = both.map(({ run, entry, told }) =>
      episodePane(run, entry, told, scales, (step) => this.#goTo(step)),
    );
    const legend = both.some(({ entry }) => entry.tokens) ? [tokenLegend(scales)] : [];
    panes.style.setProperty("--steps", Math.max(1, ...both.map(({ told }) => told.turns.length)));
    panes.classList.toggle("two", both.length === 2);
    panes.replaceChildren(...legend, ...drawn);
    markStep(panes, this.#shown.step);
    if (focused) this.focus();
  }

  #open({ iteration, id }) {
    this.show({ iteration, episode: id, step: 1, ...NO_SECOND_EPISODE });
  }

  #goTo(step) {
    this.#shown.step = clamp(step, this.#shown.told.turns.length);
    markStep(this.#part.panes, this.#shown.step);
    this.#focusStep();
    this.#writeAddress("replace");
  }

  #focusStep() {
    const target = this.#part.panes.querySelector(`[data-step="${this.#shown.step}"]`) ?? this.#part.viewer;
    target.focus({ preventScroll: true });
    target.scrollIntoView();
  }

  /** The next or previous episode of the list. */
  #turnEpisode(by) {
    const choices = this.#passing();
    const here = choices.findIndex((one) => keyOf(one) === keyOf(this.#shown.entry));
    const next = choices[here < 0 ? 0 : here + by];
    if (next) this.#open(next);
  }

  #writeAddress(how) {
    const hash = hashOfView(addressOf(this.#shown));
    if (hash === location.hash) return;
    if (how === "replace") history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
  }

  #listenToChoices() {
    const { run, scope, outcome, type, text, more } = this.#part;
    run.addEventListener("change", () => this.show({ run: run.value }));
    scope.addEventListener("change", () => {
      const iteration = wholeNumber(scope.value);
      this.show(
        iteration === null ? { scope: "all" } : { scope: iteration, iteration, episode: null, step: 1 },
      );
    });
    for (const filter of [outcome, type, text]) {
      filter.addEventListener("input", () => {
        if (this.#shown) this.#say(`${counted(this.#relist(GROUPS_SHOWN), "episode")} listed.`);
      });
    }
    more.addEventListener("click", () => this.#relist(this.#limit + GROUPS_SHOWN));
    byId("lens").addEventListener("submit", (event) => event.preventDefault());
  }

  #listenToBeside() {
    const { beside, "beside-episode": episode } = this.#part;
    beside.addEventListener("change", () =>
      this.show({ beside: beside.value || null, ...NO_SECOND_EPISODE }),
    );
    episode.addEventListener("change", () => {
      const [iteration, id] = episode.value.split("/");
      this.show({ "beside-iteration": Number(iteration), "beside-episode": id });
    });
  }

  #onKey(event) {
    if (
      !this.#shown ||
      event.ctrlKey ||
      event.altKey ||
      event.metaKey ||
      event.target.matches("input, select")
    )
      return;
    const act = keyAction(event.key, event.target.closest(".step, .strip") !== null);
    if (!act) return;
    event.preventDefault();
    if (act.episodes) this.#turnEpisode(act.episodes);
    else this.#goTo(this.#shown.step + act.steps);
  }
}

/** What a key does: how many steps or episodes to go. Arrows act only where a step has the focus. */
function keyAction(key, inSteps) {
  if (key === "[" || key === "]") return { episodes: key === "]" ? 1 : -1 };
  if (key === "j" || (inSteps && (key === "ArrowDown" || key === "ArrowRight"))) return { steps: 1 };
  if (key === "k" || (inSteps && (key === "ArrowUp" || key === "ArrowLeft"))) return { steps: -1 };
  return null;
}

/** The view as the address keeps it; steps count from 1 there. */
function addressOf(shown) {
  if (!shown) return {};
  const { run, entry, step, beside } = shown;
  return {
    run: run.key,
    iteration: entry.iteration,
    episode: entry.id,
    step: step + 1,
    beside: beside?.run.key ?? null,
    "beside-iteration": beside?.entry?.iteration ?? null,
    "beside-episode": beside?.entry?.id ?? null,
  };
}

/** What is open, for readers who do not see it. */
function sentenceOf({ run, entry, beside, strayed }) {
  const described = (of, episode) =>
    `${nameOf(of)}, ${OUTCOME_WORDS[episode.outcome]}, ${counted(episode.steps, "step")}`;
  const parts = [`Open: ${entry.task}, ${described(run, entry)}.`];
  if (strayed) parts.unshift("The address names an episode that is not here; another is shown.");
  if (beside?.entry) parts.push(`Beside it: ${described(beside.run, beside.entry)}.`);
  else if (beside)
    parts.push(
      `${nameOf(beside.run)} recorded no ${beside.run === run ? "other " : ""}episode of this task.`,
    );
  return parts.join(" ");
}

/** The lens on what the address names, or on something to begin with; a message where there is nothing to see. */
async function openLens(view) {
  const catalogue = await loadData("runs").catch(() => []);
  byId(catalogue.length ? "lens-app" : "lens-none").hidden = false;
  if (!catalogue.length) return;
  const lens = new Lens(new Episodes(catalogue));
  await lens.show(view ?? {}, "keep");
  if (view) lens.focus();
}

/** Loads nothing before the lens comes near the screen, unless the address leads into it. */
function startLens() {
  const linked = viewOfHash(location.hash);
  if (linked) return openLens(linked);
  const seen = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      openLens(null);
    },
    { rootMargin: "600px" },
  );
  seen.observe(byId("lens"));
}

startLens();
