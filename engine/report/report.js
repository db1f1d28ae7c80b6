"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { reasons, actions } = JSON.parse(document.getElementById("words").textContent);
  const many = data.names.length > 1;
  const PAGE = 50, BELOW = 3;
  const METRICS = ["EM", "F1", "substring", "support F1", "gold read", "gold kept", "compression"];
  const REACHED = ["never listed", "listed below the cut", "read, not kept", "kept"];
  const byId = (id) => document.getElementById(id);

  /** An element with a class and children; text is always text, never markup. */
  function el(tag, css, ...children) {
    const node = document.createElement(tag);
    if (css) node.className = css;
    for (const child of children.flat()) if (child !== null && child !== undefined && child !== "") node.append(child);
    return node;
  }
  const field = (label, ...content) => el("div", "field", el("span", "", label), el("div", "", ...content));
  const percent = (value) => (value === null ? "–" : (100 * value).toFixed(1));
  const verdictOf = (run) => (!run ? "unknown" : run.err ? "failed" : run.m[0] === null ? "unknown" : run.m[0] === 1 ? "right" : "wrong");
  const SIGNS = { right: "✓", wrong: "✗", failed: "!", unknown: "·" };
  const SAID = { right: "exact match", wrong: "no exact match", failed: "error", unknown: "not scored" };

  const sign = (run) => mark(verdictOf(run));
  function mark(kind) {
    const node = el("span", "sign " + kind, SIGNS[kind]);
    node.title = SAID[kind];
    return node;
  }

  const couldStop = (run) => run.turns.some((turn) => turn.act === "search" && turn.pok === 1);
  const probed = data.questions.some((q) => q.runs.some((run) => run && run.turns.some((turn) => turn.pok !== null)));
  const stoppedEarly = (run) => run && run.stop === "sufficient" && run.full === 0;
  const OUTCOMES = [
    ["", "All outcomes", () => true],
    ["right", "Exact match", (run) => verdictOf(run) === "right"],
    ["wrong", "No exact match", (run) => verdictOf(run) === "wrong"],
    ["failed", "Error", (run) => verdictOf(run) === "failed"],
    ["early", "Judged sufficient, gold missing", stoppedEarly],
    ["missing", "Some gold not read", (run) => run && run.full === 0],
    ["readwrong", "All gold read, no exact match", (run) => run && run.full === 1 && verdictOf(run) === "wrong"],
    ...(probed ? [["passed", "Passed by: right before a search, no exact match", (run) => verdictOf(run) === "wrong" && couldStop(run)],
      ["late", "Right already before a search", (run) => verdictOf(run) === "right" && couldStop(run)]] : []),
    ...Object.entries(reasons).map(([key, label]) => ["stop:" + key, "Stopped: " + label, (run) => run && run.stop === key]),
  ];
  const ACROSS = [
    ["changed", "Answers differ between runs", (runs) => new Set(runs.filter(Boolean).map((run) => run.a)).size > 1],
    ["gained", "Exact match here, not in the first run", (runs, i) => verdictOf(runs[i]) === "right" && verdictOf(runs[0]) === "wrong"],
    ["lost", "Exact match in the first run, not here", (runs, i) => verdictOf(runs[i]) === "wrong" && verdictOf(runs[0]) === "right"],
  ];

  function fill(select, options) {
    for (const [value, label] of options) {
      const option = el("option", "", label);
      option.value = value;
      select.append(option);
    }
  }

  function matching() {
    const words = byId("search").value.trim().toLowerCase();
    const at = many ? Number(byId("run").value) : 0;
    const outcome = byId("outcome").value, type = byId("type").value;
    const own = OUTCOMES.find(([key]) => key === outcome), across = ACROSS.find(([key]) => key === outcome);
    return data.questions.filter((q) =>
      (!type || q.type === type) &&
      (own ? own[2](q.runs[at]) : across[2](q.runs, at)) &&
      (!words || haystack(q).includes(words)));
  }

  function haystack(q) {
    if (!q.hay) {
      const parts = [q.id, q.q, ...q.gold, ...q.facts.map((fact) => fact[0])];
      for (const run of q.runs) if (run) {
        parts.push(run.a || "");
        for (const turn of run.turns) parts.push(turn.q || "", ...turn.hits.slice(0, turn.kept).map((hit) => data.docs[hit[0]][1]));
      }
      q.hay = parts.join("\n").toLowerCase();
    }
    return q.hay;
  }

  let found = [], drawn = 0;
  function refresh() {
    found = matching();
    drawn = 0;
    byId("list").replaceChildren();
    byId("shown").textContent = found.length + " of " + data.questions.length + " questions";
    draw();
  }
  function draw() {
    const list = byId("list");
    for (const q of found.slice(drawn, drawn + PAGE)) list.append(row(q));
    drawn = Math.min(found.length, drawn + PAGE);
    byId("more").hidden = drawn >= found.length;
    byId("more").textContent = "Show " + Math.min(PAGE, found.length - drawn) + " more";
  }

  const answerOf = (run) => (!run ? "not asked" : run.err ? run.err[0] : run.a === null || run.a === "" ? "no answer" : run.a);
  const retrievals = (n) => n + (n === 1 ? " retrieval" : " retrievals");

  function row(q) {
    const answers = many
      ? q.runs.map((run, i) => el("span", "answers", sign(run), " " + data.names[i] + ": ", el("b", "", answerOf(run))))
      : [el("span", "answers", el("b", "", answerOf(q.runs[0])))];
    const gold = el("span", "answers", "gold: " + (q.gold.join(" | ") || "none given"));
    const only = q.runs[0];
    const side = many || !only ? [] : [retrievals(only.n), el("br"), reasons[only.stop] || only.stop];
    const summary = el("summary", many ? "many" : "", many ? null : sign(only), el("span", "", el("span", "text", q.q), answers, gold), el("span", "side", side));
    const node = el("details", "q", summary);
    node.addEventListener("toggle", () => { if (node.open && node.childElementCount === 1) node.append(trace(q)); });
    return node;
  }

  function trace(q) {
    const link = el("a", "", q.id);
    link.href = "#question=" + encodeURIComponent(q.id);
    const node = el("div", "trace", field("id", link, q.type ? ", type " + q.type : ""));
    q.runs.forEach((run, i) => {
      if (many) node.append(el("h4", i ? "rundivide" : "", data.names[i]));
      if (!run) { node.append(el("p", "note", "This run did not ask the question.")); return; }
      if (q.facts.length) node.append(field("gold evidence", q.facts.map((fact, f) =>
        el("div", "", fact[0] + (fact[1] === null ? "" : ", sentence " + fact[1]) + " ", el("small", run.got[f] ? "" : "no", "passage " + REACHED[run.got[f]])))));
      run.turns.forEach((turn, t) => node.append(turnView(turn, t)));
      node.append(ending(q, run, i));
    });
    return node;
  }

  function turnView(turn, t) {
    const node = el("div", "", el("h4", "", "Turn " + t));
    if (turn.v) node.append(verdictView(turn.v));
    if (turn.probe !== null) node.append(field("probe answer", ...(turn.pok === null ? [] : [mark(turn.pok === 1 ? "right" : "wrong"), " "]), turn.probe || "(empty)"));
    if (turn.act) node.append(field("next", actions[turn.act]));
    if (turn.un !== null) node.append(field("not searched for", turn.un));
    if (turn.q !== null) {
      node.append(field("query", turn.q, " ", el("small", "", turn.src || "")));
      node.append(field("ranked list", hitsView(turn), notes(turn)));
      node.append(field("evidence", turn.ev.length ? turn.ev.map(evidenceView) : el("small", "", "nothing kept")));
    }
    return node;
  }

  function notes(turn) {
    const parts = [];
    if (turn.seen) parts.push(turn.seen + " hits dropped as already seen" + (turn.lost ? ", " + turn.lost + " of them unread gold" : ""));
    if (turn.left) parts.push(turn.left + " evidence spans did not fit the prompt");
    return parts.length ? el("small", "", parts.join("; ")) : null;
  }

  function verdictView(v) {
    const score = v.s === null ? "" : " p " + v.p.toFixed(3) + ", score " + (v.s >= 0 ? "+" : "−") + Math.abs(v.s).toFixed(2);
    const how = v.how === "ok" ? "" : " (" + v.how + ")";
    const node = el("div", "", field("verdict", el("span", v.ok ? "yes" : "notyet", v.ok ? "sufficient" : "insufficient"), el("small", "", score + how)));
    for (const [category, target, slot, description] of v.gaps) {
      const named = [target, slot].filter(Boolean).join(" → ");
      node.append(field("gap", named || description, named && description && description !== named ? ": " + description : "", " ", el("small", "", category.replace("_", " "))));
    }
    if (v.raw) node.append(field("", fold("the judge's reply", v.raw)));
    return node;
  }

  function fold(label, text) {
    return el("details", "", el("summary", "", label), el("div", "raw", text));
  }

  function hitsView(turn) {
    const node = el("div", "hits");
    if (!turn.hits.length) return el("small", "no", "nothing found");
    const scores = turn.hits.map((hit) => hit[1]);
    const low = Math.min(0, ...scores), high = Math.max(...scores), digits = Math.abs(high) >= 10 ? 2 : 4;
    const line = (hit, i) => {
      const [doc, score, isgold] = hit;
      const bar = el("u");
      bar.style.width = (high > low ? (100 * (score - low)) / (high - low) : 100) + "%";
      return el("div", "hit" + (isgold ? " isgold" : "") + (i >= turn.kept ? " below" : ""),
        el("span", "", String(i + 1)), el("span", "", score.toFixed(digits)), el("span", "", bar),
        el("span", "title", data.docs[doc][1], isgold ? " · gold" : "", " ", el("small", "", data.docs[doc][0])));
    };
    const cut = el("div", "cut", "cut: " + turn.kept + " of " + turn.hits.length + " read");
    const visible = Math.min(turn.hits.length, turn.kept + BELOW);
    turn.hits.slice(0, visible).forEach((hit, i) => { if (i === turn.kept) node.append(cut); node.append(line(hit, i)); });
    if (turn.kept >= visible) node.append(cut);
    if (visible < turn.hits.length) {
      const gold = turn.hits.slice(visible).filter((hit) => hit[2]).length;
      const more = el("button", "linky", "show " + (turn.hits.length - visible) + " more" + (gold ? ", " + gold + " of them gold" : ""));
      more.type = "button";
      more.addEventListener("click", () => more.replaceWith(...turn.hits.slice(visible).map((hit, i) => line(hit, i + visible))));
      node.append(more);
    }
    return node;
  }

  function evidenceView([doc, sentence, text, rank]) {
    const where = data.docs[doc][1] + (sentence === null ? "" : ", sentence " + sentence);
    return el("div", "evidence gold" + rank, el("small", "", where, rank === 2 ? el("span", "goldmark", " · gold") : ""), text);
  }

  function ending(q, run, i) {
    const node = el("div", "", el("h4", "", "End"));
    node.append(field("stopped", (reasons[run.stop] || run.stop) + ", " + retrievals(run.n)));
    if (run.err) node.append(field("error", el("span", "no", run.err[0]), ": " + run.err[1]));
    node.append(field("answer", sign(run), " ", el("b", "", answerOf(run))));
    node.append(field("gold", q.gold.join(" | ") || "none given"));
    if (run.raw) node.append(field("", fold(data.reply[i], run.raw)));
    node.append(field("scores, %", run.m.map((value, i) => METRICS[i] + " " + percent(value)).join(", ")));
    node.append(field("usage", run.use.map(([role, calls, prompt, completion]) =>
      role + " " + calls + (calls === 1 ? " call" : " calls") + (prompt || completion ? ", " + prompt + " + " + completion + " tokens" : "")).join("; ")));
    return node;
  }

  function openLinked() {
    const match = /^#question=(.*)$/.exec(location.hash);
    if (!match) return;
    const id = decodeURIComponent(match[1]);
    for (const name of ["outcome", "type"]) byId(name).value = "";
    byId("search").value = id;
    refresh();
    const at = found.findIndex((q) => q.id === id);
    if (at < 0 || at >= drawn) return;
    const node = byId("list").children[at];
    node.open = true;
    node.scrollIntoView();
  }

  if (many) fill(byId("run"), data.names.map((name, i) => [String(i), name]));
  if (many) byId("run").value = "1";
  fill(byId("outcome"), many ? [...OUTCOMES, ...ACROSS] : OUTCOMES);
  const types = [...new Set(data.questions.map((q) => q.type).filter((type) => type !== null))].sort();
  fill(byId("type"), [["", "All types"], ...types.map((type) => [type, type])]);
  byId("type").hidden = types.length < 2;
  byId("filters").addEventListener("input", refresh);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("more").addEventListener("click", draw);
  window.addEventListener("hashchange", openLinked);
  refresh();
  openLinked();
})();
