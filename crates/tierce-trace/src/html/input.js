// What people do: wheel, drag, pinch, keys, buttons, filter; and what the pointer is told.

const byId = (id) => document.getElementById(id);

function rowAt(y) {
  const at = y + view.scroll;
  return y < AXIS ? null : view.rows.find((row) => at >= row.y && at < row.y + row.height && row.type !== "group") ?? null;
}

function local(event) {
  const box = byId("plot").getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

// ---- the tip: a title and pairs of words ---------------------------------------------------------------------------------

function tipFor(row, t) {
  const tip = tipForRow(row, t), near = (3 * span()) / plotWidth();
  for (const mark of row.trace.marks.filter((m) => Math.abs(m.t + row.trace.shift_ns - t) < near).slice(0, 3)) {
    if (mark.lost) tip?.pairs.push(["lost here", `${mark.lost} records`, "bad"]);
    else tip?.pairs.push(["control", `operation ${mark.control} on ${mark.on}${mark.error ? `, error ${mark.error}` : ""}`]);
  }
  return tip;
}

function tipForRow(row, t) {
  const { thing, trace } = row, at = t - trace.shift_ns, tag = row.tag ? ` (${row.tag})` : "";
  if (at < 0 || at > trace.length_ns) return null;
  if (row.type === "cpu") return tipForCpu(row, thing, at, tag);
  const pairs = [];
  if (row.type === "task") {
    tipForJob(pairs, thing, at);
    tipForMove(pairs, thing.moves, at);
    const wait = thing.waits.at(at);
    if (wait >= 0) pairs.push(["waits for", `${thing.waits.via[wait]}, of ${thing.waits.what[wait]?.name ?? "a thread outside the plan"}`]);
  } else pairs.push(["policy", thing.policy ?? ""]);
  for (const edge of thing.edges) {
    const i = edge.grants.at(at), throttled = edge.throttled.at(at), under = thing.edges.length > 1 ? ` (${edge.parent_name})` : "";
    if (i >= 0) pairs.push([`served by ${edge.parent_name}`, `CPU ${edge.grants.what[i]}, ${duration(edge.grants.e[i] - edge.grants.s[i])}`]);
    if (throttled >= 0) pairs.push([`throttled${under}`, `until ${instant(edge.throttled.e[throttled], span())}`]);
    const budget = budgetAt(edge, at);
    if (budget !== null) pairs.push([`budget${under}`, `${duration(budget)} of ${duration(edge.budget_max)}`]);
  }
  const running = thing.runs.at(at);
  if (row.type === "task" && running >= 0 && !thing.edges.some((edge) => edge.grants.at(at) >= 0)) {
    pairs.push(["running", `CPU ${thing.runs.what[running]}`]);
  }
  if (row.type === "node") {
    const cpus = trace.cpus.filter((on) => thing.edges.some((edge) => { const g = edge.grants.at(at); return g >= 0 && edge.grants.what[g] === on.cpu; }));
    for (const on of cpus) {
      const i = on.runs.at(at);
      if (i >= 0) pairs.push([`CPU ${on.cpu} runs`, on.runs.what[i].name]);
    }
  }
  return { title: thing.name + tag, pairs };
}

function tipForCpu(row, on, at, tag) {
  const pairs = [], i = on.runs.at(at), stolen = on.stolen.at(at), outside = on.outside.at(at);
  if (i < 0) pairs.push(["runs", "nothing"]);
  else {
    const task = on.runs.what[i];
    pairs.push(["runs", task.name], ["from", instant(on.runs.s[i], span())], ["for", duration(on.runs.e[i] - on.runs.s[i])]);
    const edge = row.trace.edges[on.runs.via[i]];
    if (edge) pairs.push(["under", edge.parent_name]);
    tipForJob(pairs, task, at);
  }
  if (stolen >= 0) pairs.push(["stolen", duration(on.stolen.e[stolen] - on.stolen.s[stolen])]);
  if (outside >= 0) {
    if (on.outside.via[outside] === 3) pairs.push(["the scheduler takes", duration(on.outside.e[outside] - on.outside.s[outside])]);
    else pairs.push(["outside the plan", `thread ${on.outside.what[outside]}`]);
  }
  return { title: `CPU ${on.cpu}${tag}`, pairs };
}

function tipForJob(pairs, task, at) {
  const { jobs } = task;
  let j = jobAt(task, at);
  if (j < 0) {
    j = lastAt(jobs.release, at); // waiting or just done: the latest job whose response covers this time
    if (j < 0 || (jobs.end[j] !== NONE && jobs.end[j] < at)) return;
  }
  pairs.push(["job", `${jobs.number[j]}`], ["released", instant(jobs.release[j], span())]);
  if (jobs.end[j] !== NONE) pairs.push(["response", duration(jobs.response[j])]);
  else pairs.push(["response", "not done when the trace ends"]);
  if (jobs.deadline[j] !== NONE) {
    pairs.push(["deadline", `${duration(jobs.deadline[j] - jobs.release[j])} after release`]);
    if (jobs.missed[j]) {
      const late = jobs.end[j] === NONE ? "never done" : `late by ${duration(jobs.end[j] - jobs.deadline[j])}`;
      pairs.push(["missed", late, "bad"]);
    }
  }
}

// The latest migration: where the task is since, and why.
function tipForMove(pairs, moves, at) {
  const i = lastAt(moves.t, at);
  if (i >= 0) pairs.push(["migrated", `CPU ${moves.from[i]} to CPU ${moves.to[i]} at ${instant(moves.t[i], span())}, ${moves.why[i]}`]);
}

function budgetAt(edge, at) {
  const { t, v } = edge.budget, i = lastAt(t, at);
  if (i < 0) return null;
  if (i + 1 >= t.length || t[i + 1] === t[i]) return v[i];
  return v[i] + ((v[i + 1] - v[i]) * (at - t[i])) / (t[i + 1] - t[i]);
}

// Share of a measured stretch in which a row ran.
function tipForMeasure(row) {
  const [a, b] = [...view.measure].sort((p, q) => p - q);
  const shift = row.trace.shift_ns, lists = row.type === "node" ? row.thing.edges.map((edge) => edge.grants) : [row.thing.runs];
  let ran = 0;
  for (const runs of lists) {
    for (let i = runs.after(a - shift); i < runs.length && runs.s[i] + shift < b; i++) {
      ran += Math.min(b, runs.e[i] + shift) - Math.max(a, runs.s[i] + shift);
    }
  }
  return { title: row.label, pairs: [["stretch", duration(b - a)], ["ran", duration(ran)], ["share", percent(ran, b - a)]] };
}

function showTip(event, tip) {
  const box = byId("tip");
  box.hidden = !tip;
  if (!tip) return;
  const title = document.createElement("b"), list = document.createElement("dl");
  title.textContent = tip.title;
  for (const [word, value, style] of tip.pairs) {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = word;
    dd.textContent = value;
    if (style) dd.className = style;
    list.append(dt, dd);
  }
  box.replaceChildren(title, list);
  const { offsetWidth: w, offsetHeight: h } = box;
  box.style.left = `${event.clientX + 18 + w > innerWidth ? Math.max(4, event.clientX - w - 14) : event.clientX + 18}px`;
  box.style.top = `${Math.max(4, Math.min(event.clientY + 18, innerHeight - h - 8))}px`;
}

// ---- actions -------------------------------------------------------------------------------------------------------------

function fit() { setSpan(view.begin - 0.005 * view.length, view.begin + 1.005 * view.length); }

function gotoMiss(direction) {
  const middle = (view.from + view.to) / 2;
  const all = view.traces.flatMap((trace) => trace.misses.time.map((t, i) => ({ t: t + trace.shift_ns, thing: trace.misses.thing[i], trace })));
  const ahead = all.filter((miss) => direction * (miss.t - middle) > 1).sort((a, b) => direction * (a.t - b.t));
  const miss = ahead[0];
  if (!miss) return;
  const length = Math.min(span(), view.length / 2, Math.max(20 * (miss.thing.info?.period_ns ?? span()), 1e5));
  setSpan(miss.t - length / 2, miss.t + length / 2);
  const row = view.rows.find((r) => r.thing === miss.thing && r.trace === miss.trace);
  const scroll = byId("scroll");
  if (row && (row.y < scroll.scrollTop + AXIS || row.y + row.height > scroll.scrollTop + view.height)) scroll.scrollTop = row.y - view.height / 2;
}

function toggleTheme() {
  document.documentElement.classList.toggle("dark");
  hatches = {};
  draw();
  drawLegend();
  fillTables();
}

// Four times as fine as the screen's own points, for print.
function savePicture() {
  const link = document.createElement("a");
  [view.scale, view.pointer, hatches] = [4, null, {}];
  draw();
  link.download = `${planName(view.traces[0])}.png`;
  link.href = byId("plot").toDataURL("image/png");
  [view.scale, hatches] = [0, {}];
  draw();
  link.click();
}

function setFilter(text) {
  view.filter = text;
  placeRows();
  redraw();
}

function shiftSecond(by) {
  if (view.traces.length < 2) return;
  view.traces[1].shift_ns += by;
  setBounds();
  describeTraces();
  redraw();
}

// Shift the second trace so that the first job of a task (the chosen one, else the first both have) begins together.
function align() {
  const [a, b] = view.traces;
  const first = (trace, name) => trace.byName.get(name)?.jobs.release[0];
  const names = [...a.byName.keys()].filter((name) => first(a, name) !== undefined && first(b, name) !== undefined);
  const name = names.includes(view.chosen) ? view.chosen : names[0];
  if (name !== undefined) shiftSecond(first(a, name) + a.shift_ns - first(b, name) - b.shift_ns);
}

const actions = {
  in: () => zoom(0.6), out: () => zoom(1 / 0.6), fit, miss: () => gotoMiss(1), theme: toggleTheme, save: savePicture,
  help: () => byId("help").showModal(),
};
const keys = {
  "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": fit, Home: fit,
  ArrowLeft: () => setSpan(view.from - span() / 8, view.to - span() / 8),
  ArrowRight: () => setSpan(view.from + span() / 8, view.to + span() / 8),
  ArrowUp: () => { byId("scroll").scrollTop -= 60; }, ArrowDown: () => { byId("scroll").scrollTop += 60; },
  n: () => gotoMiss(1), p: () => gotoMiss(-1), d: toggleTheme, s: savePicture, "?": actions.help,
  "/": () => byId("filter").focus(), "[": () => shiftSecond(-span() / 100), "]": () => shiftSecond(span() / 100),
  a: () => view.traces.length > 1 && align(),
  Escape: () => { view.chosen = null; view.measure = null; redraw(); },
};

function listen() {
  const plot = byId("plot"), pointers = new Map();
  let drag = null;

  plot.addEventListener("wheel", (event) => {
    const { x } = local(event);
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (x < GUTTER && !event.ctrlKey) return; // over the names: the rows scroll
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = ((event.deltaX || event.deltaY) * unit * span()) / plotWidth();
      setSpan(view.from + by, view.to + by);
    } else zoom(Math.exp(event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.0022)), x);
  }, { passive: false });

  plot.addEventListener("pointerdown", (event) => {
    if (event.isTrusted) plot.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, local(event));
    const at = local(event);
    drag = { x: at.x, y: at.y, top: byId("scroll").scrollTop, from: view.from, to: view.to, moved: false, measure: event.shiftKey ? timeOf(at.x) : null };
    if (!event.shiftKey) view.measure = null;
  });
  plot.addEventListener("pointermove", (event) => {
    const at = local(event), before = pointers.get(event.pointerId);
    if (before && pointers.size === 2) {
      const other = [...pointers.entries()].find(([id]) => id !== event.pointerId)[1];
      zoom(Math.max(Math.abs(before.x - other.x), 8) / Math.max(Math.abs(at.x - other.x), 8), other.x);
      pointers.set(event.pointerId, at);
      return;
    }
    if (before) pointers.set(event.pointerId, at);
    view.pointer = at;
    if (drag && (drag.moved || Math.hypot(at.x - drag.x, at.y - drag.y) > 3)) {
      drag.moved = true;
      if (drag.measure !== null) view.measure = [drag.measure, timeOf(at.x)];
      else {
        const by = ((at.x - drag.x) / plotWidth()) * (drag.to - drag.from);
        setSpan(drag.from - by, drag.to - by);
        byId("scroll").scrollTop = drag.top - (at.y - drag.y);
      }
    }
    const row = rowAt(at.y);
    const tip = row && at.x >= GUTTER ? (view.measure && drag ? tipForMeasure(row) : tipFor(row, timeOf(at.x))) : null;
    showTip(event, tip && tip.pairs.length ? tip : null);
    plot.style.cursor = drag?.moved ? "grabbing" : at.x < GUTTER ? "default" : "crosshair";
    redraw();
  });
  const up = (event) => {
    pointers.delete(event.pointerId);
    if (drag && !drag.moved && event.type === "pointerup") choose(local(event));
    drag = null;
  };
  plot.addEventListener("pointerup", up);
  plot.addEventListener("pointercancel", up);
  plot.addEventListener("pointerleave", (event) => { view.pointer = null; showTip(event, null); redraw(); });
  plot.addEventListener("dblclick", fit);

  const overview = byId("overview");
  const move = (event) => {
    const box = overview.getBoundingClientRect();
    const t = view.begin + ((event.clientX - box.left - GUTTER) / (plotWidth() - 12)) * view.length, half = span() / 2;
    setSpan(t - half, t + half);
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); move(event); });
  overview.addEventListener("pointermove", (event) => { if (event.buttons) move(event); });

  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey || byId("help").open) {
      if (event.key === "Escape" && event.target.matches("input")) event.target.blur();
      return;
    }
    const action = keys[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  document.querySelectorAll("[data-do]").forEach((button) => button.addEventListener("click", () => actions[button.dataset.do]()));
  byId("filter").addEventListener("input", (event) => setFilter(event.target.value));
  byId("scroll").addEventListener("scroll", redraw);
  window.addEventListener("resize", redraw);
}

function choose(at) {
  const row = rowAt(at.y);
  if (!row) return;
  let thing = row.type === "task" ? row.thing : null;
  if (row.type === "cpu" && at.x >= GUTTER) {
    const i = row.thing.runs.at(timeOf(at.x) - row.trace.shift_ns);
    thing = i >= 0 ? row.thing.runs.what[i] : null;
  }
  view.chosen = thing && view.chosen !== thing.name ? thing.name : null;
  redraw();
}
