// From the embedded bytes to what is drawn: decode the records, follow them once, keep stretches per row.
// Times are ns since the begin of the trace, as doubles (exact for 104 days).

const KIND = { DECISION: 1, GRANT: 4, REVOKE: 5, THROTTLE: 6, REPLENISH: 7, BUDGET: 8, JOB_RELEASE: 9, JOB_START: 10,
  JOB_COMPLETE: 11, MISS: 12, STOLEN: 13, LOST: 14, OUTSIDE: 16, CONTROL: 17, NAME: 18, ATTACH: 19, DETACH: 20, MIGRATE: 25,
  LOCK_WAIT: 27, LOCK_END: 28 };
const LOCKS = ["futex", "PI futex", "kernel lock", "lock"];
const REASONS = ["wake-up", "pull", "balance", "affinity"]; // of a migration
const NONE = -1; // "no such time": a deadline nobody set, a job that has not ended

async function inflate(base64) {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Columns one after the other: time deltas, kinds, CPUs, a, b as LEB128, values as zigzag LEB128.
function decode(bytes, count) {
  let at = 0;
  const number = () => {
    let value = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    return value;
  };
  const column = (Type, read) => {
    const out = new Type(count);
    for (let i = 0; i < count; i++) out[i] = read();
    return out;
  };
  let time = 0;
  return {
    time: column(Float64Array, () => (time += number())),
    kind: column(Uint8Array, number),
    cpu: column(Uint16Array, number),
    a: column(Uint32Array, number),
    b: column(Uint32Array, number),
    value: column(Float64Array, () => { const z = number(); return z % 2 ? -(z + 1) / 2 : z / 2; }),
  };
}

// Stretches of one row, in the order of their ends. `what` and `via` depend on the row.
class Stretches {
  constructor() { this.s = []; this.e = []; this.what = []; this.via = []; }
  push(s, e, what, via) { this.s.push(s); this.e.push(e); this.what.push(what); this.via.push(via); }
  get length() { return this.s.length; }
  // Index of the first stretch that ends after t.
  after(t) {
    let low = 0, high = this.e.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.e[mid] > t) high = mid; else low = mid + 1;
    }
    return low;
  }
  at(t) {
    const i = this.after(t);
    return i < this.length && this.s[i] <= t ? i : -1;
  }
}

// Index of the last element <= t in a sorted list, or -1.
function lastAt(list, t) {
  let low = 0, high = list.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (list[mid] <= t) low = mid + 1; else high = mid;
  }
  return low - 1;
}

class Trace {
  constructor(meta, columns) {
    Object.assign(this, { header: meta.header, report: meta.report, names: meta.names, columns });
    this.length_ns = meta.length_ns;
    this.things = [];   // by id: nodes and tasks
    this.all = [];      // every thing there ever was; ids may be used again
    this.byName = new Map(); // tasks
    this.edges = [];    // by id
    this.cpus = Array.from({ length: meta.header.cpus }, (_, cpu) => ({
      cpu, runs: new Stretches(), stolen: new Stretches(), outside: new Stretches(), thing: null, edge: 0, since: 0 }));
    this.misses = { time: [], thing: [] };
    this.marks = [];    // lost records, control operations
    this.shift_ns = 0;
    for (const node of meta.header.nodes) this.thing(node.id, "node", node);
    for (const task of meta.header.tasks) this.thing(task.id, "task", task);
    for (const edge of meta.header.edges) this.attach(edge);
    this.follow();
    this.length_ns = Math.max(this.length_ns, 1);
  }

  thing(id, type, info) {
    if (this.things[id]) return this.things[id];
    const thing = { id, type, name: info.name ?? `#${id}`, policy: info.policy, level: info.level ?? 0, info, edges: [],
      runs: new Stretches(), order: this.all.length,
      jobs: { number: [], release: [], deadline: [], start: [], end: [], response: [], missed: [], open: 0 },
      moves: { t: [], from: [], to: [], why: [] }, // to another replica of a spread node
      waits: new Stretches(), wait: null }; // for locks: what: who has it, via: which
    this.all.push(thing);
    if (type === "task") this.byName.set(thing.name, thing);
    return (this.things[id] = thing);
  }

  task(id) { return this.things[id] ?? this.thing(id, "task", {}); }

  attach(info) {
    const edge = { ...info, grants: new Stretches(), throttled: new Stretches(), since: NONE, cpu_now: 0,
      throttled_since: NONE, budget: { t: [], v: [], now: 0, at: 0 }, budget_max: info.budget_ns ?? 0 };
    if (info.child) this.task(info.child).edges.push(edge);
    return (this.edges[info.id] = edge);
  }

