// Ages ("12 s ago") are counted here, so that a page in which nothing happens is not sent again.

const STEPS = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86400, 3600, "h"],
  [Infinity, 86400, "d"],
];

/** @param {number} seconds */
function ageText(seconds) {
  const [, unit, name] = STEPS.find(([limit]) => seconds < limit);
  return `${Math.max(0, Math.floor(seconds / unit))} ${name} ago`;
}

function update() {
  for (const element of document.querySelectorAll("time[data-at]")) {
    const text = ageText(Date.now() / 1000 - Number(element.dataset.at));
    if (element.textContent !== text) {
      element.textContent = text;
    }
  }
}

/** Keep every `<time data-at="SECONDS">` up to date. */
export function showAges() {
  update();
  setInterval(update, 1000);
  document.addEventListener("understudy:updated", update);
}
