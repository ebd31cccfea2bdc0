// Draws each chart in its figure, as wide as the figure is, and again when that changes.
(() => {
  "use strict";
  const labelWidth = 64; // of the vertical axis
  const gap = 16; // between small multiples
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const actions = { export: true, source: false, compiled: false, editor: false };

  function fitted(name, width) {
    const spec = JSON.parse(document.getElementById(name).textContent);
    const view = spec.spec ?? spec;
    const { shape, columns, squares, axisWidth = labelWidth } = spec.usermeta;
    if (columns) {
      spec.columns = width < 520 ? Math.min(columns, 2) : columns;
      const share = (Math.min(width, 940) - axisWidth) / spec.columns - gap;
      view.width = Math.max(90, Math.min(share, 300));
      if (squares) view.height = view.width;
      return spec;
    }
    view.width = Math.max(160, Math.min(width - axisWidth, shape === "square" ? 340 : 640));
    if (shape === "square") view.height = view.width;
    return spec;
  }

  async function draw(place) {
    const name = place.dataset.chart;
    place.dataset.width = place.clientWidth;
    try {
      await vegaEmbed(place, fitted(name, place.clientWidth), {
        mode: "vega-lite",
        renderer: "svg",
        actions,
        tooltip: { theme: dark.matches ? "dark" : "light" },
        downloadFileName: name,
      });
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
      place.classList.add("failed");
      console.error(`chart ${name}: ${error.message}`);
    }
  }

  const places = [...document.querySelectorAll("[data-chart]")];
  const stale = () => places.filter((place) => place.clientWidth !== Number(place.dataset.width));
  let timer;
  window.addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => stale().forEach(draw), 150);
  });
  dark.addEventListener("change", () => places.forEach(draw));

  // Paper cannot be unfolded. The charts' menus are details, too, and not for paper.
  let unfolded = [];
  window.addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")].filter(
      (folded) => !folded.closest("[data-chart]"),
    );
    unfolded.forEach((folded) => (folded.open = true));
  });
  window.addEventListener("afterprint", () => {
    unfolded.forEach((folded) => (folded.open = false));
    unfolded = [];
  });
  // For whoever waits until all is drawn.
  Promise.all(places.map(draw)).then(() => {
    document.documentElement.dataset.drawn = places.length;
  });
})();
