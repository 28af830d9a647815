// The plane of query size and prompt length.
laboratory.view({
  name: "plane",
  figure: "live_plane",
  about: "The plane of query size and prompt length, with a point to move",
  says: "Around queries of size √(2 ln L) the mean output of a Gaussian prompt gradually falls behind linear attention.",
  settings: {
    tau: { label: "size of the query, τ", low: 0, high: 15, step: 0.05, start: 4, say: (tau) => tau.toFixed(2) },
    decades: { label: "prompt length, L", low: 0, high: 40, step: 0.1, start: 6, say: (decades) => laboratory.say(laboratory.tokens(decades)) },
  },
  readings: {
    participation: "participation, P",
    shrinkage: "mean output / linear attention, 1 − P",
    error: "mean squared error, Q",
    slope: "exponent of the error",
    freezing: "√(2 ln L), dashed line",
  },
  play: { label: "Freeze a prompt: τ from 0 to 15", seconds: 8, at: (share) => ({ tau: 15 * share }) },
  build(stage) {
    const { range } = d3;
    const read = laboratory.grid("live_plane", ["tau", "top"], ["log_participation", "log_score_error", "slope"]);
    const top = (decades) => Math.sqrt(2 * Math.log(laboratory.tokens(decades)));
    const left = (tau, height) => -Math.expm1(read("log_participation", tau, height));
    const decades = { label: "prompt length, L", ticks: [0, 10, 20, 30, 40], say: laboratory.powerOfTen };
    const size = { label: "size of the query, τ", ticks: [0, 5, 10, 15] };
    const plane = stage.panel({
      about: "The plane",
      x: { ...size, scale: d3.scaleLinear([0, 15], [0, 1]) },
      y: { ...decades, scale: d3.scaleLinear([0, 40], [0, 1]) },
    });
    const [wide, high] = [61, 81];
    const heights = range(high).map((row) => Math.sqrt(2 * Math.LN10 * 40 * row / (high - 1)));
    const values = heights.flatMap((height) => range(wide).map((column) => left(15 * column / (wide - 1), height)));
    laboratory.levels(plane, wide, high, [0.05, 0.25, 0.5, 0.75, 0.95])(values);
    plane.curve("lab-line")(range(0, 40.01, 0.25).map((one) => [Math.sqrt(2 * Math.LN10 * one), one]));
    plane.words("many tokens contribute:", 0.8, 35);
    plane.words("linear attention", 0.8, 32.6);
    plane.words("few tokens dominate", 8, 5);
    plane.words("√(2 ln L)", 8.6, 19, "lab-before");

    const cut = stage.panel({
      about: "The mean output at this length",
      x: { ...size, scale: d3.scaleLinear([0, 15], [0, 1]) },
      y: { label: "mean output, τ (1 − P)", scale: d3.scaleLinear([0, 15], [0, 1]), ticks: [0, 5, 10, 15] },
    });
    cut.curve("lab-dotted")([[0, 0], [15, 15]]);
    const mark = cut.curve("lab-line");
    const mean = cut.curve("lab-c0");
    cut.words("infinite prompt", 11.3, 12.4, "lab-before");
    const name = cut.words("", 14.9, 0, "lab-before lab-c0");
    const markName = cut.words("√(2 ln L)", 0, 0.6);

    const move = (tau, up) => stage.set({ tau, decades: up });
    const arrows = { ArrowRight: ["tau", 1], ArrowLeft: ["tau", -1], ArrowUp: ["decades", 1], ArrowDown: ["decades", -1] };
    const point = stage.handle(plane, { label: "Query size and prompt length", keys: arrows, move });
    const follower = stage.handle(cut, { label: "Query size", keys: { ArrowRight: ["tau", 1], ArrowLeft: ["tau", -1] }, move: (tau) => stage.set({ tau }) });
    return (state) => {
      const height = top(state.decades);
      const words = `τ = ${state.tau.toFixed(2)}, L = ${laboratory.say(laboratory.tokens(state.decades))}`;
      const answers = range(0, 15.01, 0.1).map((tau) => [tau, tau * left(tau, height)]);
      mean(answers);
      mark([[height, 0], [height, 15]]);
      markName.attr("x", cut.x(height) + 5);
      name.text(`L = ${laboratory.say(laboratory.tokens(state.decades))}`).attr("y", cut.y(answers.at(-1)[1]) - 8);
      point(state.tau, state.decades, state.tau, words);
      follower(state.tau, state.tau * left(state.tau, height), state.tau, words);
      return {
        participation: Math.exp(read("log_participation", state.tau, height)),
        shrinkage: left(state.tau, height),
        error: Math.exp(read("log_score_error", state.tau, height)),
        slope: read("slope", state.tau, height),
        freezing: height,
      };
    };
  },
});
