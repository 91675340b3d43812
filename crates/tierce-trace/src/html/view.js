// What is seen: rows, the span of time, and how they are drawn. All sizes are CSS pixels.

const GUTTER = 190;      // names
const BUDGET = 22;       // of a budget below its row, gap included
const AXIS = 26;         // time axis above the rows
const PALETTE = {
  light: ["#3b6fd4", "#e08a1e", "#2a9d77", "#c2497f", "#7a5cc7", "#4aa3c7", "#b0702c", "#6f9a2f", "#d0603f", "#5a6f8f", "#b08fd0", "#8f8a1f"],
  dark: ["#6f9bff", "#f0a544", "#49c398", "#e673a6", "#a389f0", "#6cc5ea", "#d49a5b", "#98c456", "#f08a6a", "#93a7c8", "#c9aef0", "#c2bb4d"],
};

const view = {
  traces: [], rows: [], begin: 0, length: 1, from: 0, to: 1, filter: "", chosen: null, pointer: null, measure: null,
  scale: 0, width: 0, height: 0, total: 0, scroll: 0, whole: false, allRows: [],
};

function theme() {
  const style = getComputedStyle(document.documentElement);
  const dark = document.documentElement.classList.contains("dark");
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return { dark, card: colour("card"), ink: colour("ink"), soft: colour("soft"), faint: colour("faint"), line: colour("line"),
    accent: colour("accent"), bad: colour("bad"), palette: PALETTE[dark ? "dark" : "light"], node: dark ? "#54627c" : "#a9b6cb" };
}
let look = null;

const colourNumbers = new Map(); // equal names have equal colours in both traces
function colourOf(thing) {
  if (thing.type === "node") return look.node;
  let number = colourNumbers.get(thing.name);
  if (number === undefined) colourNumbers.set(thing.name, (number = colourNumbers.size));
  return look.palette[number % look.palette.length];
}

// ---- rows ------------------------------------------------------------------------------------------------------------

function tagOf(trace) {
  if (view.traces.length < 2) return "";
  const [a, b] = view.traces.map((t) => t.header.source);
  const word = trace.header.source === "sim" ? "simulated" : "measured";
  return a !== b ? word : `${view.traces.indexOf(trace) + 1}: ${word}`;
}

function rowFor(trace, type, thing, label, detail) {
  const budgets = thing.edges?.filter((edge) => edge.budget.t.length) ?? [];
  const lanes = type === "node" ? Math.max(1, thing.edges.length) : 1;
  const main = type === "cpu" ? 30 : type === "node" ? (lanes === 1 ? 16 : 11 * lanes - 2) : thing.jobs.release.length ? 32 : 22;
  return { type, trace, thing, label, detail, tag: tagOf(trace), budgets, lanes, main, height: main + BUDGET * budgets.length + 10 };
}

function matches(row) {
  const missed = row.type === "task" && row.thing.jobs.missed.some(Boolean);
  const throttled = row.thing.edges?.some((edge) => edge.throttled.length);
  const words = [row.label, row.thing.policy ?? "", row.detail, row.tag, missed ? "missed" : "", throttled ? "throttled" : "",
    row.thing.waits?.length ? "waits" : ""];
  const text = words.join(" ").toLowerCase();
  return view.filter.toLowerCase().split(/[\s,]+/).every((word) => text.includes(word));
}

function ranges(cpus) {
  const sorted = [...cpus].sort((a, b) => a - b);
  const parts = [];
  for (const cpu of sorted) {
    const last = parts[parts.length - 1];
    if (last && last[1] === cpu - 1) last[1] = cpu; else parts.push([cpu, cpu]);
  }
  return parts.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ");
}

