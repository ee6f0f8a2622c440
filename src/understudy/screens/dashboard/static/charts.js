// Reading charts: under the pointer, or with arrow keys where a chart has the focus, a line marks the
// place in all charts with the same axis, and a box names the values there. They are read off the
// drawn lines: `data-` attributes of the <svg> say what its coordinates mean.

const SVG = "http://www.w3.org/2000/svg";
const CHART = "svg[data-plot]";
const STEPS = 60; // presses of an arrow key from one end of a chart to the other

const read = new WeakMap();
const now = { chart: null, share: 1, pointer: null };
let box = null;

/** @param {string} d */
function points(d) {
  return d
    .replace(/[MZ]/g, "")
    .split("L")
    .map((point) => point.split(" ").map(Number));
}

/** The lines and areas of a chart, and its scales. */
function content(chart) {
  if (!read.has(chart)) {
    const { plot, low, high, end, unit, counts } = chart.dataset;
    const [left, right, top, bottom] = plot.split(" ").map(Number);
    const drawn = [...chart.querySelectorAll("path[data-name]")].map((path) => {
      const all = points(path.getAttribute("d"));
      const layer = path.classList.contains("layer");
      const half = all.length / 2;
      return {
        name: path.dataset.name,
        colour: path.getAttribute("class").match(/[sf](\d)/)?.[1] ?? "0",
        line: layer ? all.slice(0, half) : all,
        from: layer ? all.slice(half).reverse() : null,
      };
    });
    const scale = { low: Number(low), high: Number(high), log: "log" in chart.dataset };
    read.set(chart, { left, right, top, bottom, scale, drawn, end: Number(end), unit, counts });
  }
  return read.get(chart);
}

/** Where a line is at x; null beside it. */
function heightAt(line, x) {
  const after = line.findIndex(([at]) => at >= x - 0.05);
  if (after < 0 || (after === 0 && line[0][0] > x + 0.05)) {
    return null;
  }
  const [x1, y1] = line[after];
  const [x0, y0] = line[Math.max(after - 1, 0)];
  return x1 === x0 ? y1 : y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
}

function valueAt({ top, bottom, scale }, y) {
  const share = (bottom - y) / (bottom - top);
  return scale.log
    ? scale.low * (scale.high / scale.low) ** share
    : scale.low + share * (scale.high - scale.low);
}

function durationText(seconds) {
  if (seconds < 60) {
    return `${seconds < 10 ? Math.floor(10 * seconds) / 10 : Math.floor(seconds)}s`;
  }
  for (const [long, short, unit, rest] of [["d", "h", 86400, 3600], ["h", "m", 3600, 60], ["m", "s", 60, 1]]) {
    if (seconds >= unit) {
      return `${Math.floor(seconds / unit)}${long} ${Math.floor((seconds % unit) / rest)}${short}`;
    }
  }
  return "";
}

