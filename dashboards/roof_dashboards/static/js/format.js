// Figures for people: four significant digits and an SI prefix, as the server writes them.
const prefixes = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

export function si(value, unit) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return `0 ${unit}`;
  const [scale, prefix] = prefixes.find(([size]) => Math.abs(Number(value.toPrecision(4))) >= size) ?? prefixes.at(-1);
  return `${(value / scale).toPrecision(4)} ${prefix}${unit}`;
}

export function percent(value) {
  return value === null || value === undefined ? "–" : `${Number((value * 100).toPrecision(3))} %`;
}

// A decade's label: 1e9 is "1 G".
export function decade(value) {
  const [scale, prefix] = prefixes.find(([size]) => value >= size * 0.999) ?? [1, ""];
  return scale < 1 ? String(Number(value.toPrecision(3))) : `${Number((value / scale).toPrecision(3))}${prefix ? ` ${prefix}` : ""}`;
}