// Groups of rows: CPUs, nodes by level, tasks by the CPUs that can reach them. Rows of two traces that mean the same
// thing lie one above the other.
function makeRows() {
  const groups = new Map();
  const put = (order, title, key, row) => {
    if (!groups.has(order)) groups.set(order, { title, rows: new Map() });
    const rows = groups.get(order).rows;
    if (!rows.has(key)) rows.set(key, []);
    rows.get(key).push(row);
  };
  for (const trace of view.traces) {
    for (const on of trace.cpus) put("0", "CPUs", on.cpu, rowFor(trace, "cpu", on, `CPU ${on.cpu}`, ""));
    const nodes = trace.all.filter((thing) => thing.type === "node").sort((a, b) => a.level - b.level || a.order - b.order);
    for (const node of nodes) put("1", "Nodes", node.name, rowFor(trace, "node", node, node.name, node.policy ?? ""));
    for (const task of trace.all) {
      if (task.type !== "task") continue;
      const cpus = trace.cpusOf(task), names = ranges(cpus);
      const order = cpus.size ? `2 ${cpus.size > 1 ? 1 : 0} ${String(Math.min(...cpus)).padStart(5, "0")} ${names}` : "3";
      const title = cpus.size === 0 ? "Tasks" : cpus.size > 1 ? `Tasks on CPUs ${names}` : `Tasks on CPU ${names}`;
      put(order, title, task.name, rowFor(trace, "task", task, task.name, describe(task)));
    }
  }
  view.allRows = [...groups.keys()].sort().map((order) => groups.get(order));
  placeRows();
}

// "2 ms / 10 ms" of a reservation, "weight 300", "priority 1".
function describe(thing) {
  return (thing.edges[0] && describeEdge(thing.edges[0])) || (thing.info.period_ns ? `every ${duration(thing.info.period_ns)}` : "");
}
function describeEdge(edge) {
  if (edge.budget_ns) return `${duration(edge.budget_ns)} / ${duration(edge.period_ns ?? 0)}`;
  if (edge.weight !== undefined) return `weight ${edge.weight}`;
  if (edge.priority !== undefined) return `priority ${edge.priority}`;
  return "";
}

function placeRows() {
  view.rows = [];
  let y = AXIS;
  for (const group of view.allRows) {
    const shown = [...group.rows.values()].flat().filter(matches);
    if (!shown.length) continue;
    view.rows.push({ type: "group", label: group.title, y, height: 28 });
    y += 28;
    shown.forEach((row, n) => {
      row.second = n > 0 && shown[n - 1].label === row.label; // of a pair: drawn close to the first, without its name
      row.paired = shown[n + 1]?.label === row.label;
      if (row.second) y -= 5;
      row.y = y;
      view.rows.push(row);
      y += row.height + (row.second && !row.paired ? 3 : 0);
    });
  }
  view.total = y + 6;
}

// ---- time ------------------------------------------------------------------------------------------------------------

const span = () => view.to - view.from;
const plotWidth = () => view.width - GUTTER;
const xOf = (t) => GUTTER + ((t - view.from) / span()) * plotWidth();
const timeOf = (x) => view.from + ((x - GUTTER) / plotWidth()) * span();

// All that any trace covers, shifts included.
function setBounds() {
  view.begin = Math.min(...view.traces.map((trace) => trace.shift_ns));
  view.length = Math.max(...view.traces.map((trace) => trace.shift_ns + trace.length_ns)) - view.begin;
}

function setSpan(from, to) {
  const length = Math.min(Math.max(to - from, 200), view.length * 1.02), margin = 0.01 * view.length;
  const least = view.begin - margin, most = view.begin + view.length + margin - length;
  view.from = Math.min(Math.max((from + to - length) / 2, least), most);
  view.to = view.from + length;
  redraw();
}
function zoom(factor, x = GUTTER + plotWidth() / 2) {
  const at = timeOf(x), share = (at - view.from) / span();
  const length = Math.min(Math.max(span() * factor, 200), view.length * 1.02);
  setSpan(at - share * length, at + (1 - share) * length);
}

// ---- drawing ---------------------------------------------------------------------------------------------------------

let ctx = null;
let pending = false;
function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; draw(); });
}

