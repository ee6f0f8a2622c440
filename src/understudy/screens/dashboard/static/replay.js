/**
 * The replay viewer: one recorded match of any game, and what the policy thought in it.
 *
 *     import { mountReplay } from "./replay.js";
 *     await mountReplay(element, { url: "/runs/1/matches/12/replay" });
 *
 * It reads a stream of JSON lines (`understudy.judging.replay_frames` says what is in them) and shows
 * the first frame as soon as it is there. Names of players, actions and events come from files that
 * anybody may have written: they become text nodes, and never HTML.
 */

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const LEVELS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const [BOX, HOLLOW, DISC, LINE] = [0, 1, 2, 3];
const MOST_ROWS = 24;
const MOST_LISTED = 8;
const GUTTER = 42;

/**
 * @typedef {{name: string, paint: number, learner?: boolean}} Player
 * @typedef {{name: string, options: string[]}} ActionPart
 * @typedef {{part: string, why: string}} MissingPart
 * @typedef {{
 *   game: string, match: string, seed: number, frames: number, frames_per_s: number,
 *   frame_s: number, players: Player[], opponent: string, outcome: string, compared: string,
 *   parts: ActionPart[], opponents: string[], window: number, versions: number[], note: string,
 *   missing: MissingPart[], view: number[], unit: number, background: number,
 *   palette: string[], texts: string[], fixed: number[][],
 * }} Header
 * @typedef {{notes?: string, value?: string, value_paint?: number, lives?: [number, number]}} Panel
 * @typedef {{
 *   did: number[], theirs?: number[], rules?: boolean, version?: number,
 *   odds?: (number[] | number[][])[], chosen?: number, value?: number, belief?: number[],
 *   attention?: string, most?: number,
 * }} Thought
 * @typedef {{
 *   shapes: number[][], panels: Panel[], clock: string, headline: string, view: number[],
 *   thought: Thought | null, version: number | null,
 * }} Frame
 * @typedef {{frame: number, time_s: number, words: string}} MatchEvent
 */

/**
 * Show a replay inside `root`.
 *
 * @param {HTMLElement} root its children are replaced
 * @param {{url: string, signal?: AbortSignal}} options where the stream is; what ends everything
 * @returns {Promise<void>} when the whole stream was read, or the viewer says why not
 */
export async function mountReplay(root, { url, signal }) {
  const note = element("p", { class: "replay-loading", role: "status" }, "Replaying the match: a few seconds…");
  root.classList.add("replay");
  root.replaceChildren(note);
  const recording = new Recording();
  /** @type {Viewer | null} */
  let viewer = null;
  try {
    for await (const record of records(url, signal)) {
      if (record.kind === "problem") {
        showProblem(root, "This match cannot be replayed.", record.words);
        return;
      }
      recording.add(record);
      if (recording.header && recording.frames.length && !viewer) {
        viewer = new Viewer(root, recording, signal);
      }
      viewer?.grown();
    }
    if (!recording.finished) {
      throw new Error(`the stream ended after frame ${recording.frames.length}`);
    }
  } catch (error) {
    if (signal?.aborted) return;
    const words = `The replay could not be loaded: ${error.message}.`;
    if (viewer) viewer.broke(words);
    else showProblem(root, words, "", () => mountReplay(root, { url, signal }));
  }
}

/**
 * The records of a stream of JSON lines, each as soon as its line is there.
 *
 * @param {string} url
 * @param {AbortSignal} [signal]
 */
async function* records(url, signal) {
  const response = await fetch(url, { signal, headers: { Accept: "application/x-ndjson" } });
  if (!response.ok || !response.body) {
    throw new Error(`the server answered ${response.status} ${response.statusText}`.trim());
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : (lines.pop() ?? "");
    for (const line of lines) if (line) yield JSON.parse(line);
    if (done) return;
  }
}

/** What was read so far: frames made whole, colours and texts by their numbers. */
class Recording {
  constructor() {
    /** @type {Header | null} */
    this.header = null;
    /** @type {Frame[]} */
    this.frames = [];
    /** @type {MatchEvent[]} */
    this.events = [];
    /** @type {string[]} */
    this.palette = [];
    /** @type {string[]} */
    this.texts = [];
    this.result = "";
    /** @type {number | null} */
    this.deviation = null;
    this.finished = false;
  }

