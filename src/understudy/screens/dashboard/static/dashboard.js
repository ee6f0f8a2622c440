// What every page has: updates, the theme, keys, and confirmed actions.
// HTML that arrives here was written by the server's one writer, which escapes every text.

import { follow } from "./live.js";
import { listenForActions } from "./actions.js";
import { listenForCharts } from "./charts.js";
import { listenForKeys } from "./keys.js";
import { showAges } from "./ages.js";

const root = document.documentElement;

/** Switch between dark and light, and remember it. */
export function switchTheme() {
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("understudy-theme", root.dataset.theme);
}

document
  .querySelector("header nav [aria-current]")
  ?.scrollIntoView({ block: "nearest", inline: "center" });
document.getElementById("theme")?.addEventListener("click", switchTheme);
listenForKeys({ switchTheme });
listenForActions();
listenForCharts();
showAges();
for (const viewer of document.querySelectorAll("[data-replay-url]")) {
  const { mountReplay } = await import("./replay.js");
  mountReplay(viewer, { url: viewer.dataset.replayUrl });
}
if (document.querySelector("meta[name=understudy-live]")) {
  follow();
}
