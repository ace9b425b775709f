// Tokens shaded by the entropy of the distribution that each was sampled from. Few tokens are very unsure, so the
// shade grows with the square root; the legend says so.
"use strict";

/** What was written, token by token; the shade is the root of the entropy's share of the largest on show. */
function shadedTokens(written, scales) {
  return el(
    "p",
    { class: "tokens" },
    ...written.text.map((text, place) =>
      el(
        "span",
        {
          class: /[\r\n]/.test(text) ? "token line" : "token",
          "--shade": Math.sqrt(written.entropy[place] / scales.token).toFixed(3),
          title: `${JSON.stringify(text)} · entropy ${decimal(written.entropy[place])} nats · log p ${decimal(written.logprob[place])}`,
        },
        text,
      ),
    ),
  );
}

/** The same as a table, made when it is opened. */
function tokenTable(written) {
  const details = el(
    "details",
    { class: "token-table" },
    el("summary", {}, `${counted(written.text.length, "token")} as a table`),
  );
  details.addEventListener("toggle", () => details.append(tokenRows(written)), { once: true });
  return details;
}

function tokenRows(written) {
  const heading = (text, kind) => el("th", { scope: "col", class: kind }, text);
  return el(
    "table",
    {},
    el("caption", { class: "visually-hidden" }, "Tokens of this step"),
    el(
      "thead",
      {},
      el("tr", {}, heading("token", null), heading("entropy, nats", "number"), heading("log p", "number")),
    ),
    el(
      "tbody",
      {},
      ...written.text.map((text, place) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, el("code", {}, JSON.stringify(text).slice(1, -1))),
          el("td", { class: "number" }, decimal(written.entropy[place])),
          el("td", { class: "number" }, decimal(written.logprob[place])),
        ),
      ),
    ),
  );
}

/** What the shades mean, in nats. */
function tokenLegend(scales) {
  const tick = (shade) => el("span", {}, decimal(shade ** 2 * scales.token, 2));
  return el(
    "div",
    { class: "token-legend" },
    el("span", {}, "Token entropy, nats (square-root scale)"),
    el(
      "span",
      { class: "scale" },
      el("span", { class: "ramp", "aria-hidden": "true" }),
      tick(0),
      tick(0.5),
      tick(1),
    ),
  );
}