  /** @param {any} record of any kind but `problem` */
  add(record) {
    this.palette.push(...(record.palette ?? []));
    this.texts.push(...(record.texts ?? []));
    if (record.kind === "header") this.header = record;
    if (record.kind === "frames") {
      for (const frame of record.frames) this.frames.push(this.#whole(frame));
      this.events.push(...(record.events ?? []));
    }
    if (record.kind === "end") {
      this.result = record.result;
      this.deviation = record.deviation;
      this.finished = true;
    }
  }

  /** A frame with all that it has in common with the one before. */
  #whole(frame) {
    const before = this.frames.at(-1);
    const shapes = [];
    for (const part of frame.shapes) {
      if (part.length > 2) shapes.push(part);
      else shapes.push(...before.shapes.slice(part[0], part[0] + part[1]));
    }
    const thought = frame.thought ?? null;
    return {
      shapes,
      panels: frame.panels ?? before?.panels ?? [],
      clock: frame.clock ?? before?.clock ?? "",
      headline: frame.headline ?? before?.headline ?? "",
      view: frame.view ?? before?.view ?? this.header.view,
      thought,
      version: thought?.version ?? before?.version ?? null,
    };
  }
}

/** All elements of one replay, and the clock that moves them. */
class Viewer {
  /**
   * @param {HTMLElement} root
   * @param {Recording} recording
   * @param {AbortSignal} [signal]
   */
  constructor(root, recording, signal) {
    this.recording = recording;
    this.position = 0;
    this.playing = false;
    this.speed = 1;
    /** @type {number | null} when the last frame was shown, in ms */
    this.shownAt = null;
    this.stage = new Stage(recording);
    this.controls = new Controls(recording, {
      toggle: () => this.toggle(),
      seek: (frame) => this.seek(frame),
      step: (by) => this.step(by),
      speed: (speed) => (this.speed = speed),
    });
    this.parts = [
      new Odds(recording),
      new Value(recording, (frame) => this.seek(frame)),
      new Belief(recording),
      new Attention(recording),
    ];
    this.notes = element("div", { class: "replay-notes" });
    this.moment = element("p", { class: "replay-moment", role: "status" });
    root.replaceChildren(
      element("div", { class: "replay-main" }, this.stage.root, this.controls.root, this.moment),
      element("div", { class: "replay-side" }, ...this.parts.map((part) => part.root), this.notes),
    );
    this.#writeNotes();
    this.#listen(root, signal);
    this.show();
  }

  /** More frames are there. */
  grown() {
    this.controls.grown();
    for (const part of this.parts) part.grown?.(this.frame);
    if (this.recording.finished) this.#writeNotes();
  }

  /** @param {string} words why no more frames come */
  broke(words) {
    this.notes.append(missing("replay", words));
  }

  get frame() {
    return Math.floor(this.position);
  }

  toggle() {
    const last = this.recording.header.frames;
    if (!this.playing && this.frame >= last) this.position = 0;
    this.playing = !this.playing;
    this.shownAt = null;
    if (this.playing) requestAnimationFrame((now) => this.#tick(now));
    this.show();
  }

  /** @param {number} by frames */
  step(by) {
    this.playing = false;
    this.seek(this.frame + by);
  }

  /** @param {number} frame */
  seek(frame) {
    this.position = Math.min(Math.max(frame, 0), this.recording.frames.length - 1);
    this.show();
  }

  show() {
    const number = this.frame;
    this.stage.show(number);
    this.controls.show(number, this.playing);
    for (const part of this.parts) part.show(number);
    // Said only when it stands still: a status that changes thirty times a second says nothing.
    this.moment.textContent = this.playing ? "" : momentInWords(this.recording, number);
  }

  /** @param {number} now in ms */
  #tick(now) {
    if (!this.playing) return;
    const { header, frames } = this.recording;
    const passed_s = this.shownAt === null ? 0 : Math.min((now - this.shownAt) / 1000, 0.25);
    this.shownAt = now;
    const before = this.frame;
    const end = frames.length - 1;
    this.position = Math.min(this.position + passed_s * header.frames_per_s * this.speed, end);
    if (this.frame >= header.frames) this.playing = false;
    if (this.frame !== before || !this.playing) this.show();
    if (this.playing) requestAnimationFrame((next) => this.#tick(next));
  }

  #writeNotes() {
    const { header, deviation } = this.recording;
    const notes = header.missing.map((one) => missing(one.part, one.why));
    if (header.note) notes.push(element("p", { class: "replay-note" }, header.note));
    const checked = `Replayed: ${header.compared}.`;
    notes.push(element("p", { class: "replay-note" }, checked));
    if (deviation !== null && deviation > 1e-3) {
      const words = `The probabilities are not quite those of the match: log-probabilities differ by up to ${deviation.toFixed(3)}.`;
      notes.push(missing("policy", words));
    }
    this.notes.replaceChildren(...notes);
  }

