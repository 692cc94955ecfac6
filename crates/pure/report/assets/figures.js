// Draws the figures whose data stand in #drawings, and says in data-figures how many it has drawn.
"use strict";
(async () => {
  const root = document.documentElement;
  const drawings = JSON.parse(await unpack(document.getElementById("drawings")));
  const config = { displaylogo: false, displayModeBar: false, responsive: true, scrollZoom: false };
  const drawn = new Set();
  // Browsers keep some 16 WebGL contexts, fewer on small devices; each 3-D plot takes one.
  const SOLID_MOST = 12;
  // Below this width a finger that scrolls the page would turn the surfaces instead.
  const WIDE = "(min-width: 700px)";

  const loadPlotly = async () => {
    const script = document.createElement("script");
    script.textContent = await unpack(document.getElementById("plotly"));
    document.head.append(script);
    script.remove();
  };

  const report = () => {
    root.dataset.figures = `${drawn.size}/${drawings.length}`;
  };

  const hasWebGl = () => {
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("webgl2") || canvas.getContext("webgl");
    if (!context) return false;
    context.getExtension("WEBGL_lose_context")?.loseContext();
    return true;
  };

  const webGl = hasWebGl();
  let solid = webGl && window.matchMedia(WIDE).matches;
  let solids = 0;
  for (const drawing of drawings) {
    drawing.element = document.getElementById(drawing.id);
    if (drawing.choice === "depth") drawing.canBeSolid = webGl && solids++ < SOLID_MOST;
    if (drawing.choice === "select") {
      drawing.select = document.querySelector(`[data-selects="${drawing.id}"]`);
    }
  }

  const variantOf = (drawing) => {
    if (drawing.choice === "depth") return solid && drawing.canBeSolid ? 0 : 1;
    if (drawing.choice === "select") return Number(drawing.select.value);
    return 0;
  };

  // What plotly.js leaves where it could not draw: a message in place of a scene, or nothing.
  const isDrawn = (drawing) =>
    drawing.element.querySelector(".main-svg") !== null && drawing.element.querySelector(".no-webgl") === null;

  const plot = (drawing, index, size) => {
    // plotly.js writes into what it is given.
    const { data, layout } = structuredClone(drawing.variants[index]);
    // A height that the data asks for goes before the one that fits the page.
    const sized = { ...size, ...layout, autosize: !size };
    drawing.element.style.height = sized.height ? `${sized.height}px` : "";
    Plotly.purge(drawing.element);
    return Plotly.newPlot(drawing.element, data, sized, config);
  };

  const draw = async (drawing) => {
    await plot(drawing, variantOf(drawing));
    if (drawing.choice === "depth" && drawing.canBeSolid && !isDrawn(drawing)) {
      drawing.canBeSolid = false;
      return draw(drawing);
    }
    if (isDrawn(drawing)) drawn.add(drawing.id);
    else drawn.delete(drawing.id);
    report();
    linkCamera(drawing);
  };

  // Native and VM of one block size are looked at from the same side.
  let turning = false;
  const linkCamera = (drawing) => {
    if (drawing.choice !== "depth" || variantOf(drawing) !== 0) return;
    const pair = [...drawing.element.parentElement.children].filter((other) => other !== drawing.element);
    const follow = async (event) => {
      const camera = event["scene.camera"];
      if (!camera || turning) return;
      turning = true;
      try {
        for (const other of pair) {
          if (other.layout?.scene) await Plotly.relayout(other, { "scene.camera": structuredClone(camera) });
        }
      } finally {
        turning = false;
      }
    };
    drawing.element.on("plotly_relayouting", follow);
    drawing.element.on("plotly_relayout", follow);
  };

  const buttons = [...document.querySelectorAll("[data-depth]")];
  const showDepth = () => {
    for (const button of buttons) {
      const isSolid = button.dataset.depth === "solid";
      button.setAttribute("aria-pressed", String(isSolid === solid));
      if (isSolid && !webGl) {
        button.disabled = true;
        button.title = "This browser offers no WebGL.";
      }
    }
  };
  const setSolid = async (value) => {
    solid = value;
    showDepth();
    for (const drawing of drawings) if (drawing.choice === "depth") await draw(drawing);
  };

  for (const button of buttons) {
    button.addEventListener("click", () => setSolid(button.dataset.depth === "solid"));
  }
  for (const drawing of drawings) drawing.select?.addEventListener("change", () => draw(drawing));

  // Paper cannot be turned: print the flat form, at a width that fits. The browser does not wait, and
  // plotly.js draws what is flat before it returns.
  const PAPER_PX = 660;
  const PAPER_HEIGHT_PX = 290;
  window.addEventListener("beforeprint", () => {
    if (!window.Plotly) return;
    for (const drawing of drawings) {
      const columns = drawing.element.parentElement.children.length;
      const index = drawing.choice === "depth" ? 1 : variantOf(drawing);
      plot(drawing, index, { width: PAPER_PX / columns, height: PAPER_HEIGHT_PX });
    }
  });
  window.addEventListener("afterprint", async () => {
    if (!window.Plotly) return;
    for (const drawing of drawings) await draw(drawing);
  });

  report();
  showDepth();
  if (drawings.length > 0) await loadPlotly();
  for (const drawing of drawings) await draw(drawing);
})();