function sizeCanvas(canvas, width, height) {
  const scale = view.scale || window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

function draw() {
  look = theme();
  const scroll = document.getElementById("scroll");
  view.width = document.getElementById("timeline").clientWidth;
  const most = view.whole ? 16000 : Math.max(320, Math.round(window.innerHeight * 0.74));
  view.height = Math.min(view.total, most);
  scroll.style.height = `${view.height}px`;
  document.getElementById("spacer").style.height = `${Math.max(0, view.total - view.height)}px`;
  ctx = sizeCanvas(document.getElementById("plot"), view.width, view.height);
  view.scroll = scroll.scrollTop;
  ctx.fillStyle = look.card;
  ctx.fillRect(0, 0, view.width, view.height);
  ctx.textBaseline = "middle";
  const ticks = tickTimes();
  ctx.fillStyle = look.line;
  for (const t of ticks.times) ctx.fillRect(Math.round(xOf(t)), AXIS, 1, view.height);
  for (const row of view.rows) {
    const y = row.y - view.scroll;
    if (y + row.height < AXIS || y > view.height) continue;
    if (row.type === "group") drawGroup(row, y);
    else drawRow(row, y);
  }
  drawMarks();
  drawAxis(ticks);
  drawPointer();
  drawOverview();
}

function font(size, weight = 400) { return `${weight} ${size}px system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif`; }

function tickTimes() {
  const rough = (span() / plotWidth()) * 110;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const times = [];
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) times.push(t);
  return { step, times };
}

function drawAxis({ step, times }) {
  ctx.fillStyle = look.card;
  ctx.fillRect(0, 0, view.width, AXIS);
  ctx.fillStyle = look.line;
  ctx.fillRect(0, AXIS - 1, view.width, 1);
  ctx.font = font(11.5);
  ctx.textAlign = "center";
  const [unit, name] = step < 1e3 ? [1e3, "µs"] : step < 1e6 ? [1e6, "ms"] : step < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  for (const t of times) {
    const x = Math.round(xOf(t));
    if (x < GUTTER + 2) continue;
    ctx.fillStyle = look.faint;
    ctx.fillRect(x, AXIS - 5, 1, 5);
    ctx.fillStyle = look.soft;
    const width = ctx.measureText(`${(t / unit).toFixed(digits)} ${name}`).width;
    if (x + width / 2 < view.width - 4) ctx.fillText(`${(t / unit).toFixed(digits)} ${name}`, x, AXIS / 2 - 1);
  }
  ctx.textAlign = "left";
  ctx.fillStyle = look.faint;
  ctx.fillText(`${duration(span())} shown`, 12, AXIS / 2 - 1);
}

function drawGroup(row, y) {
  ctx.font = font(11, 650);
  ctx.fillStyle = look.soft;
  ctx.textAlign = "left";
  ctx.letterSpacing = "0.06em";
  ctx.fillText(row.label.toUpperCase(), 12, y + 17);
  ctx.letterSpacing = "0px";
  ctx.fillStyle = look.line;
  ctx.fillRect(12, y + row.height - 3, view.width - 24, 1);
}

function drawRow(row, y) {
  const { thing } = row;
  ctx.save();
  ctx.beginPath();
  ctx.rect(GUTTER, Math.max(AXIS, y), plotWidth(), row.height);
  ctx.clip();
  const shift = row.trace.shift_ns;
  const top = y + 4;
  if (row.type === "cpu") {
    drawStacked(thing.runs, top, row.main, shift);
    drawStolen(thing, top, row.main, shift);
  } else if (row.type === "node") {
    const height = row.lanes === 1 ? row.main : 9;
    thing.edges.forEach((edge, lane) => {
      drawHatch(edge.throttled, top + lane * 11, height, shift);
      drawRuns(edge.grants, top + lane * 11, height, look.node, shift);
    });
  } else {
    drawTask(row, top, shift);
  }
  row.budgets.forEach((edge, n) => drawBudget(edge, thing, top + row.main + 4 + BUDGET * n, BUDGET - 4, shift));
  ctx.restore();
  drawName(row, y);
}

