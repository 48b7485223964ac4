// What pages of many results share: unpacking them, choosing some, pointing at them, selecting one.

// Makes a block of packed results; `draw` gets the block, the results, and the element to fill, once that is near.
page.view = (draw) => (block) => {
  const found = page.framed(block);
  const host = page.add(found, page.make("div", "view")).lastChild;
  host.style.minHeight = "300px";
  const show = () => {
    if (host.dataset.ready) return;
    near.disconnect();
    draw(block, lanes.unpack(block.packed), host);
    host.style.minHeight = "";
    host.dataset.ready = "yes";
  };
  const near = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) show();
  }, { rootMargin: "300px" });
  near.observe(host);
  addEventListener("beforeprint", show);
  return found;
};

// Makes a row of selects for `choices` ({ name, values, all: what stands for all of them, chosen: the first choice }).
// Returns [element, chosen], chosen by name, "" for all; calls `changed` when one changes. One value is no choice.
page.choices = (choices, changed) => {
  const found = page.make("div", "tools choices");
  const chosen = {};
  for (const { name, values, all, chosen: first } of choices) {
    chosen[name] = first !== undefined ? first : all === undefined || values.length < 2 ? values[0] : "";
    if (values.length < 2) continue;
    const select = page.make("select");
    select.name = name;
    const add = (value, text) => {
      const option = page.add(select, page.make("option", "", text)).lastChild;
      option.value = value;
      option.selected = value === chosen[name];
    };
    if (all !== undefined) add("", all);
    for (const value of values) add(value, page.number(value) || "none");
    select.addEventListener("change", () => { chosen[name] = select.value; changed(); });
    page.add(found, page.add(page.make("label", "", `${name} `), select));
  }
  return [found, chosen];
};

page.distinct = (values) => [...new Set(values)];

// Makes a place that tells of what is selected.
page.telling = (text) => {
  const found = page.make("div", "detail");
  found.setAttribute("aria-live", "polite");
  page.add(found, page.make("p", "", text));
  return found;
};

page.tell = (place, ...children) => place.replaceChildren(...children.filter(Boolean));

page.plainTable = (caption, columns, rows, numbers, most = 300) =>
  page.blocks.table({ caption, columns, rows, numbers, heat: null, lines: null, most });

// Makes points to point at and to select by mouse and keys. `plot.series()` returns [{ name, tone, points: [[x, y,
// item]], line, hollow }], `plot.words(item)` lines to say of one, `plot.pick(item)` is told of the selected one, -1
// for none; `plot.log()` tells whether the axes are logarithmic; `plot.diagonal` draws x = y.
page.points = (plot) => {
  let selected = -1;
  let drawn = [];
  const option = (ink) => {
    const groups = plot.series();
    const all = groups.flatMap((group) => group.points);
    drawn = all.filter((_, k) => k === all.findIndex((other) => other[2] === all[k][2])).sort((a, b) => a[0] - b[0]);
    host.dataset.points = String(all.length);
    const ends = all.length ? [Math.min(...all.map(([x, y]) => Math.min(x, y))),
      Math.max(...all.map(([x, y]) => Math.max(x, y)))] : [1, 10];
    const type = plot.log && plot.log() ? "log" : "value";
    const label = { color: ink.dim, hideOverlap: true, formatter: (value) => page.number(value) };
    const series = groups.map((group, number) => ({ name: group.name, type: group.line ? "line" : "scatter",
      step: group.line ? "end" : undefined, data: group.points, symbol: SYMBOLS[number], symbolSize: group.size || 8,
      z: group.line ? 1 : 3, lineStyle: { color: page.colour(group.tone, number), width: 1.5 },
      showSymbol: !group.line, silent: Boolean(group.line), animation: false,
      itemStyle: group.hollow ? { color: "transparent", borderColor: page.colour(group.tone, number), borderWidth: 1.3 }
        : { color: page.colour(group.tone, number), opacity: 0.8 } }));
    series.push({ type: "scatter", silent: true, z: 9, symbolSize: 16, data: all.filter((each) => each[2] === selected),
      itemStyle: { color: "transparent", borderColor: ink.ink, borderWidth: 2 } });
    if (plot.diagonal) series.push({ type: "line", silent: true, showSymbol: false, z: 0, animation: false,
      data: [[ends[0], ends[0]], [ends[1], ends[1]]], lineStyle: { color: ink.dim, type: "dashed", width: 1 } });
    return {
      animation: false,
      grid: { left: 74, right: 26, top: 34, bottom: 46 },
      tooltip: { ...page.tooltip(ink), trigger: "item", formatter: (at) => page.tip(plot.words(at.value[2])) },
      xAxis: page.axis(ink, { type, name: plot.x, nameLocation: "middle", nameGap: 28, scale: true, axisLabel: label }),
      yAxis: page.axis(ink, { type, name: plot.y, scale: true, nameTextStyle: { color: ink.dim, align: "left" },
        axisLabel: label }),
      series,
    };
  };
  const select = (item) => {
    selected = item;
    host.dataset.selected = item < 0 ? "" : String(item);
    host.redraw();
    plot.pick(item);
  };
  const step = (by) => {
    if (!drawn.length) return;
    const at = drawn.findIndex((each) => each[2] === selected);
    select(drawn[at < 0 ? 0 : (at + by + drawn.length) % drawn.length][2]);
  };
  const host = page.chart(plot.height || 380, `${plot.y} against ${plot.x}. Left and right select the point before and ` +
    "behind, escape clears.", option, (chart) => {
    chart.on("click", (at) => { if (Array.isArray(at.value)) select(at.value[2]); });
  });
  host.tabIndex = 0;
  host.setAttribute("role", "application");
  host.addEventListener("keydown", (event) => {
    const acts = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), ",": () => step(-1), ".": () => step(1),
      Escape: () => select(-1) };
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(acts, event.key)) return;
    event.preventDefault();
    acts[event.key]();
  });
  return { host, select, redraw: () => host.redraw() };
};
