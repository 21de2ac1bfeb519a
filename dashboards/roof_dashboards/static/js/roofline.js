// The roofline of a network's layers, drawn from the page's own JSON. Without this module the page keeps
// the plot that the server drew.
import { decade, percent, si } from "./format.js";

const LARGEST = 34;
const SMALLEST = 7;
// Narrower than this there is no room for labels on the roof itself.
const NARROW = 560;

function themeOf(figure) {
  const style = getComputedStyle(figure);
  const value = (name) => style.getPropertyValue(name).trim();
  return { text: value("--text"), faint: value("--faint"), line: value("--line"), card: value("--card"), roof: value("--roof") };
}

// The stylesheet alone knows the classes' colours: ask it.
function colourOf(figure, layerClass) {
  const probe = document.createElement("span");
  probe.className = `dot c-${slug(layerClass)}`;
  figure.append(probe);
  const colour = getComputedStyle(probe).backgroundColor;
  probe.remove();
  return colour;
}

function slug(text) {
  return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}

// Text nodes only: names come from networks that anybody may have made.
function tip(layer) {
  const box = document.createElement("div");
  box.className = "tip";
  const lines = [
    ["strong", `${layer.index}  ${layer.name || layer.op_type}`],
    ["span", `${layer.op_type} · ${layer.layer_class} · ${layer.bound || "no"} bound`],
    ["div", `intensity ${layer.intensity.toPrecision(4)} FLOP/B`],
    ["div", `achieved ${si(layer.achieved_flops_per_s, "FLOP/s")}`],
    ["div", `${percent(layer.roof_share)} of the roof`],
    ["div", `measured ${si(layer.measured_seconds, "s")}, predicted ${si(layer.roofline_seconds, "s")}`],
    ["div", `${percent(layer.share)} of the layers' time`],
  ];
  for (const [tag, text] of lines) {
    const line = document.createElement(tag);
    line.textContent = text;
    box.append(line);
  }
  return box;
}

const floorDecade = (value) => 10 ** Math.floor(Math.log10(value));
const ceilDecade = (value) => 10 ** Math.ceil(Math.log10(value * 1.3));

function extent(values) {
  return [floorDecade(Math.min(...values)), ceilDecade(Math.max(...values))];
}

function roofLabels(roof) {
  return {
    bandwidth: `DRAM ${si(roof.bytes_per_s, "B/s")}`,
    ridge: `ridge ${si(roof.ridge, "FLOP/B")}`,
    peak: `peak ${si(roof.flops_per_s, "FLOP/s")}`,
  };
}

function narrowTitle({ bandwidth, ridge, peak }) {
  return `${bandwidth} · ${ridge}\n${peak}`;
}

function roofSeries(roof, [left, right], [bottom], theme, narrow) {
  const start = Math.max(left, bottom / roof.bytes_per_s);
  const middle = Math.sqrt(start * roof.ridge);
  const labels = roofLabels(roof);
  const label = (formatter, position, more = {}) => ({ show: !narrow, formatter, position, color: theme.text, fontWeight: 600, textBorderColor: theme.card, textBorderWidth: 4, ...more });
  return {
    name: "roof",
    type: "line",
    silent: true,
    z: 5,
    symbol: "circle",
    lineStyle: { color: theme.roof, width: 2 },
    itemStyle: { color: theme.roof },
    // Above the roof there is room: no layer but a fast convolution gets there.
    data: [
      { value: [start, start * roof.bytes_per_s], symbolSize: 0 },
      { value: [middle, middle * roof.bytes_per_s], symbolSize: 0, label: label(labels.bandwidth, "left", { offset: [-4, -8] }) },
      { value: [roof.ridge, roof.flops_per_s], symbolSize: 7, label: label(labels.ridge, "top") },
      { value: [right, roof.flops_per_s], symbolSize: 0, label: label(labels.peak, "top", { align: "right", offset: [0, -12] }) },
    ],
  };
}

