// Draws each chart in its figure, as wide as the figure is, and again when that changes.
(() => {
  "use strict";
  const axisRoom = 64; // for the labels of the vertical axis
  const actions = { export: true, source: false, compiled: false, editor: false };

  function fitted(name, width) {
    const spec = JSON.parse(document.getElementById(name).textContent);
    const view = spec.spec ?? spec;
    const square = spec.usermeta.shape === "square";
    view.width = Math.max(160, Math.min(width - axisRoom, square ? 340 : 640));
    if (square) view.height = view.width;
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
  // For whoever waits until all is drawn.
  Promise.all(places.map(draw)).then(() => {
    document.documentElement.dataset.drawn = places.length;
  });
})();
