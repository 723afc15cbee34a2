// A question that a learner answers before a run. Python supplies the question and stores the answer
// (labkit/teach/questions). On a page without a kernel the browser stores it, and the answer's card contains the replies.

const PATIENCE = 4000;

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null && value !== false) made.setAttribute(name, value === true ? "" : value);
  made.append(...children);
  return made;
}

let forms = 0;

// Draws the form once; `fill` shows an answer that Python or the page has stored. `send` gets { said, why } or { skip, why }.
function form(first, send) {
  const words = first.words, id = `lk-ask-${Date.now().toString(36)}-${++forms}`;
  const field = (option) => el("input", { type: first.kind === "choice" ? "radio" : "checkbox", name: id, value: option });
  const options = first.options.map(field);
  const number = el("input", { type: "text", class: "lk-number", inputmode: "decimal", autocomplete: "off", "aria-labelledby": `${id}-q ${id}-u` });
  const unit = first.unit ? el("span", { id: `${id}-u`, class: "lk-dim" }, first.unit) : "";
  const choices = first.kind === "number" ? [number, unit] : [...options.map((each) => el("label", { class: "lk-option" }, each, el("span", {}, each.value))), unit];
  const why = el("input", { type: "text", id: `${id}-w`, maxlength: "300", autocomplete: "off" });
  const note = el("button", { type: "submit", class: "lk-main" }, words.note), skip = el("button", { type: "button" }, words.skip);
  const noted = el("p", { class: "lk-noted", role: "status", "aria-live": "polite" });
  const buttons = el("div", { class: "lk-buttons" }, note, skip);
  const root = el("form", { class: "lk lk-ask", "data-lk-question": first.name, "data-lm-suppress-shortcuts": "true", novalidate: true, "aria-labelledby": `${id}-q` },
    el("fieldset", {}, el("legend", { id: `${id}-q` }, first.text), el("div", { class: "lk-options" }, ...choices)),
    el("div", { class: "lk-why" }, el("label", { for: `${id}-w` }, words.why), why), buttons, noted);

  let closed = false;
  const tell = (text) => { if (noted.textContent !== text) noted.textContent = text; };
  const said = () => first.kind === "number" ? [number.value.trim()] : options.filter((each) => each.checked).map((each) => each.value);
  root.addEventListener("submit", (event) => {
    event.preventDefault();
    if (closed) return;
    const now = said();
    if (!now.length) { tell(words.choose); options[0].focus(); return; }
    if (first.kind === "number" && (!now[0] || !Number.isFinite(Number(now[0])))) { tell(words.number); number.focus(); return; }
    send({ said: now, why: why.value });
  });
  skip.addEventListener("click", () => { if (!closed) send({ skip: true, why: why.value }); });
  // Typed keys never reach the notebook's shortcuts, also where a page or an extension listens for them.
  root.addEventListener("keydown", (event) => { if (event.key !== "Tab" && event.key !== "Escape") event.stopPropagation(); });

  function fill(shown) {
    if (shown.said) {
      for (const each of options) each.checked = shown.said.includes(each.value);
      if (first.kind === "number") number.value = shown.said[0];
    }
    if (shown.why && !why.value) why.value = shown.why;
    closed = shown.closed;
    root.toggleAttribute("data-closed", closed);
    const had = buttons.contains(document.activeElement);
    for (const each of [...options, number, why]) each.disabled = closed;
    buttons.hidden = closed;
    note.textContent = shown.said ? words.change : words.note;
    tell(shown.notice);
    if (closed && had) { noted.tabIndex = -1; noted.focus({ preventScroll: true }); }
  }
  return { root, fill, tell, buttons, noted };
}

// In a notebook: shows the data that were saved with it, and each later message of a kernel.
function render({ model, el: host }) {
  const words = model.get("shown").words;
  let waiting = null;
  const made = form(model.get("shown"), (message) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => made.tell(words.waiting), PATIENCE);
    // A channel whose kernel was restarted refuses at once.
    try { model.send(message); } catch { made.tell(words.waiting); }
  });
  const draw = () => { clearTimeout(waiting); made.fill(model.get("shown")); unfold(model.get("shown")); };
  host.replaceChildren(made.root);
  model.on("change:shown", draw);
  draw();
  return () => { model.off("change:shown", draw); clearTimeout(waiting); };
}

// The text after an answer is folded (tools/build_notebooks.py). A notebook draws cells when they come into view, so
// the fold may not exist yet; then the reader opens it.
function unfold(shown) {
  if (!shown.answered) return;
  document.querySelectorAll(`details.lk-after-${shown.name}`).forEach((each) => { each.open = true; });
}