function drawName(row, y) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, Math.max(AXIS, y), GUTTER - 6, row.height);
  ctx.clip();
  const middle = y + 4 + row.main / 2, task = row.type === "task";
  const x0 = 12 + (row.type === "node" ? 12 * row.thing.level : task ? 17 : 0);
  let x = x0;
  ctx.textAlign = "left";
  if (!row.second) {
    ctx.fillStyle = colourOf(row.thing);
    if (task) ctx.fillRect(x - 17, middle - 5, 10, 10);
    ctx.font = font(12.5, view.chosen === row.thing.name ? 700 : 500);
    ctx.fillStyle = look.ink;
    ctx.fillText(row.label, x, middle);
    x += ctx.measureText(row.label).width + 8;
  }
  ctx.font = font(11);
  ctx.fillStyle = look.faint;
  const below = task && row.budgets.length > 0;
  if (row.tag) {
    ctx.textAlign = "right";
    ctx.fillText(row.tag, GUTTER - 12, middle);
    ctx.textAlign = "left";
  }
  if (!row.second) {
    row.budgets.forEach((edge, n) => {
      const parent = row.thing.edges.length > 1 ? `${edge.parent_name}: ` : "";
      ctx.fillText(parent + describeEdge(edge), task ? 29 : x0, y + 4 + row.main + BUDGET * (n + 0.5) + 2);
    });
  }
  if (!below && !row.tag) ctx.fillText(row.detail, x, middle);
  ctx.restore();
}

// Call `each(i, x0, x1)` for every stretch in view.
function visible(runs, shift, each) {
  for (let i = runs.after(view.from - shift); i < runs.length; i++) {
    const x0 = xOf(runs.s[i] + shift);
    if (x0 > view.width) break;
    each(i, x0, xOf(runs.e[i] + shift));
  }
}

const dimmed = (thing) => view.chosen !== null && thing.name !== view.chosen;

// A CPU: one block per stretch; where several fall on one pixel, their shares stacked.
function drawStacked(runs, y, height, shift) {
  let pixel = -1, shares = new Map();
  const flush = () => {
    let bottom = y + height;
    const sorted = [...shares].sort((a, b) => a[0].order - b[0].order);
    for (const [thing, share] of sorted) {
      const h = Math.min(share, 1) * height;
      ctx.globalAlpha = dimmed(thing) ? 0.13 : 1;
      ctx.fillStyle = colourOf(thing);
      ctx.fillRect(pixel, bottom - h, 1, h);
      bottom -= h;
    }
    shares = new Map();
  };
  visible(runs, shift, (i, x0, x1) => {
    const thing = runs.what[i];
    if (x1 - x0 < 1.5) {
      // A stretch may lie on two pixels: each gets its part.
      for (let p = Math.floor(x0); p <= Math.floor(x1); p++) {
        const part = Math.min(x1, p + 1) - Math.max(x0, p);
        if (part <= 0) continue;
        if (p !== pixel) { flush(); pixel = p; }
        shares.set(thing, (shares.get(thing) ?? 0) + part);
      }
      return;
    }
    block(x0, x1, y, height, colourOf(thing), dimmed(thing) ? 0.13 : 1, thing.name);
  });
  flush();
  ctx.globalAlpha = 1;
}

// A filled stretch, with its text when there is room; the gap between neighbours keeps cuts visible.
function block(x0, x1, y, height, colour, alpha, text) {
  const left = Math.max(x0, GUTTER - 4), right = Math.min(x1, view.width + 4);
  const gap = x1 - x0 > 5 ? 1 : 0;
  ctx.globalAlpha = alpha;
  ctx.fillStyle = colour;
  ctx.fillRect(left, y, Math.max(right - left - gap, 0.6), height);
  if (!text || right - left < 26 || height < 12) return;
  ctx.font = font(11, 550);
  const room = right - left - 8;
  let shown = text;
  if (ctx.measureText(shown).width > room) {
    const fit = Math.floor((text.length * room) / ctx.measureText(text).width) - 1;
    shown = fit > 2 ? `${text.slice(0, fit)}…` : "";
  }
  ctx.fillStyle = look.dark ? "#10141b" : "#fff";
  ctx.textAlign = "center";
  ctx.fillText(shown, (left + right - gap) / 2, y + height / 2 + 0.5);
  ctx.textAlign = "left";
}

