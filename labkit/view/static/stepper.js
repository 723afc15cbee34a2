// The player of a simulated run. It shows data that Python has computed (labkit/view/narration.py) and knows no protocol.
// It has two hosts: a text/html output calls mountAll(id), and anywidget calls `render` of the default export.

const OUTCOMES = { h: ["✓", "holds"], v: ["✗", "violated"], u: ["?", "open"] };
const FATES = { right: "✓", mixed: "◐", wrong: "✗", unknown: "?" };
const MILLISECONDS = 1000, CALM_MILLISECONDS = 1500;

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function svgOf(size, label) {
  const holder = el("div");
  holder.innerHTML = `<svg class="lk-pic" role="img" viewBox="0 0 ${size[0]} ${size[1]}" width="${size[0]}" height="${size[1]}"></svg>`;
  holder.firstChild.style.cssText = `width:100%;height:auto;max-width:${size[0]}px;min-width:calc(var(--least, .8) * ${Math.round(size[0])}px)`;
  holder.firstChild.setAttribute("aria-label", label);
  return holder.firstChild;
}

function group(parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "g");
  parent.append(made);
  return made;
}

const short = (action) => action.replace("(", "-").replace(")", "");
const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

export function mount(root, story, live = null) {
  let data = story, step = 0, timer = null, groups = [], shown = [], follower = null, built = "", drawn = "", lined = "";
  root.classList.add("lk");
  root.replaceChildren();
  for (const [name, value] of Object.entries({ role: "group", tabindex: "0", "data-lm-suppress-shortcuts": "true", "aria-roledescription": "stepper" })) root.setAttribute(name, value);

  const title = el("h4"), watch = el("p", { class: "lk-watch" });
  const say = el("p", { class: "lk-say", "aria-live": "polite" });
  const left = el("p", { class: "lk-left" });
  const stage = el("div", { class: "lk-stage", role: "figure", "aria-label": "picture of this step" });
  const strip = el("div", { class: "lk-strip", role: "figure", "aria-label": "space-time diagram" });
  const claims = el("ul", { class: "lk-claims", "aria-label": "properties after this step" });
  const button = (text, label, act) => {
    const made = el("button", { type: "button", "aria-label": label, title: label }, text);
    made.addEventListener("click", act);
    return made;
  };
  const stateOf = (each) => each.x.map((part) => data.table[part]).join("; ");
  const last = () => data.steps.length - 1;
  const first = button("|<", "first step", () => go(0)), back = button("< back", "step back", () => go(step - 1));
  const next = button("next >", "next step", () => go(step + 1)), play = button("play", "play", toggle);
  next.classList.add("lk-main");
  const slider = el("input", { type: "range", min: "0", step: "1", "aria-label": "step" });
  const place = el("span", { class: "lk-place" });
  const chips = el("div", { class: "lk-chips", role: "group" });
  const copy = button("copy trace", "copy the trace up to this step, for lab.show()", () => copyText(traceHere()));
  const link = live?.link ? button("copy link", "copy an address that opens this run up to this step; in step 0 it opens the whole run", () => copyText(live.link(traceTo(step || last())))) : "";
  const help = el("div", { class: "lk-help", hidden: true });
  const helper = button("?", "keys", () => toggleHelp());
  const status = el("p", { class: "lk-status", role: "status" });
  const field = el("input", { type: "text", class: "lk-trace", readonly: true, hidden: true, "aria-label": "trace up to this step" });
  const controls = el("div", { class: "lk-bar" }, first, back, next, play, slider, place, copy, link, helper);
  const tools = el("div", { class: "lk-bar lk-tools" }, field);
  const legend = el("div", { class: "lk-legend", role: "list", "aria-label": "legend" });
  const table = el("details", { class: "lk-table" }, el("summary", {}, "all steps as a table"));
  const acting = el("div", { class: "lk-view" }, say, stage, left, controls, chips, status);
  const scene = el("div", { class: "lk-scene" }, acting, live ? live.handles : "");
  const menu = el("div", { class: "lk-menu", role: "group", "aria-label": "what can happen to this", hidden: true });
  const head = el("div", { class: "lk-head" }, title, watch);
  const parts = [head, live ? live.tasks : "", scene, menu, tools, help, claims, strip, legend, table];
  root.append(...parts);
  if (live) {
    tools.prepend(...live.tools(button));
    stage.classList.add("lk-acting");
    stage.addEventListener("click", (event) => actOn(event.target.closest(".lk-pic > g"), event));
  }

  function build() {
    root.setAttribute("aria-label", `${data.title}, ${data.chosen}`);
    title.replaceChildren(data.title, el("span", {}, ` ${data.chosen}`));
    watch.textContent = data.watch ? `Watch for: ${data.watch}` : "";
    watch.hidden = !data.watch;
    buildPicture();
    buildLines();
    slider.max = String(last());
    if (table.open) fillTable();
    const fixed = JSON.stringify([data.claims, data.legend, data.keys]);
    if (fixed === built) return;
    built = fixed;
    claims.replaceChildren(...data.claims.map(() => el("li", {}, el("b"), el("span", {}, el("span"), el("i")))));
    legend.replaceChildren(...data.legend.map(([drawn, words]) => {
      const entry = el("span", { role: "listitem" });
      entry.innerHTML = drawn;
      entry.append(words);
      return entry;
    }));
    help.replaceChildren(...data.keys.map(([keys, words]) => el("div", {}, el("kbd", {}, keys), ` ${words}`)));
  }

  // A piece of the picture keeps its number while the layout (`generation`) is the same, so a choice draws only changed pieces.
  function buildPicture() {
    const wanted = JSON.stringify([data.title, data.generation, data.size, data.slots]);
    if (wanted === drawn) return;
    drawn = wanted;
    const picture = svgOf(data.size, data.title);
    groups = data.slots.map(() => group(picture));
    shown = data.slots.map(() => -1);
    stage.replaceChildren(picture);
  }

  function buildLines() {
    if (data.lines.body === lined) return;
    lined = data.lines.body;
    const lines = svgOf(data.lines.size, "space-time diagram; the table below has the same in words");
    lines.innerHTML = `${lined}<rect class="cur" y="2" rx="3"></rect>`;
    lines.addEventListener("click", (event) => {
      const box = lines.getBoundingClientRect();
      const x = (event.clientX - box.left) * (data.lines.size[0] / box.width);
      go(Math.round((x - data.lines.left) / data.lines.step));
    });
    strip.replaceChildren(lines);
  }

  function go(to, following = false) {
    step = Math.max(0, Math.min(last(), to));
    const now = data.steps[step], frame = data.frames[step], before = data.frames[Math.max(0, step - 1)];
    frame.forEach((piece, slot) => {
      if (shown[slot] !== piece) groups[slot].innerHTML = data.table[piece];
      shown[slot] = piece;
      groups[slot].setAttribute("class", piece !== before[slot] ? "now" : "");
    });
    closeMenu();
    if (!live?.busy()) status.textContent = "";  // because it was about another step
    if (live) for (const number of now.e) for (const part of data.acts[number][2]) groups[data.slots.indexOf(part)]?.classList.add("can");
    stage.firstChild.setAttribute("aria-label", `${data.title}, step ${step}: ${stateOf(now)}`);
    say.textContent = `${step ? `${step}. ` : ""}${data.table[now.s]}`;
    left.textContent = data.table[now.l];
    now.v.forEach(([outcome, because], number) => {
      const [sign, word] = OUTCOMES[outcome], item = claims.children[number];
      item.className = word;
      item.children[0].textContent = sign;
      item.children[0].setAttribute("aria-label", word);
      item.children[1].children[0].textContent = data.claims[number][1];
      item.children[1].children[1].textContent = data.table[because] ? ` ${data.table[because]}` : "";
    });
    const cursor = strip.firstChild.lastChild, half = Math.max(4, data.lines.step * 0.35);
    const x = data.lines.left + data.lines.step * step;
    for (const [name, value] of Object.entries({ x: x - half, width: 2 * half, height: data.lines.size[1] - 4 })) cursor.setAttribute(name, value);
    if (data.lines.size[0] > 1000) strip.scrollLeft = x - strip.clientWidth / 2;
    slider.value = String(step);
    slider.setAttribute("aria-valuetext", `step ${step} of ${last()}: ${data.table[now.s]}`);
    place.textContent = `step ${step} of ${last()}`;
    // Not `disabled`: a button that is disabled while it has the focus loses it, and the keys go elsewhere.
    for (const [each, off] of [[first, step === 0], [back, step === 0], [next, step === last()]]) each.setAttribute("aria-disabled", String(off));
    fillChips(now);
    field.value = traceHere();
    mark();
    if (step === last()) stop();
    if (follower && !following) follower.go(step, true);
    live?.moved(step, traceHere());
  }

  const isFault = (event) => event !== "step" && event !== "restart";

  // A click on a part of the picture: its crash or restart, else another fault, else its next step; a menu if there are several.
  function actOn(group, event) {
    const slot = groups.indexOf(group);
    if (slot < 0) return closeMenu();
    const here = data.steps[step].e.map((number) => data.acts[number]).filter((act) => act[2].includes(data.slots[slot]));
    const kinds = [(kind) => kind === "crash" || kind === "restart", (kind) => kind !== "step", () => true];
    const offered = kinds.map((wanted) => here.filter((act) => wanted(act[3]))).find((acts) => acts.length) ?? [];
    if (!offered.length) status.textContent = "Nothing can happen to this now.";
    else if (offered.length === 1) live.act(offered[0][0], step);
    else openMenu(offered, event);
  }

  function openMenu(offered, event) {
    const box = root.getBoundingClientRect();
    menu.replaceChildren(...offered.map(([action, sentence, , kind]) => {
      const entry = el("button", { type: "button", class: isFault(kind) ? "lk-fault" : false }, sentence);
      entry.addEventListener("click", () => live.act(action, step));
      return entry;
    }));
    menu.hidden = false;
    menu.style.left = "0";  // otherwise its last position would limit its width
    const left = Math.max(0, Math.min(event.clientX - box.left, box.width - menu.offsetWidth));
    menu.style.cssText = `left:${left}px;top:${event.clientY - box.top + 6}px`;
    menu.firstChild.focus({ preventScroll: true });
    event.stopPropagation();
  }

  function closeMenu() {
    if (menu.contains(document.activeElement)) root.focus({ preventScroll: true });
    menu.hidden = true;
  }

  function fillChips(now) {
    const taken = step < last() ? data.steps[step + 1].a : null;
    const ladder = live?.ladder(traceHere());
    const made = now.e.map((number) => {
      const [action, sentence, parts, event] = data.acts[number];
      const fault = isFault(event);
      const chip = el(live ? "button" : "span", { class: `lk-chip${fault ? " lk-fault" : ""}${action === taken ? " lk-taken" : ""}`, title: sentence, "data-event": event });
      if (live) {
        chip.setAttribute("type", "button");
        chip.setAttribute("aria-label", `${action}: ${sentence}`);
        chip.addEventListener("click", () => live.act(action, step));
      }
      const said = action.replaceAll("_", " ");
      chip.append(fault && !said.startsWith(event) ? `${event}: ${said}` : said);
      if (live && live.keyOf(event)) chip.append(" ", el("kbd", {}, live.keyOf(event)));
      for (const part of parts) {
        const slot = groups[data.slots.indexOf(part)], mark = event === "crash" ? "would" : "meant";
        for (const [on, off] of [["mouseenter", "mouseleave"], ["focus", "blur"]]) {
          chip.addEventListener(on, () => slot?.classList.add(mark));
          chip.addEventListener(off, () => slot?.classList.remove(mark));
        }
      }
      return ladder ? rungOf(chip, action, ladder.rungs.find((rung) => rung.a === action)) : chip;
    });
    const ways = live ? "choose what happens, here or in the picture:" : "what could happen here:";
    const lead = !made.length ? "Nothing more can happen: this is an end." : ladder ? `${ways} ${ladder.said}` : ways;
    const had = chips.contains(document.activeElement);
    chips.classList.toggle("lk-ladder", Boolean(ladder));
    chips.replaceChildren(el("span", { class: "lk-dim" }, lead), ...made);
    chips.setAttribute("aria-label", lead);
    if (had) root.focus({ preventScroll: true });
  }

  // One possible action, and whether runs after it go wrong. Sign, bar and words say the same, so nothing depends on colour.
  function rungOf(chip, action, rung) {
    const known = rung.share !== null, wide = known ? Math.round(100 * rung.share) : 0;
    const bar = el("span", { class: "lk-share", "aria-hidden": "true" }, el("i", { style: `width:${wide}%` }));
    const made = el("div", { class: `lk-rung lk-is-${rung.fate}${known ? "" : " lk-open"}` }, bar, el("b", { "aria-hidden": "true" }, FATES[rung.fate]), chip, el("span", {}, rung.words));
    if (rung.leads) made.append(button("show it", `${action}: go to the nearest schedule that ends badly`, () => live.jump(action, step)));
    return made;
  }

  function fillTable() {
    const head = el("tr", {}, ...["step", "who", "what", "state after it"].map((name) => el("th", { scope: "col" }, name)));
    const rows = data.steps.map((each, number) => {
      const jump = el("button", { type: "button", "aria-label": `go to step ${number}` }, String(number));
      jump.addEventListener("click", () => go(number));
      return el("tr", { class: number === data.differs && number ? "lk-differs" : false }, el("td", {}, jump), el("td", {}, each.w), el("td", {}, data.table[each.s]), el("td", {}, stateOf(each)));
    });
    table.replaceChildren(table.firstChild, el("div", { class: "lk-scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))));
    mark();
  }

  function mark() {
    if (!table.open) return;
    [...table.querySelectorAll("tbody tr")].forEach((row, number) => number === step ? row.setAttribute("aria-current", "step") : row.removeAttribute("aria-current"));
  }

  table.addEventListener("toggle", () => { if (table.open) fillTable(); });

  function toggle() {
    if (timer) return stop();
    if (step === last()) go(0);
    say.setAttribute("aria-live", "off");
    play.textContent = "stop";
    play.setAttribute("aria-label", "stop playing");
    timer = setInterval(() => root.isConnected ? go(step + 1) : stop(), calm() ? CALM_MILLISECONDS : MILLISECONDS);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    say.setAttribute("aria-live", "polite");
    play.textContent = "play";
    play.setAttribute("aria-label", "play");
  }

  const traceHere = () => traceTo(step);

  function traceTo(end) {
    return data.head + data.steps.slice(1, end + 1).map((each) => short(each.a)).join(".");
  }

  async function copyText(text) {
    field.value = text;
    field.hidden = false;
    field.select();
    try {
      await navigator.clipboard.writeText(text);
      status.textContent = "copied";
    } catch {
      status.textContent = "select the text and copy it";
    }
  }

  function toggleHelp() {
    help.hidden = !help.hidden;
    helper.setAttribute("aria-expanded", String(!help.hidden));
  }

  // Tab and the arrow keys reach and scroll an area that is wider than the page; the area fades where it is cut.
  const fade = (each) => {
    each.classList.toggle("lk-more-left", each.scrollLeft > 1);
    each.classList.toggle("lk-more-right", each.scrollLeft + each.clientWidth < each.scrollWidth - 1);
  };
  const reach = new ResizeObserver(() => {
    for (const each of [stage, strip]) {
      each.scrollWidth > each.clientWidth ? each.setAttribute("tabindex", "0") : each.removeAttribute("tabindex");
      fade(each);
    }
  });
  for (const each of [stage, strip]) {
    reach.observe(each);
    each.addEventListener("scroll", () => fade(each));
  }
  slider.addEventListener("input", () => go(Number(slider.value)));
  root.addEventListener("click", (event) => {
    if (!event.target.closest("button, input, summary, select, textarea, a, label")) root.focus({ preventScroll: true });
  });
  root.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=range]), select, textarea");
    if (event.key === "Escape") closeMenu();
    if (event.key !== "Tab" && event.key !== "Escape") event.stopPropagation();
    const scrolling = (event.target === stage || event.target === strip) && event.key.startsWith("Arrow");
    if (typing || scrolling || event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target.closest("button, summary");
    const acts = { ArrowRight: () => go(step + 1), ArrowLeft: () => go(step - 1), Home: () => go(0), End: () => go(last()), "?": toggleHelp };
    if (event.key === " " && !on) acts[" "] = toggle;
    if (live) Object.assign(acts, live.keys(press));
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });

  function press(kind) {
    const found = [...chips.querySelectorAll(`[data-event="${kind}"]`)];
    status.textContent = found.length ? (found.length > 1 ? `${found.length} ways to ${kind}: choose one` : "") : `no ${kind} is possible here`;
    if (found.length === 1) found[0].click();
    else if (found.length) found[0].focus();
  }

  function update(story_, to, following = false) {
    data = story_;
    build();
    go(to, following);
  }

  build();
  go(data.at ?? 0);
  return { go, update, status, stop, follow: (other) => { follower = other; }, at: () => step, refresh: () => fillChips(data.steps[step]) };
}

