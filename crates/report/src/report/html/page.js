(function () {
  "use strict";
  var all = JSON.parse(document.getElementById("figures").textContent);
  var byName = {};
  all.forEach(function (f) { byName[f.name] = f; });

  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  function number(v) {
    if (v === null || v === undefined || !isFinite(v)) return "";
    var a = Math.abs(v);
    if (a !== 0 && (a < 0.01 || a >= 1e9)) return v.toExponential(1);
    if (a >= 100 || v === Math.round(v)) return String(Math.round(v));
    return String(parseFloat(v.toPrecision(3)));
  }
  function bytes(v) {
    var names = ["B", "KiB", "MiB", "GiB", "TiB"], i = 0;
    while (v >= 1024 && i < 4) { v /= 1024; i += 1; }
    return number(v) + " " + names[i];
  }

  // One table for all series: the union of the points, sorted, with holes where a series has none.
  function rows(f) {
    var columns = [], at = [];
    f.series.forEach(function (s, i) {
      columns.push({ s: s, p: s.p, kind: "main", i: i });
      if (s.low) { columns.push({ s: s, p: s.high, kind: "high", i: i }, { s: s, p: s.low, kind: "low", i: i }); }
    });
    var lowest = Infinity;
    f.series.forEach(function (s) { s.p.forEach(function (q) { if (q[1] > 0 && q[1] < lowest) lowest = q[1]; }); });
    var good = function (q) { return !(f.logX && q[0] <= 0); };
    var xs = [];
    columns.forEach(function (c, k) {
      c.p.filter(good).forEach(function (q) { at.push([q[0], k, f.logY && q[1] <= 0 ? lowest : q[1]]); });
    });
    at.sort(function (a, b) { return a[0] - b[0] || a[1] - b[1]; });
    var data = columns.map(function () { return []; });
    at.forEach(function (q) {
      var n = xs.length - 1;
      if (n < 0 || xs[n] !== q[0] || data[q[1]][n] !== null) {
        xs.push(q[0]); n += 1;
        data.forEach(function (d) { d.push(null); });
      }
      data[q[1]][n] = q[2];
    });
    return { columns: columns, data: [xs].concat(data), flat: f.logY && !isFinite(lowest) };
  }

  function draw(el) {
    var f = byName[el.getAttribute("data-figure")];
    if (!f || el.querySelector(".live")) return;
    var r = rows(f);
    if (r.data[0].length < (f.foot ? 1 : 2)) return;
    var live = document.createElement("div");
    live.className = "live";
    live.tabIndex = 0;
    live.setAttribute("role", "img");
    live.setAttribute("aria-label", f.title + ". Left and right arrow keys read the points.");
    var hint = document.createElement("div");
    hint.className = "hint";
    hint.setAttribute("aria-live", "polite");
    var idle = "Drag to look closer, double-click to go back; arrow keys read the points.";
    hint.textContent = idle;
    var shown = f.bytes ? bytes : number;
    // What the axis says already, and the name of an only series, is not said again: their rows show values alone.
    var only = r.columns.filter(function (c) { return c.kind === "main"; }).length === 1;
    var series = [{ label: f.x, class: "bare", value: function (u, v) { return v === null ? "" : shown(v); } }];
    var bands = [];
    r.columns.forEach(function (c, k) {
      var colour = css("--s" + (c.i % 6));
      if (c.kind === "main") {
        series.push({
          label: c.s.name, class: only ? "bare" : undefined, stroke: colour, width: c.s.line ? 2 : 0, spanGaps: true,
          dash: f.foot ? [] : [[], [6, 3], [2, 3], [8, 3, 2, 3]][c.i % 4],
          paths: f.foot ? uPlot.paths.bars({ size: [0.8, 14] }) : c.s.line ? undefined : function () { return null; },
          fill: f.foot ? colour + "d9" : undefined, fillTo: f.foot ? f.foot : undefined,
          points: { show: !f.foot, size: c.s.line ? 6 : c.p.length > 400 ? 4 : 8, stroke: colour, fill: colour },
          value: function (u, v) { return v === null ? "" : number(v) + " " + f.y; }
        });
      } else {
        series.push({ label: c.s.name + " 95 %", class: "bound", stroke: "transparent", width: 0, spanGaps: true, points: { show: false }, value: function (u, v) { return v === null ? "" : number(v) + " " + f.y; } });
        if (c.kind === "low") bands.push({ series: [k, k + 1], fill: colour + "33" });
      }
    });
    var axis = function (label, show) {
      return { label: label, stroke: css("--fg"), labelSize: 22, grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 }, values: function (u, v) { return v.map(function (x) { return x === null ? "" : show(x); }); } };
    };
    var y = axis(f.y, number);
    y.size = 62;
    var w = width(el);
    var plot;
    try {
      el.insertBefore(live, el.querySelector(".static"));
      plot = new uPlot({
        width: w, height: height(w),
        scales: { x: { time: false, distr: f.logX ? 3 : 1, log: 2 }, y: { distr: f.logY && !r.flat ? 3 : 1, log: 10, range: f.foot && f.logY ? function (u, lo, hi) { return [f.foot, hi * 1.5]; } : f.logY ? undefined : function (u, lo, hi) { lo = Math.min(0, lo); var room = (hi - lo || 1) * 0.05; return [lo < 0 ? lo - room : 0, hi + room]; } } },
        axes: [axis(f.x, shown), y], series: series, bands: bands, legend: { show: true, live: true }
      }, r.data, live);
    } catch (e) {
      live.remove();
      throw e;
    }
    el.classList.add("drawn");
    live.after(hint);
    var at = -1;
    live.addEventListener("keydown", function (e) {
      var step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (!step) return;
      e.preventDefault();
      at = Math.max(0, Math.min(r.data[0].length - 1, at + step));
      var text = r.columns.map(function (c, k) { var v = r.data[k + 1][at]; return c.kind === "main" && v !== null ? c.s.name + " " + number(v) + " " + f.y : ""; }).filter(Boolean);
      hint.textContent = f.x + " " + shown(r.data[0][at]) + ": " + text.join(", ");
      plot.setCursor({ left: plot.valToPos(r.data[0][at], "x"), top: 10 });
    });
    live.addEventListener("blur", function () { hint.textContent = idle; });
    el.plot = {
      width: w,
      again: function () { plot.destroy(); live.remove(); hint.remove(); el.classList.remove("drawn"); el.plot = null; draw(el); },
      size: function () { var now = width(el); el.plot.width = now; plot.setSize({ width: now, height: height(now) }); }
    };
    document.documentElement.dataset.plots = document.querySelectorAll("figure.drawn").length;
  }

  function width(el) { return Math.max(240, el.clientWidth - 2); }
  function height(w) { return Math.min(340, Math.max(220, w * 0.45)); }
  function visible(el) { return el.clientWidth > 0 && el.getClientRects().length > 0; }
  function draw0(el) { if (visible(el)) draw(el); }

  // Draws what comes into view (a fold that opens), and follows the width of the page.
  var watch = new ResizeObserver(function (seen) {
    seen.forEach(function (x) {
      var el = x.target;
      if (!visible(el)) return;
      if (!el.plot) draw(el); else if (Math.abs(el.plot.width - width(el)) > 1) el.plot.size();
    });
  });
  document.querySelectorAll("figure[data-figure]").forEach(function (el) { draw0(el); watch.observe(el); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    document.querySelectorAll("figure.drawn").forEach(function (el) { if (el.plot) el.plot.again(); });
  });

  // Maps of a volume: pointer and arrow keys read the squares.
  var maps = JSON.parse(document.getElementById("maps").textContent);
  document.querySelectorAll("figure[data-map]").forEach(function (el) {
    var m = maps[+el.getAttribute("data-map")], svg = el.querySelector("svg");
    if (!m || !svg) return;
    var columns = 64, n = m.used.length, at = -1;
    var mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    mark.setAttribute("class", "at");
    mark.setAttribute("width", 11);
    mark.setAttribute("height", 11);
    var hint = document.createElement("div");
    hint.className = "hint";
    hint.setAttribute("aria-live", "polite");
    var idle = "Point at a square, or use the arrow keys, to read it.";
    hint.textContent = idle;
    el.querySelector(".squares").after(hint);
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-label", svg.querySelector("title").textContent + ". Arrow keys read the squares.");
    svg.removeAttribute("aria-labelledby");
    function go(i) {
      if (i < 0 || i >= n) return;
      at = i;
      mark.setAttribute("x", i % columns * 12);
      mark.setAttribute("y", Math.floor(i / columns) * 12);
      svg.appendChild(mark);
      hint.textContent = bytes(i * m.au) + " to " + bytes((i + 1) * m.au) + ": " + m.used[i] + " % in use, " + m.pieces[i] + (m.pieces[i] === 1 ? " piece" : " pieces");
    }
    function leave() { mark.remove(); hint.textContent = idle; at = -1; }
    svg.addEventListener("pointermove", function (e) {
      var r = svg.getBoundingClientRect(), side = r.width / columns;
      var x = Math.floor((e.clientX - r.left) / side), y = Math.floor((e.clientY - r.top) / side);
      if (x >= 0 && x < columns) go(y * columns + x);
    });
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", function (e) {
      var step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -at, End: n - 1 - at }[e.key];
      if (step === undefined) return;
      e.preventDefault();
      go(at < 0 ? 0 : Math.max(0, Math.min(n - 1, at + step)));
    });
  });

  document.querySelectorAll(".command pre").forEach(function (pre) {
    var b = document.createElement("button");
    b.type = "button";
    b.textContent = "Copy";
    b.setAttribute("aria-label", "Copy the command: " + pre.textContent);
    b.addEventListener("click", function () {
      var done = function () { b.textContent = "Copied"; setTimeout(function () { b.textContent = "Copy"; }, 1500); };
      var select = function () { var s = getSelection(), x = document.createRange(); x.selectNodeContents(pre); s.removeAllRanges(); s.addRange(x); if (document.execCommand("copy")) done(); };
      if (navigator.clipboard) navigator.clipboard.writeText(pre.textContent).then(done, select); else select();
    });
    pre.after(b);
  });
})();