// Stretches of one colour; where they are narrower than a pixel, the darker the more of it they cover.
function drawRuns(runs, y, height, colour, shift, alpha = 1, textOf = null) {
  let pixel = -1, share = 0;
  const flush = () => {
    if (share <= 0) return;
    ctx.globalAlpha = alpha * Math.max(0.22, Math.min(share, 1));
    ctx.fillStyle = colour;
    ctx.fillRect(pixel, y, 1, height);
    share = 0;
  };
  visible(runs, shift, (i, x0, x1) => {
    if (x1 - x0 >= 1.5) return block(x0, x1, y, height, colour, alpha, textOf?.(i));
    for (let p = Math.floor(x0); p <= Math.floor(x1); p++) {
      const part = Math.min(x1, p + 1) - Math.max(x0, p);
      if (part <= 0) continue;
      if (p !== pixel) { flush(); pixel = p; }
      share += part;
    }
  });
  flush();
  ctx.globalAlpha = 1;
}

let hatches = {};
function hatch(colour) {
  if (hatches[colour]) return hatches[colour];
  const tile = document.createElement("canvas"), scale = view.scale || window.devicePixelRatio || 1, size = 6 * scale;
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  pen.strokeStyle = colour;
  pen.lineWidth = scale;
  for (const d of [-size, 0, size]) { pen.moveTo(d, size); pen.lineTo(d + size, 0); }
  pen.stroke();
  const pattern = ctx.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix([1 / scale, 0, 0, 1 / scale, 0, 0]));
  return (hatches[colour] = pattern);
}

function drawHatch(throttled, y, height, shift) {
  visible(throttled, shift, (i, x0, x1) => {
    const width = Math.max(x1 - x0, 1);
    ctx.fillStyle = look.dark ? "#2a303c" : "#eef0f4";
    ctx.fillRect(x0, y, width, height);
    if (width > 3) {
      ctx.fillStyle = hatch(look.dark ? "#596478" : "#bcc4d1");
      ctx.fillRect(x0, y, width, height);
    }
  });
}

// Stolen time as notches of the block it was taken from, threads outside the graph as a bar on top.
function drawStolen(on, y, height, shift) {
  ctx.fillStyle = look.bad;
  let last = -9;
  visible(on.stolen, shift, (i, x0, x1) => {
    if (x1 < last + 1) return;
    last = Math.max(x1, x0 + 1.5);
    ctx.fillRect(x0, y + height - 6, last - x0, 6);
  });
  drawRuns(on.outside, y, 5, look.faint, shift);
}

function drawTask(row, y, shift) {
  const { thing } = row, { jobs } = thing, colour = colourOf(thing), faint = dimmed(thing) ? 0.2 : 1;
  const height = row.main, arrows = jobs.release.length > 0;
  const top = arrows ? y + 10 : y, h = y + height - top;
  for (const edge of thing.edges) drawHatch(edge.throttled, top, h, shift);
  // From release to completion: the response time, as a pale band; red where it is late.
  const first = Math.max(0, lastAt(jobs.release, view.from - shift) - 60);
  const late = [];
  for (let j = first; j < jobs.release.length; j++) {
    const x0 = xOf(jobs.release[j] + shift);
    if (x0 > view.width + 40) break;
    const end = jobs.end[j] === NONE ? row.trace.length_ns : jobs.end[j];
    const x1 = xOf(end + shift);
    if (x1 - x0 >= 0.7) {
      ctx.globalAlpha = 0.16 * faint;
      ctx.fillStyle = colour;
      ctx.fillRect(x0, top + h / 2, x1 - x0, h / 2);
    }
    if (jobs.missed[j] && jobs.deadline[j] !== NONE) late.push(j);
  }
  ctx.globalAlpha = 1;
  drawRuns(thing.runs, top, h, colour, shift, faint, (i) => jobName(thing, thing.runs.e[i]));
  for (const j of late) {
    const x0 = xOf(jobs.deadline[j] + shift), end = jobs.end[j] === NONE ? row.trace.length_ns : jobs.end[j];
    ctx.globalAlpha = 0.85 * faint;
    ctx.fillStyle = look.bad;
    ctx.fillRect(x0, y + height - 3, Math.max(xOf(end + shift) - x0, 1), 3);
  }
  ctx.globalAlpha = faint;
  drawWaits(thing.waits, y + height, shift);
  drawMoves(thing.moves, top, h, shift);
  if (arrows) drawArrows(jobs, y, height, first, shift);
  ctx.globalAlpha = 1;
}

