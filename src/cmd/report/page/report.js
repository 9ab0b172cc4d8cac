// The script of the page that `dyntrace report --html` writes. It sorts and filters the tables, and draws the pictures from
// the rows of JSON that src/cmd/report/picture.c describes. Names in a trace may be malicious, so they are only set as text.
"use strict";
(() => {
  // ---- light and dark
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // ---- in narrow windows, long names break after the dots, slashes and colons between their parts
  const breakNames = () => {
    for (const cell of document.querySelectorAll("td.w, td.code, h3 .code, .findings")) {
      for (const text of [...cell.childNodes].filter(node => node.nodeType === Node.TEXT_NODE)) {
        const parts = text.data.split(/(?<=[\w>][._/:])(?=[\w<])/);
        if (parts.length > 1) text.replaceWith(...parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));
      }
    }
  };
  const narrow = matchMedia("(max-width: 800px)");
  if (narrow.matches) breakNames();
  else narrow.addEventListener("change", breakNames, { once: true });

  // ---- tables: a click on a column's heading sorts the rows, the search field filters them
  for (const table of document.querySelectorAll("table.sort")) {
    const body = table.tBodies[0];
    const value = (row, i) => {
      const cell = row.cells[i], v = cell.dataset.v;
      return cell.className === "soft" ? null : v === undefined ? cell.textContent : Number(v);
    };
    [...table.tHead.rows[0].cells].forEach((head, i) => head.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down < 0 ? "descending" : "ascending");
      const rows = [...body.rows];
      rows.sort((a, b) => {
        const x = value(a, i), y = value(b, i);
        return x === null || y === null ? (x === null) - (y === null) : down * (x < y ? -1 : x > y ? 1 : 0); // cells without a value come last
      });
      body.append(...rows);
    }));
    const filter = document.querySelector(`input[data-for="${table.id}"]`);
    if (filter) filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      for (const row of body.rows) row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
    });
  }

  // ---- pictures: boxes { x, w, y, kind, name, title, least }. x, w and y are in units of which the whole picture is WIDTH
  // wide; x0 to x1 is the visible part. A unit is about one pixel of the current window, so that texts can be read.
  const WIDTH = Math.min(1200, Math.max(320, document.querySelector("main").clientWidth - 40));
  const ROW = 16, HEAD = 22, TICKS = WIDTH < 700 ? 4 : 7, LANES = 64, SVG = "http://www.w3.org/2000/svg";
  const data = JSON.parse(document.getElementById("pictures").textContent);
  const human = ns => {
    const size = Math.abs(ns);
    return size < 1e3 ? ns.toFixed(0) + " ns" : size < 1e6 ? +(ns / 1e3).toPrecision(4) + " us"
      : size < 1e9 ? +(ns / 1e6).toPrecision(4) + " ms" : +(ns / 1e9).toPrecision(4) + " s";
  };
  const element = (parent, name, attributes = {}, text = "") => {
    const made = parent.namespaceURI === SVG || name === "svg" ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.textContent = text;
    return parent.appendChild(made);
  };
  const note = (id, text) => element(document.getElementById(id), "p", { class: "soft" }, text);
  // Show the section of a picture, and add a link to it to the head of the page.
  const showSection = (id, words) => {
    const link = document.createElement("a");
    link.href = "#" + id;
    link.textContent = words;
    document.querySelector("nav").insertBefore(link, document.getElementById("theme"));
    document.getElementById(id).hidden = false;
  };
  const threadName = id => (data.threads[id] || ["?"])[0];
  // Return the name, colour and tooltip of a box of code `id`. All functions of a file have the same colour.
  const describeBox = (id, words) => {
    const [name, file, line] = data.codes[id] || ["?", null, null];
    const place = data.codes[id] ? "  " + (file || "?").split("/").slice(-2).join("/") + ":" + (line || 0) : "";
    let hash = 0;
    for (const c of file || "") hash = (hash * 31 + c.codePointAt(0)) >>> 0;
    return { name, kind: "c" + (hash >>> 3) % 8, title: name + place + "\n" + words };
  };

  // Draw a lane for each thread. From top to bottom: its name, lookups that were no hit, compiles, frames by depth.
  const timeline = () => {
    const lanes = new Map(), boxes = [], labels = [], x = ns => ns / data.span * WIDTH;
    const lane = row => lanes.get(row[0]) || lanes.set(row[0], { depth: 0, compiles: 0, misses: 0 }).get(row[0]);
    for (const row of data.frames) lane(row).depth = Math.max(lane(row).depth, row[4] + 1);
    for (const row of data.compiles) lane(row).compiles = 1;
    for (const row of data.misses) lane(row).misses = 1;
    let y = HEAD;
    const shown = [...lanes].sort((a, b) => a[0] - b[0]).slice(0, LANES);
    for (const [id, lane] of shown) {
      lane.y = y;
      labels.push({ y: y + 12, text: threadName(id) });
      y += ROW * (1 + lane.misses + lane.compiles + lane.depth) + 6;
    }
    const put = (row, above, kind, words) => {
      const at = lane(row), least = kind ? 1.5 : 0;
      if (at.y === undefined) return;
      const box = { ...describeBox(row[1], words), x: x(row[2]), w: x(row[3]), y: at.y + ROW * (1 + above(at)), least };
      boxes.push(kind ? { ...box, kind } : box);
    };
    for (const row of [...data.frames].sort((a, b) => a[5] - b[5]))
      put(row, at => at.misses + at.compiles + row[4], "", human(row[3]) + " at " + human(row[2]) + ", frame " + row[5]);
    for (const row of data.compiles)
      put(row, at => at.misses, "compile", "compile " + (row[4] || "?") + " took " + human(row[3]) + " at " + human(row[2]) + (row[5] ? ", its graph broke" : ""));
    for (const row of data.misses)
      put(row, () => 0, "miss", data.outcomes[row[4]] + " at " + human(row[2]) + ", lookup " + row[5]);
    if (!shown.length) return;
    showSection("timeline", "timeline");
    note("timeline", "The " + data.frames.length + " longest frames by depth under each thread, compiles (orange) and lookups that were no hit (red)"
      + (data.misses.length > 2048 ? ", some of them" : "") + ".");
    picture("timeline", y, data.span, boxes, labels);
    if (lanes.size > LANES) note("timeline", lanes.size - LANES + " more threads are not shown.");
  };

  // Draw the flame graph: callers above the functions that they called, each box as wide as its time.
  const flame = () => {
    const boxes = [], next = [0]; // next[depth]: where the next box of that depth begins
    let deepest = 0;
    for (const [depth, id, total, own] of data.boxes) {
      const w = total / data.all * WIDTH, times = human(total) + " in all, " + human(own) + " own, " + +(100 * total / data.all).toPrecision(3) + " %";
      const names = depth ? describeBox(id, times) : { name: threadName(id), kind: "root", title: threadName(id) + "\n" + human(total) };
      boxes.push({ ...names, x: next[depth], w, y: HEAD + ROW * depth, least: 0 });
      next[depth + 1] = next[depth];
      next[depth] += w;
      deepest = Math.max(deepest, depth);
    }
    if (!boxes.length) return;
    showSection("flame", "flame graph");
    note("flame", "Callers above what they call, wide as their time in all. Boxes under a 4000th of it are left out.");
    picture("flame", HEAD + ROW * (deepest + 1), data.all, boxes, []);
  };

  const picture = (id, height, span, items, labels) => {
    const tools = element(document.getElementById(id), "div", { class: "tools", "data-for": id + "-svg" });
    const all = element(tools, "button", { type: "button" }, "all");
    const search = element(tools, "input", { type: "search", placeholder: "find a function", "aria-label": "find a function" });
    const found = element(tools, "output", { class: "soft" });
    element(tools, "span", { class: "soft" }, "click a box or turn the wheel to zoom, drag to move, double-click for all");
    const svg = element(document.getElementById(id), "svg", { class: "zoom", id: id + "-svg", tabindex: 0, role: "img", "aria-label": id,
      viewBox: "0 0 " + WIDTH + " " + height });
    for (let i = 0; i < TICKS; i++) {
      const x = WIDTH * i / (TICKS - 1);
      element(svg, "line", { class: "rule", x1: x, x2: x, y1: HEAD - 4, y2: height });
      element(svg, "text", { class: "tick", x, y: 13, "text-anchor": !i ? "start" : i === TICKS - 1 ? "end" : "middle" });
    }
    for (const label of labels) element(svg, "text", { class: "lane", x: 2, y: label.y }, label.text);
    for (const it of items) {
      it.g = element(svg, "g", { class: "f", tabindex: -1 });
      element(it.g, "title", {}, it.title);
      it.rect = element(it.g, "rect", { class: it.kind, y: it.y, height: ROW - 1 });
    }
    const ticks = [...svg.querySelectorAll("text.tick")];
    let x0 = 0, x1 = WIDTH;
    const draw = () => {
      const scale = WIDTH / (x1 - x0);
      for (const it of items) {
        let x = (it.x - x0) * scale, w = it.w * scale, out = x + w < 0 || x > WIDTH;
        if (w < it.least) w = it.least;
        if (x < 0) { w += x; x = 0; }
        if (x + w > WIDTH) w = WIDTH - x;
        out = out || w <= 0;
        it.g.classList.toggle("out", out);
        if (out) continue;
        it.rect.setAttribute("x", x.toFixed(2));
        it.rect.setAttribute("width", w.toFixed(2));
        const room = Math.floor((w - 6) / 6.7), shown = room < 3 ? "" : it.name.length <= room ? it.name : it.name.slice(0, room - 1) + "\u2026";
        if (shown && !it.text) it.text = element(it.g, "text", { y: it.y + 11.5 });
        if (it.text) { it.text.textContent = shown; it.text.setAttribute("x", (x + 3).toFixed(2)); }
      }
      ticks.forEach((tick, i) => { tick.textContent = human((x0 + (x1 - x0) * i / (ticks.length - 1)) / WIDTH * span); });
      svg.dataset.view = x0.toFixed(4) + " " + x1.toFixed(4);
    };
    const show = (a, b) => {
      let w = Math.min(Math.max(b - a, WIDTH / 1e7), WIDTH);
      x0 = Math.min(Math.max((a + b) / 2 - w / 2, 0), WIDTH - w);
      x1 = x0 + w;
      draw();
    };
    const at = event => {
      const box = svg.getBoundingClientRect();
      return x0 + (event.clientX - box.left) / box.width * (x1 - x0);
    };
    const zoom = (center, factor) => show(center - (center - x0) * factor, center + (x1 - center) * factor);
    for (const it of items) {
      const open = () => show(it.x, it.x + Math.max(it.w, WIDTH / 1e7));
      it.g.addEventListener("click", () => { if (!moved) open(); });
      it.g.addEventListener("keydown", event => { if (event.key === "Enter") open(); });
    }
    svg.addEventListener("wheel", event => { event.preventDefault(); zoom(at(event), event.deltaY < 0 ? 0.8 : 1.25); }, { passive: false });
    let held = null, moved = false;
    svg.addEventListener("pointerdown", event => { held = { x: event.clientX, x0, x1 }; moved = false; });
    addEventListener("pointerup", () => { held = null; });
    svg.addEventListener("pointermove", event => {
      if (!held) return;
      const by = (event.clientX - held.x) / svg.getBoundingClientRect().width * (held.x1 - held.x0);
      if (Math.abs(event.clientX - held.x) > 3) moved = true;
      if (moved) show(held.x0 - by, held.x1 - by);
    });
    svg.addEventListener("dblclick", () => show(0, WIDTH));
    svg.addEventListener("keydown", event => {
      const step = (x1 - x0) / 8;
      if (event.key === "+" || event.key === "=") zoom((x0 + x1) / 2, 0.8);
      else if (event.key === "-") zoom((x0 + x1) / 2, 1.25);
      else if (event.key === "ArrowLeft") show(x0 - step, x1 - step);
      else if (event.key === "ArrowRight") show(x0 + step, x1 + step);
      else if (event.key === "0" || event.key === "Escape") show(0, WIDTH);
      else return;
      event.preventDefault();
    });
    all.addEventListener("click", () => show(0, WIDTH));
    search.addEventListener("input", () => {
      const wanted = search.value.toLowerCase();
      let count = 0;
      for (const it of items) {
        const match = wanted !== "" && it.name.toLowerCase().includes(wanted);
        it.g.classList.toggle("match", match);
        count += match;
      }
      found.textContent = wanted === "" ? "" : count + " found";
    });
    draw();
  };
  timeline();
  flame();
  root.dataset.ready = "1";
})();
