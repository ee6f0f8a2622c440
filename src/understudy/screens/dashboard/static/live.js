// Keeps a page up to date: the server sends the parts that changed, whole.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;

/** What this page is: its path says it. */
function address() {
  const pieces = location.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  if (pieces[0] === "runs") {
    const match = new URLSearchParams(location.search).get("match") ?? "";
    return { run: pieces[1], page: pieces[2] ?? "overview", match };
  }
  return pieces[0] === "compare"
    ? { page: "compare", runs: new URLSearchParams(location.search).getAll("run") }
    : { page: "runs" };
}

function sections() {
  return [...document.querySelectorAll("section[data-part]")];
}

/** A part in which a person is typing or choosing stays until that is done. */
function inUse(section) {
  const focus = document.activeElement;
  return section.contains(focus) && focus.matches("input, select, textarea");
}

/** Replace a part, and keep what a reader opened or scrolled in it. */
function replace(section, html, digest) {
  const open = [...section.querySelectorAll("details")].map((one) => one.open);
  const scrolled = [...section.querySelectorAll(".table, .scroll")].map((one) => one.scrollLeft);
  const focused = section.contains(document.activeElement)
    ? [...section.querySelectorAll("a, button, [tabindex]")].indexOf(document.activeElement)
    : -1;
  section.innerHTML = html;
  section.dataset.digest = digest;
  // What scripts add to a part comes first: the focus returns by its place among all that take it.
  section.dispatchEvent(new CustomEvent("understudy:replaced", { bubbles: true }));
  section.querySelectorAll("details").forEach((one, index) => {
    one.open = open[index] ?? one.open;
  });
  section.querySelectorAll(".table, .scroll").forEach((one, index) => {
    one.scrollLeft = scrolled[index] ?? 0;
  });
  if (focused >= 0) {
    section.querySelectorAll("a, button, [tabindex]")[focused]?.focus({ preventScroll: true });
  }
}

function show(update) {
  const main = document.getElementById("content");
  const known = new Map(sections().map((one) => [one.dataset.part, one]));
  for (const [key, [html, digest]] of Object.entries(update.parts)) {
    let section = known.get(key);
    if (!section) {
      section = document.createElement("section");
      section.dataset.part = key;
      known.set(key, section);
    } else if (inUse(section)) {
      continue;
    }
    replace(section, html, digest);
  }
  for (const [key, section] of known) {
    if (!update.order.includes(key)) {
      section.remove();
    }
  }
  const now = sections().map((one) => one.dataset.part);
  if (now.join() !== update.order.join()) {
    update.order.forEach((key) => main.append(known.get(key)));
  }
  document.dispatchEvent(new CustomEvent("understudy:updated"));
}

function say(state, words) {
  const element = document.getElementById("connection");
  element.dataset.state = state;
  if (element.textContent !== words) {
    element.textContent = words;
  }
}

/** Follow this page, and connect again whenever the connection is lost. */
export function follow() {
  let wait = FIRST_WAIT_MS;
  const version = new URL(import.meta.url).pathname.split("/")[2];
  const connect = () => {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/live`);
    socket.addEventListener("open", () => {
      wait = FIRST_WAIT_MS;
      const parts = Object.fromEntries(sections().map((one) => [one.dataset.part, one.dataset.digest]));
      socket.send(JSON.stringify({ ...address(), parts, assets: version }));
      say("live", "connected");
    });
    socket.addEventListener("message", (event) => {
      const update = JSON.parse(event.data);
      if (update.assets !== version) {
        location.reload(); // a newer program serves these pages now
        return;
      }
      show(update);
    });
    socket.addEventListener("close", () => {
      say("lost", "connection lost, trying again");
      setTimeout(connect, wait);
      wait = Math.min(2 * wait, LONGEST_WAIT_MS);
    });
  };
  connect();
}
