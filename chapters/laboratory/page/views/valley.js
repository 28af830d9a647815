// Softmax heads with two parameters on in-context regression.
laboratory.view({
  name: "valley",
  figure: "live_valley",
  about: "The plane of heads, with one to move",
  says: "On finite prompts even the best softmax head with two parameters has a higher risk than the best linear head.",
  settings: {
    u: { label: "factor of the scores, u", low: 0.05, high: 1, step: 0.005, start: 0.6, say: (u) => u.toFixed(3) },
    bu: { label: "slope on an infinite prompt, bu", low: 0, high: 2, step: 0.005, start: 0.9, say: (bu) => bu.toFixed(3) },
    decades: { label: "prompt length, L", low: 0.7, high: 6, step: 0.05, start: 4, say: (decades) => laboratory.say(laboratory.tokens(decades)) },
    d: { label: "dimension, d", stops: [1, 2, 5, 10], start: 5, say: String },
    noise: { label: "noise variance, s²", stops: [0, 0.1, 1], start: 0, say: String },
  },
  readings: {
    excess: "excess risk of this head",
    linear: "excess risk of the best linear head",
    ratio: "ratio of the two",
    best: "smallest ratio over all u and b",
    gain: "factor of the output, b",
    noise: "noise in the label of the query, ½s²",
  },
  build(stage) {
    const { range } = d3;
    const read = laboratory.grid("live_valley", ["dimension", "log_length", "tilt", "noise"], ["log_shrink", "log_spread", "log_linear"]);
    // the excess risk is a polynomial in bu with coefficients from the table
    const excess = (d, bu, [shrink, spread]) => (d * (1 - bu) ** 2 + bu * (1 - bu) * shrink + bu ** 2 * spread) / 2;
    const lowest = (d, [shrink, spread]) => (2 * d - shrink) / (2 * (d - shrink + spread));
    const x = { label: "factor of the scores, u", ticks: [0.2, 0.4, 0.6, 0.8, 1] };
    const plane = stage.panel({
      about: "The plane of heads",
      x: { ...x, scale: d3.scaleLinear([0.05, 1], [0, 1]) },
      y: { label: "slope on an infinite prompt, bu", scale: d3.scaleLinear([0, 2], [0, 1]), ticks: [0, 0.5, 1, 1.5, 2] },
    });
    const shares = range(81).map((row) => row / 40);
    const tilts = range(77).map((column) => 0.05 + 0.0125 * column);
    const levels = laboratory.levels(plane, tilts.length, shares.length, [-300, -100, -30, -10, -4]);
    plane.curve("lab-line")([[0, 1], [1, 1]]);
    plane.words("bu = 1", 0.99, 1.04, "lab-before");
    const floor = stage.panel({
      about: "The floor of the valley",
      x: { ...x, scale: d3.scaleLinear([0.05, 1], [0, 1]) },
      y: { label: "excess risk, best linear head = 1", scale: d3.scaleLog([0.5, 1000], [0, 1]), ticks: [1, 10, 100, 1000] },
    });
    const along = floor.curve("lab-c0");
    floor.curve("lab-dotted lab-c1")([[0.05, 1], [1, 1]]);
    floor.words("best linear head", 0.99, 1.1, "lab-c1 lab-before");
    const move = (u, bu) => stage.set({ u, bu });
    const sideways = { ArrowRight: ["u", 1], ArrowLeft: ["u", -1] };
    const head = stage.handle(plane, { label: "Factors of the head", move, keys: { ...sideways, ArrowUp: ["bu", 1], ArrowDown: ["bu", -1] } });
    const follower = stage.handle(floor, { label: "Factor of the scores", move: (u) => stage.set({ u }), keys: sideways });
    return ({ u, bu, decades, d, noise }) => {
      const length = Math.log(laboratory.tokens(decades));
      const parts = (tilt) => ["log_shrink", "log_spread"].map((column) => Math.exp(read(column, d, length, tilt, noise)));
      const linear = Math.exp(read("log_linear", d, length, u, noise));
      const here = excess(d, bu, parts(u));
      const all = tilts.map(parts);
      levels(shares.flatMap((share) => all.map((one) => -excess(d, share, one) / linear)), (ratio) => -ratio);
      const low = all.map((one) => excess(d, lowest(d, one), one));
      along(low.map((risk, place) => [tilts[place], risk / linear]));
      const words = `u = ${u.toFixed(3)}, bu = ${bu.toFixed(3)}`;
      head(u, bu, u, words);
      follower(u, here / linear, u, words);
      return { excess: here, linear, ratio: here / linear, best: Math.min(...low) / linear, gain: bu / u, noise: noise / 2 };
    };
  },
});
