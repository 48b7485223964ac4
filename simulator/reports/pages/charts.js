// Blocks with a chart whose data are few: bars, histograms, curves. Each has its figures as a table.

// Makes an element with a chart in it, drawn when it comes near the screen and again when the theme changes or by its
// `redraw`; `ready` gets the chart once it is there.
page.chart = (height, label, option, ready) => {
  const host = page.make("div", "chart");
  host.style.height = `${height}px`;
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", label);
  let chart = null;
  const draw = () => {
    if (!chart) {
      chart = echarts.init(host, null, { renderer: "canvas" });
      if (ready) ready(chart);
    }
    chart.setOption(option(page.ink(), host.clientWidth), true);
    host.dataset.drawn = "yes";
  };
  const near = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    draw();
  }, { rootMargin: "300px" });
  near.observe(host);
  addEventListener("beforeprint", () => { near.disconnect(); draw(); }); // paper has no scrolling
  host.redraw = () => { if (chart) draw(); };
  page.onTheme(host.redraw);
  page.sized.push(() => { if (chart) { chart.resize(); draw(); } });
  return host;
};

// A tooltip of lines of text; the first is its head.
page.tip = (lines) => {
  const found = page.make("div", "tip");
  lines.forEach((line, number) => page.add(found, page.make(number ? "div" : "b", "", line)));
  return found;
};

page.tooltip = (ink) => ({
  backgroundColor: ink.panel, borderColor: ink.rule, confine: true, textStyle: { color: ink.ink },
});

page.axis = (ink, more) => ({
  axisLine: { lineStyle: { color: ink.rule } }, axisTick: { lineStyle: { color: ink.rule } },
  axisLabel: { color: ink.dim, hideOverlap: true }, splitLine: { lineStyle: { color: ink.rule, opacity: 0.6 } },
  nameTextStyle: { color: ink.dim }, ...more,
});

page.framed = (block, ...children) => {
  const found = page.make("div");
  if (block.caption) page.add(found, page.make("p", "caption", block.caption));
  return page.add(found, ...children);
};

// Says in the caption which part of the axis a zoomed chart shows, null for all of it.
page.showing = (frame, block, range) => {
  const caption = frame.querySelector(".caption");
  if (!caption) return;
  const ends = (range || []).map((end) => page.number(Math.min(block.end, Math.max(block.start, Math.round(end)))));
  caption.textContent = range ? `${block.caption}; shown: cycles ${ends.join(" to ")}` : block.caption;
};

page.wholeTick = (value) => (Number.isInteger(value) ? page.number(value) : "");

page.asTable = (columns, rows, numbers) => {
  const found = page.make("details");
  const block = { caption: "", columns, rows, numbers, heat: null, lines: null, most: 300 };
  page.add(found, page.make("summary", "", "as a table"));
  found.addEventListener("toggle", () => {
    if (found.open && found.children.length === 1) page.add(found, page.blocks.table(block));
  });
  return found;
};

page.blocks.bars = (block) => {
  const { names, series, unit } = block;
  const wide = Math.max(...names.map((name) => name.length));
  const option = (ink, width) => ({
    animation: false,
    aria: { enabled: false },
    grid: { left: Math.min(width / 3, 18 + 8.2 * wide), right: 24, top: 8, bottom: 28 },
    tooltip: { ...page.tooltip(ink), trigger: "item", formatter: (at) => page.tip([
      `${names[at.dataIndex]}: ${at.seriesName}`,
      `${page.number(at.value)} ${unit}, ${page.percent(at.value, page.sumOf(series, at.dataIndex))}`,
    ]) },
    xAxis: page.axis(ink, { type: "value", max: "dataMax", minInterval: unit === "cycles" ? 1 : 0, axisLabel: { color: ink.dim, hideOverlap: true,
      formatter: (value) => page.number(value) } }),
    yAxis: page.axis(ink, { type: "category", data: names, inverse: true, axisLabel: { color: ink.ink,
      width: Math.min(width / 3, 18 + 8.2 * wide) - 8, overflow: "truncate" } }),
    series: series.map((each, number) => ({ type: "bar", stack: "all", name: each.name, data: each.values,
      barMaxWidth: 22, itemStyle: { color: page.fill(each.tone, number) }, emphasis: { focus: "series" } })),
  });
  const words = names.map((name, k) => `${name}: ${series.map((s) => `${s.name} ${s.values[k]}`).join(", ")}`);
  const columns = ["", ...series.map((each) => each.name)];
  const rows = names.map((name, k) => [name, ...series.map((each) => each.values[k])]);
  return page.framed(block, page.legend(series), page.chart(44 + 30 * names.length, words.join("; "), option),
    block.table ? page.asTable(columns, rows, series.map((_, k) => k + 1)) : null);
};