  #listen(root, signal) {
    const options = { signal };
    document.addEventListener("keydown", (event) => this.#key(event, root), options);
    const again = () => this.show();
    const observer = new ResizeObserver(() => {
      this.stage.resized();
      for (const part of this.parts) part.resized?.();
      this.show();
    });
    observer.observe(root);
    signal?.addEventListener("abort", () => {
      observer.disconnect();
      theme.disconnect();
      this.playing = false;
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again, options);
    const theme = new MutationObserver(again);
    theme.observe(document.documentElement, { attributes: true });
  }

  /** @param {KeyboardEvent} event */
  #key(event, root) {
    const target = /** @type {HTMLElement} */ (event.target);
    const inside = target === document.body || root.contains(target);
    if (!inside || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && !target.closest("button, select, summary, a")) this.toggle();
    else if (event.key === "ArrowLeft" && !target.closest("select")) this.step(-1);
    else if (event.key === "ArrowRight" && !target.closest("select")) this.step(1);
    else return;
    event.preventDefault();
  }
}

/** The picture, and what is written of the players above it. */
class Stage {
  /** @param {Recording} recording */
  constructor(recording) {
    this.recording = recording;
    const header = recording.header;
    this.canvas = element("canvas", { tabindex: "0", role: "img" });
    this.canvas.setAttribute("aria-label", `Picture of the match of ${header.game}`);
    this.context = this.canvas.getContext("2d");
    this.backdrop = document.createElement("canvas");
    this.backdropKey = "";
    this.clock = element("output", { class: "replay-clock" });
    this.headline = element("p", { class: "replay-headline" });
    this.panels = header.players.map((player, side) => new PlayerPanel(recording, player, side));
    const words = element("div", { class: "replay-panels" });
    words.append(this.panels[0].root, this.clock, ...this.panels.slice(1).map((one) => one.root));
    const picture = element("div", { class: "replay-picture" }, this.canvas, this.headline);
    this.root = element("div", { class: "replay-stage" }, words, picture);
    this.root.style.background = recording.palette[header.background];
  }

  resized() {
    const [left, bottom, right, top] = this.recording.header.view;
    const width = this.canvas.parentElement.clientWidth;
    if (!width) return;
    const tall = (top - bottom) / (right - left);
    const height = Math.min(width * tall, Math.max(window.innerHeight * 0.72, 240));
    const ratio = window.devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
  }

  /** @param {number} number */
  show(number) {
    const frame = this.recording.frames[number];
    if (!this.canvas.width || this.canvas.style.height === "") this.resized();
    this.#paint(frame);
    this.clock.textContent = frame.clock;
    this.headline.textContent = frame.headline;
    this.headline.hidden = !frame.headline;
    this.panels.forEach((panel, side) => panel.show(frame.panels[side] ?? {}, frame));
  }

  /** @param {Frame} frame */
  #paint(frame) {
    const { canvas, context } = this;
    const painter = new Painter(this.recording, frame.view, canvas.width, canvas.height);
    const key = `${canvas.width} ${canvas.height} ${frame.view}`;
    if (key !== this.backdropKey) {
      this.backdropKey = key;
      this.backdrop.width = canvas.width;
      this.backdrop.height = canvas.height;
      const behind = this.backdrop.getContext("2d");
      behind.fillStyle = this.recording.palette[this.recording.header.background];
      behind.fillRect(0, 0, canvas.width, canvas.height);
      painter.clip(behind);
      for (const shape of this.recording.header.fixed) painter.paint(behind, shape);
    }
    context.drawImage(this.backdrop, 0, 0);
    context.save();
    painter.clip(context);
    for (const shape of frame.shapes) painter.paint(context, shape);
    context.restore();
  }
}

/** Shapes of any game on a canvas: whole numbers of units, y up, to pixels. */
class Painter {
  /**
   * @param {Recording} recording
   * @param {number[]} view left, bottom, right, top
   * @param {number} width pixels
   * @param {number} height pixels
   */
  constructor(recording, [left, bottom, right, top], width, height) {
    this.recording = recording;
    const { unit } = recording.header;
    this.perGameUnit = Math.min(width / (right - left), height / (top - bottom));
    this.scale = this.perGameUnit * unit;
    this.wide = (right - left) * this.perGameUnit;
    this.high = (top - bottom) * this.perGameUnit;
    this.left = (width - this.wide) / 2;
    this.base = (height + this.high) / 2;
  }

