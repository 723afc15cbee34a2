// Makes the players of a page live: a reader's choice goes to Python in a worker, which is loaded at the first one.
// The front end is stepper.js, as in a notebook; this module only carries its messages and knows no protocol.
import stepper from "./stepper.js";

const HERE = new URL(".", import.meta.url);
const PAGES = new URL("../../simulators/", HERE);
const MEGABYTES = "7 MB";
const WORDS = {
  loading: `Python is being loaded into this page (${MEGABYTES}, once); your choice follows ...`,
  opening: `Python is being loaded into this page (${MEGABYTES}, once); the run of this address follows ...`,
  silent: "No answer yet: Python is still busy with your last choice. Stepping goes on without it.",
  impossible: "This browser has no WebAssembly, so nothing can be chosen here; stepping through the run works.",
  incomplete: "Part of this page could not be loaded, so nothing can be chosen; load it again. Stepping works without it.",
  failed: "Python stopped in this page, so nothing was changed. Choose again to load it anew; stepping works without it.",
};

let worker = null, ready = false;
const players = [];

function start() {
  if (worker) return;
  worker = new Worker(new URL("worker.js", HERE), { type: "module", name: "labkit" });
  worker.addEventListener("message", ({ data }) => {
    if (data.failed) return fail(data.failed);
    ready = true;
    const player = players[data.player];
    for (const answer of JSON.parse(data.answers)) player.hear(answer);
  });
  worker.addEventListener("error", (event) => fail(event.message));
  worker.addEventListener("messageerror", () => fail("a message could not be read"));
}

// The players keep the run that they show, so that a new worker can go on from there.
function fail(reason) {
  console.warn(`labkit: ${reason}`);
  worker?.terminate();
  worker = null;
  ready = false;
  for (const player of players.filter((each) => each.asked)) player.stopped(WORDS.failed);
}

// What stepper.js expects of anywidget's model.
class Model {
  constructor(shown, choices) {
    this.player = players.push(this) - 1;
    const [story, beside] = shown.pair ?? [shown, null];
    this.shown = { story, beside, said: shown.said ?? "", at: story.at ?? 0, notice: "", done: [], version: 0, choices: choices(story) };
    this.handlers = {};
    this.known = this.asked = this.starting = this.chosen = false;
  }

  get(name) {
    return { shown: this.shown, link: modelOf(this.shown.story.head) in models ? address : null, words: this }[name];
  }

  on(event, act) { this.handlers[event] = act; }
  off(event) { delete this.handlers[event]; }

  get silent() { return WORDS.silent; }
  waiting() { return ready ? "" : typeof WebAssembly === "object" ? WORDS.loading : WORDS.impossible; }

  send(message) {
    if (typeof WebAssembly !== "object") return this.stopped(WORDS.impossible);
    this.asked = true;
    this.chosen = !("open" in message || "scenario" in message);
    try {
      start();
    } catch (error) {
      return fail(String(error));
    }
    if (!this.known) {
      const { story, beside, at, done } = this.shown;
      this.post({ start: { trace: traceOf(story), watch: story.watch, beside: beside && traceOf(beside), at, done } });
      this.known = this.starting = true;
    }
    this.post({ message });
  }

  post(message) { worker.postMessage(JSON.stringify({ player: String(this.player), ...message })); }

  hear(answer) {
    if (answer.refused) return this.stopped(answer.refused);
    if (!answer.shown) {
      this.handlers["msg:custom"]?.(answer);
      if (answer.story && this.chosen) follow(traceOf(this.shown.story));
      return;
    }
    this.shown = answer.shown;
    if (!this.starting) this.handlers["change:shown"]?.();
    this.starting = false;  // the page shows this run already, and the answer to the reader's choice comes next
  }

  stopped(notice) {
    this.known = this.asked = this.starting = false;
    this.say(notice);
  }

  say(notice) { this.handlers["msg:custom"]?.({ notice }); }
}

// A trace as Python writes it: the steps of the whole run.
const traceOf = (story) => story.head + story.steps.slice(1).map((step) => step.a.replace("(", "-").replace(")", "")).join(".");

const modelOf = (trace) => trace.split("~")[0];
const address = (trace) => `${new URL(`${modelOf(trace)}.html`, PAGES)}#${trace}`;

// The address of a simulator's page follows the reader's choices, so that loading it again loses none.
function follow(trace) {
  if (!document.body.dataset.simulator) return;
  try {
    history.replaceState(null, "", `#${trace}`);
  } catch (error) {  // browsers limit how often that may happen
    console.info(`labkit: ${error}`);
  }
}

const NOTHING = { scenarios: {}, parameters: [], tasks: {}, formats: [], fault_keys: {} };
let models = {};

function opened() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return location.hash.slice(1);
  }
}

async function enliven() {
  models = await (await fetch(new URL("models.json", HERE))).json();
  const choices = (story) => models[modelOf(story.head)] ?? NOTHING;
  for (const root of document.querySelectorAll("[data-lk-on]")) {
    const holder = document.createElement("div"), model = new Model(root.shown, choices);
    root.lastElementChild.replaceWith(holder);
    stepper.render({ model, el: holder });
    root.setAttribute("data-lk-live", "");
    const { simulator: page, first } = document.body.dataset;
    if (!page) continue;
    const open = (run) => {
      const other = modelOf(run).split(".")[0];
      if (other !== page && other in models) return location.replace(`${new URL(`${other}.html`, PAGES)}${location.search}#${run}`);
      const told = model.waiting();
      model.send({ open: run });
      if (model.asked && told) model.say(told === WORDS.loading ? WORDS.opening : told);
    };
    addEventListener("hashchange", () => open(opened() || first));
    // The address does not change at a second click on the link of the run that it names.
    addEventListener("click", ({ target }) => {
      if (target.closest("a[href]")?.href === location.href && opened()) open(opened());
    });
    if (opened()) open(opened());
  }
}

enliven().catch((error) => {
  console.warn(`labkit: ${error}`);
  for (const root of document.querySelectorAll("[data-lk-on]:not([data-lk-live])")) root.append(WORDS.incomplete);
});