// Waits for locks: a bracket on the row's lower edge, with the name of who has the lock where there is room.
function drawWaits(waits, bottom, shift) {
  ctx.font = font(9.5, 650);
  visible(waits, shift, (i, x0, x1) => {
    drawWait(ctx, x0, x1, bottom);
    const label = waits.what[i]?.name ?? "?", width = ctx.measureText(label).width;
    if (x1 - x0 < width + 12) return;
    ctx.fillStyle = look.card;
    ctx.fillRect((x0 + x1 - width) / 2 - 3, bottom - 11, width + 6, 11);
    ctx.fillStyle = look.accent;
    ctx.fillText(label, (x0 + x1 - width) / 2, bottom - 5);
  });
}
function drawWait(pen, x0, x1, bottom) {
  pen.fillStyle = look.accent;
  pen.fillRect(x0, bottom - 3, Math.max(x1 - x0, 1), 2);
  for (const x of [x0, x1 - 1.5]) pen.fillRect(x, bottom - 8, 1.5, 7);
}

// Migrations: a bar at the time, and the CPU that the task comes to where there is room for its number.
function drawMoves(moves, top, height, shift) {
  let before = -99;
  ctx.font = font(9.5, 650);
  ctx.textAlign = "left";
  for (let i = Math.max(0, lastAt(moves.t, view.from - shift)); i < moves.t.length; i++) {
    const x = xOf(moves.t[i] + shift);
    if (x > view.width) break;
    if (x - before < 2) continue;
    before = x;
    drawMove(ctx, x, top, height);
    const next = i + 1 < moves.t.length ? xOf(moves.t[i + 1] + shift) : view.width;
    const label = `${moves.to[i]}`, width = ctx.measureText(label).width;
    if (next - x < width + 12) continue;
    ctx.fillStyle = look.card;
    ctx.fillRect(x + 2, top + height - 11, width + 4, 11);
    ctx.fillStyle = look.ink;
    ctx.fillText(label, x + 4, top + height - 5);
  }
}
function drawMove(pen, x, top, height) {
  pen.fillStyle = look.card;
  pen.fillRect(x - 2, top, 4, height);
  pen.fillStyle = look.ink;
  pen.fillRect(x - 1, top, 2, height);
}

// Releases point up, deadlines down, as in the literature; missed deadlines are red and end in a cross, on top of all.
function drawArrows(jobs, y, height, first, shift) {
  const bottom = y + height, missed = [];
  const count = lastAt(jobs.release, view.to - shift) - first;
  const room = count > 0 ? plotWidth() / count : 99;
  for (let j = first; j < jobs.release.length; j++) {
    const up = xOf(jobs.release[j] + shift);
    if (up > view.width + 40) break;
    if (room > 7) {
      ctx.fillStyle = look.ink;
      ctx.fillRect(up - 0.6, y + 2, 1.2, height - 2);
      triangle(up, y, 3.6, 6);
    }
    if (jobs.deadline[j] === NONE) continue;
    const down = xOf(jobs.deadline[j] + shift);
    if (jobs.missed[j]) {
      if (!missed.length || down - missed[missed.length - 1] >= 2) missed.push(down);
    } else if (room > 7) {
      ctx.fillStyle = look.soft;
      ctx.fillRect(down - 0.5, y + 2, 1, height - 2);
      triangle(down, bottom, 3.6, -6);
    }
  }
  for (const x of missed) {
    ctx.fillStyle = look.bad;
    ctx.fillRect(x - 0.8, y + 2, 1.6, height - 2);
    if (room > 4) cross(x, y + 4, 3.5);
  }
}

function triangle(x, y, half, height) {
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x - half, y + height);
  ctx.lineTo(x + half, y + height);
  ctx.fill();
}

function cross(x, y, half) {
  ctx.strokeStyle = look.card;
  for (const [colour, width] of [[look.card, 4.5], [look.bad, 2]]) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.moveTo(x - half, y - half); ctx.lineTo(x + half, y + half);
    ctx.moveTo(x + half, y - half); ctx.lineTo(x - half, y + half);
    ctx.stroke();
  }
}