function options(figure, data, rows, shown, narrow) {
  const theme = themeOf(figure);
  const largestDot = narrow ? LARGEST / 1.6 : LARGEST;
  const roof = data.roofline;
  const x = extent([...rows.map((row) => row.intensity), ...(roof ? [roof.ridge] : [])]);
  const y = extent([...rows.map((row) => row.achieved_flops_per_s), ...(roof ? [roof.flops_per_s] : [])]);
  const largest = Math.max(...rows.map((row) => row.share ?? 0)) || 1;
  const classes = [...new Set(rows.map((row) => row.layer_class))].sort();
  const axis = ([min, max], name, formatter, more) => ({
    type: "log", min, max, name, nameTextStyle: { color: theme.faint },
    axisLabel: { color: theme.faint, formatter },
    axisLine: { show: true, lineStyle: { color: theme.faint } },
    splitLine: { show: true, lineStyle: { color: theme.line } }, ...more,
  });
  return {
    animation: false,
    textStyle: { fontFamily: getComputedStyle(figure).fontFamily },
    grid: { left: narrow ? 48 : 64, right: 22, top: narrow ? 78 : 44, bottom: 56 },
    title: {
      show: narrow && Boolean(roof), text: roof ? narrowTitle(roofLabels(roof)) : "", top: 22, left: "center",
      textStyle: { color: theme.text, fontSize: 11, lineHeight: 15 },
    },
    legend: { data: classes, top: 0, type: "scroll", textStyle: { color: theme.text }, inactiveColor: theme.faint, pageTextStyle: { color: theme.faint }, pageIconColor: theme.text },
    tooltip: {
      trigger: "item", confine: true, backgroundColor: theme.card, borderColor: theme.line,
      textStyle: { color: theme.text }, formatter: (hit) => tip(hit.data.layer),
    },
    xAxis: axis(x, "intensity, FLOP/byte", String, { nameLocation: "middle", nameGap: 32 }),
    yAxis: axis(y, "FLOP/s", decade, { nameLocation: "end", nameGap: 14 }),
    series: [
      ...classes.map((layerClass) => ({
        name: layerClass,
        type: "scatter",
        itemStyle: { color: colourOf(figure, layerClass), opacity: 0.75, borderColor: theme.card, borderWidth: 1 },
        emphasis: { itemStyle: { opacity: 1, borderColor: theme.text, borderWidth: 2 } },
        data: rows
          .filter((row) => row.layer_class === layerClass)
          .map((row) => ({
            value: [row.intensity, row.achieved_flops_per_s],
            symbolSize: Math.max(SMALLEST, largestDot * Math.sqrt((row.share ?? 0) / largest)),
            itemStyle: shown.has(row.index) ? undefined : { opacity: 0.15 },
            layer: row,
          })),
      })),
      ...(roof ? [roofSeries(roof, x, y, theme, narrow)] : []),
    ],
  };
}

// A dot and its table row light each other up.
function link(chart, rowsByIndex) {
  const place = new Map();
  for (const [seriesIndex, series] of chart.getOption().series.entries()) {
    series.data.forEach((item, dataIndex) => item.layer && place.set(item.layer.index, { seriesIndex, dataIndex }));
  }
  const light = (row, on) => row?.classList.toggle("lit", on);
  chart.on("mouseover", (hit) => light(rowsByIndex.get(hit.data.layer?.index), true));
  chart.on("mouseout", (hit) => light(rowsByIndex.get(hit.data.layer?.index), false));
  chart.on("click", (hit) => {
    const row = rowsByIndex.get(hit.data.layer?.index);
    if (row) {
      location.hash = row.id;
      row.scrollIntoView({ block: "center" });
    }
  });
  for (const [index, row] of rowsByIndex) {
    const at = place.get(index);
    if (!at) continue;
    row.addEventListener("mouseenter", () => chart.dispatchAction({ type: "highlight", ...at }));
    row.addEventListener("mouseleave", () => chart.dispatchAction({ type: "downplay", ...at }));
    row.addEventListener("click", () => {
      chart.dispatchAction({ type: "showTip", ...at });
    });
  }
}

async function draw(figure) {
  const answer = await fetch(figure.dataset.source);
  if (!answer.ok) return;
  const data = await answer.json();
  const rows = data.layers.rows.filter((row) => row.intensity && row.achieved_flops_per_s);
  if (!rows.length) return;
  rows.sort((a, b) => (b.share ?? 0) - (a.share ?? 0));
  const rowsByIndex = new Map([...document.querySelectorAll("tr[data-index]")].map((row) => [Number(row.dataset.index), row]));
  const canvas = figure.querySelector(".canvas");
  canvas.hidden = false;
  figure.querySelector("svg.plot").setAttribute("hidden", "");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Roofline of the layers; the table below has the same figures");
  const chart = globalThis.echarts.init(canvas, null, { renderer: "canvas" });
  const paint = () => chart.setOption(options(figure, data, rows, new Set(rowsByIndex.keys()), canvas.clientWidth < NARROW), true);
  paint();
  link(chart, rowsByIndex);
  new ResizeObserver(() => {
    chart.resize();
    paint();
  }).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  figure.dataset.drawn = "true";
}

for (const figure of document.querySelectorAll("figure.roofline")) {
  draw(figure);
}
