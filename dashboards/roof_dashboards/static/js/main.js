// What every page has: times of day in the viewer's own zone.
const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const steps = [["day", 86400], ["hour", 3600], ["minute", 60]];

export function ago(then, now = Date.now()) {
  const seconds = (then - now) / 1000;
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit);
  }
  return relative.format(Math.round(seconds), "second");
}

for (const element of document.querySelectorAll("time[datetime]")) {
  const then = new Date(element.dateTime);
  if (Number.isNaN(then.getTime())) continue;
  element.title = `${zone.format(then)} (received by the collector)`;
  element.textContent = Math.abs(Date.now() - then) < 7 * 86400e3 ? ago(then.getTime()) : zone.format(then);
}

// "/" goes to the filter, as in most tables.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  const filter = document.querySelector(".tools input[type=search]");
  if (filter) {
    event.preventDefault();
    filter.focus();
  }
});
