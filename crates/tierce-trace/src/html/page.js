// The page around the timeline: title, legend, tables of numbers, start.

function drawLegend() {
  look = theme();
  const entries = [
    ["running", (c) => { c.fillStyle = look.palette[0]; c.fillRect(2, 3, 26, 10); }],
    ["response: release to completion", (c) => { c.globalAlpha = 0.2; c.fillStyle = look.palette[0]; c.fillRect(2, 6, 26, 8); }],
    ["release", (c) => { ctx = c; c.fillStyle = look.ink; c.fillRect(14.4, 2, 1.2, 14); triangle(15, 0, 3.6, 6); }],
    ["deadline", (c) => { ctx = c; c.fillStyle = look.soft; c.fillRect(14.5, 0, 1, 14); triangle(15, 16, 3.6, -6); }],
    ["missed deadline, late part", (c) => {
      ctx = c; c.fillStyle = look.bad; c.fillRect(9.2, 2, 1.6, 14); c.fillRect(10, 13, 18, 3); cross(10, 4, 3.5); }],
    ["throttled", (c) => { ctx = c; c.fillStyle = hatch(look.dark ? "#596478" : "#bcc4d1"); c.fillRect(2, 3, 26, 11); }],
    ["remaining budget", (c) => {
      c.beginPath(); c.moveTo(2, 3); c.lineTo(12, 14); c.lineTo(18, 14); c.lineTo(18, 3); c.lineTo(28, 10);
      c.strokeStyle = look.palette[2]; c.lineWidth = 1.3; c.stroke();
      c.lineTo(28, 15); c.lineTo(2, 15); c.globalAlpha = 0.25; c.fillStyle = look.palette[2]; c.fill(); }],
    ["migration, and to which CPU", (c) => {
      c.fillStyle = look.palette[0]; c.fillRect(2, 3, 26, 11); drawMove(c, 9, 3, 11);
      c.fillStyle = look.card; c.fillRect(11, 4, 8, 10);
      c.font = font(9.5, 650); c.textBaseline = "middle"; c.fillStyle = look.ink; c.fillText("3", 12.5, 9); }],
    ["waits for a lock, and who has it", (c) => { drawWait(c, 2, 28, 13); }],
    ["node served", (c) => { c.fillStyle = look.node; c.fillRect(2, 3, 26, 10); }],
    ["stolen time", (c) => { c.fillStyle = look.palette[0]; c.fillRect(2, 2, 26, 12); c.fillStyle = look.bad; c.fillRect(12, 8, 5, 6); }],
  ];
  byId("legend").replaceChildren(...entries.map(([text, paint]) => {
    const item = document.createElement("li"), canvas = document.createElement("canvas");
    item.append(canvas, text);
    const pen = sizeCanvas(canvas, 30, 16);
    pen.clearRect(0, 0, 30, 16);
    paint(pen);
    pen.globalAlpha = 1;
    return item;
  }));
}

// ---- tables ----------------------------------------------------------------------------------------------------------

const ns = (value) => (value === null || value === undefined ? ["–", -1] : [duration(value), value]);
const count = (value) => [String(value), value];

function taskColumns(several) {
  return [
    ["task", (r) => [r.name + (r.id ? "" : " (gone)")], "text swatch"],
    ...(several ? [["trace", (r) => [r.tag], "text"]] : []),
    ["CPU time", (r) => ns(r.cpu_ns)], ["share", (r) => [percent(r.cpu_ns, r.elapsed_ns), r.cpu_ns / r.elapsed_ns]],
    ["jobs", (r) => (r.released ? count(r.jobs) : ns(null))], ["misses", (r) => (r.released ? count(r.misses) : ns(null)), "alarm"],
    ["response min", (r) => ns(r.response_ns?.min)], ["avg", (r) => ns(r.response_ns?.avg)],
    ["p99", (r) => ns(r.response_ns?.p99)], ["max", (r) => ns(r.response_ns?.max)],
    ["latest by", (r) => ns(r.misses ? r.tardiness_ns.max : null)],
    ["switches", (r) => count(r.switches)], ["migrations", (r) => count(r.migrations)],
  ];
}