  /** @param {CanvasRenderingContext2D} context nothing outside the view is painted */
  clip(context) {
    context.beginPath();
    context.rect(this.left, this.base - this.high, this.wide, this.high);
    context.clip();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number[]} shape
   */
  paint(context, [kind, colour, ...numbers]) {
    context.fillStyle = context.strokeStyle = this.recording.palette[colour];
    if (kind === BOX || kind === HOLLOW) this.#box(context, numbers, kind === HOLLOW);
    else if (kind === DISC) this.#disc(context, numbers);
    else if (kind === LINE) this.#line(context, numbers);
    else this.#label(context, numbers);
  }

  x(x) {
    return this.left + x * this.scale;
  }

  y(y) {
    return this.base - y * this.scale;
  }

  #box(context, [left, bottom, right, top], hollow) {
    const wide = (right - left) * this.scale;
    const high = (top - bottom) * this.scale;
    const corner = Math.min(0.18 * Math.min(wide, high), 0.12 * this.perGameUnit);
    context.beginPath();
    context.roundRect(this.x(left), this.y(top), wide, high, Math.max(corner, 0));
    if (!hollow) {
      context.fill();
      return;
    }
    context.lineWidth = Math.max(1, 0.05 * this.perGameUnit);
    context.stroke();
  }

  #disc(context, [x, y, radius]) {
    context.beginPath();
    context.arc(this.x(x), this.y(y), radius * this.scale, 0, 2 * Math.PI);
    context.fill();
  }

  #line(context, [x0, y0, x1, y1, width]) {
    context.lineWidth = Math.max(1, width * this.scale);
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(this.x(x0), this.y(y0));
    context.lineTo(this.x(x1), this.y(y1));
    context.stroke();
  }

  #label(context, [x, y, size, text]) {
    context.font = `${Math.max(size * this.scale, 1)}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(this.recording.texts[text], this.x(x), this.y(y));
  }
}

/** One player: name, lives, a number, and a line of notes. */
class PlayerPanel {
  constructor(recording, player, side) {
    this.recording = recording;
    this.player = player;
    const name = element("strong", { class: "replay-name" }, player.name);
    name.style.color = recording.palette[player.paint];
    const role = player.learner ? element("span", { class: "replay-badge" }, "learner") : "";
    this.lives = element("span", { class: "replay-lives" });
    this.lives.style.color = recording.palette[player.paint];
    this.value = element("span", { class: "replay-amount" });
    this.notes = element("span", { class: "replay-doing" });
    const first = element("span", { class: "replay-who" }, name, role);
    const second = element("span", { class: "replay-state" }, this.lives, this.value);
    this.root = element("div", { class: side ? "replay-panel right" : "replay-panel" });
    this.root.append(first, second, this.notes);
  }

  /**
   * @param {Panel} panel
   * @param {Frame} frame
   */
  show(panel, frame) {
    const [left, all] = panel.lives ?? [0, 0];
    this.lives.textContent = "●".repeat(left) + "○".repeat(Math.max(all - left, 0));
    this.lives.title = all ? `${left} of ${all} lives` : "";
    this.value.textContent = panel.value ?? "";
    this.value.style.color = this.recording.palette[panel.value_paint ?? 0];
    const did = this.player.learner ? frame.thought?.did : frame.thought?.theirs;
    const acts = did ? actionInWords(this.recording.header, did) : "";
    this.notes.textContent = [acts, panel.notes].filter(Boolean).join(" · ");
  }
}

/** Buttons, the scrubber with marks of what happened, and a list of that. */
class Controls {
  /**
   * @param {Recording} recording
   * @param {{toggle: () => void, seek: (frame: number) => void, step: (by: number) => void,
   *          speed: (speed: number) => void}} on
   */
  constructor(recording, on) {
    this.recording = recording;
    this.on = on;
    this.marked = 0;
    this.playing = false;
    const { frames } = recording.header;
    this.play = button("Play", icon("play"), on.toggle, "replay-play");
    this.scrubber = element("input", { type: "range", min: "0", max: `${frames}`, step: "1" });
    this.scrubber.setAttribute("aria-label", "Position in the match");
    this.scrubber.addEventListener("input", () => on.seek(Number(this.scrubber.value)));
    this.marks = element("div", { class: "replay-marks", "aria-hidden": "true" });
    this.loaded = element("div", { class: "replay-loaded", "aria-hidden": "true" });
    this.place = element("output", { class: "replay-place" });
    this.events = element("ol", { class: "replay-events" });
    this.story = element("details", { class: "replay-story" });
    this.summary = element("summary", {}, "What happened");
    this.story.append(this.summary, this.events);
    const track = element("div", { class: "replay-track" }, this.loaded, this.marks, this.scrubber);
    const buttons = element("div", { class: "replay-buttons" });
    buttons.append(
      button("To the start", icon("start"), () => on.seek(0)),
      button("One frame back", icon("back"), () => on.step(-1)),
      this.play,
      button("One frame on", icon("on"), () => on.step(1)),
      this.place,
      this.#speeds(),
    );
    this.root = element("div", { class: "replay-controls" }, track, buttons, this.story);
  }

  #speeds() {
    const select = element("select", { class: "replay-speed", "aria-label": "Speed" });
    for (const speed of SPEEDS) {
      const option = element("option", { value: `${speed}` }, `${speed}×`);
      option.selected = speed === 1;
      select.append(option);
    }
    select.addEventListener("change", () => this.on.speed(Number(select.value)));
    return element("label", { class: "replay-speeds" }, element("span", {}, "Speed "), select);
  }

  /** Marks of events that are new, and how much is there. */
  grown() {
    const { events, frames, header } = this.recording;
    for (; this.marked < events.length; this.marked += 1) this.#mark(events[this.marked]);
    const share = frames.length / (header.frames + 1);
    this.loaded.style.transform = `scaleX(${share})`;
    this.loaded.hidden = share >= 1;
    this.summary.textContent = `What happened (${events.length})`;
    this.story.hidden = !events.length;
  }

  /** @param {MatchEvent} event */
  #mark(event) {
    const { header } = this.recording;
    const mark = element("span", { class: "replay-mark" });
    mark.style.left = `${(100 * event.frame) / header.frames}%`;
    this.marks.append(mark);
    const jump = element("button", { type: "button" });
    jump.append(
      element("span", { class: "replay-when" }, timeInWords(event.time_s)),
      ` ${event.words}`,
    );
    jump.addEventListener("click", () => this.on.seek(event.frame));
    this.events.append(element("li", {}, jump));
  }

  /**
   * @param {number} number
   * @param {boolean} playing
   */
  show(number, playing) {
    const { header, frames } = this.recording;
    this.scrubber.value = `${number}`;
    const clock = frames[number].clock;
    this.scrubber.setAttribute("aria-valuetext", `${clock}, frame ${number} of ${header.frames}`);
    this.place.textContent = `${number.toLocaleString("en")} / ${header.frames.toLocaleString("en")}`;
    if (playing === this.playing) return;
    this.playing = playing;
    this.play.replaceChildren(icon(playing ? "pause" : "play"));
    this.play.setAttribute("aria-label", playing ? "Pause" : "Play");
    this.play.title = playing ? "Pause (space)" : "Play (space)";
  }
}

/** A card beside the picture. */
class Card {
  /**
   * @param {string} title
   * @param {string} key what the mark at a bar means
   * @param {...(Node | string)} children
   */
  constructor(title, key, ...children) {
    this.root = element("section", { class: "replay-card" });
    this.aside = element("span", { class: "replay-aside" });
    this.root.append(element("h2", {}, title), ...children, this.aside);
    if (key) {
      const dot = element("span", { class: "replay-chosen" });
      this.root.append(element("p", { class: "replay-key", "aria-hidden": "true" }, dot, key));
    }
  }
}

/** The probability of every option, with the one that was executed marked. */
class Odds extends Card {
  /** @param {Recording} recording */
  constructor(recording) {
    super("Action probabilities", "what was executed");
    this.recording = recording;
    const { parts } = recording.header;
    this.rows = parts.map((part) => {
      const switches = part.options.length === 2 && part.options[1] === "on";
      const many = part.options.length > MOST_ROWS;
      const count = switches ? 1 : many ? MOST_LISTED : part.options.length;
      const rows = Array.from({ length: count }, () => new Bar());
      const list = element("ul", { class: "replay-bars" }, ...rows.map((row) => row.root));
      if (parts.length > 1 && !switches) {
        list.prepend(element("li", { class: "replay-part" }, part.name));
      }
      this.root.append(list);
      return { rows, switches };
    });
  }

  /** @param {number} number */
  show(number) {
    const { header, frames } = this.recording;
    const { thought, version } = frames[number];
    this.root.classList.toggle("empty", !thought);
    this.aside.textContent = whoDecided(thought, version);
    header.parts.forEach((part, index) => this.#part(part, this.rows[index], thought, index));
  }

  #part(part, { rows, switches }, thought, index) {
    const odds = thought?.odds?.[index] ?? [];
    const did = thought ? thought.did[index] : -1;
    if (switches) {
      const chosen = did === 1;
      rows[0].show(part.name, thought?.odds ? odds[1] : null, chosen, chosen ? "pressed" : "");
      return;
    }
    for (const row of rows) row.root.hidden = true;
    this.#listed(part, odds, did, thought).forEach(([option, share], place) => {
      const chosen = option === did;
      rows[place].show(part.options[option], share, chosen, chosen ? "executed" : "");
      rows[place].root.hidden = false;
    });
  }

  /** Pairs of an option and its probability: all, or of many the likeliest and what was done. */
  #listed(part, odds, did, thought) {
    // The probability of a decision is that of its one choice.
    const alone = this.recording.header.parts.length === 1;
    const recorded = alone ? (thought?.chosen ?? null) : null;
    if (part.options.length <= MOST_ROWS) {
      return part.options.map((_, option) => [
        option,
        odds[option] ?? (option === did ? recorded : null),
      ]);
    }
    const likeliest = odds.map(([option, share]) => [option, share]);
    if (did >= 0 && !likeliest.some(([option]) => option === did)) {
      likeliest.splice(MOST_LISTED - 1, 1, [did, recorded]);
    }
    return likeliest;
  }
}

/** @param {Thought | null} thought @param {number | null} version */
function whoDecided(thought, version) {
  if (!thought) return "after the last decision";
  if (thought.rules) return `the rules decided; version ${version} would`;
  return thought.odds ? `version ${version}` : "only what was executed";
}

/** What the policy expected over the whole match, with a cursor. */
class Value extends Card {
  /**
   * @param {Recording} recording
   * @param {(frame: number) => void} seek
   */
  constructor(recording, seek) {
    const canvas = element("canvas", { class: "replay-chart", role: "img" });
    super("Expected return", "", canvas);
    this.canvas = canvas;
    this.canvas.setAttribute("aria-label", "The return that the policy expected, over the match");
    this.recording = recording;
    this.number = 0;
    this.curve = document.createElement("canvas");
    this.curveKey = "";
    /** @type {{x: (frame: number) => number, y: (value: number) => number} | null} */
    this.scale = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      const box = this.canvas.getBoundingClientRect();
      const share = (event.clientX - box.left - GUTTER) / (box.width - GUTTER);
      seek(Math.round(share * recording.header.frames));
    });
  }

  resized() {
    fit(this.canvas);
  }

  grown() {
    this.show(this.number);
  }

  /** @param {number} number */
  show(number) {
    this.number = number;
    const value = this.recording.frames[number].thought?.value;
    this.aside.textContent = value === undefined ? "" : signed(value);
    if (!this.canvas.clientWidth) return;
    if (this.canvas.dataset.fitted === undefined) fit(this.canvas);
    this.#draw();
  }

  #draw() {
    const { width, height } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    const context = this.canvas.getContext("2d");
    const style = getComputedStyle(this.root);
    this.#drawCurve(style, ratio);
    if (!this.scale) return;
    const { x, y } = this.scale;
    context.clearRect(0, 0, width, height);
    context.drawImage(this.curve, 0, 0);
    context.lineWidth = 1.6 * ratio;
    context.strokeStyle = context.fillStyle = style.getPropertyValue("--c2") || "#c2410c";
    stroke(context, [[x(this.number), 0], [x(this.number), height]]);
    const now = this.recording.frames[this.number].thought?.value;
    if (now === undefined) return;
    context.beginPath();
    context.arc(x(this.number), y(now), 3.4 * ratio, 0, 2 * Math.PI);
    context.fill();
  }

  /** The curve has thousands of points, and changes only with what it is made from. */
  #drawCurve(style, ratio) {
    const { frames, header } = this.recording;
    const { width, height } = this.canvas;
    const [line, ink, soft] = ["--line", "--c1", "--soft"].map((one) => style.getPropertyValue(one));
    const key = [width, height, frames.length, line, ink, soft].join(" ");
    if (key === this.curveKey) return;
    this.curveKey = key;
    const known = frames.flatMap(({ thought }, frame) =>
      thought?.value === undefined ? [] : [[frame, thought.value]],
    );
    this.root.hidden = !known.length;
    if (!known.length) return;
    const low = known.reduce((least, [, value]) => Math.min(least, value), 0);
    const high = known.reduce((most, [, value]) => Math.max(most, value), 0);
    const room = Math.max(high - low, 1e-6);
    const [gutter, pad] = [GUTTER * ratio, 6 * ratio];
    const x = (frame) => gutter + (frame / header.frames) * (width - gutter - 2);
    const y = (value) => height - pad - ((value - low) / room) * (height - 2 * pad);
    this.scale = { x, y };
    this.curve.width = width;
    this.curve.height = height;
    const context = this.curve.getContext("2d");
    context.lineWidth = ratio;
    context.strokeStyle = line || "#999";
    stroke(context, [[gutter, y(0)], [width, y(0)]]);
    context.lineWidth = 1.6 * ratio;
    context.lineJoin = "round";
    context.strokeStyle = ink || "#0b6bab";
    stroke(context, known.map(([frame, value]) => [x(frame), y(value)]));
    context.fillStyle = soft || "#555";
    context.font = `${11 * ratio}px system-ui, sans-serif`;
    context.textBaseline = "top";
    context.fillText(signed(high), 0, 2 * ratio);
    context.textBaseline = "bottom";
    context.fillText(signed(low), 0, height - 2 * ratio);
  }
}

/** Who the policy believes the opponent to be. */
class Belief extends Card {
  /** @param {Recording} recording */
  constructor(recording) {
    super("Belief about the opponent", "who it was");
    this.recording = recording;
    const { opponents } = recording.header;
    this.rows = opponents.map(() => new Bar());
    this.root.append(
      element("ul", { class: "replay-bars" }, ...this.rows.map((row) => row.root)),
    );
    this.root.hidden = !opponents.length;
    const named = opponents.indexOf(recording.header.opponent);
    /** The number of the opponent that it really was: a snapshot where it is none of the bots. */
    this.real = named >= 0 ? named : opponents.length - 1;
  }

  /** @param {number} number */
  show(number) {
    const { frames, header } = this.recording;
    const belief = frames[number].thought?.belief;
    this.root.classList.toggle("empty", !belief);
    this.rows.forEach((row, kind) => {
      const real = kind === this.real;
      row.show(header.opponents[kind], belief?.[kind] ?? null, real, real ? "played" : "");
    });
  }
}

/** Which of the last frames the policy looks at, the present one on the right. */
class Attention extends Card {
  /** @param {Recording} recording */
  constructor(recording) {
    const canvas = element("canvas", { class: "replay-strip", role: "img" });
    const ends = element("p", { class: "replay-ends" });
    super("Attention over its window", "", canvas, ends);
    this.canvas = canvas;
    this.recording = recording;
    const { window: frames, frame_s } = recording.header;
    const ago = timeInWords((frames - 1) * frame_s);
    ends.append(element("span", {}, `${frames - 1} frames ago (${ago})`), element("span", {}, "now"));
    this.root.hidden = !frames;
  }

  resized() {
    fit(this.canvas);
  }

  /** @param {number} number */
  show(number) {
    const { frames, header } = this.recording;
    const thought = frames[number].thought;
    if (this.root.hidden || !this.canvas.clientWidth) return;
    if (this.canvas.dataset.fitted === undefined) fit(this.canvas);
    const context = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    const style = getComputedStyle(this.root);
    context.clearRect(0, 0, width, height);
    context.globalAlpha = 1;
    context.fillStyle = style.getPropertyValue("--grid") || "#ddd";
    context.fillRect(0, 0, width, height);
    this.aside.textContent = "";
    if (!thought?.attention) return;
    context.fillStyle = style.getPropertyValue("--c4") || "#a33d86";
    const cell = width / header.window;
    let largest = 0;
    for (let place = 0; place < thought.attention.length; place += 1) {
      const level = LEVELS.indexOf(thought.attention[place]) / (LEVELS.length - 1);
      if (level > LEVELS.indexOf(thought.attention[largest]) / (LEVELS.length - 1)) largest = place;
      context.globalAlpha = level;
      context.fillRect(place * cell, 0, Math.max(cell - 1, 1), height);
    }
    context.globalAlpha = 1;
    const ago = header.window - 1 - largest;
    const when = ago === 0 ? "now" : `${ago} ago`;
    this.aside.textContent = `peak ${when}, ${percent(thought.most)}`;
    this.canvas.setAttribute("aria-label", `Attention: ${this.aside.textContent}`);
  }
}

/** A name, a bar and a share of a thousand. */
class Bar {
  constructor() {
    this.name = element("span", { class: "replay-option" });
    this.fill = element("span", { class: "replay-fill" });
    this.share = element("span", { class: "replay-share" });
    this.mark = element("span", { class: "replay-chosen" });
    this.spoken = element("span", { class: "replay-spoken" });
    this.mark.append(this.spoken);
    const track = element("span", { class: "replay-bar" }, this.fill);
    this.root = element("li", {}, element("span", { class: "replay-label" }, this.name, this.mark));
    this.root.append(track, this.share);
  }

  /**
   * @param {string} name
   * @param {number | null} share in thousandths; null: not known
   * @param {boolean} chosen
   * @param {string} word what the mark of a chosen one says
   */
  show(name, share, chosen, word) {
    this.name.textContent = name;
    this.name.title = name;
    this.fill.style.transform = `scaleX(${Math.min((share ?? 0) / 1000, 1)})`;
    this.share.textContent = share === null ? "" : percent(share);
    this.mark.hidden = !word;
    this.mark.title = word;
    this.spoken.textContent = word;
    this.root.classList.toggle("chosen", chosen);
  }
}

/** @param {Recording} recording @param {number} number */
function momentInWords(recording, number) {
  const { header, frames, events, result } = recording;
  const frame = frames[number];
  const words = [`${frame.clock}: frame ${number} of ${header.frames}.`];
  const last = events.filter((event) => event.frame <= number).at(-1);
  if (number === header.frames && result) words.push(`${sentence(result)}.`);
  else if (last) words.push(`Last: ${last.words}.`);
  const { thought } = frame;
  if (thought) {
    const who = thought.rules ? "The rules chose" : "The policy chose";
    const sure = thought.chosen === undefined ? "" : ` (${percent(thought.chosen)})`;
    const value = thought.value === undefined ? "" : `, expecting ${signed(thought.value)}`;
    words.push(`${who} ${actionInWords(header, thought.did)}${sure}${value}.`);
    if (thought.belief) {
      const likeliest = thought.belief.indexOf(Math.max(...thought.belief));
      const share = percent(thought.belief[likeliest]);
      words.push(`It takes the opponent for ${header.opponents[likeliest]} (${share}).`);
    }
  }
  return words.join(" ");
}

/** @param {Header} header @param {number[]} did */
function actionInWords(header, did) {
  const words = header.parts.flatMap((part, index) => {
    const option = part.options[did[index]] ?? `${did[index]}`;
    if (part.options.length === 2 && part.options[1] === "on") {
      return did[index] === 1 ? [part.name] : [];
    }
    return [header.parts.length > 1 ? `${part.name} ${option}` : option];
  });
  return words.join(" + ") || "nothing";
}

function showProblem(root, title, words, again) {
  const card = element("div", { class: "replay-problem", role: "alert" });
  card.append(element("strong", {}, title));
  if (words) card.append(element("p", {}, words));
  if (again) card.append(button("Try again", "Try again", again));
  root.replaceChildren(card);
}

/** @param {string} part @param {string} why */
function missing(part, why) {
  const name = element("strong", {}, `${sentence(part)} not shown. `);
  return element("p", { class: "replay-missing" }, name, why);
}

/**
 * An element with attributes and children; text is always text.
 *
 * @param {string} name
 * @param {Record<string, string>} attributes
 * @param {...(Node | string)} children
 * @returns {any}
 */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const ICONS = {
  play: "M6 4l14 8-14 8z",
  pause: "M6 4h4v16H6zM14 4h4v16h-4z",
  start: "M5 4h3v16H5zM20 4v16L9 12z",
  back: "M17 4v16L6 12z",
  on: "M5 4l11 8-11 8zM17 4h3v16h-3z",
};

/** A picture for a button, which no font must have. @param {keyof typeof ICONS} name */
function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * @param {string} name
 * @param {Node | string} face
 * @param {() => void} act
 * @param {string} [class_]
 */
function button(name, face, act, class_ = "") {
  const made = element("button", { type: "button", title: name, "aria-label": name }, face);
  if (class_) made.className = class_;
  made.addEventListener("click", act);
  return made;
}

/** Give a canvas as many pixels as the screen has for it. @param {HTMLCanvasElement} canvas */
function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(Math.round(canvas.clientWidth * ratio), 1);
  canvas.height = Math.max(Math.round(canvas.clientHeight * ratio), 1);
  canvas.dataset.fitted = "";
}

/** @param {CanvasRenderingContext2D} context @param {number[][]} points */
function stroke(context, points) {
  context.beginPath();
  points.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}

/** @param {number} thousandths */
function percent(thousandths) {
  const share = thousandths / 10;
  return share > 0 && share < 1 ? "<1%" : `${Math.round(share)}%`;
}

/** @param {number} value */
function signed(value) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
}

/** @param {number} seconds */
function timeInWords(seconds) {
  if (seconds < 60) return `${Number(seconds.toFixed(1))} s`;
  return `${Math.floor(seconds / 60)}:${`${Math.floor(seconds % 60)}`.padStart(2, "0")}`;
}

/** @param {string} words */
function sentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
