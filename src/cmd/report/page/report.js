// The page that `dyntrace report --html` writes works without this; with it tables sort and pictures zoom.
"use strict";
(() => {
  // ---- light and dark
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // ---- tables: a click on a head sorts, what is typed selects
  for (const table of document.querySelectorAll("table.sort")) {
    const body = table.tBodies[0];
    const value = (row, i) => {
      const cell = row.cells[i], v = cell.dataset.v;
      return v === undefined ? cell.textContent : v === "" ? -Infinity : Number(v);
    };
    [...table.tHead.rows[0].cells].forEach((head, i) => head.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down < 0 ? "descending" : "ascending");
      const rows = [...body.rows];
      rows.sort((a, b) => { const x = value(a, i), y = value(b, i); return down * (x < y ? -1 : x > y ? 1 : 0); });
      body.append(...rows);
    }));
    const filter = document.querySelector(`input[data-for="${table.id}"]`);
    if (filter) filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      for (const row of body.rows) row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
    });
  }

  // ---- pictures: each <g class="f" data-x data-w> is a stretch of [0, 1200], which is shown from x0 to x1
  const WIDTH = 1200, SVG = "http://www.w3.org/2000/svg";
  const human = ns => {
    const size = Math.abs(ns);
    return size < 1e3 ? ns.toFixed(0) + " ns" : size < 1e6 ? +(ns / 1e3).toPrecision(4) + " us"
      : size < 1e9 ? +(ns / 1e6).toPrecision(4) + " ms" : +(ns / 1e9).toPrecision(4) + " s";
  };
  for (const svg of document.querySelectorAll("svg.zoom")) {
    const span = Number(svg.dataset.span || 0);
    const items = [...svg.querySelectorAll("g.f")].map(g => ({
      g, rect: g.querySelector("rect"), text: g.querySelector("text"), x: Number(g.dataset.x), w: Number(g.dataset.w),
      y: Number(g.querySelector("rect").getAttribute("y")), name: g.querySelector("title").textContent.split("\n")[0],
    }));
    const ticks = [...svg.querySelectorAll("text.tick")];
    let x0 = 0, x1 = WIDTH, focus = null;
    const draw = () => {
      const scale = WIDTH / (x1 - x0);
      for (const it of items) {
        let x = (it.x - x0) * scale, w = it.w * scale, out = x + w < 0 || x > WIDTH;
        const least = Number(it.g.dataset.least || 0);
        if (w < least) w = least;
        if (x < 0) { w += x; x = 0; }
        if (x + w > WIDTH) w = WIDTH - x;
        out = out || w <= 0;
        it.g.classList.toggle("out", out);
        if (out) continue;
        it.rect.setAttribute("x", x.toFixed(2));
        it.rect.setAttribute("width", w.toFixed(2));
        const room = Math.floor((w - 6) / 6.7), shown = room < 3 ? "" : it.name.length <= room ? it.name : it.name.slice(0, room - 1) + "\u2026";
        if (shown && !it.text) {
          it.text = document.createElementNS(SVG, "text");
          it.text.setAttribute("y", it.y + 11.5);
          it.g.append(it.text);
        }
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
      const open = () => { focus = it; show(it.x, it.x + Math.max(it.w, WIDTH / 1e7)); };
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
    const tools = document.querySelector(`.tools[data-for="${svg.id}"]`);
    if (tools) {
      tools.querySelector("button").addEventListener("click", () => show(0, WIDTH));
      const search = tools.querySelector("input"), found = tools.querySelector("output");
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
    }
  }
  root.dataset.ready = "1";
})();
