// A client to read and to copy: a made-up game, played on the decisions of `understudy serve`.
//
//   understudy serve --schema my_game.toml           in one terminal
//   node client.js ws://127.0.0.1:8765/ws 3 100      in another: URL, territories, ticks
//
// It needs no package: it uses the WebSocket of browsers, which Node has since version 22
// (Node 20: `node --experimental-websocket client.js`). In a page, use the class `Queen` as it is;
// the page's origin must be one that the server was started with (`--allow-origin`).
// The game below plays every schema; the game `territory` speaks in messages of its own.

"use strict";

const PROTOCOL = 1;
const TICK_MS = 20;

/** A connection to the server: messages out, promises of their answers back. */
class Queen {
  /** Resolves once the server has said welcome. A token goes into the hello, never into the URL. */
  static open(url, { client, resume, token } = {}) {
    return new Promise((resolve, reject) => {
      const queen = new Queen(new WebSocket(url));
      queen.socket.onerror = () => reject(new Error(`${url}: no server answers there`));
      queen.socket.onopen = () => {
        const hello = { type: "hello", protocol: PROTOCOL };
        if (client) hello.client = client;
        if (resume) hello.resume = resume; // of the last welcome: our territories are ours again
        if (token) hello.token = token;
        queen.ask(hello).then((welcome) => {
          queen.welcome = welcome;
          resolve(queen);
        }, reject);
      };
    });
  }

  constructor(socket) {
    this.socket = socket;
    this.next = 0;
    this.waiting = new Map(); // id of a request -> what to do with its answer
    socket.onmessage = (event) => this.#answer(JSON.parse(event.data));
    socket.onclose = (event) => {
      const error = new Error(`closed (${event.code}) ${event.reason}`);
      for (const { reject } of this.waiting.values()) reject(error);
      this.waiting.clear();
    };
  }

  /** Send a message; the promise is its answer. Many may be under way at once: ids tell them apart. */
  ask(message) {
    const id = String(this.next++);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.socket.send(JSON.stringify({ ...message, id }));
    });
  }

  close() {
    this.socket.close(1000);
  }

  #answer(answer) {
    const waiting = this.waiting.get(answer.id);
    if (waiting === undefined) return; // an answer to nobody: a message that could not be read
    this.waiting.delete(answer.id);
    if (answer.type === "error") {
      waiting.reject(new Error(`${answer.code}: ${answer.message} (field: ${answer.field})`));
    } else {
      waiting.resolve(answer);
    }
  }
}

/** What there is to choose from: the names of each part; a single choice is one part. */
function options(actions) {
  if (actions.type === "spawn") throw new Error("territory has messages of its own (protocol.md)");
  return actions.parts ?? { action: actions.names };
}

/** The made-up game: the share of parts in which 0 <= pointer < 1 points at the choice. */
function worth(pointer, action, parts) {
  const chosen = typeof action === "string" ? { action } : action;
  const right = Object.entries(parts).map(
    ([part, names]) => chosen[part] === names[Math.floor(pointer * names.length)],
  );
  return right.filter(Boolean).length / right.length;
}

/** One tick of one territory: look, ask, act, and tell what it was worth. */
async function tick(queen, territory, number) {
  const seen = queen.welcome.features.map(() => Math.random());
  const decision = await queen.ask({ type: "observation", territory, tick: number, features: seen });
  const sent = decision.verdict === "SEND"; // WAIT: the gate advises against it, so do nothing
  const reward = sent ? worth(seen[0], decision.action, options(queen.welcome.actions)) : 0;
  const { decision_id } = decision; // null: the server could not write it down
  if (decision_id !== null) await queen.ask({ type: "reward", decision_id, reward });
  return { reward, version: decision.version };
}

async function main(url = "ws://127.0.0.1:8765/ws", territories = 3, ticks = 100) {
  const queen = await Queen.open(url);
  const { game, features, actions } = queen.welcome;
  const sizes = Object.values(options(actions)).map((names) => names.length);
  console.log(`${game}: ${features.length} features, ${sizes.join(" ")} actions`);
  const names = Array.from({ length: territories }, (_, number) => `demo-${number}`);
  const shownEvery = Math.max(Math.floor(ticks / 10), 1);
  let lately = 0;
  for (let number = 0; number < ticks; number++) {
    const results = await Promise.all(names.map((name) => tick(queen, name, number)));
    for (const { reward } of results) lately += reward;
    if ((number + 1) % shownEvery === 0) {
      const mean = (lately / (shownEvery * territories)).toFixed(3);
      console.log(`tick ${number + 1}  version ${results[0].version}  mean ${mean}`);
      lately = 0;
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS)); // a real game takes its time
  }
  await Promise.all(names.map((territory) => queen.ask({ type: "end", territory })));
  queen.close();
}

if (typeof process !== "undefined") {
  const [url, territories, ticks] = process.argv.slice(2);
  main(url, Number(territories ?? 3), Number(ticks ?? 100)).catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