function mountPair(root, pair, live) {
  root.classList.add("lk", "lk-pair");
  const said = el("p", { class: "lk-say" }, pair.said), sides = pair.pair.map(() => el("div"));
  root.replaceChildren(said, el("div", { class: "lk-sides" }, ...sides));
  const [one, other] = pair.pair.map((story, number) => mount(sides[number], story, number ? null : live));
  if (live) said.after(live.tasks);  // above both, so that the pictures are level
  one.follow(other);
  other.follow(one);
  one.beside = (story, words) => { said.textContent = words; other.update(story, one.at(), true); };
  return one;
}

export function mountAll(id) {
  for (const root of document.querySelectorAll(`[data-lk="${id}"]:not([data-lk-on])`)) {
    root.setAttribute("data-lk-on", "");
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const holder = el("div");
    root.replaceChildren(...root.querySelectorAll("style"), holder);
    root.shown = data;  // a page that can answer choices draws a new player with these data into the same place
    if (data.pair) mountPair(holder, data, null);
    else mount(holder, data);
  }
}

// LIVE: what follows is only for a session that Python answers; pages of finished runs leave it out.
// Puts the changes that a choice has caused (labkit/view/updates.py) into the story that is shown.
function renew(shown, news) {
  const { whole, keep, steps, frames, table, acts, now } = news.story;
  if (whole) {
    shown.story = whole;
  } else {
    const story = shown.story;
    story.steps.splice(keep, Infinity, ...steps);
    story.frames.splice(keep, Infinity, ...frames);
    story.table.push(...table);
    story.acts.push(...acts);
    Object.assign(story, now);
  }
  const { at, notice, done, version } = news;
  Object.assign(shown, { at, notice, done, version });
  if ("choices" in news) shown.choices = news.choices;
  if ("beside" in news) Object.assign(shown, { beside: news.beside, said: news.said });
}

