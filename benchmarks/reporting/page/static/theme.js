// The theme: the system's unless the reader chose one. Runs before anything is drawn.
"use strict";
{
  const KEY = "empg-theme";
  const root = document.documentElement;
  root.classList.add("scripted");

  const apply = (theme) => {
    root.dataset.theme = theme;
  };
  const remembered = () => {
    try {
      return localStorage.getItem(KEY) ?? "auto";
    } catch {
      return "auto"; // storage is switched off
    }
  };
  const remember = (theme) => {
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // the choice holds for this visit only
    }
  };

  apply(remembered());
  document.addEventListener("DOMContentLoaded", () => {
    for (const input of document.querySelectorAll(".theme input")) {
      input.checked = input.value === root.dataset.theme;
      input.addEventListener("change", () => {
        apply(input.value);
        remember(input.value);
      });
    }
  });
}
