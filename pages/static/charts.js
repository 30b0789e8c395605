// Draws the charts. Each figure holds its own data; its key has the last values, or those under the pointer.
"use strict";

const Charts = (() => {
  const drawn = new Map(); // figure -> { plot, chart }
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const faint = (name, share) => `color-mix(in srgb, ${colour(name)} ${100 * share}%, transparent)`;

  function shown(chart, value) {
    if (value === null || value === undefined) return "–";
    return chart.percent ? `${(100 * value).toFixed(1)} %` : `${Number(value.toPrecision(4))}`;
  }

  // The columns of uPlot, and how each is drawn: intervals and single runs below the curve that is read.
  function columns(chart) {
    const data = [chart.x], series = [{}], bands = [];
    const add = (values, look) => series.push({ spanGaps: true, points: { show: false }, ...look }) && data.push(values);
    for (const each of chart.series) {
      if (each.low) {
        add(each.high, { stroke: "transparent" });
        add(each.low, { stroke: "transparent" });
        bands.push({ series: [series.length - 2, series.length - 1], fill: faint(each.colour, 0.16) });
      }
      for (const [i, run] of (each.runs ?? []).entries()) {
        add(run, { stroke: faint(each.colour, 0.45), width: 1 });
      }
      if (each.smooth) add(each.y, { stroke: faint(each.colour, 0.5), width: 1 });
      const points = { show: (chart.x.length < 40), size: 5, fill: colour(each.colour), stroke: colour(each.colour) };
      add(each.smooth ?? each.y, { stroke: colour(each.colour), width: 2, points });
    }
    return { data, series, bands };
  }

  function range(chart) {
    if (chart.log) return { range: (plot, low, high) => [Math.max(low, high / 1e5), high * 1.2] };
    return {
      range: (plot, low, high) => {
        if (low === null) return [0, 1];
        const bottom = chart.floor ?? low, room = 0.06 * (high - bottom || Math.abs(high) || 1);
        const top = Math.max(high + room, chart.floor === null ? -Infinity : 0.02);
        return [chart.floor ?? bottom - room, chart.percent && high <= 1 ? Math.min(top, 1 + room / 10) : top];
      },
    };
  }

  // Where stages and alarms begin: their names stand above the plot, those of alarms in a line of their own.
  function marks(chart) {
    return (plot) => {
      const { ctx, bbox } = plot, unit = devicePixelRatio, named = { stage: -Infinity, alarm: -Infinity };
      ctx.save();
      ctx.lineWidth = unit;
      ctx.setLineDash([3 * unit, 3 * unit]);
      for (const mark of chart.marks) {
        const x = Math.round(plot.valToPos(mark.x, "x", true)), y = bbox.top - (mark.kind === "alarm" ? 17 : 6) * unit;
        const isLeft = x > bbox.left + 0.85 * bbox.width;
        ctx.textAlign = isLeft ? "right" : "left";
        ctx.strokeStyle = ctx.fillStyle = colour(mark.kind === "alarm" ? "bad" : "muted");
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        if (x > named[mark.kind] + 40 * unit) ctx.fillText(mark.text, x + (isLeft ? -4 : 4) * unit, y), named[mark.kind] = x;
      }
      ctx.restore();
    };
  }

  function key(figure, chart) {
    const list = document.createElement("ul");
    list.className = "key";
    for (const each of chart.series) {
      const item = document.createElement("li"), dot = document.createElement("i"), value = document.createElement("b");
      dot.style.background = `var(--${each.colour})`;
      item.append(dot, `${each.label} `, value);
      list.append(item);
    }
    const step = document.createElement("li");
    list.append(step);
    figure.querySelector(".plot").before(list);
    return (index) => {
      chart.series.forEach((each, i) => {
        const at = index ?? each.y.findLastIndex((value) => value !== null);
        list.children[i].querySelector("b").textContent = shown(chart, each.y[at]);
      });
      step.textContent = index === null ? "" : `step ${chart.x[index]}`;
    };
  }

  function numbers(figure, chart) {
    const details = figure.querySelector("details");
    details.addEventListener("toggle", () => {
      const place = details.querySelector("div");
      if (!details.open || place.firstChild) return;
      const table = document.createElement("table"), head = table.createTHead().insertRow();
      for (const name of ["step", ...chart.series.map((each) => each.label)]) {
        const cell = document.createElement("th");
        cell.scope = "col";
        cell.textContent = name;
        head.append(cell);
      }
      const body = table.createTBody();
      chart.x.forEach((step, index) => {
        const row = body.insertRow();
        row.insertCell().textContent = step;
        for (const each of chart.series) {
          const value = shown(chart, each.y[index]), low = each.low?.[index] ?? null;
          const ends = low === null ? "" : ` [${shown(chart, low)} ${shown(chart, each.high[index])}]`;
          row.insertCell().textContent = value + ends;
        }
      });
      place.append(table);
    });
  }

  function draw(figure) {
    const known = drawn.get(figure);
    const chart = known?.chart ?? JSON.parse(figure.querySelector("script").textContent);
    const place = figure.querySelector(".plot");
    if (!place.clientWidth) return; // in a hidden view
    known?.plot.destroy();
    const tell = known?.tell ?? key(figure, chart);
    if (!known) numbers(figure, chart);
    const { data, series, bands } = columns(chart);
    const axis = { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false } };
    // of a logarithmic axis, lines where numbers are: those between them would fill the plot
    const filter = (plot, splits, ...more) => plot.axes[1].filter(plot, splits, ...more);
    const values = (plot, splits) => splits.map((value) => (value === null ? "" : chart.percent
      ? `${Number((100 * value).toPrecision(4))} %` : `${Number(value.toPrecision(4))}`));
    const plot = new uPlot({
      width: place.clientWidth, height: chart.hero && place.clientWidth > 500 ? 290 : 200, series, bands,
      padding: [chart.marks.length ? 26 : 12, 14, 0, 0],
      scales: { x: { time: false }, y: { distr: chart.log ? 3 : 1, ...range(chart) } },
      axes: [{ ...axis, size: 24, label: "step of the whole run", labelSize: 16, labelGap: 0, labelFont: "12px system-ui, sans-serif",
        grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5] },
        { ...axis, size: 58, values, grid: { ...axis.grid, filter } }],
      legend: { show: false }, cursor: { sync: { key: "steps" }, drag: { x: true, y: false }, points: { size: 7 } },
      hooks: { draw: [marks(chart)], setCursor: [(plot) => tell(plot.cursor.idx ?? null)] },
    }, data, place);
    plot.root.querySelector("canvas").setAttribute("role", "img");
    plot.root.querySelector("canvas").setAttribute("aria-label", `${chart.title}: ${chart.series.map((each) =>
      `${each.label} ${shown(chart, each.y.find((value) => value !== null))} to ${
        shown(chart, each.y.findLast((value) => value !== null))}`).join("; ")}`);
    drawn.set(figure, { plot, chart, tell });
    tell(null);
  }

  function all() {
    for (const figure of drawn.keys()) if (!figure.isConnected) drawn.get(figure).plot.destroy(), drawn.delete(figure);
    document.querySelectorAll("figure.chart").forEach(draw);
  }

  let waits;
  addEventListener("resize", () => (clearTimeout(waits), (waits = setTimeout(all, 100))));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  addEventListener("beforeprint", all);
  return { all };
})();
