// The form of the crash panel. Python decides what can be chosen and says how far a run has come (labkit/teach/panel.py).

const SIGNS = { waiting: "○", now: "●", done: "✓", part: "◐", skipped: "–", stopped: "✗" };
const PATIENCE = 5000, SILENCE = 15000;

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null && value !== false) made.setAttribute(name, value === true ? "" : value);
  made.append(...children);
  return made;
}

function render({ model, el: host }) {
  const root = el("div", { class: "lk lk-form", role: "group", "aria-label": "crash panel", "data-lm-suppress-shortcuts": "true" });
  const fields = el("fieldset", {}), hint = el("p", { class: "lk-hint" });
  const run = el("button", { type: "button", class: "lk-main" }, "Run"), cancel = el("button", { type: "button" }, "Cancel");
  const clock = el("span", { class: "lk-dim", "aria-hidden": "true" });
  const stages = el("ol", { class: "lk-stages", "aria-label": "stages of the run" });
  const said = el("p", { class: "lk-said", role: "status", "aria-live": "polite" }), alert = el("p", { class: "lk-alert", role: "alert" });
  const calls = el("div", { class: "lk-calls" });
  const intro = el("p");
  root.append(el("h4", {}, "Crash panel"), intro, fields, hint, el("div", { class: "lk-bar" }, run, cancel, clock), stages, said, alert, calls);
  host.replaceChildren(root);

  const controls = {};
  let heard = 0, begun = 0, ticking = null;
  const send = (message) => model.send(message);
  const off = (button) => button.getAttribute("aria-disabled") === "true";
  run.addEventListener("click", () => { if (!off(run)) send({ run: true }); });
  cancel.addEventListener("click", () => { if (!off(cancel)) send({ cancel: true }); });
  root.addEventListener("keydown", (event) => { if (event.key !== "Tab" && event.key !== "Escape") event.stopPropagation(); });

  function control(field) {
    const made = field.options ? el("select", { "aria-label": field.label }) : el("input", { type: "text", "aria-label": field.label, placeholder: field.placeholder, spellcheck: "false" });
    made.addEventListener("change", () => send({ choose: field.name, value: made.value }));
    fields.append(el("label", {}, field.label, made));
    return made;
  }

  function fill(field, busy) {
    const made = controls[field.name] ??= control(field);
    const options = JSON.stringify(field.options ?? null);
    if (field.options && made.dataset.options !== options) {
      made.replaceChildren(...field.options.map(([value, text]) => el("option", { value }, text)));
      made.dataset.options = options;
    }
    made.value = field.value;
    made.disabled = busy || (field.options?.length ?? 2) < 2;
  }

  function tick() {
    if (Date.now() - heard > SILENCE) return unheard();
    clock.textContent = `${Math.round((Date.now() - begun) / 1000)} s`;
  }

  function unheard() {
    said.textContent = model.get("shown").unheard;
    clearInterval(ticking);
    ticking = null;
    clock.textContent = "";
    stages.hidden = true;
    for (const each of [run, cancel]) each.setAttribute("aria-disabled", "true");
    for (const made of Object.values(controls)) made.disabled = true;
  }

  // Data saved with the notebook do not show whether a run is in progress; only later messages of a kernel do.
  function draw() {
    const shown = model.get("shown");
    const busy = heard > 0 && shown.busy, had = root.contains(document.activeElement);
    intro.textContent = shown.intro;
    shown.fields.forEach((field) => fill(field, busy));
    hint.textContent = shown.hint;
    // Not `disabled`: a button that is disabled while it has the focus loses it, and the keys go elsewhere.
    run.setAttribute("aria-disabled", String(busy));
    cancel.setAttribute("aria-disabled", String(!busy));
    stages.hidden = !heard;
    stages.replaceChildren(...shown.stages.map(([name, mark, words]) => el("li", { "data-mark": mark, title: words, "aria-label": `${name}: ${words}`, "aria-current": mark === "now" ? "step" : null }, el("b", { "aria-hidden": "true" }, SIGNS[mark]), ` ${name}`)));
    if (said.textContent !== shown.said) said.textContent = shown.said;
    if (alert.textContent !== shown.alert) alert.textContent = shown.alert;
    if (JSON.stringify(shown.calls) !== calls.dataset.said) {
      calls.dataset.said = JSON.stringify(shown.calls);
      calls.replaceChildren(...shown.calls.flatMap(([name, text]) => [el("span", { class: "lk-dim" }, name), el("code", {}, text), copier(name, text)]));
    }
    if (busy && !ticking) { begun = Date.now(); ticking = setInterval(tick, 1000); tick(); }
    if (!busy && ticking) { clearInterval(ticking); ticking = null; tick(); }
    if (had && !root.contains(document.activeElement)) run.focus({ preventScroll: true });
    for (const sentence of document.querySelectorAll(`[data-lk-panel="${shown.id}"]`)) sentence.hidden = true;
  }

  function copier(name, text) {
    const made = el("button", { type: "button", "aria-label": `copy: ${name}` }, "copy");
    made.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        made.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(made.previousSibling);
        made.textContent = "selected";
      }
    });
    return made;
  }

  const hear = () => { heard = Date.now(); draw(); };
  model.on("change:shown", hear);
  draw();
  send({ hello: true });
  const waiting = setTimeout(() => { if (!heard) unheard(); }, PATIENCE);
  return () => { model.off("change:shown", hear); clearTimeout(waiting); clearInterval(ticking); };
}

export default { render };