  edge(id) { return this.edges[id] ?? this.attach({ id, parent: 0, child: 0, parent_name: "?" }); }

  follow() {
    const { time, kind, cpu, a, b, value } = this.columns;
    let names = 0;
    for (let i = 0; i < time.length; i++) {
      const t = time[i], on = this.cpus[cpu[i]];
      switch (kind[i]) {
        case KIND.DECISION: this.switchTo(on, a[i] ? this.task(a[i]) : null, b[i], t); break;
        case KIND.GRANT: {
          const edge = this.edge(a[i]);
          if (edge.since !== NONE) this.endGrant(edge, t);
          if (!edge.child) { edge.child = b[i]; this.task(b[i]).edges.push(edge); }
          Object.assign(edge, { since: t, cpu_now: cpu[i] });
          this.sample(edge, t, null);
          if (on.thing && on.thing === this.things[b[i]]) this.switchTo(on, on.thing, a[i], t); // by another parent
          break;
        }
        case KIND.REVOKE: this.endGrant(this.edge(a[i]), t); break;
        case KIND.THROTTLE: {
          const edge = this.edge(a[i]);
          if (edge.throttled_since === NONE) edge.throttled_since = t;
          break;
        }
        case KIND.REPLENISH: {
          const edge = this.edge(a[i]);
          this.endThrottle(edge, t);
          this.sample(edge, t, null);
          this.sample(edge, t, value[i]);
          break;
        }
        case KIND.BUDGET: this.sample(this.edge(a[i]), t, value[i]); break;
        case KIND.JOB_RELEASE: {
          const jobs = this.task(a[i]).jobs;
          jobs.number.push(b[i]); jobs.release.push(t); jobs.start.push(NONE); jobs.end.push(NONE);
          jobs.response.push(0); jobs.missed.push(false); jobs.deadline.push(value[i] < -9e15 ? NONE : value[i]);
          break;
        }
        case KIND.JOB_START: this.job(a[i], b[i], (jobs, j) => { jobs.start[j] = t; }); break;
        case KIND.JOB_COMPLETE:
          this.job(a[i], b[i], (jobs, j) => { jobs.end[j] = t; jobs.response[j] = value[i]; jobs.open = j + 1; });
          break;
        case KIND.MISS:
          this.job(a[i], b[i], (jobs, j) => { jobs.missed[j] = true; });
          this.misses.time.push(Math.max(0, value[i]));
          this.misses.thing.push(this.task(a[i]));
          break;
        case KIND.STOLEN: on.stolen.push(Math.max(0, t - value[i]), t, a[i], 0); break;
        case KIND.LOST: this.marks.push({ t, lost: value[i] }); break;
        case KIND.OUTSIDE:
          if (b[i]) on.outside_since = t;
          else if (on.outside_since !== undefined) on.outside.push(on.outside_since, t, a[i], value[i]);
          break;
        case KIND.CONTROL: this.marks.push({ t, control: a[i], on: b[i], error: value[i] }); break;
        case KIND.NAME: this.rename(a[i], this.names[names++]); break;
        case KIND.ATTACH: {
          const parent = value[i], child = b[i];
          this.attach({ id: a[i], parent, child, cpu: parent ? undefined : cpu[i],
            parent_name: parent ? this.task(parent).name : `cpu${cpu[i]}`, child_name: this.task(child).name });
          break;
        }
        case KIND.MIGRATE: {
          const { moves } = this.task(a[i]);
          moves.t.push(t); moves.from.push(b[i]); moves.to.push(cpu[i]);
          moves.why.push(REASONS[Math.floor(value[i] / 2)] ?? "");
          break;
        }
        case KIND.LOCK_WAIT: {
          const kind = value[i] % 4, which = (value[i] - kind) / 4;
          const lock = kind === 3 ? this.header.locks?.[which] ?? `#${which}` : `0x${(value[i] - kind).toString(16)}`;
          this.endWait(this.task(a[i]), t);
          this.task(a[i]).wait = { since: t, holder: b[i] ? this.task(b[i]) : null, lock: `${LOCKS[kind]} ${lock}` };
          break;
        }
        case KIND.LOCK_END: this.endWait(this.task(a[i]), t); break;
        case KIND.DETACH: this.endGrant(this.edge(a[i]), t); this.endThrottle(this.edge(a[i]), t); break;
      }
    }
    const end = this.length_ns;
    for (const on of this.cpus) this.switchTo(on, null, 0, end);
    for (const thing of this.all) this.endWait(thing, end);
    for (const edge of this.edges) {
      if (!edge) continue;
      this.endGrant(edge, end);
      this.endThrottle(edge, end);
      if (edge.budget.t.length) this.sample(edge, end, null);
    }
  }

