// Single-location regression with heads of four kinds.
laboratory.view({
  name: "needle",
  figure: "live_needle",
  about: "Risks of four heads, with a signal strength and a prompt length to move",
  says: ({ decades }) => {
    const length = laboratory.tokens(decades);
    // the best element-wise head has risk one half at 2 ln(L - 1), and the Bayes risk there is at most one half
    const enough = laboratory.say(Math.ceil(2 * Math.log(length - 1)));
    return `Softmax finds one token among ${laboratory.say(length)} at a signal strength of at most ${enough}; linear attention needs about ${laboratory.say(length)}.`;
  },
  settings: {
    nu: { label: "signal strength, ν", low: 0, high: 80, step: 0.25, start: 40, say: (nu) => nu.toFixed(2) },
    decades: { label: "prompt length, L", low: 0.3, high: 12, step: 0.05, start: 6, say: (decades) => laboratory.say(laboratory.tokens(decades)) },
  },
  readings: {
    softmax: "softmax (Bayes risk)",
    linear: "linear attention",
    element_wise: "best element-wise weights",
    largest_score: "hardmax",
    threshold: "2 ln(L − 1), dashed line",
  },
  play: { label: "From 10² to 10¹² tokens", seconds: 8, at: (share) => ({ decades: 2 + 10 * share }) },
  build(stage) {
    const kinds = ["softmax", "linear", "element_wise", "largest_score"];
    const read = laboratory.grid("live_needle", ["scale", "top"], kinds);
    const risk = (kind, nu, height) => Math.exp(read(kind, Math.sqrt(nu), height));
    const top = (length) => Math.sqrt(2 * Math.log(length - 1));
    const risks = { label: "excess risk", scale: d3.scaleLinear([0, 1.04], [0, 1]), ticks: [0, 0.25, 0.5, 0.75, 1] };
    const panels = {
      nu: stage.panel({ about: "Risks against the signal strength", y: risks, x: { label: "signal strength, ν", scale: d3.scaleLinear([0, 80], [0, 1]) } }),
      decades: stage.panel({
        about: "Risks against the length",
        y: { ...risks, scale: risks.scale.copy() },
        x: { label: "prompt length, L", scale: d3.scaleLinear([0.3, 12], [0, 1]), ticks: [1, 3, 5, 7, 9, 11], say: laboratory.powerOfTen },
      }),
    };
    Object.values(panels).forEach((panel) => panel.curve("lab-rule")(panel.x.domain().map((end) => [end, 0.5])));
    panels.nu.words("risk 1/2", 79, 0.52, "lab-before");
    const equal = panels.decades.curve("lab-dotted");
    const equalName = panels.decades.words("", 0.3, 0.06);
    const drawn = Object.fromEntries(Object.entries(panels).map(([name, panel]) => {
      const mark = panel.curve("lab-line");
      const curves = kinds.map((kind, number) => panel.curve(`lab-c${number}`));
      const rule = panel.curve("lab-rule");
      const handle = stage.handle(panel, {
        label: stage.view.settings[name].label,
        keys: { ArrowRight: [name, 1], ArrowUp: [name, 1], ArrowLeft: [name, -1], ArrowDown: [name, -1] },
        move: (across) => stage.set({ [name]: across }),
      });
      return [name, { mark, curves, rule, handle }];
    }));
    // names at the curves: where a curve crosses a risk, on a side with room
    const names = {
      nu: [
        ["softmax", "softmax", 0, 0.72, [-8, 0], "end"],
        ["hardmax", "largest_score", 3, 0.6, [8, 0]],
        ["element-wise", "element_wise", 2, 0.14, [10, -4]],
      ],
      decades: [
        ["linear attention", "linear", 1, 0.6, [10, 0]],
        ["softmax", "softmax", 0, 0.25, [8, 14]],
      ],
    };
    const named = Object.entries(names).map(([panel, all]) => {
      return [panel, all.map(([text, kind, colour, level, shift, anchor]) => [kind, level, panels[panel].name(text, `lab-c${colour}`, shift, anchor)])];
    });
    const linear = panels.nu.name("linear attention", "lab-c1", [0, 18], "end");
    const strengths = d3.range(0, 80.01, 0.5);
    const lengths = d3.range(0.3, 12.01, 0.075).map((decades) => [decades, top(1 + Math.max(1, 10 ** decades - 1))]);
    return (state) => {
      const height = top(laboratory.tokens(state.decades));
      const points = {
        nu: Object.fromEntries(kinds.map((kind) => [kind, strengths.map((nu) => [nu, risk(kind, nu, height)])])),
        decades: Object.fromEntries(kinds.map((kind) => [kind, lengths.map(([decades, at]) => [decades, risk(kind, state.nu, at)])])),
      };
      Object.entries(points).forEach(([panel, curves]) => kinds.forEach((kind, number) => drawn[panel].curves[number](curves[kind])));
      named.forEach(([panel, all]) => all.forEach(([kind, level, put]) => {
        const curve = points[panel][kind], falls = panel === "nu";
        put(curve.find(([, up]) => (falls ? up <= level : up >= level)) ?? curve[curve.length - 1]);
      }));
      linear(points.nu.linear[strengths.length - 1]);
      const middle = Math.log10(1 + Math.exp(state.nu / 2));
      drawn.nu.mark([[height ** 2, 0], [height ** 2, 2]]);
      drawn.decades.mark([[middle, 0], [middle, 2]]);
      const same = Math.log10(state.nu); // where L = ν
      equal(state.nu < 2 ? [] : [[same, 0], [same, 2]]);
      equalName.attr("x", panels.decades.x(Math.max(0.3, same)) + 5).text(state.nu < 2 ? "" : "L = ν");
      const found = Object.fromEntries(kinds.map((kind) => [kind, risk(kind, state.nu, height)]));
      Object.entries(drawn).forEach(([name, { rule, handle }]) => {
        rule([[state[name], 0], [state[name], 2]]);
        const words = `${{ nu: "ν", decades: "L" }[name]} = ${stage.view.settings[name].say(state[name])}, risk ${laboratory.say(found.softmax)}`;
        handle(state[name], found.softmax, state[name], words);
      });
      return { ...found, threshold: height ** 2 };
    };
  },
});
