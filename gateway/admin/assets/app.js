// What pages do beyond links and forms. Every page works without it.
// No markup is made from text here: elements are built one by one, so that Trusted Types hold.

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const root = document.documentElement;

const make = (name, text = "", attributes = {}) => {
  const element = document.createElement(name);
  element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

// ---- toasts

const toast = (text, tone = "good") => {
  const line = make("div", "", { class: "toast", "data-toast": "", "data-tone": tone });
  line.append(make("span", text), make("button", "×", { type: "button", class: "button quiet icon", "data-dismiss": "", "aria-label": "Dismiss" }));
  $("#toasts")?.append(line);
  fade(line);
};
const fade = (line) => {
  if (line.dataset.tone === "bad") return;
  const leave = () => (line.matches(":hover, :focus-within") ? setTimeout(leave, 2000) : line.remove());
  setTimeout(leave, 8000);
};

// ---- theme: a cookie, so that the next page comes in it from the start

const charts = new Map();
const redraw = () => charts.forEach((plot, figure) => draw(figure, plot));
document.addEventListener("change", (event) => {
  const picker = event.target.closest("[data-theme-picker]");
  if (!picker) return;
  root.dataset.theme = picker.value;
  document.cookie = `faregate_theme=${picker.value}; path=/; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// ---- charts

const colour = (name) => {
  const probe = make("i", "", { hidden: "" });
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

const axisText = {
  // Figures of an axis only: amounts to read come from the server, exact.
  usd: (nanos) => "$" + (nanos / 1e9).toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 }),
  count: (value) => value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 }),
  ms: (value) => (value < 1000 ? `${value} ms` : `${(value / 1000).toLocaleString("en", { maximumSignificantDigits: 3 })} s`),
};

const timeText = (at, daily) => {
  const pad = (number) => String(number).padStart(2, "0");
  return daily || (at.getHours() === 0 && at.getMinutes() === 0)
    ? at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })
    : `${pad(at.getHours())}:${pad(at.getMinutes())}`;
};

const stacked = (series) => {
  const sums = [];
  return series.map((line) => (line.dotted ? line.values : line.values.map((value, at) => (sums[at] = (sums[at] ?? 0) + (value ?? 0)))));
};

const choose = (plot) => {
  const { left, width } = plot.select;
  if (width < 8) return;
  const at = (x) => new Date(plot.posToVal(x, "x") * 1000).toISOString();
  const address = new URL(location.href);
  for (const name of ["range", "after"]) address.searchParams.delete(name);
  address.searchParams.set("from", at(left));
  address.searchParams.set("to", at(left + width));
  location.assign(address);
};

const tell = (figure, data) => (plot) => {
  const at = plot.cursor.idx;
  $$(".legend li", figure).forEach((item) => {
    $("output", item).textContent = at == null ? "" : data.series[item.dataset.line].texts[at];
  });
  const time = $("figcaption time", figure) ?? $("figcaption", figure).appendChild(make("time"));
  time.textContent = at == null ? "" : data.labels[at];
};

const draw = (figure, before) => {
  if (!window.uPlot) return;
  before?.destroy?.();
  const data = JSON.parse($('script[type="application/json"]', figure).textContent);
  const place = $(".chart-canvas", figure);
  const stack = data.shape === "stack";
  const values = stack ? stacked(data.series) : data.series.map((line) => line.values);
  const order = data.series.map((line, at) => ({ line, values: values[at] }));
  if (stack) order.reverse(); // the highest sum first, so that the lower ones are painted over it
  const bars = uPlot.paths.bars({ size: [0.72, 40], radius: 0.12 });
  const [soft, faint] = [colour("--soft"), colour("--line")];
  const series = order.map(({ line }) => {
    const stroke = colour(`--line-${line.colour}`);
    const solid = stack && !line.dotted;
    return {
      label: line.label,
      stroke,
      width: line.dotted ? 1.3 : data.shape === "line" ? 1.8 : 0,
      dash: line.dotted ? [3, 4] : undefined,
      fill: solid || (data.shape === "bars" && !line.dotted) ? stroke : undefined,
      paths: (stack || data.shape === "bars") && !line.dotted ? bars : undefined,
      points: { show: line.values.length < 2 },
    };
  });
  const step = data.x.length > 1 ? data.x[1] - data.x[0] : data.daily ? 86400 : 3600;
  const local = (seconds) => uPlot.tzDate(new Date(seconds * 1000), data.zone);
  const axis = { stroke: soft, font: "11.5px system-ui", grid: { stroke: faint, width: 1 }, ticks: { show: false } };
  const options = {
    width: place.clientWidth || 600,
    height: place.clientHeight || 232,
    legend: { show: false },
    tzDate: local,
    cursor: { y: false, drag: { x: data.selects, y: false, setScale: false }, points: { show: !stack } },
    scales: { x: { range: (_, low, high) => (data.shape === "line" ? [low, high] : [low - step / 2, high + step / 2]) }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : data.unit === "usd" ? 1e9 : 1] } },
    axes: [{ ...axis, grid: { show: false }, space: 56, size: 28, gap: 6, values: (_, ticks) => ticks.map((tick) => timeText(local(tick), data.daily)) }, { ...axis, size: 60, values: (_, ticks) => ticks.map(axisText[data.unit]) }],
    series: [{}, ...series],
    hooks: { setCursor: [tell(figure, data)], setSelect: data.selects ? [choose] : [] },
  };
  charts.set(figure, new uPlot(options, [data.x, ...order.map((one) => one.values)], place));
};

const fitted = new ResizeObserver((entries) =>
  entries.forEach(({ target }) => {
    const plot = charts.get(target.closest("[data-chart]"));
    if (plot && Math.abs(plot.width - target.clientWidth) > 1 && target.clientWidth) plot.setSize({ width: target.clientWidth, height: target.clientHeight });
  }),
);

// ---- what is new on a page: at first, and after each swap

const settle = (within = document) => {
  $$("[data-chart]", within).forEach((figure) => {
    if (charts.has(figure)) return;
    draw(figure);
    fitted.observe($(".chart-canvas", figure));
  });
  $$("[data-toast]", within).forEach((line) => line.dataset.seen || ((line.dataset.seen = "1"), fade(line)));
  for (const figure of charts.keys()) if (!figure.isConnected) charts.delete(figure);
  $("[aria-invalid]", within)?.focus();
};

document.addEventListener("htmx:after:swap", (event) => {
  const dialog = $("#dialog");
  if (dialog && !dialog.open && $("#dialog-body").childElementCount && event.target.closest?.("[hx-target='#dialog-body']")) dialog.showModal();
  settle();
});

// ---- clicks: dialogs, copying, rows

document.addEventListener("click", async (event) => {
  const target = event.target;
  const close = target.closest("[data-close]");
  if (close?.closest("dialog")) {
    event.preventDefault();
    close.closest("dialog").close();
  } else if (target.matches("dialog")) {
    target.close();
  } else if (target.closest("[data-dismiss]")) {
    target.closest("[data-toast]").remove();
  } else if (target.closest("a[data-dialog]") && !event.metaKey && !event.ctrlKey && window.htmx) {
    event.preventDefault(); // a link in what is live: it cannot bear the page's nonce, so htmx does not know it
    // The header is ours to say: htmx writes the source's there, which is the whole page.
    const asked = { target: "#dialog-body", swap: "innerHTML", headers: { "HX-Target": "div#dialog-body" } };
    await htmx.ajax("GET", target.closest("a[data-dialog]").getAttribute("href"), asked);
    if (!$("#dialog").open) $("#dialog").showModal();
  } else if (target.closest("[data-copy]")) {
    const button = target.closest("[data-copy]");
    const said = button.dataset.copy || $("code, output, input", button.parentElement)?.textContent || "";
    try {
      await navigator.clipboard.writeText(said);
      const words = button.textContent;
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = words), 1500);
    } catch {
      toast("This browser does not let pages copy: select the text instead.", "bad");
    }
  } else if (!target.closest("a, button, input, label, select, summary") && !getSelection().toString()) {
    const row = target.closest("tr[data-href]");
    if (row) go(row, event.metaKey || event.ctrlKey);
  }
});
const go = (row, apart = false) => (apart ? window.open(row.dataset.href, "_blank", "noopener") : location.assign(row.dataset.href));
$("#dialog")?.addEventListener("close", () => $("#dialog-body").replaceChildren());

document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-autosubmit]");
  if (!form || event.target.matches("[type=search], [type=text], input:not([type])")) return;
  if (event.target.name === "range") $$("[name=from], [name=to]", form).forEach((field) => event.target.value !== "own" && field.remove());
  form.requestSubmit();
});
document.addEventListener("submit", (event) => {
  // an empty filter is none: addresses stay short. In other forms an empty field says something
  if (event.target.matches("form[data-autosubmit]")) $$("input, select", event.target).forEach((field) => (field.disabled ||= field.value === ""));
});
addEventListener("pageshow", () => $$("form[data-autosubmit] :disabled").forEach((field) => (field.disabled = false)));

// ---- what is live: paused by ".", and by whoever looks elsewhere; amber when it is old

const STALE_MS = 10_000;
let paused = false;
const lives = () => $$("[data-live]");
const mark = (state, text) => lives().forEach((live) => ((live.dataset.state = state), (live.textContent = text)));
let heard = 0;
document.addEventListener("htmx:sse:before:message", (event) => {
  heard = Date.now();
  if (paused) event.preventDefault();
  else if ($("[data-rows] tr:hover a, [data-rows] tr:hover button", event.target)) {
    event.preventDefault(); // nothing moves under the pointer
    mark("on", "Held while you point");
  } else mark("on", "Live · 1 s");
});
setInterval(() => {
  if (!lives().length || paused || !heard) return;
  const age = Date.now() - heard;
  if (age > STALE_MS) mark("stale", `${Math.round(age / 1000)} s old`);
}, 1000);
const pause = () => {
  if (!lives().length) return;
  paused = !paused;
  mark(paused ? "paused" : "on", paused ? "Paused" : "Live · 1 s");
};
document.addEventListener("click", (event) => event.target.closest("[data-live]") && pause());

// ---- keys

const rows = () => $$("table[data-rows] tbody tr[data-href]").filter((row) => row.checkVisibility());
const move = (by) => {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.ariaSelected === "true");
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  all.forEach((row) => row.removeAttribute("aria-selected"));
  next.ariaSelected = "true";
  next.scrollIntoView({ block: "nearest" });
};
let afterG = 0;
const keys = {
  "/": () => $("#jump")?.showModal(),
  "?": () => $("#keys-help")?.showModal(),
  ".": pause,
  f: () => $("[data-filters] input:not([type=hidden]), [data-filters] select")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  g: () => (afterG = Date.now()),
  Enter: () => rows().filter((row) => row.ariaSelected === "true").forEach((row) => go(row)),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, textarea, select, [contenteditable], dialog[open]")) return;
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  const place = Date.now() - afterG < 1200 && $(`[data-key="${CSS.escape(event.key)}"]`);
  afterG = 0;
  const act = place ? () => place.click() : Object.hasOwn(keys, event.key) ? keys[event.key] : null;
  if (!act) return;
  event.preventDefault();
  act();
});

// ---- errors of htmx that have no answer to show

document.addEventListener("htmx:error", () => toast("No answer from the gateway. Is it still running?", "bad"));

settle();
