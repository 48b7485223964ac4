// Simulated against measured cycles: points, errors, the worst. Packed are `rows` of { table, target, operation, types,
// path, shape, measured, simulated, error, evidence, public, public_error, reason }, errors in percent of the measured cycles.

const measurements = {};

// Edges of errors in percent; outside of the first and the last is everything beyond.
const ERRORS = [-50, -20, -10, -5, -2, -0.5, 0.5, 2, 5, 10, 20, 50];

page.blocks.measurements = page.view((_, data, host) => {
  const rows = data.rows.map((row, number) => ({ ...row, number, note: row.reason ? "with a reason" : "without one" }));
  const names = ["evidence", "table", "target", "operation", "types", "path", "note"];
  const [tools, chosen] = page.choices(names.map((name) =>
    ({ name, values: page.distinct(rows.map((row) => row[name])), all: "all" })), () => show());
  const figures = page.make("div");
  const worst = page.make("div");
  const detail = page.telling("Click a point, or focus the chart and press an arrow key.");
  const others = rows.some((row) => row.public !== null);
  let kept = rows;
  let log = true;
  const errors = measurements.histogram(others, () => kept);
  const scale = page.button("axes: logarithmic", "", () => {
    log = !log;
    scale.textContent = `axes: ${log ? "logarithmic" : "linear"}`;
    plot.redraw();
  });
  const series = () => [
    ...(others ? [{ name: "public model", tone: "second", hollow: true, size: 7, points: kept.filter((row) =>
      row.public !== null && row.public > 0).map((row) => [row.measured, row.public, row.number]) }] : []),
    { name: "simulation", tone: "first", points: kept.map((row) => [row.measured, row.simulated, row.number]) },
  ];
  const plot = page.points({ x: "measured cycles", y: "predicted cycles", diagonal: true, log: () => log, series,
    words: (item) => measurements.words(rows[item]), pick: (item) => page.tell(detail, ...(item < 0 ? ["Nothing selected."]
      : measurements.words(rows[item])).map((text, k) => page.make("p", k ? "line" : "line strong", text))) });
  const show = () => {
    kept = rows.filter((row) => names.every((name) => !chosen[name] || row[name] === chosen[name]));
    host.dataset.rows = String(kept.length);
    figures.replaceChildren(page.blocks.figures({ items: measurements.figures(kept) }));
    errors.redraw();
    worst.replaceChildren(measurements.worst(kept));
    plot.redraw();
  };
  const legend = page.legend([{ name: "simulation", tone: "first" },
    ...(others ? [{ name: "public model (hollow)", tone: "second" }] : [])]);
  page.add(host, tools, figures, page.make("h3", "", "Errors"), errors.element,
    page.make("h3", "", "Predicted against measured"), page.add(page.make("div", "tools"), scale), legend, plot.host, detail, page.make("h3", "", "Worst first"), worst);
  show();
});

measurements.signed = (percent) => `${percent < 0 ? "" : "+"}${percent.toFixed(2)} %`;

measurements.words = (row) => [
  `${row.operation} ${row.types} ${row.shape}`, `${row.target}, ${row.table}, ${row.evidence}${row.path ? `, ${row.path}` : ""}`,
  `measured ${page.number(row.measured)} cycles`,
  `simulated ${page.number(row.simulated)}, ${measurements.signed(row.error)}`,
  ...(row.public === null ? [] : [`public model ${page.number(row.public)}, ${measurements.signed(row.public_error)}`]),
  ...(row.reason ? [row.reason] : []),
];

// Mean, median and maximum of absolute errors.
measurements.statistics = (values) => {
  const sizes = values.map(Math.abs).sort((a, b) => a - b);
  const half = sizes.length >> 1;
  return { mean: sizes.reduce((sum, each) => sum + each, 0) / sizes.length,
           median: sizes.length % 2 ? sizes[half] : (sizes[half - 1] + sizes[half]) / 2, max: sizes[sizes.length - 1] };
};

measurements.figures = (rows) => {
  const found = [{ label: "rows", value: rows.length, unit: "", note: "" }];
  const kinds = [["simulation", rows.map((row) => row.error)],
    ["public model", rows.filter((row) => row.public_error !== null).map((row) => row.public_error)]];
  for (const [name, values] of kinds) {
    if (!values.length) continue;
    const { mean, median, max } = measurements.statistics(values);
    found.push({ label: `${name}: mean absolute error`, value: mean.toFixed(2), unit: "%",
      note: `median ${median.toFixed(2)} %, maximum ${max.toFixed(2)} %${values.length < rows.length ? `, ${values.length} rows` : ""}` });
  }
  return found;
};

measurements.binOf = (error) => {
  const found = ERRORS.findIndex((edge) => error < edge);
  return found < 0 ? ERRORS.length : found;
};

// Makes a chart of how many rows have which error; `rows()` are those that count.
measurements.histogram = (others, rows) => {
  const last = ERRORS.length - 1;
  const names = [`below ${ERRORS[0]}`, ...ERRORS.slice(1).map((edge, k) => `${ERRORS[k]} .. ${edge}`), `${ERRORS[last]} or more`];
  const count = (key) => {
    const found = names.map(() => 0);
    for (const row of rows()) if (row[key] !== null) found[measurements.binOf(row[key])] += 1;
    return found;
  };
  const kinds = [["simulation", "error", "first"], ["public model", "public_error", "second"]].slice(0, others ? 2 : 1);
  const option = (ink) => ({
    animation: false,
    grid: { left: 58, right: 18, top: 28, bottom: 78 },
    tooltip: { ...page.tooltip(ink), trigger: "axis", axisPointer: { type: "shadow" }, formatter: (at) => page.tip(
      [`${names[at[0].dataIndex]} %`, ...at.map((each) => `${each.seriesName}: ${page.number(each.value)} rows`)]) },
    xAxis: page.axis(ink, { type: "category", data: names, name: "error in % of the measured cycles", nameLocation: "middle",
      nameGap: 60, axisLabel: { color: ink.dim, rotate: 40, interval: 0 } }),
    yAxis: page.axis(ink, { type: "value", name: "rows", minInterval: 1 }),
    series: kinds.map(([name, key, tone]) => ({ type: "bar", name, data: count(key), barGap: "5%",
      itemStyle: { color: page.fill(tone) } })),
  });
  const chart = page.chart(280, "how many rows have which error", option);
  const table = page.make("div");
  const legend = page.legend(kinds.map(([name, , tone]) => ({ name, tone })));
  const redraw = () => {
    const counts = kinds.map(([, key]) => count(key));
    table.replaceChildren(page.asTable(["error in %", ...kinds.map(([name]) => name)],
      names.map((name, k) => [name, ...counts.map((each) => each[k])]), kinds.map((_, k) => k + 1)));
    chart.redraw();
  };
  return { element: page.add(page.make("div"), legend, chart, table), redraw };
};

measurements.worst = (rows) => {
  const sorted = [...rows].sort((a, b) => Math.abs(b.error) - Math.abs(a.error));
  const found = page.plainTable("", ["target", "operation", "types", "shape", "measured", "simulated", "error %", "public model",
    "its error %", "reason"], sorted.map((row) => [row.target, row.operation, row.types, row.shape, row.measured, row.simulated,
    row.error.toFixed(2), row.public, row.public_error === null ? null : row.public_error.toFixed(2), row.reason]),
  [4, 5, 6, 7, 8], 25);
  found.className = "worst";
  return found;
};