// On a page: covers the answer's card and all outputs before it until the reader has predicted or skipped the question.
function mount(name) {
  for (const host of document.querySelectorAll(`[data-lk="${name}"]`)) {
    if (host.dataset.mounted) continue;
    host.dataset.mounted = "yes";
    const first = JSON.parse(host.querySelector('script[type="application/json"]').textContent);
    page(host, first);
  }
}

function page(host, first) {
  const words = first.words, key = `labkit:ask:${first.name}`;
  const fits = (message) => message?.skip || (Array.isArray(message?.said) && message.said.length && (first.kind === "number" || message.said.every((each) => first.options.includes(each))));
  const store = {
    get() { try { const kept = JSON.parse(localStorage.getItem(key)); return fits(kept) ? kept : null; } catch { return null; } },
    set(value) { try { value ? localStorage.setItem(key, JSON.stringify(value)) : localStorage.removeItem(key); } catch { /* kept on this page alone */ } },
  };
  const cards = () => [...document.querySelectorAll("[data-lk-answer]")].filter((each) => each.dataset.lkAnswer === first.name);
  const cover = covering(host, cards()[0], words.covered);
  const again = el("button", { type: "button" }, words.again);
  const made = form(first, (message) => { store.set(message); show(message); });
  made.root.append(again);
  again.addEventListener("click", () => { store.set(null); show(null); made.root.querySelector("input").focus(); });

  // Returns the answer in a notebook that somebody has worked through and saved as a page; null if there is none.
  function there() {
    if (first.skipped) return { skip: true };
    const said = cards().map((card) => card.dataset.said).find(Boolean);
    return first.said || said ? { said: first.said ?? JSON.parse(said), why: first.why } : null;
  }

  function show(message) {
    const is = Boolean(message);
    made.fill({ said: message?.said, why: message?.why, closed: is, notice: is ? (message.skip ? words.skipped : words.said) : "" });
    if (!is) made.root.reset();
    again.hidden = !is;
    cover(!is);
    document.querySelectorAll(`details.lk-after-${first.name}`).forEach((each) => { each.open = is; });
    cards().forEach((card) => tell(card, message?.said, first.kind));
  }

  host.querySelectorAll(":scope > p").forEach((each) => each.remove());
  host.append(made.root);
  show(store.get() ?? there());
}

function tell(card, said, kind) {
  const lines = JSON.parse(card.dataset.lines), words = (said ?? []).map((each) => (kind === "number" ? String(Number(each)) : each));
  const agrees = JSON.stringify(words) === JSON.stringify(lines.came);
  card.dataset.mark = said ? (agrees ? "agrees" : "differs") : "";
  card.querySelector(".lk-head").textContent = said ? lines.heads[words[0]] ?? lines.other.replace("{}", words.join(", ")) : lines.alone;
  const reply = said && words.length === 1 && lines.replies[words[0]];
  card.querySelector(".lk-reply").replaceChildren(...(reply ? [el("p", {}, reply)] : []));
}

// Covers everything that shows a question's answer: the outputs up to its card, and the text directly after it.
function covering(host, card, sentence) {
  const from = host.closest(".jp-Cell"), to = card?.closest(".jp-Cell"), covered = [];
  if (!from || !to || host.closest(".jp-NotebookPanel") || !(from.compareDocumentPosition(to) & Node.DOCUMENT_POSITION_FOLLOWING)) return () => {};
  let each = from;
  while (each !== to && (each = each.nextElementSibling)) covered.push(...each.querySelectorAll(".jp-Cell-outputWrapper"));
  const behind = to.nextElementSibling;
  if (behind?.matches(".jp-MarkdownCell")) covered.push(behind);
  if (!covered.length) return () => {};
  const there = covered[0].previousElementSibling, curtain = there?.matches(".lk-cover") ? there : el("p", { class: "lk lk-cover" }, sentence);
  if (curtain !== there) covered[0].before(curtain);
  return (is) => { curtain.hidden = !claimed(curtain, host, is); covered.forEach((part) => part.classList.toggle("lk-covered", claimed(part, host, is))); };
}

// Several questions may cover the same part, which appears when the last of them is answered.
function claimed(part, host, is) {
  const claims = part.lkClaims ??= new Set();
  if (is) claims.add(host); else claims.delete(host);
  return claims.size > 0;
}

export default { render };