function edgeColumns(several) {
  return [
    ["node or task", (r) => [r.name], "text"], ["policy", (r) => [r.policy ?? "task"], "text"], ["under", (r) => [r.edge.parent], "text"],
    ...(several ? [["trace", (r) => [r.tag], "text"]] : []),
    ["CPU time", (r) => ns(r.edge.cpu_ns)], ["share", (r) => [percent(r.edge.cpu_ns, r.elapsed_ns), r.edge.cpu_ns / r.elapsed_ns]],
    ["budget", (r) => ns(r.edge.budget_ns)], ["per period min", (r) => ns(r.edge.supply_ns?.min)],
    ["avg", (r) => ns(r.edge.supply_ns?.avg)], ["max", (r) => ns(r.edge.supply_ns?.max)],
    ["periods", (r) => count(r.edge.supply_ns?.periods ?? 0)], ["throttled", (r) => count(r.edge.throttles)],
    ["replenished", (r) => count(r.edge.replenishments)], ["forgiven", (r) => ns(r.edge.forgiven_ns)],
  ];
}

function cpuColumns(several) {
  return [
    ["CPU", (r) => [`CPU ${r.cpu}`, r.cpu], "text"], ...(several ? [["trace", (r) => [r.tag], "text"]] : []),
    ["used", (r) => [percent(r.used_ns, r.elapsed_ns), r.used_ns]], ["idle", (r) => [percent(r.idle_ns, r.elapsed_ns), r.idle_ns]],
    ["stolen", (r) => [percent(r.stolen_ns, r.elapsed_ns), r.stolen_ns]], ["switches", (r) => count(r.switches)],
  ];
}

function tableOf(title, columns, rows) {
  const section = document.createElement("div"), heading = document.createElement("h2"), sheet = document.createElement("div");
  const table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  heading.textContent = title;
  sheet.className = "sheet";
  sheet.append(table);
  section.append(heading, sheet);
  const more = document.createElement("p"), most = 2000;
  more.className = "more";
  more.textContent = rows.length > most ? `${rows.length - most} more rows are not shown; sort to see others, or use tierce trace stats.` : "";
  section.append(more);
  const fill = (sorted) => body.replaceChildren(...sorted.slice(0, most).map((row) => {
    const line = document.createElement("tr");
    for (const [, read, style = ""] of columns) {
      const [text, value] = read(row), cell = line.insertCell();
      if (style.includes("swatch")) {
        const swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.background = colourOf({ type: "task", name: row.name });
        cell.append(swatch);
      }
      cell.append(text);
      cell.className = (style.includes("text") ? "text" : "") + (style === "alarm" && value > 0 ? " bad" : "") + (text === "–" || value === 0 ? " soft" : "");
    }
    return line;
  }));
  columns.forEach(([name, read, style = ""], n) => {
    const cell = document.createElement("th");
    cell.textContent = name;
    cell.scope = "col";
    if (style.includes("text")) cell.className = "text";
    cell.addEventListener("click", () => {
      const order = cell.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
      [...head.cells].forEach((other) => other.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", order);
      const key = (row) => { const [text, value] = read(row); return value ?? text; };
      fill([...rows].sort((a, b) => (key(a) > key(b) ? 1 : key(a) < key(b) ? -1 : 0) * (order === "ascending" ? 1 : -1)));
    });
    head.append(cell);
  });
  fill(rows);
  return section;
}

// Rows of the traces, those of one name together.
function gather(list) {
  const all = view.traces.flatMap((trace) => list(trace.report).map((row) => ({ ...row, tag: tagOf(trace), elapsed_ns: trace.report.elapsed_ns })));
  if (view.traces.length < 2) return all;
  const first = new Map();
  const place = (row) => { const key = row.name ?? row.cpu; if (!first.has(key)) first.set(key, first.size); return first.get(key); };
  all.forEach(place);
  return all.map((row, n) => [place(row), n, row]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, , row]) => row);
}