const SILENT = "No answer yet: the kernel is busy, or no longer knows this run; then run the cell again. You can still step through the run.";
const KEEPING = { one: ["keep beside", "keep this run beside the next one, to compare"], pair: ["put away", "put the other run away"] };
const BUSY = "Your last choice is still being carried out; choose again when it is shown.";
const SEARCHING = "Searching the schedules that can follow, a few seconds at most ...";
const QUEUED = "Your choice is carried out after this search.";
const PATIENCE_MILLISECONDS = 4000, PAUSE_MILLISECONDS = 150;

// Returns the input for one parameter. Python supplies its value, and the sentence about a value that is not allowed.
function inputOf({ name, meaning, options, least, most, switch: isSwitch }, change) {
  const fixed = { "aria-label": name.replaceAll("_", " "), title: meaning };
  let input;
  if (options) input = el("select", fixed, ...options.map((each) => el("option", { value: each }, each)));
  else if (least !== undefined) input = el("input", { ...fixed, type: "number", min: least, max: most, inputmode: "numeric" });
  else input = el("input", { ...fixed, type: isSwitch ? "checkbox" : "text" });
  input.addEventListener("change", () => change(isSwitch ? input.checked : input.value));
  return input;
}

function render({ model, el: root }) {
  let player = null, menu = null, kept = null, exported = null, climb = null, waiting = null, pause = null, ladder = null, climbing = false, busy = false, searching = false, said = "", filled = "", inputs = [];
  const words = model.get("words") ?? { silent: SILENT, waiting: () => "" };
  const choices = () => model.get("shown").choices;
  const send = (message) => {
    // A second choice before the first one's answer would begin at the same step and so replace the first.
    if (busy && !("look" in message)) {
      player.status.textContent = BUSY;
      return;
    }
    clearTimeout(waiting);
    if ("look" in message) {
      searching = true;
      player.status.textContent = words.waiting() || SEARCHING;
    } else {
      busy = true;
      player.status.textContent = words.waiting() || (searching ? QUEUED : "");
    }
    waiting = setTimeout(() => { player.status.textContent = words.waiting() || words.silent; }, PATIENCE_MILLISECONDS);
    model.send(message);
  };
  const keyOf = (event) => Object.entries(choices().fault_keys).find(([, kind]) => kind === event)?.[0];
  const handles = el("details", { class: "lk-handles" });
  const tasks = el("ul", { class: "lk-tasks", "aria-label": "tasks" });
  const fillTasks = () => {
    const { done } = model.get("shown"), all = Object.entries(choices().tasks);
    tasks.hidden = !all.length;
    tasks.replaceChildren(...all.map(([name, sentence]) => {
      const is = done.includes(name);
      return el("li", { class: is ? "lk-done" : false }, el("b", { role: "img", "aria-label": is ? "done" : "open" }, is ? "✓" : "○"), ` ${sentence}`);
    }));
  };
  const fill = () => {
    const { scenarios, parameters, formats } = choices(), { values } = model.get("shown").story;
    fillTasks();
    const now = JSON.stringify([scenarios, parameters]);
    if (now !== filled) refill(scenarios, parameters, formats);
    filled = now;
    // The existing inputs get the values, because a new input would lose the focus.
    parameters.forEach(({ name, default: usual }, number) => {
      const input = inputs[number], value = values[name];
      if (input.type === "checkbox") input.checked = value;
      else input.value = value;
      input.parentElement.classList.toggle("lk-changed", value !== usual);
    });
  };
  const refill = (scenarios, parameters, formats) => {
    menu.replaceChildren(el("option", { value: "" }, "scenario ..."), ...Object.entries(scenarios).map(([name, watch]) => el("option", { value: name }, `${name.replaceAll("_", " ")}: ${watch}`)));
    menu.hidden = !Object.keys(scenarios).length;
    exported.replaceChildren(el("option", { value: "" }, "export as ..."), ...formats.map((name) => el("option", { value: name }, name)));
    const defaults = el("button", { type: "button" }, "all defaults");
    defaults.addEventListener("click", () => send({ choose: Object.fromEntries(parameters.map((each) => [each.name, each.default])), at: player.at() }));
    inputs = parameters.map((each) => inputOf(each, (value) => send({ choose: { [each.name]: value }, at: player.at() })));
    handles.replaceChildren(el("summary", {}, "parameters"), ...parameters.map(({ name, meaning }, number) =>
      el("div", {}, el("label", {}, el("span", {}, name.replaceAll("_", " ")), inputs[number]), el("small", {}, meaning))), defaults);
  };
  const press = (on) => {
    climbing = on;
    climb.setAttribute("aria-pressed", String(on));
  };
  const look = (step) => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      said = player.status.textContent;
      send({ look: step });
    }, PAUSE_MILLISECONDS);
  };
  const live = {
    act: (action, step) => send({ do: action, at: step }),
    jump: (action, step) => send({ jump: action, at: step }),
    busy: () => busy,
    keyOf, handles, tasks,
    link: model.get("link"),
    ladder: (trace) => (climbing && ladder?.of === trace ? ladder : null),
    moved: (step, trace) => {
      clearTimeout(pause);  // no search for a step that was shown only for a moment
      if (climbing && ladder?.of !== trace) look(step);
    },
    keys: (press) => ({
      ...Object.fromEntries(Object.entries(choices().fault_keys).map(([key, kind]) => [key, () => press(kind)])),
      z: () => send({ undo: true }),
      x: () => send({ redo: true }),
    }),
    tools: (button) => {
      menu = el("select", { "aria-label": "scenario" });
      menu.addEventListener("change", () => { if (menu.value) send({ scenario: menu.value }); });
      exported = el("select", { "aria-label": "export" });
      exported.addEventListener("change", () => {
        if (exported.value) send({ export: exported.value, at: player.at() });
        exported.value = "";
      });
      climb = button("all futures", "show for each choice whether the run can still go wrong", () => {
        press(!climbing);
        if (climbing) look(player.at());
        else player.refresh();
      });
      press(climbing);
      kept = button("", "", () => send({ keep: player.at() }));
      const paste = el("input", { type: "text", class: "lk-trace", placeholder: "paste a trace, or name a scenario, and press Enter", "aria-label": "trace or scenario to open" });
      paste.addEventListener("keydown", (event) => { if (event.key === "Enter") send({ open: paste.value }); });
      return [
        button("undo", "undo the last choice", () => send({ undo: true })),
        button("redo", "redo", () => send({ redo: true })),
        climb,
        kept,
        menu, exported, paste,
      ];
    },
  };
  const draw = () => {
    clearTimeout(waiting);
    busy = false;
    const { story, beside, at, said: difference, notice } = model.get("shown");
    const shape = beside ? "pair" : "one";
    if (!player || root.dataset.shape !== shape) {
      const holder = el("div"), had = root.contains(document.activeElement);
      root.replaceChildren(holder);
      player?.stop();
      filled = "";
      handles.open = !beside && root.clientWidth > 900;  // beside another run both pictures have the same width
      player = beside ? mountPair(holder, { pair: [story, beside], said: difference }, live) : mount(holder, story, live);
      player.go(at);
      root.dataset.shape = shape;
      if (had) (root.querySelector("[tabindex]") ?? root).focus({ preventScroll: true });
    } else {
      player.update(story, at);
      if (beside) player.beside(beside, difference);
    }
    fill();
    const [text, label] = KEEPING[shape];
    kept.textContent = text;
    for (const name of ["aria-label", "title"]) kept.setAttribute(name, label);
    player.status.textContent = notice;
  };
  const hear = (news) => {
    clearTimeout(waiting);
    if (searching && !news.ladder && !news.story && !news.file) press(false);  // the answer is not that of a search
    searching = false;
    if (news.ladder) {
      ladder = news.ladder;
      player.refresh();
      player.status.textContent = busy ? "" : said;  // a search is no choice, so the sentence about the last choice stays
      return;
    }
    busy = false;
    if (news.file) save(news.file);
    if (!news.story) {
      fill();  // an input whose value was refused shows the run's own value again
      player.status.textContent = news.notice ?? "";
      return;
    }
    const shown = model.get("shown");
    if (shown.version === news.base) renew(shown, news);
    if (shown.version === news.version) draw();
    else model.send({ again: true });
  };
  const listening = { "change:shown": draw, "msg:custom": hear };
  for (const [event, act] of Object.entries(listening)) model.on(event, act);
  draw();
  return () => {
    for (const [event, act] of Object.entries(listening)) model.off(event, act);
    clearTimeout(waiting);
    clearTimeout(pause);
    player?.stop();
  };
}

function save({ name, text }) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  el("a", { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}

export default { render };
