// What a reader would see of the open page, with every fold opened (on paper: as it is).
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const onPaper = matchMedia("print").matches;
  if (!onPaper) for (const fold of all("details")) fold.open = true;
  const faults = [];
  const fault = (what, element) => {
    const drawing = element.closest(".drawing");
    faults.push(`${what}: ${drawing ? drawing.id + ": " : ""}${(element.textContent || element.getAttribute("class") || element.tagName).trim().slice(0, 60)}`);
  };
  const seen = (element) => element.getClientRects().length > 0 && element.checkVisibility();
  const box = (element) => element.getBoundingClientRect();
  const right = document.documentElement.clientWidth;

  // Nothing is wider than the window (a J reaches a little to the left of where it stands), except what scrolls by itself; on paper nothing does.
  for (const element of all("body *").filter(seen)) {
    const frame = element.closest(".scroll");
    if (frame && frame !== element && !onPaper) continue;
    if (element.closest("svg.chart svg")) continue;
    if (box(element).right > right + 1 || box(element).left < -1) fault(`reaches ${box(element).right} of ${right}`, element);
  }

  const charts = all("svg.chart[role=img]");
  for (const chart of charts) {
    if (onPaper && chart.closest(".screen")) continue;
    if (!seen(chart)) fault("a chart is not seen", chart);
    const named = chart.getAttribute("aria-labelledby").split(" ").map((id) => document.getElementById(id));
    if (!named.every((one) => one && one.parentElement === chart && one.textContent.length > 5)) fault("no name", chart);
    const frame = box(chart);
    const texts = all("text", chart).filter((text) => seen(text) && text.textContent.trim() !== "");
    for (const text of texts) {
      const own = box(text);
      if (own.left < frame.left - 1 || own.right > frame.right + 1 || own.top < frame.top - 1 || own.bottom > frame.bottom + 1)
        fault("a text outside its chart", text);
      if (parseFloat(getComputedStyle(text).fontSize) < 10 || own.height < 9) fault("a small text", text);
    }
    for (const group of [".up", ".across", ".titles"]) {
      const boxes = texts.filter((text) => text.closest(group)).map((text) => [text, box(text)]);
      boxes.forEach(([text, one], index) => {
        for (const [, other] of boxes.slice(index + 1)) {
          const apart = one.right <= other.left || other.right <= one.left || one.bottom <= other.top + 2 || other.bottom <= one.top + 2;
          if (!apart) fault("texts over each other", text);
        }
      });
    }
    // A mark within its chart has a place there, whatever its value.
    for (const mark of all("circle, rect, polyline, line", chart)) {
      const own = box(mark);
      if (own.left < frame.left - 8 || own.right > frame.right + 8 || own.top < frame.top - 8 || own.bottom > frame.bottom + 8)
        fault("a mark outside its chart", mark);
    }
  }
  // A4 less margins of 12 mm.
  if (onPaper) for (const variant of all(".variant")) if (box(variant).height > 1031) fault("higher than a sheet", variant);

  // Every figure says where its values stand, and they stand there.
  const titles = all("h2, h3").map((title) => title.textContent);
  for (const figure of all("figure").filter((figure) => figure.querySelector("svg.chart") && !(onPaper && figure.closest(".screen")))) {
    const own = figure.querySelector("details.values table tbody tr");
    const elsewhere = /Values: the table under (.*)\.$/.exec(figure.querySelector("figcaption").textContent.trim());
    const stands = elsewhere && (titles.some((title) => title.startsWith(elsewhere[1])) || elsewhere[1].startsWith("the same title"));
    if (!(own && seen(own)) && !stands) fault("no values", figure);
  }
  for (const element of all("[src], [href]")) {
    const target = element.getAttribute("src") || element.getAttribute("href");
    // A link to a part of the page, or to a page beside it, loads nothing.
    const isBeside = element.tagName === "A" && /^(#|[^:/][^:]*\.html$)/.test(target);
    if (!target.startsWith("data:") && !isBeside) fault("from elsewhere", element);
  }

  const shade = (colour) => {
    const [red, green, blue] = colour.match(/[\d.]+/g).map((part) => {
      const share = Number(part) / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const page = shade(getComputedStyle(document.body).backgroundColor);
  for (const text of all(".chart .up text, .chart .titles text, p, figcaption, td").filter(seen)) {
    const style = getComputedStyle(text);
    const ink = shade(text.closest("svg") ? style.fill : style.color);
    if ((Math.max(ink, page) + 0.05) / (Math.min(ink, page) + 0.05) < 4) fault("hardly to be read", text);
  }
  return {
    charts: charts.length,
    faults: [...new Set(faults)],
    isDark: page < 0.1,
    choices: all(".drawing[data-choice]").length,
    selects: all("select").length,
    buttons: all("button").length,
  };
})()