  switchTo(on, thing, edge, t) {
    if (on.thing && t > on.since) {
      on.runs.push(on.since, t, on.thing, on.edge);
      on.thing.runs.push(on.since, t, on.cpu, on.edge);
    }
    Object.assign(on, { thing, edge, since: t });
  }

  endGrant(edge, t) {
    if (edge.since === NONE) return;
    this.sample(edge, t, null);
    if (t > edge.since) edge.grants.push(edge.since, t, edge.cpu_now, edge);
    edge.since = NONE;
  }

  endThrottle(edge, t) {
    if (edge.throttled_since !== NONE && t > edge.throttled_since) edge.throttled.push(edge.throttled_since, t, 0, edge);
    edge.throttled_since = NONE;
  }

  endWait(thing, t) {
    if (thing.wait && t > thing.wait.since) thing.waits.push(thing.wait.since, t, thing.wait.holder, thing.wait.lock);
    thing.wait = null;
  }

  // A point of the remaining budget: as told, or estimated from the last one. Between points it is a straight line.
  sample(edge, t, told) {
    const budget = edge.budget;
    if (told === null && !budget.t.length) return;
    const value = told ?? (edge.since === NONE ? budget.now : Math.max(budget.now - (t - Math.max(budget.at, edge.since)), Math.min(budget.now, 0)));
    const n = budget.t.length;
    if (n && budget.t[n - 1] === t && budget.v[n - 1] === value) return;
    budget.t.push(t);
    budget.v.push(value);
    Object.assign(budget, { now: value, at: t });
    edge.budget_max = Math.max(edge.budget_max, value);
  }

  // Find a job by its number; jobs end in order, so it is near the first open one.
  job(id, number, change) {
    const jobs = this.task(id).jobs;
    for (let j = jobs.open; j < jobs.number.length; j++) {
      if (jobs.number[j] === number) return change(jobs, j);
    }
  }

  // From here on `id` is another thread; namesakes share a row, so that fork storms stay readable.
  rename(id, name) {
    const old = this.things[id];
    if (old?.name === name) return;
    if (old && old.name === `#${id}` && !old.runs.length) { old.name = name; this.byName.set(name, old); return; }
    const twin = this.byName.get(name);
    if (twin) this.things[id] = twin;
    else { delete this.things[id]; this.thing(id, "task", { name }); }
  }

  // All replicas of the spread node that one of them belongs to.
  replicas(id) {
    const family = this.things[id]?.info.family;
    return this.all.filter((thing) => thing.type === "node" && thing.info.family === family);
  }

  // The CPUs that can reach a thing, by its edges upwards; depth is at most 8.
  cpusOf(thing, depth = 0) {
    const cpus = new Set();
    for (const edge of thing.edges) {
      if (edge.parent === 0) { if (edge.cpu !== undefined) cpus.add(edge.cpu); }
      else if (edge.spread) this.replicas(edge.parent).forEach((node) => this.cpusOf(node, depth + 1).forEach((c) => cpus.add(c)));
      else if (depth < 9 && this.things[edge.parent]) this.cpusOf(this.things[edge.parent], depth + 1).forEach((c) => cpus.add(c));
    }
    return cpus;
  }
}

async function loadTraces() {
  const traces = [];
  for (let i = 0; document.getElementById(`meta${i}`); i++) {
    const meta = JSON.parse(document.getElementById(`meta${i}`).textContent);
    const bytes = await inflate(document.getElementById(`events${i}`).textContent.trim());
    traces.push(new Trace(meta, decode(bytes, meta.count)));
  }
  return traces;
}

// ---- words -----------------------------------------------------------------------------------------------------------

// A duration for people: about four digits and a fitting unit.
function duration(ns) {
  const size = Math.abs(ns);
  const [unit, name] = size < 1e3 ? [1, "ns"] : size < 999950 ? [1e3, "µs"] : size < 999950e3 ? [1e6, "ms"] : [1e9, "s"];
  return `${+(ns / unit).toPrecision(4)} ${name}`;
}

// A point in time, exact to the nanosecond as far as it matters for a view `span` wide.
function instant(ns, span) {
  const [unit, name, digits] = span < 5e3 ? [1e3, "µs", 3] : span < 5e6 ? [1e6, "ms", 6] : span < 5e9 ? [1e6, "ms", 3] : [1e9, "s", 4];
  return `${(ns / unit).toFixed(digits)} ${name}`;
}

function percent(part, whole) { return whole > 0 ? `${((100 * part) / whole).toFixed(2)} %` : "–"; }
