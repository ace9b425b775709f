// The list of a run's episodes: grouped as they were sampled, filtered, drawn a part at a time.
"use strict";

const GROUPS_SHOWN = 40;
const ANY_TYPE = "*";
const MARKS = { solved: "✓", failed: "✗", errored: "!" };
const OUTCOMES = {
  "": () => true,
  solved: (episode) => episode.outcome === "solved",
  failed: (episode) => episode.outcome === "failed",
  errored: (episode) => episode.outcome === "errored",
  trained: (episode) => episode.fate === "trained",
  untrained: (episode) => episode.fate !== "trained",
  tokens: (episode) => episode.tokens,
};

/** The columns of an index as one object per episode. */
function episodesOf(index) {
  const columns = index.episodes;
  return columns.iteration.map((iteration, place) => {
    const fate = index.fates[columns.fate[place]];
    const [attempt, group, sample] = [columns.attempt[place], columns.group[place], columns.sample[place]];
    return {
      iteration,
      attempt,
      group,
      sample,
      id: `${attempt}.${group}.${sample}`,
      task: index.tasks[columns.task[place]],
      type: index.types[columns.type[place]],
      outcome: fate === "errored" ? "errored" : columns.success[place] ? "solved" : "failed",
      score: columns.score[place],
      steps: columns.steps[place],
      fate,
      tokens: columns.tokens[place] === 1,
    };
  });
}

/** Everything that was said in an episode, for the text filter. */
function wordsOf(told) {
  told.words ??= told.turns
    .flatMap((turn) => [turn.thought, turn.action, turn.observation])
    .concat(told.opening ?? "", told.error ?? "")
    .join("\n")
    .toLowerCase();
  return told.words;
}

/** The episodes that pass; `toldOf` gives the chunk's part of an episode where that is loaded. */
function filterEpisodes(episodes, { scope, outcome, type, text }, toldOf) {
  const wanted = text.trim().toLowerCase();
  return episodes.filter((episode) => {
    if (scope !== "all" && episode.iteration !== scope) return false;
    if (!OUTCOMES[outcome](episode) || (type !== ANY_TYPE && episode.type !== type)) return false;
    if (!wanted || `${episode.task}\n${episode.type}`.toLowerCase().includes(wanted)) return true;
    const told = scope === "all" ? null : toldOf(episode);
    return told !== null && wordsOf(told).includes(wanted);
  });
}

/** Episodes by the group that they were sampled in, in order. */
function groupsOf(episodes) {
  const groups = new Map();
  for (const episode of episodes) {
    const key = `${episode.iteration}.${episode.attempt}.${episode.group}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(episode);
  }
  return [...groups.values()];
}

function groupRow(members, withIteration, choose) {
  const [first] = members;
  const place = [withIteration ? `iteration ${first.iteration}` : null, first.type || null]
    .filter(Boolean)
    .join(" · ");
  return el(
    "li",
    {},
    el("p", { class: "task", title: first.task }, first.task),
    place ? el("p", { class: "place" }, place) : null,
    el("div", { class: "chips" }, ...members.map((episode) => episodeChip(episode, choose))),
  );
}

function episodeChip(episode, choose) {
  const fate = episode.fate === "trained" ? "" : ", not trained on";
  const said = `sample ${episode.sample}: ${OUTCOME_WORDS[episode.outcome]}, score ${decimal(episode.score, 2)}, ${counted(episode.steps, "step")}${fate}`;
  return el(
    "button",
    {
      type: "button",
      class: `chip ${episode.outcome}${fate && " untrained"}`,
      "data-key": `${episode.iteration}/${episode.id}`,
      "aria-label": said,
      title: said,
      click: () => choose(episode),
    },
    MARKS[episode.outcome],
  );
}

/** Draws the list's first `limit` groups and says how many episodes there are. */
function drawEpisodes(list, more, episodes, { limit, withIteration, choose }) {
  const groups = groupsOf(episodes);
  list.replaceChildren(...groups.slice(0, limit).map((members) => groupRow(members, withIteration, choose)));
  more.hidden = groups.length <= limit;
  more.textContent = `Show more of ${counted(groups.length, "group")}`;
}

/** Marks the open episode in the list. */
function markEpisode(list, episode) {
  const key = `${episode.iteration}/${episode.id}`;
  for (const chip of list.querySelectorAll(".chip")) {
    if (chip.dataset.key === key) chip.setAttribute("aria-current", "true");
    else chip.removeAttribute("aria-current");
  }
}