page.sumOf = (series, index) => series.reduce((sum, each) => sum + each.values[index], 0);

page.blocks.histogram = (block) => {
  const { edges, counts, marks } = block;
  const between = (k) => `${page.number(edges[k])} .. ${page.number(edges[k + 1])}`;
  const option = (ink) => ({
    animation: false,
    grid: { left: 58, right: 18, top: 22, bottom: 28 },
    tooltip: { ...page.tooltip(ink), trigger: "axis", axisPointer: { type: "shadow" },
      formatter: (at) => page.tip([between(at[0].dataIndex), `${page.number(at[0].value)} values`]) },
    xAxis: page.axis(ink, { type: "category", data: counts.map((_, k) => page.number(edges[k])) }),
    yAxis: page.axis(ink, { type: "value", name: "values", minInterval: 1 }),
    series: [{ type: "bar", data: counts, barCategoryGap: "8%", itemStyle: { color: page.fill("first") } }],
  });
  const words = `histogram of ${block.caption}`;
  const rows = counts.map((count, k) => [between(k), count]);
  const notes = marks.map(([name, value]) => ({ label: name, value, unit: "", note: "" }));
  return page.framed(block, notes.length ? page.blocks.figures({ items: notes }) : null,
    page.chart(190, words, option), page.asTable(["from .. to", "values"], rows, [1]));
};

const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3]]; // lines differ by them, too

page.blocks.curves = (block) => {
  const tones = page.tonesOf(block.curves.map((each) => each.name));
  const option = (ink) => ({
    animation: false,
    grid: { left: 72, right: 18, top: 26, bottom: 58 },
    tooltip: { ...page.tooltip(ink), trigger: "axis", formatter: (at) => page.tip([
      `cycle ${page.number(at[0].value[0])}`, ...at.map((each) => `${each.seriesName}: ${page.number(each.value[1])}`),
    ]) },
    dataZoom: [{ type: "slider", height: 18, bottom: 8, filterMode: "none",
      textStyle: { color: ink.dim }, borderColor: ink.rule }],
    xAxis: page.axis(ink, { type: "value", min: block.start, max: block.end, minInterval: 1,
      axisLabel: { color: ink.dim, hideOverlap: true, formatter: page.wholeTick } }),
    yAxis: page.axis(ink, { type: "value", name: block.unit, axisLabel: { color: ink.dim,
      formatter: (value) => page.number(value) } }),
    series: block.curves.map((each, k) => ({
      type: "line", step: "end", name: each.name, showSymbol: false, areaStyle: { opacity: 0.25 },
      data: [...each.points, [block.end, each.points.length ? each.points[each.points.length - 1][1] : 0]],
      lineStyle: { width: 1.5, color: page.colour(tones[k].tone, tones[k].number), type: DASHES[k % DASHES.length] },
      itemStyle: { color: page.colour(tones[k].tone, tones[k].number) },
      markLine: each.limit === null ? undefined : { silent: true, symbol: "none", label: { color: ink.dim,
        formatter: () => page.number(each.limit), position: "insideEndTop" }, lineStyle: { color: page.colour("bad") },
        data: [{ yAxis: each.limit }] },
    })),
  });
  const words = `${block.caption}: ${block.curves.map((each) => each.name).join(", ")}`;
  const entries = block.curves.map((each, k) => ({ name: each.name, ...tones[k] }));
  const found = page.framed(block, page.legend(entries), page.chart(230, words, option, (chart) => chart.on("datazoom", () => {
    const { start, end, startValue, endValue } = chart.getOption().dataZoom[0];
    page.showing(found, block, start <= 0 && end >= 100 ? null : [startValue, endValue]);
  })));
  return found;
};

// Lines differ by marks, too, as colours may not be told apart.
const SYMBOLS = ["circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect", "emptyTriangle", "emptyDiamond"];

