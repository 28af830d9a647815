// One or several relevant tokens of a hundred, with heads of three kinds. All settings are rows of the table.
laboratory.view({
  name: "several",
  figure: "live_several",
  about: "Risks of three heads, with a signal strength and a number of relevant tokens to move",
  says: "At strong signals softmax is best for one relevant token, a sigmoid for two; for fifty a linear head beats softmax.",
  settings: {
    nu: { label: "signal strength, ν", low: 0, high: 30, step: 1, start: 15, say: String },
    relevant: { label: "relevant tokens, r", stops: [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50], start: 2, say: (relevant) => `${relevant} of 100` },
  },
  readings: { softmax: "softmax", linear: "linear attention", sigmoid: "sigmoid" },
  play: { label: "From 1 to 50 relevant tokens", seconds: 8, at: (share) => ({ relevant: 50 ** share }) },
  build(stage) {
    const kinds = ["softmax", "linear", "sigmoid"];
    const { nu: { high }, relevant: { stops } } = stage.view.settings;
    const table = laboratory.table("live_several");
    const risk = (kind, nu, relevant) => Number(table[kind][stops.indexOf(relevant) * (high + 1) + nu]);
    const risks = { label: "excess risk", scale: d3.scaleLinear([0, 1.04], [0, 1]), ticks: [0, 0.25, 0.5, 0.75, 1] };
    const panels = {
      nu: stage.panel({ about: "Risks against the signal strength", y: risks, x: { label: "signal strength, ν", scale: d3.scaleLinear([0, high], [0, 1]) } }),
      relevant: stage.panel({
        about: "Risks against the number of relevant tokens",
        y: { ...risks, scale: risks.scale.copy() },
        x: { label: "relevant tokens, r", scale: d3.scaleLog([1, 50], [0, 1]), ticks: [1, 2, 5, 10, 20, 50] },
      }),
    };
    const drawn = Object.fromEntries(Object.entries(panels).map(([name, panel]) => {
      const curves = kinds.map((kind, number) => panel.curve(`lab-c${number}`));
      const rule = panel.curve("lab-rule");
      const handle = stage.handle(panel, {
        label: stage.view.settings[name].label,
        keys: { ArrowRight: [name, 1], ArrowUp: [name, 1], ArrowLeft: [name, -1], ArrowDown: [name, -1] },
        move: (across) => stage.set({ [name]: across }),
      });
      return [name, { curves, rule, handle }];
    }));
    const strengths = d3.range(0, high + 1);
    return (state) => {
      kinds.forEach((kind, number) => {
        drawn.nu.curves[number](strengths.map((nu) => [nu, risk(kind, nu, state.relevant)]));
        drawn.relevant.curves[number](stops.map((relevant) => [relevant, risk(kind, state.nu, relevant)]));
      });
      const found = Object.fromEntries(kinds.map((kind) => [kind, risk(kind, state.nu, state.relevant)]));
      Object.entries(drawn).forEach(([name, { rule, handle }]) => {
        rule([[state[name], 0], [state[name], 2]]);
        const words = `${{ nu: "ν", relevant: "r" }[name]} = ${state[name]}, risk of softmax ${laboratory.say(found.softmax)}`;
        handle(state[name], found.softmax, state[name], words);
      });
      return found;
    };
  },
});