// The number of the job a task works on at time t.
function jobAt(thing, t) {
  const { jobs } = thing;
  for (let j = lastAt(jobs.release, t); j >= 0 && j > lastAt(jobs.release, t) - 60; j--) {
    if (jobs.start[j] !== NONE && jobs.start[j] <= t && (jobs.end[j] === NONE || jobs.end[j] >= t)) return j;
  }
  return -1;
}
function jobName(thing, t) {
  const j = jobAt(thing, t);
  return j < 0 ? null : `${thing.jobs.number[j]}`;
}

// Remaining budget as an area; below the line it is debt. Per pixel its range when there are many points.
function drawBudget(edge, thing, y, height, shift) {
  const { t, v } = edge.budget, max = edge.budget_max || 1;
  const colour = thing.type === "node" ? look.accent : colourOf(thing);
  const base = y + height, scale = height / max;
  ctx.globalAlpha = dimmed(thing) ? 0.25 : 1;
  ctx.fillStyle = look.line;
  ctx.fillRect(GUTTER, base, plotWidth(), 1);
  const start = Math.max(0, lastAt(t, view.from - shift));
  const path = new Path2D(), line = new Path2D();
  let begun = false, pixel = NONE, low = 0, high = 0, x = 0;
  const put = (px, value) => {
    const py = base - Math.max(-3 / scale, value) * scale;
    if (!begun) { path.moveTo(px, base); path.lineTo(px, py); line.moveTo(px, py); begun = true; }
    else { path.lineTo(px, py); line.lineTo(px, py); }
    x = px;
  };
  for (let i = start; i < t.length; i++) {
    const px = Math.max(xOf(t[i] + shift), GUTTER - 60000);
    const p = Math.floor(px);
    if (p === pixel) {
      low = Math.min(low, v[i]); high = Math.max(high, v[i]);
      if (i + 1 < t.length && Math.floor(xOf(t[i + 1] + shift)) === p) continue;
      put(px, high); put(px, low); put(px, v[i]);
    } else put(px, v[i]);
    [pixel, low, high] = [p, v[i], v[i]];
    if (px > view.width + 10) break;
  }
  if (!begun) { ctx.globalAlpha = 1; return; }
  path.lineTo(x, base);
  const alpha = ctx.globalAlpha;
  ctx.globalAlpha = 0.24 * alpha;
  ctx.fillStyle = colour;
  ctx.fill(path);
  ctx.globalAlpha = alpha;
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.25;
  ctx.stroke(line);
  ctx.globalAlpha = 1;
}

function drawMarks() {
  for (const trace of view.traces) {
    for (const mark of trace.marks) {
      const x = xOf(mark.t + trace.shift_ns);
      if (x < GUTTER || x > view.width) continue;
      ctx.fillStyle = mark.lost ? look.bad : look.accent;
      ctx.globalAlpha = 0.6;
      for (let y = AXIS; y < view.height; y += 6) ctx.fillRect(x - 0.5, y, 1, 3);
      ctx.globalAlpha = 1;
    }
  }
}

function drawPointer() {
  ctx.fillStyle = look.line;
  ctx.fillRect(GUTTER - 1, AXIS, 1, view.height);
  if (view.measure) {
    const [a, b] = view.measure.map(xOf).sort((p, q) => p - q);
    ctx.globalAlpha = 0.13;
    ctx.fillStyle = look.accent;
    ctx.fillRect(a, AXIS, b - a, view.height);
    ctx.globalAlpha = 1;
    ctx.fillRect(a, AXIS, 1, view.height);
    ctx.fillRect(b, AXIS, 1, view.height);
    pill((a + b) / 2, duration(Math.abs(view.measure[1] - view.measure[0])), look.accent);
  } else if (view.pointer && view.pointer.x > GUTTER) {
    ctx.fillStyle = look.soft;
    ctx.globalAlpha = 0.7;
    ctx.fillRect(Math.round(view.pointer.x), AXIS, 1, view.height);
    ctx.globalAlpha = 1;
    pill(view.pointer.x, instant(timeOf(view.pointer.x), span()), look.ink);
  }
}

