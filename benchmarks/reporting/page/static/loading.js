// From a view to everything that it shows, loaded. What a view leaves open or names wrongly is filled in.
"use strict";

class Episodes {
  #runs;
  #listed = new Map();

  /** `catalogue`: the runs that recorded episodes. */
  constructor(catalogue) {
    this.#runs = new Map(catalogue.map((run) => [run.key, run]));
  }

  get runs() {
    return [...this.#runs.values()];
  }

  /** All episodes of a run, as its index lists them. */
  async of(run) {
    if (!this.#listed.has(run.key)) this.#listed.set(run.key, episodesOf(await loadData(`${run.key}/index`)));
    return this.#listed.get(run.key);
  }

  /** What the episodes of an iteration tell, by id, with the credit of steps by name. */
  async #told(run, iteration) {
    const chunk = await loadData(`${run.key}/${iteration}`);
    chunk.byId ??= new Map(
      chunk.episodes.map((told) => {
        const turns = told.turns.map((turn) => ({ ...turn, credit: creditOf(chunk.credit, turn) }));
        return [told.id.join("."), { ...told, turns }];
      }),
    );
    return chunk.byId;
  }

  /** The episode of a view and the one beside it, with what they are chosen from. */
  async resolve(view) {
    const run = this.#runs.get(view.run) ?? this.runs[0];
    const episodes = await this.of(run);
    const named = findEpisode(episodes, view.iteration, view.episode);
    const entry = named ?? defaultEpisode(episodes, view.iteration);
    const tolds = await this.#told(run, entry.iteration);
    const told = tolds.get(entry.id);
    return {
      run,
      episodes,
      scope: view.scope === "all" ? "all" : entry.iteration,
      entry,
      tolds,
      told,
      step: clamp((view.step ?? 1) - 1, told.turns.length),
      strayed: Boolean((view.run && run.key !== view.run) || (view.episode && !named)),
      beside: await this.#resolveBeside(view, run, entry),
    };
  }

  /** An episode of the same task of the run that the view names, the nearest by default; null without a run. */
  async #resolveBeside(view, run, entry) {
    const other = this.#runs.get(view.beside);
    if (!other) return null;
    const itself = (one) => other === run && keyOf(one) === keyOf(entry);
    const choices = (await this.of(other)).filter((one) => one.task === entry.task && !itself(one));
    if (!choices.length) return { run: other, choices, entry: null };
    const named = findEpisode(choices, view["beside-iteration"], view["beside-episode"]);
    const chosen = named ?? nearestEpisode(choices, entry);
    return {
      run: other,
      choices,
      entry: chosen,
      told: (await this.#told(other, chosen.iteration)).get(chosen.id),
    };
  }
}

const clamp = (step, count) => Math.min(Math.max(step, 0), Math.max(count - 1, 0));
const keyOf = (episode) => `${episode.iteration}/${episode.id}`;
const findEpisode = (episodes, iteration, id) =>
  episodes.find((one) => one.iteration === iteration && one.id === id);

/** Of an iteration, by default the last: an episode with tokens before one that was trained on before any. */
function defaultEpisode(episodes, iteration) {
  const there = episodes.filter((one) => one.iteration === iteration);
  const last = episodes.at(-1).iteration;
  const choices = there.length ? there : episodes.filter((one) => one.iteration === last);
  return choices.find((one) => one.tokens) ?? choices.find((one) => one.fate === "trained") ?? choices[0];
}

/** The episode nearest in training, preferring the same place in its iteration. */
function nearestEpisode(choices, entry) {
  const distance = (one) => 2 * Math.abs(one.iteration - entry.iteration) + (one.id === entry.id ? 0 : 1);
  return choices.reduce((best, one) => (distance(one) < distance(best) ? one : best));
}
