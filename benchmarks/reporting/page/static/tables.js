// Tables: sort by a column's button (up, down, as it was), filter by the words in a row.
"use strict";

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const NEXT_ORDER = { none: "ascending", ascending: "descending", descending: "none" };

/** Compares two cells of a column; what is missing comes last in either direction. */
function compareCells(left, right, numeric, direction) {
  const missing = (cell) => cell.hasAttribute("data-missing");
  if (missing(left) || missing(right)) return missing(left) - missing(right);
  return numeric
    ? direction * (Number(left.dataset.value) - Number(right.dataset.value))
    : direction * collator.compare(left.textContent, right.textContent);
}

function sortRows(body, original, place, numeric, order) {
  const direction = order === "descending" ? -1 : 1;
  const rows =
    order === "none"
      ? original
      : [...original].sort((one, other) =>
          compareCells(one.cells[place], other.cells[place], numeric, direction),
        );
  body.append(...rows);
}

function setUpGrid(grid) {
  const body = grid.querySelector("tbody");
  const headings = [...grid.querySelectorAll("thead th")];
  const original = [...body.rows];
  const words = original.map((row) => row.textContent.toLowerCase());
  const matches = grid.querySelector(".matches");

  headings.forEach((heading, place) => {
    heading.querySelector("button").addEventListener("click", () => {
      const order = NEXT_ORDER[heading.getAttribute("aria-sort")];
      headings.forEach((each) => each.setAttribute("aria-sort", each === heading ? order : "none"));
      sortRows(body, original, place, heading.classList.contains("number"), order);
    });
  });

  grid.querySelector("input[type=search]")?.addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    original.forEach((row, place) => {
      row.hidden = !wanted.every((word) => words[place].includes(word));
    });
    const shown = original.filter((row) => !row.hidden).length;
    matches.textContent = `${shown} of ${counted(original.length, "row")}`;
    matches.classList.toggle("visually-hidden", wanted.length === 0);
  });
}

document.querySelectorAll(".grid").forEach(setUpGrid);
