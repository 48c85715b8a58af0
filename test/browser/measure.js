// What a reader would notice of a page's layout: an expression that Chromium
// evaluates in the page, which has no script of its own.
(() => {
  const view = document.documentElement.clientWidth;
  const name = (e) => `<${e.tagName.toLowerCase()} class="${e.getAttribute("class") ?? ""}"> ${e.textContent.trim().slice(0, 60)}`;
  const shown = (e) => e.getClientRects().length > 0;

  // Elements that reach beyond the page, where no region scrolls them.
  const wide = [...document.body.querySelectorAll("*")]
    .filter((e) => shown(e) && !e.closest(".scroll") && !e.closest("svg"))
    .filter((e) => e.getBoundingClientRect().right > view + 1)
    .map(name);

  // Figures that have no size, and their words that are cut off.
  const figures = [...document.querySelectorAll("svg")].filter(shown);
  const empty = figures.filter((s) => s.getBoundingClientRect().width < 50 || s.getBoundingClientRect().height < 20).map(name);
  const cut = figures.flatMap((s) => {
    const box = s.getBoundingClientRect();
    return [...s.querySelectorAll("text")].filter((t) => {
      const r = t.getBoundingClientRect();
      return r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1;
    }).map((t) => `${t.textContent} in ${s.querySelector("title").textContent}`);
  });

  // Text that stands out too little from what is behind it: WCAG 2, 1.4.3.
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b]
    .map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = channels(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) {
        return c;
      }
    }
    return [255, 255, 255];
  };
  const contrast = (e) => {
    const [a, b] = [luminance(channels(getComputedStyle(e).color)), luminance(behind(e))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const faint = [...document.body.querySelectorAll("*")]
    .filter((e) => shown(e) && !e.closest("svg") && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .filter((e) => contrast(e) < 4.5)
    .map((e) => `${contrast(e).toFixed(1)}: ${name(e)}`);

  // The first column of a table that is scrolled to its right end stays in sight.
  const lost = [...document.querySelectorAll(".scroll")].filter((s) => shown(s) && s.querySelector(".sticky")).flatMap((s) => {
    s.scrollLeft = s.scrollWidth;
    const bad = [...s.querySelectorAll("tbody th")].filter((h) => h.getBoundingClientRect().left < s.getBoundingClientRect().left - 1);
    s.scrollLeft = 0;
    return bad.map(name);
  });

  return {
    overflow: document.scrollingElement.scrollWidth - view,
    wide, empty, cut, faint, lost,
    figures: figures.length,
    smallest: Math.min(...figures.map((s) => s.getBoundingClientRect().width)),
    paper: getComputedStyle(document.body).backgroundColor,
  };
})();
