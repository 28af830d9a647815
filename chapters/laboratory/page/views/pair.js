// Pairs of softmax heads on in-context regression, with their best values.
laboratory.view({
  name: "pair",
  figure: "live_pair",
  about: "The plane of the keys of two heads, with a pair to move",
  says: "No pair of keys of the plane has a lower risk than the best pair with opposite keys.",
  settings: {
    first: { label: "first key, ω₁", low: -0.6, high: 0.6, step: 0.01, start: 0.4, say: (key) => key.toFixed(2).replace("-", "−") },
    second: { label: "second key, ω₂", low: -0.6, high: 0.6, step: 0.01, start: -0.1, say: (key) => key.toFixed(2).replace("-", "−") },
    decades: { label: "prompt length, L", low: 1, high: 4, step: 0.05, start: 3, say: (decades) => laboratory.say(laboratory.tokens(decades)) },
  },
  readings: {
    excess: "excess risk of this pair",
    descent: "excess risk of debiased gradient descent",
    ratio: "ratio of the two",
    opposite: "ratio, opposite pair with the same difference",
    best: "smallest ratio of an opposite pair",
  },
  play: { label: "Opposite keys from 0 to 0.6", seconds: 8, at: (share) => ({ first: 0.6 * share, second: -0.6 * share }) },
  build(stage) {
    const { range } = d3;
    const largest = 0.6;
    const read = laboratory.grid("live_pair", ["log_length", "size", "product"], ["log_ratio"]);
    // the coordinates of key_plane.py, in which the risk is smooth
    const ratio = (first, second, length) => {
      const squares = first ** 2 + second ** 2;
      const product = squares > 0 ? 2 * first * second / squares : 0;
      return Math.exp(read("log_ratio", Math.log(length), squares / (largest ** 2 * (1 + product ** 2)), product));
    };
    const keys = { scale: d3.scaleLinear([-largest, largest], [0, 1]), ticks: [-0.6, -0.3, 0, 0.3, 0.6], say: (key) => String(key).replace("-", "−") };
    const plane = stage.panel({
      about: "The plane of keys",
      x: { ...keys, label: "first key, ω₁" },
      y: { ...keys, scale: keys.scale.copy(), label: "second key, ω₂" },
      height: 372,
    });
    const [places, middle] = [61, 30];
    const steps = [1.05, 1.2, 1.5, 2, 4];
    const levels = laboratory.levels(plane, places, places, steps.map((step) => -step).reverse());
    const stepNames = steps.map(() => plane.words("", 0, 0));
    plane.curve("lab-line lab-c0")([[-largest, largest], [largest, -largest]]);
    plane.words("opposite keys", -0.51, 0.55, "lab-c0");
    const cut = stage.panel({
      about: "The opposite pairs",
      x: { label: "half the difference, (ω₁ − ω₂) / 2", scale: d3.scaleLinear([0, largest], [0, 1]), ticks: [0, 0.2, 0.4, 0.6] },
      y: { label: "excess risk, debiased gradient descent = 1", scale: d3.scaleLog([0.8, 10], [0, 1]), ticks: [1, 2, 5, 10] },
      height: 372,
    });
    const along = cut.curve("lab-c0");
    cut.curve("lab-dotted lab-c1")([[0, 1], [largest, 1]]);
    cut.words("debiased gradient descent", 0.59, 0.9, "lab-c1 lab-before");
    const name = cut.words("opposite keys", 0.5, 1, "lab-c0 lab-before");
    const shadow = cut.layer.append("circle").attr("r", 8).attr("class", "lab-dot");
    const pair = stage.handle(plane, {
      label: "Keys of the two heads",
      keys: { ArrowRight: ["first", 1], ArrowLeft: ["first", -1], ArrowUp: ["second", 1], ArrowDown: ["second", -1] },
      move: (first, second) => stage.set({ first, second }),
    });
    const gaps = range(121).map((place) => largest * place / 120);
    let drawn = null;
    let best = null;
    const drawLength = (length) => {
      // the risk does not change if keys are exchanged or change their signs: a quarter of the plane is enough
      const known = new Map();
      const at = (row, column) => {
        const [low, high] = [Math.min(row, column), Math.max(row, column)];
        const key = low + high >= 0 ? `${low},${high}` : `${-high},${-low}`;
        if (!known.has(key)) known.set(key, ratio(largest * row / middle, largest * column / middle, length));
        return known.get(key);
      };
      const grid = range(-middle, middle + 1);
      levels(grid.flatMap((row) => grid.map((column) => -at(row, column))));
      // the value of each step is at its edge, for pairs whose first key is zero
      const single = range(middle + 1).map((place) => at(0, place));
      steps.forEach((step, number) => {
        const over = single.findIndex((value) => value > step);
        const edge = over - (single[over] - step) / (single[over] - single[over - 1]);
        stepNames[number].text(over < 0 ? "" : String(step)).attr("y", plane.y(over < 0 ? 0 : largest * edge / middle) + 4);
      });
      const opposite = gaps.map((gap) => ratio(gap, -gap, length));
      along(opposite.map((value, place) => [gaps[place], value]));
      name.attr("y", cut.y(opposite[100]) - 10);
      best = Math.min(...opposite);
      drawn = length;
    };
    return ({ first, second, decades }) => {
      const length = laboratory.tokens(decades);
      if (length !== drawn) drawLength(length);
      const [found, gap] = [ratio(first, second, length), Math.abs(first - second) / 2];
      const descent = 0.5 * 6.5 / (length + 5.5); // ½ τ_w² d (d + 1 + ς)/(L + d + ς) with τ_w² d = 1, d = 5, ς = ½
      const words = `ω₁ = ${stage.view.settings.first.say(first)}, ω₂ = ${stage.view.settings.second.say(second)}`;
      pair(first, second, first, words);
      shadow.attr("cx", cut.x(gap)).attr("cy", cut.y(found));
      return { excess: found * descent, descent, ratio: found, opposite: ratio(gap, -gap, length), best };
    };
  },
});
