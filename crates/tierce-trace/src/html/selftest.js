// With #selftest the page tries itself and writes what came of it into <pre id="selftest">: one line per check.

async function selftest() {
  await ready;
  const lines = [];
  const check = (name, holds, detail = "") => lines.push(`${holds ? "ok" : "FAILED"} ${name}${detail ? `: ${detail}` : ""}`);
  const plot = byId("plot"), box = () => plot.getBoundingClientRect();
  const settle = () => { pending = false; draw(); };
  const send = (type, x, y, more = {}) => {
    const Event = type === "wheel" ? WheelEvent : type.startsWith("pointer") ? PointerEvent : MouseEvent;
    plot.dispatchEvent(new Event(type, { clientX: box().left + x, clientY: box().top + y, bubbles: true, cancelable: true, pointerId: 1, ...more }));
    settle();
  };
  const press = (key) => { document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })); settle(); };
  const colours = () => {
    const copy = Object.assign(document.createElement("canvas"), { width: plot.width, height: plot.height });
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(plot, 0, 0);
    const { data } = pen.getImageData(0, 0, copy.width, copy.height);
    const seen = new Set();
    for (let i = 0; i < data.length; i += 4 * 7) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return seen.size;
  };

  fit(); settle();
  check("something is drawn", colours() > 8, `${colours()} colours`);
  check("every trace has rows", view.traces.every((trace) => view.rows.some((row) => row.trace === trace)), `${view.rows.length} rows`);

  const before = span(), middle = GUTTER + plotWidth() / 2, fixed = timeOf(middle);
  send("wheel", middle, 60, { deltaY: -600 });
  check("the wheel zooms in", span() < before * 0.5, `${before} to ${span()}`);
  check("at the pointer", Math.abs(timeOf(middle) - fixed) < before / 1000);
  const from = view.from;
  send("pointerdown", middle, 60); send("pointermove", middle - 100, 60, { buttons: 1 }); send("pointerup", middle - 100, 60);
  check("dragging moves", view.from > from);
  const here = view.from;
  press("ArrowLeft");
  check("keys move", view.from < here);
  const wide = span();
  press("+");
  check("keys zoom", span() < wide);
  send("pointerdown", middle, 60); send("pointerdown", middle + 50, 60, { pointerId: 2 });
  const unpinched = span();
  send("pointermove", middle + 150, 60, { pointerId: 2 });
  check("pinching zooms", span() < unpinched);
  send("pointerup", middle, 60); send("pointerup", middle + 150, 60, { pointerId: 2 });
  press("0");
  if (view.traces.length > 1) {
    const shift = view.traces[1].shift_ns;
    press("]");
    check("the second trace is shifted", view.traces[1].shift_ns > shift);
    press("a");
    const firsts = view.traces.map((trace) => trace.all.find((task) => task.jobs.release.length).jobs.release[0] + trace.shift_ns);
    check("and aligned", firsts[0] === firsts[1], firsts.join(" and "));
    press("0");
  }
  check("all of it again", span() >= view.length);

  for (const type of ["cpu", "task", "node"]) {
    const row = view.rows.find((r) => r.type === type && (r.thing.runs.length || r.thing.edges?.some((edge) => edge.grants.length)));
    if (!row) continue;
    byId("scroll").scrollTop = Math.max(0, row.y - 100); settle();
    const runs = row.thing.runs.length ? row.thing.runs : row.thing.edges.find((edge) => edge.grants.length).grants;
    const i = runs.length >> 1, at = (runs.s[i] + runs.e[i]) / 2;
    send("pointermove", xOf(at), row.y - view.scroll + 8);
    const tip = byId("tip");
    const name = type === "cpu" ? row.thing.runs.what[row.thing.runs.at(timeOf(xOf(at)))].name : row.thing.name;
    check(`hovering a ${type} tells`, !tip.hidden && tip.textContent.includes(name), tip.textContent);
  }
  byId("scroll").scrollTop = 0; settle();
  const shown = view.rows.length;
  setFilter("no such row"); settle();
  check("the filter hides", view.rows.length === 0);
  setFilter(""); settle();
  check("and shows again", view.rows.length === shown);
  if (view.traces.some((trace) => trace.misses.time.length)) {
    setSpan(view.begin, view.begin + view.length / 20);
    press("n");
    const t = (view.from + view.to) / 2;
    check("next miss is found", view.traces.some((trace) => trace.misses.time.some((miss) => Math.abs(miss - t) < span())), duration(t));
    setFilter("missed"); settle();
    check("rows with misses are found", view.rows.some((row) => row.type === "task"));
    setFilter("");
  }
  press("0");
  send("pointerdown", middle, 60, { shiftKey: true }); send("pointermove", middle + 80, 60, { shiftKey: true });
  check("a stretch is measured", view.measure !== null && byId("tip").textContent.includes("share"), byId("tip").textContent);
  send("pointerup", middle + 80, 60);
  press("Escape");
  const was = document.documentElement.classList.contains("dark");
  press("d");
  check("light and dark", document.documentElement.classList.contains("dark") !== was && colours() > 8);
  press("d");
  check("the tables are filled", document.querySelectorAll("#statistics tbody tr").length > 0);
  check("nothing is loaded from elsewhere", performance.getEntriesByType("resource").length === 0);
  check("no errors", faults.length === 0, faults.join("; "));
  return lines;
}

if (location.hash === "#selftest") {
  selftest().catch((error) => [`FAILED ${error.stack}`]).then((lines) => {
    const pre = document.createElement("pre");
    pre.id = "selftest";
    pre.textContent = lines.join("\n");
    document.body.append(pre);
  });
}