function pill(x, text, colour) {
  ctx.font = font(11.5, 600);
  const width = ctx.measureText(text).width + 14;
  const left = Math.min(Math.max(x - width / 2, GUTTER), view.width - width - 4);
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.roundRect(left, 3, width, 19, 6);
  ctx.fill();
  ctx.fillStyle = look.card;
  ctx.textAlign = "left";
  ctx.fillText(text, left + 7, 13);
}

// ---- overview: the whole trace, CPU time by task -----------------------------------------------------------------------

const OVERVIEW = 40;
let overviewImage = null, overviewKey = "";
function drawOverview() {
  const canvas = document.getElementById("overview");
  const pen = sizeCanvas(canvas, view.width, OVERVIEW);
  const width = Math.max(1, plotWidth() - 12);
  const shifts = view.traces.map((trace) => trace.shift_ns).join();
  const key = `${view.width} ${look.dark} ${view.chosen} ${shifts} ${window.devicePixelRatio}`;
  if (key !== overviewKey) {
    overviewKey = key;
    overviewImage = document.createElement("canvas");
    const scale = window.devicePixelRatio || 1;
    overviewImage.width = width * scale;
    overviewImage.height = OVERVIEW * scale;
    const paint = overviewImage.getContext("2d");
    paint.scale(scale, scale);
    const each = (OVERVIEW - 8) / view.traces.length;
    view.traces.forEach((trace, n) => paintOverview(paint, trace, width, 4 + n * each, each - 1));
  }
  pen.fillStyle = look.card;
  pen.fillRect(0, 0, view.width, OVERVIEW);
  pen.drawImage(overviewImage, GUTTER, 0, width, OVERVIEW);
  pen.font = font(11.5);
  pen.textBaseline = "middle";
  pen.fillStyle = look.faint;
  pen.fillText(`whole trace, ${duration(view.length)}`, 12, OVERVIEW / 2);
  const share = (t) => Math.min(Math.max((t - view.begin) / view.length, 0), 1);
  const a = GUTTER + share(view.from) * width, b = GUTTER + share(view.to) * width;
  pen.fillStyle = look.card;
  pen.globalAlpha = 0.66;
  pen.fillRect(GUTTER, 0, a - GUTTER, OVERVIEW);
  pen.fillRect(b, 0, GUTTER + width - b, OVERVIEW);
  pen.globalAlpha = 1;
  pen.strokeStyle = look.accent;
  pen.lineWidth = 1.5;
  pen.strokeRect(a, 1.5, Math.max(b - a, 2), OVERVIEW - 3);
}

function paintOverview(paint, trace, width, y, height) {
  const perPixel = view.length / width, shift = trace.shift_ns - view.begin;
  const columns = Array.from({ length: Math.ceil(width) + 1 }, () => new Map());
  for (const on of trace.cpus) {
    for (let i = 0; i < on.runs.length; i++) {
      const s = on.runs.s[i] + shift, e = on.runs.e[i] + shift, thing = on.runs.what[i];
      for (let p = Math.floor(s / perPixel); p <= e / perPixel && p < columns.length; p++) {
        const part = Math.min(e, (p + 1) * perPixel) - Math.max(s, p * perPixel);
        if (part > 0) columns[p].set(thing, (columns[p].get(thing) ?? 0) + part);
      }
    }
  }
  columns.forEach((shares, p) => {
    let bottom = y + height;
    for (const [thing, ns] of [...shares].sort((a, b) => a[0].order - b[0].order)) {
      const h = (ns / perPixel / trace.cpus.length) * height;
      paint.globalAlpha = dimmed(thing) ? 0.15 : 0.85;
      paint.fillStyle = colourOf(thing);
      paint.fillRect(p, bottom - h, 1, h);
      bottom -= h;
    }
  });
  paint.globalAlpha = 1;
  paint.fillStyle = look.bad;
  trace.misses.time.forEach((t) => paint.fillRect((t + shift) / perPixel - 0.5, y, 1, 4));
}
