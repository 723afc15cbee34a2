"use strict";
// The page of free texts and regrade requests. What a person types stays in this browser's storage until it is downloaded as
// a file of marks. No points are computed here: labkit reads the file, checks it, and adds up.
{
  const TITLES = ["student", "name", "exercise", "part", "of", "points", "comment", "answers"];
  const POINTS = /^(?:ex|excused|\d+(?:[.,]\d+)?(?: bonus)?)$/i;
  const pieces = [...document.querySelectorAll("article[data-mark]")];
  const state = document.getElementById("state");
  const storageKey = `labkit marks ${document.body.dataset.page}`;
  const keyOf = (piece, field) =>
    JSON.stringify([piece.dataset.student, piece.dataset.exercise, piece.dataset.answers, field.dataset.part ?? "comment"]);
  const fieldsOf = (piece) => [...piece.querySelectorAll("input"), piece.querySelector("textarea")];
  let extra = []; // lines of loaded files about something that this page does not show
  let drafts = {}; // by field: what is typed, and what the files said when it was typed
  let undownloaded = false;
  let complaint = "";
  let current = pieces[0];
  let part = 0;

  const isFit = (field) => {
    const written = field.value.trim();
    if (written === "") return true;
    if (!POINTS.test(written)) return false;
    return /[a-z]/i.test(written) || Number(written.replace(",", ".")) <= Number(field.dataset.of);
  };

  const keep = () => {
    try {
      localStorage.setItem(storageKey, JSON.stringify({ drafts, extra, undownloaded }));
      complaint = "";
    } catch {
      complaint = "This browser keeps nothing for this page (its storage is forbidden or full), so download the file before you close it.";
    }
    show();
  };

  const show = () => {
    const inputs = pieces.flatMap((piece) => [...piece.querySelectorAll("input")]);
    const bad = inputs.filter((field) => !isFit(field));
    inputs.forEach((field) => field.classList.toggle("wrong-points", bad.includes(field)));
    const marked = pieces.filter(isMarked).length;
    const words = [`${marked} of ${pieces.length} are marked.`];
    if (bad.length) words.push(`${bad.length} entries are no points, or above the maximum, and will not be in the file.`);
    if (undownloaded) words.push("Not everything is downloaded yet.");
    if (extra.length) words.push(`${extra.length} lines of the loaded file are about something else; the download keeps them.`);
    if (complaint) words.push(complaint);
    state.textContent = words.join(" ");
    pieces.forEach((piece) => piece.classList.toggle("current", piece === current));
    showBank();
  };

  const isMarked = (piece) => {
    const inputs = [...piece.querySelectorAll("input")];
    if (!piece.dataset.answers) return inputs.every((field) => field.value.trim() && isFit(field));
    const typedIn = fieldsOf(piece).filter((field) => keyOf(piece, field) in drafts && field.value.trim());
    return "answered" in piece.dataset || typedIn.some((field) => !inputs.includes(field) || isFit(field));
  };

  const bankOf = (piece) => {
    const uses = new Map();
    for (const other of pieces.filter((each) => each.dataset.exercise === piece.dataset.exercise)) {
      const words = other.querySelector("textarea").value.trim();
      if (words) uses.set(words, (uses.get(words) ?? 0) + 1);
    }
    return [...uses].sort((a, b) => b[1] - a[1]).slice(0, 9).map(([words]) => words);
  };

  const showBank = () => {
    const list = document.querySelector("#bank ol");
    list.replaceChildren(
      ...bankOf(current).map((words) => {
        const button = document.createElement("button");
        button.textContent = words;
        button.addEventListener("click", () => comment(words));
        const item = document.createElement("li");
        item.append(button);
        return item;
      }),
    );
  };

  const typed = (piece, field, value) => {
    field.value = value;
    const key = keyOf(piece, field);
    drafts[key] = { value, base: field.defaultValue };
    if (value === field.defaultValue) delete drafts[key];
    undownloaded = true;
    keep();
  };

  const comment = (words) => {
    const field = current.querySelector("textarea");
    if (!field.value.includes(words)) typed(current, field, field.value.trim() ? `${field.value.trim()} ${words}` : words);
  };

  const go = (piece) => {
    if (!piece) return;
    current = piece;
    part = 0;
    current.scrollIntoView({ block: "center" });
    show();
  };

  const points = (value) => {
    const inputs = [...current.querySelectorAll("input")];
    const field = inputs[part];
    const before = field.value;
    typed(current, field, value(before));
    if (!isFit(field)) typed(current, field, before);
    else if (part + 1 < inputs.length && value(before) !== before) part += 1;
  };

  const lines = () =>
    pieces.flatMap((piece) => {
      const { student, name, exercise, answers } = piece.dataset;
      const area = piece.querySelector("textarea");
      const said = keyOf(piece, area) in drafts ? area.value.trim() : "";
      const found = [];
      for (const field of piece.querySelectorAll("input")) {
        const changed = keyOf(piece, field) in drafts && field.value.trim() && isFit(field);
        const own = field.dataset.part === "" ? said : "";
        if (changed || own) {
          const value = isFit(field) ? field.value.trim() : "";
          // A request whose points stay is answered by the comment alone.
          found.push([student, name, exercise, field.dataset.part, field.dataset.of, value, own, answers]);
        }
      }
      const hasWhole = [...piece.querySelectorAll("input")].some((field) => field.dataset.part === "");
      if (said && !hasWhole) found.push([student, name, exercise, "", "", "", said, answers]);
      return found;
    });

  const cell = (value) => {
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return `"${safe.replaceAll('"', '""')}"`;
  };

  const download = () => {
    const text = [TITLES, ...extra, ...lines()].map((line) => line.map(cell).join(",")).join("\n") + "\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = document.body.dataset.download;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    extra = [];
    undownloaded = false;
    keep();
  };

  const parsed = (text) => {
    const first = text.split("\n", 1)[0];
    const separator = [",", ";", "\t"].sort((a, b) => first.split(b).length - first.split(a).length)[0];
    const rows = [[]];
    let value = "";
    let quoted = false;
    for (let at = 0; at < text.length; at += 1) {
      const letter = text[at];
      if (quoted && letter === '"' && text[at + 1] === '"') {
        value += '"';
        at += 1;
      } else if (letter === '"') quoted = !quoted;
      else if (quoted) value += letter;
      else if (letter === separator || letter === "\n") {
        rows.at(-1).push(value.replace(/\r$/, ""));
        value = "";
        if (letter === "\n") rows.push([]);
      } else value += letter;
    }
    if (value || rows.at(-1).length) rows.at(-1).push(value);
    const [titles, ...rest] = rows.filter((row) => row.some((each) => each.trim()));
    const names = (titles ?? []).map((title) => title.replace(/^\uFEFF/, "").trim().toLowerCase());
    return rest.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at] ?? ""])));
  };

  const GUARD = /^'(?=[=+\-@\t\r])/;

  const add = (line) => {
    if (!extra.some((each) => JSON.stringify(each) === JSON.stringify(line))) extra.push(line);
  };

  const take = (row) => {
    const who = (row.student ?? "").replace(/^'/, "");
    const same = pieces.filter(
      (piece) =>
        [piece.dataset.student, piece.dataset.id, piece.dataset.name].includes(who) &&
        piece.dataset.exercise === row.exercise &&
        [piece.dataset.answers, piece.dataset.answers.split(" ")[0]].includes((row.answers ?? "").toLowerCase()),
    );
    // The inner apostrophes are those of labkit's own file, which writes the parts.
    const named = (row.part ?? "").replace(GUARD, "").replace(/([;,] *)'(?=[=+@-])/g, "$1");
    const field = same.length === 1 ? [...same[0].querySelectorAll("input")].find((each) => each.dataset.part === named) : null;
    const said = (row.comment ?? "").replace(GUARD, "");
    if (same.length !== 1 || (!field && named !== "") || (!field && row.points)) {
      if (row.points || row.comment) add(TITLES.map((title) => row[title] ?? ""));
      return;
    }
    if (field && row.points) typed(same[0], field, row.points.replace(/^'/, ""));
    if (said && named === "") typed(same[0], same[0].querySelector("textarea"), said);
    else if (said) add(TITLES.map((title) => (title === "points" ? "" : (row[title] ?? ""))));
  };

  const keys = {
    ArrowRight: () => go(pieces[pieces.indexOf(current) + 1]), ArrowLeft: () => go(pieces[pieces.indexOf(current) - 1]),
    n: () => go(pieces[pieces.indexOf(current) + 1]), p: () => go(pieces[pieces.indexOf(current) - 1]),
    u: () => go(pieces.slice(pieces.indexOf(current) + 1).find((each) => !isMarked(each)) ?? pieces.find((each) => !isMarked(each))),
    r: () => { part = (part + 1) % current.querySelectorAll("input").length; },
    c: () => current.querySelector("textarea").focus(),
    x: () => points(() => "excused"), d: download,
    ".": () => points((before) => String(Number(before.replace(",", ".") || 0) + 0.5)),
  };

  document.addEventListener("keydown", (event) => {
    const inside = event.target.closest?.("input, textarea");
    if (inside) {
      if (event.key === "Escape") inside.blur();
      if (event.key === "Enter" && (inside.tagName === "INPUT" || event.ctrlKey)) {
        inside.blur();
        keys.n();
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const digit = /^Digit([0-9])$/.exec(event.code) ?? /^Numpad([0-9])$/.exec(event.code);
    if (digit && event.shiftKey) {
      const words = bankOf(current)[Number(digit[1]) - 1];
      if (words) comment(words);
    } else if (digit) points(() => digit[1]);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });
  for (const piece of pieces) {
    piece.addEventListener("focusin", () => { if (piece !== current) { current = piece; part = 0; show(); } });
    piece.addEventListener("click", () => { if (piece !== current) { current = piece; part = 0; show(); } });
    for (const field of fieldsOf(piece)) field.addEventListener("input", () => typed(piece, field, field.value));
  }
  document.getElementById("download").addEventListener("click", download);
  document.getElementById("load").addEventListener("change", async (event) => {
    for (const file of event.target.files) for (const row of parsed(await file.text())) take(row);
    event.target.value = "";
    keep();
  });
  addEventListener("beforeunload", (event) => {
    if (complaint && undownloaded) event.preventDefault();
  });

  const restore = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(storageKey) ?? "{}");
      [drafts, extra, undownloaded] = [kept.drafts ?? {}, kept.extra ?? [], kept.undownloaded ?? false];
    } catch {
      return;
    }
    for (const piece of pieces) {
      for (const field of fieldsOf(piece)) {
        const draft = drafts[keyOf(piece, field)];
        if (!draft) continue;
        // labkit has read the file meanwhile, so there is nothing left to keep.
        if (draft.value === field.defaultValue) delete drafts[keyOf(piece, field)];
        else if (draft.base === field.defaultValue || undownloaded) field.value = draft.value;
        else delete drafts[keyOf(piece, field)]; // a later file of marks has another value, which counts
      }
    }
  };
  document.body.classList.add("marking");
  if (pieces.length) {
    restore();
    keep();
  }
}