function fillTables() {
  look = theme();
  const several = view.traces.length > 1;
  const edges = gather((report) => [
    ...report.nodes.flatMap((node) => node.under.map((edge) => ({ name: node.name, policy: node.policy, edge }))),
    ...report.tasks.flatMap((task) => task.under.filter((edge) => edge.budget_ns || edge.replenishments).map((edge) => ({ name: task.name, edge }))),
  ]);
  byId("statistics").replaceChildren(
    tableOf("Tasks", taskColumns(several), gather((report) => report.tasks)),
    tableOf("Nodes and reservations", edgeColumns(several), edges),
    tableOf("CPUs", cpuColumns(several), gather((report) => report.cpus)));
}

// ---- start -----------------------------------------------------------------------------------------------------------

// The plan's file without folders and ending.
function planName(trace) { return trace.header.plan.split("/").pop().replace(/\.toml$/, "") || "(no plan)"; }

function describeTraces() {
  const [first] = view.traces, word = (trace) => (trace.header.source === "sim" ? "simulated" : "measured");
  const plans = [...new Set(view.traces.map((trace) => planName(trace)))];
  byId("title").textContent = plans.join(" and ");
  const seed = (trace) => (trace.header.seed === undefined ? "" : `, seed ${trace.header.seed}`);
  const misses = view.traces.reduce((sum, trace) => sum + trace.misses.time.length, 0);
  const parts = [view.traces.map((trace) => `${duration(trace.length_ns)} ${word(trace)}${seed(trace)}`).join(" above "),
    first.header.cpus === 1 ? "1 CPU" : `${first.header.cpus} CPUs`,
    `${view.traces.reduce((sum, trace) => sum + trace.columns.time.length, 0).toLocaleString("en")} events`,
    ...view.traces.filter((trace) => trace.shift_ns).map((trace) => `${word(trace)} shifted by ${duration(trace.shift_ns)}`),
    misses === 1 ? "1 missed deadline" : `${misses.toLocaleString("en")} missed deadlines`];
  byId("subtitle").textContent = parts.join(" · ");
  const lost = view.traces.reduce((sum, trace) => sum + trace.report.lost, 0);
  byId("warning").hidden = !lost;
  byId("warning").textContent = `${lost.toLocaleString("en")} records were lost while this was recorded (dashed red lines); what they would have said is missing here and in the numbers.`;
}

// A first look that can be read: the whole trace, or as much of it as a few hundred stretches per CPU.
function firstLook() {
  const params = new URLSearchParams(location.hash.slice(1));
  if (params.has("filter")) { byId("filter").value = params.get("filter"); setFilter(params.get("filter")); }
  if (params.has("from_ns") || params.has("to_ns")) {
    return setSpan(Number(params.get("from_ns") ?? view.begin), Number(params.get("to_ns") ?? view.begin + view.length));
  }
  const first = view.traces[0], until = (on) => (on.runs.length > 160 ? on.runs.e[160] : view.length);
  const enough = Math.min(...first.cpus.map(until));
  if (enough > 0.6 * view.length) fit(); else setSpan(-0.01 * enough, enough);
}

async function start() {
  const params = new URLSearchParams(location.hash.slice(1));
  view.whole = params.has("whole"); // for pictures: every row, no scrolling
  const dark = params.get("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.classList.toggle("dark", dark === "dark");
  view.traces = await loadTraces();
  setBounds();
  look = theme();
  view.traces.forEach((trace) => trace.all.forEach(colourOf));
  view.width = byId("timeline").clientWidth;
  describeTraces();
  makeRows();
  // A measured schedule begins whenever its programs do: compare it from its first job on.
  if (new Set(view.traces.map((trace) => trace.header.source)).size > 1) align();
  listen();
  firstLook();
  draw();
  drawLegend();
  fillTables();
  draw();
}

const faults = [];
window.addEventListener("error", (event) => faults.push(event.message));
window.addEventListener("unhandledrejection", (event) => faults.push(String(event.reason)));
const ready = start();