function numberText(value) {
  const size = Math.abs(value);
  for (const [scale, letter] of [[1e9, "B"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= scale) {
      return `${Number((value / (letter === "k" ? 1e3 : scale)).toPrecision(4))}${letter}`;
    }
  }
  return size >= 1e3 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

function valueText(value, unit) {
  switch (unit) {
    case "win rate":
    case "share":
      return `${(100 * value).toFixed(1)}%`;
    case "microseconds":
      return value >= 1000 ? `${numberText(value / 1000)} ms` : `${numberText(value)} µs`;
    case "seconds":
      return durationText(value);
    default:
      return numberText(value);
  }
}

/** What stands in the box: the place, and the name, colour and value of each line there. */
function readings(chart, share) {
  const what = content(chart);
  const x = what.left + share * (what.right - what.left);
  const rows = new Map();
  for (const one of what.drawn) {
    const y = heightAt(one.line, x);
    if (y !== null) {
      const value = valueAt(what, y) - (one.from ? valueAt(what, heightAt(one.from, x) ?? y) : 0);
      const before = rows.get(one.name)?.value ?? 0; // a layer may lie above and below 0
      rows.set(one.name, { colour: one.colour, value: before + value });
    }
  }
  const at = share * what.end;
  const place = what.counts ? `${Math.round(at).toLocaleString("en")} ${what.counts}` : durationText(at);
  return { x, place, unit: what.unit, rows };
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function fillBox({ place, unit, rows }) {
  const list = element("ul", "keys");
  for (const [name, { colour, value }] of rows) {
    const row = element("li", `k${colour}`);
    row.append(element("span", "name", name), element("b", "", valueText(value, unit)));
    list.append(row);
  }
  box.replaceChildren(element("div", "place", place), list);
}

function placeBox(chart, share) {
  const frame = chart.getBoundingClientRect();
  const what = content(chart);
  const x = frame.left + ((what.left + share * (what.right - what.left)) / chart.viewBox.baseVal.width) * frame.width;
  const width = box.offsetWidth;
  const beside = x + 14 + width > document.documentElement.clientWidth ? x - 14 - width : x + 14;
  box.style.left = `${Math.max(4, beside)}px`;
  box.style.top = `${Math.max(4, frame.top + 4)}px`;
}

function clearLines() {
  document.querySelectorAll("line.cursor").forEach((line) => line.remove());
}

/** The same place in every chart that has the same axis. */
function drawLines(chart, share) {
  clearLines();
  for (const other of document.querySelectorAll(CHART)) {
    if (other.dataset.end === chart.dataset.end && other.dataset.counts === chart.dataset.counts) {
      const { left, right, top, bottom } = content(other);
      const line = document.createElementNS(SVG, "line");
      const x = left + share * (right - left);
      Object.entries({ class: "cursor", x1: x, x2: x, y1: top, y2: bottom }).forEach(([key, value]) =>
        line.setAttribute(key, value),
      );
      other.append(line);
    }
  }
}

function show(chart, share) {
  now.chart = chart;
  now.share = Math.min(1, Math.max(0, share));
  fillBox(readings(chart, now.share));
  box.hidden = false;
  drawLines(chart, now.share);
  placeBox(chart, now.share);
}

function hide() {
  if (now.chart) {
    now.chart = null;
    box.hidden = true;
    clearLines();
  }
}

function chartOf(target) {
  return target instanceof Element ? target.closest(CHART) : null;
}

function follow(pointer) {
  now.pointer = pointer;
  const chart = chartOf(pointer.target);
  if (!chart) {
    if (now.chart !== document.activeElement) {
      hide();
    }
    return;
  }
  const { left, right } = content(chart);
  const frame = chart.getBoundingClientRect();
  const x = ((pointer.clientX - frame.left) / frame.width) * chart.viewBox.baseVal.width;
  box.setAttribute("aria-live", "off");
  show(chart, (x - left) / (right - left));
}

const MOVES = {
  ArrowLeft: (share) => share - 1 / STEPS,
  ArrowRight: (share) => share + 1 / STEPS,
  Home: () => 0,
  End: () => 1,
};

function press(event) {
  const chart = chartOf(event.target);
  if (event.key === "Escape") {
    hide();
  } else if (chart && event.key in MOVES && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    box.setAttribute("aria-live", "polite");
    show(chart, MOVES[event.key](now.share));
  }
}

function takeFocus(root) {
  root.querySelectorAll(CHART).forEach((chart) => chart.setAttribute("tabindex", "0"));
}

/** After an update the pointer may lie over a chart that is new. */
function again() {
  if (now.chart && !now.chart.isConnected) {
    const { clientX, clientY } = now.pointer ?? { clientX: -1, clientY: -1 };
    const target = document.elementFromPoint(clientX, clientY);
    hide();
    if (chartOf(target)) {
      follow({ target, clientX, clientY });
    }
  } else if (now.chart) {
    show(now.chart, now.share);
  }
}

/** Every line chart and every chart of areas, also those that come with an update. */
export function listenForCharts() {
  box = element("div", "chart-box");
  box.hidden = true;
  box.setAttribute("role", "status");
  document.body.append(box);
  takeFocus(document);
  document.addEventListener("pointermove", follow, { passive: true });
  document.addEventListener("pointerdown", follow, { passive: true });
  document.addEventListener("pointerleave", hide);
  document.addEventListener("scroll", () => now.chart && placeBox(now.chart, now.share), { passive: true });
  document.addEventListener("keydown", press);
  document.addEventListener("focusin", (event) => {
    const chart = chartOf(event.target);
    if (chart && chart.matches(":focus-visible")) {
      show(chart, now.share);
    }
  });
  document.addEventListener("focusout", (event) => chartOf(event.target) && hide());
  document.addEventListener("understudy:replaced", (event) => takeFocus(event.target));
  document.addEventListener("understudy:updated", again);
}