// Returns the ends of an axis that fit its points.
page.fitted = (block, axis) => {
  const values = block.lines.flatMap((each) => each.points.map((point) => point[axis]));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return block.logarithmic && low < high ? { min: low, max: high } : { scale: true };
};

page.blocks.plot = (block) => {
  const tones = page.tonesOf(block.lines.map((each) => each.name));
  const type = block.logarithmic ? "log" : "value";
  const option = (ink) => ({
    animation: false,
    grid: { left: 72, right: 24, top: 30, bottom: 46 },
    tooltip: { ...page.tooltip(ink), trigger: "item", formatter: (at) => page.tip([
      at.seriesName, `${block.x}: ${page.number(at.value[0])}`, `${block.y}: ${page.number(at.value[1])}`,
    ]) },
    xAxis: page.axis(ink, { type, name: block.x, nameLocation: "middle", nameGap: 28, ...page.fitted(block, 0),
      axisLabel: { color: ink.dim, hideOverlap: true, formatter: (value) => page.short(value) } }),
    yAxis: page.axis(ink, { type, name: block.y, ...page.fitted(block, 1),
      axisLabel: { color: ink.dim, hideOverlap: true, formatter: (value) => page.short(value) } }),
    series: block.lines.map((each, number) => ({
      type: "line", name: each.name, data: each.points, symbolSize: 7, symbol: SYMBOLS[number % SYMBOLS.length],
      lineStyle: { width: 1.5, color: page.colour(tones[number].tone, tones[number].number),
        type: DASHES[number % DASHES.length] },
      itemStyle: { color: page.colour(tones[number].tone, tones[number].number) },
    })),
  });
  const entries = block.lines.map((each, k) => ({ name: each.name, ...tones[k] }));
  const rows = block.lines.flatMap((each) => each.points.map(([x, y]) => [each.name, x, y]));
  return page.framed(block, page.legend(entries), page.chart(340, `${block.y} against ${block.x}`, option),
    page.asTable(["", block.x, block.y], rows, [1, 2]));
};

// Of Nunez, Anderton and Renslow (2018): its brightness grows evenly, for all eyes.
const CIVIDIS = ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"];

page.blocks.maps = (block) => {
  const found = page.framed(block);
  const place = page.make("div");
  const names = block.maps.map((each) => each.caption);
  const [tools, chosen] = page.choices([{ name: "map", values: names }], () => show());
  const show = () => place.replaceChildren(page.blocks.matrix(block.maps[names.indexOf(chosen.map)]));
  page.add(found, tools, place);
  show();
  return found;
};

page.blocks.matrix = (block) => {
  const values = block.cells.map((cell) => cell[2]);
  const least = Math.min(...values);
  const most = Math.max(...values);
  const tilted = block.columns.length > 12;
  const option = (ink, width) => ({
    animation: false,
    grid: { left: Math.min(width / 3, 20 + 7 * Math.max(...block.rows.map((row) => row.length))), right: 16, top: 8,
      bottom: tilted ? 76 : 34 },
    tooltip: { ...page.tooltip(ink), trigger: "item", formatter: (at) => page.tip([
      `${block.rows[at.value[1]]}, ${block.columns[at.value[0]]}`, block.cells[at.dataIndex][3],
    ]) },
    xAxis: page.axis(ink, { type: "category", data: block.columns, axisLabel: { color: ink.dim, rotate: tilted ? 55 : 0 } }),
    yAxis: page.axis(ink, { type: "category", data: block.rows, inverse: true }),
    visualMap: { show: false, min: least, max: most > least ? most : least + 1, inRange: {
      color: CIVIDIS } },
    series: [{ type: "heatmap", data: block.cells.map(([column, row, value]) => [column, row, value]),
      itemStyle: { borderColor: ink.paper, borderWidth: 1 },
      label: { show: width / block.columns.length >= 60, color: "#fff", textBorderColor: "rgba(0, 0, 0, .6)",
        textBorderWidth: 2, formatter: (at) => page.short(at.value[2]) } }],
  });
  const rows = block.cells.map(([column, row, value, what]) => [block.rows[row], block.columns[column], value, what]);
  const scale = page.make("p", "caption", `from ${page.short(least)} (dark blue) to ${page.short(most)} (yellow)`);
  return page.framed(block, page.chart((tilted ? 110 : 56) + 22 * block.rows.length, block.caption, option), scale,
    page.asTable(["row", "column", "value", ""], rows, [2]));
};
