// A prompt and its distribution at the same query.
laboratory.view({
  name: "cloud",
  figure: "live_cloud",
  about: "Tokens in the plane, with a query to move",
  says: "A query moves the output towards the tokens in its direction, for a prompt and for the distribution of its tokens.",
  settings: {
    size: { label: "size of the query", low: 0, high: 3, step: 0.05, start: 2, say: (size) => size.toFixed(2) },
    angle: { label: "direction of the query", low: -180, high: 180, step: 5, start: 0, say: (angle) => `${angle}°` },
    tokens: { label: "prompt length, L", stops: [1, 3, 10, 30, 100, 300], start: 100, say: String },
    law: { label: "token distribution", stops: [0, 1], start: 1, say: (law) => ["Gaussian", "mixture"][law] },
  },
  readings: {
    prompt: "output of the prompt",
    law: "output of the distribution",
    distance: "distance between the two",
    largest: "largest weight",
    effective: "tokens that share the weight, 1 / Σp²",
  },
  build(stage) {
    const { range } = d3;
    const laws = ["Gaussian", "mixture"].map((law) => {
      const read = laboratory.grid("live_cloud", ["x", "y"], ["u", "v"], { law, kind: "law" });
      const { x, y } = laboratory.table("live_cloud", { law, kind: "token" });
      return { answer: (query) => ["u", "v"].map((column) => read(column, ...query)), tokens: x.map((one, place) => [Number(one), Number(y[place])]) };
    });
    // softmax attention, U = V = I
    const attend = (tokens, [a, b]) => {
      const scores = tokens.map(([x, y]) => a * x + b * y);
      const highest = Math.max(...scores);
      const weights = scores.map((score) => Math.exp(score - highest));
      const sum = d3.sum(weights);
      const shares = weights.map((weight) => weight / sum);
      return { shares, answer: [0, 1].map((place) => d3.sum(tokens, (token, index) => shares[index] * token[place])) };
    };
    const cloud = stage.panel({
      about: "Tokens and outputs",
      height: 380,
      x: { label: "first coordinate", scale: d3.scaleLinear([-3.2, 3.2], [0, 1]), ticks: [-3, -2, -1, 0, 1, 2, 3] },
      y: { label: "second coordinate", scale: d3.scaleLinear([-3.3, 3.3], [0, 1]), ticks: [-3, -2, -1, 0, 1, 2, 3] },
    });
    const dots = cloud.inside.append("g");
    const arrow = cloud.curve("lab-arrow");
    const mark = (shape, size, kind) => cloud.inside.append("path").attr("d", d3.symbol(shape, size)()).attr("class", `lab-mark ${kind}`);
    const put = (sign, [x, y]) => sign.attr("transform", `translate(${cloud.x(x)},${cloud.y(y)})`);
    const square = mark(d3.symbolSquare, 70, "");
    const star = mark(d3.symbolStar, 190, "lab-mark-law");
    const cross = mark(d3.symbolTimes, 90, "lab-mark-prompt");
    const growth = stage.panel({
      about: "Outputs as the query grows",
      height: 380,
      x: { label: "size of the query", scale: d3.scaleLinear([0, 3], [0, 1]), ticks: [0, 1, 2, 3] },
      y: { label: "output minus mean, along the query", scale: d3.scaleLinear([-1, 5], [0, 1]), ticks: [-1, 0, 1, 2, 3, 4, 5] },
    });
    const line = growth.curve("lab-line");
    const byLaw = growth.curve("lab-c0");
    const byPrompt = growth.curve("lab-c1");
    const lawName = growth.words("distribution", 2.97, 0, "lab-before lab-c0");
    const promptName = growth.words("prompt", 2.97, 0, "lab-before lab-c1");
    const degrees = Math.PI / 180;
    const query = stage.handle(cloud, {
      label: "Query",
      move: (x, y) => stage.set({ size: Math.hypot(x, y), angle: Math.atan2(y, x) / degrees }),
      keys: { ArrowRight: ["size", 1], ArrowLeft: ["size", -1], ArrowUp: ["angle", 1], ArrowDown: ["angle", -1] },
    });
    const follower = stage.handle(growth, { label: "Size of the query", move: (size) => stage.set({ size }), keys: { ArrowRight: ["size", 1], ArrowLeft: ["size", -1] } });
    return ({ size, angle, tokens: length, law }) => {
      const direction = [Math.cos(angle * degrees), Math.sin(angle * degrees)];
      const at = (size) => direction.map((one) => size * one);
      const { answer, tokens } = laws[law];
      const prompt = tokens.slice(0, length);
      const mean = answer([0, 0]);
      const along = ([x, y]) => (x - mean[0]) * direction[0] + (y - mean[1]) * direction[1];
      const { shares, answer: said } = attend(prompt, at(size));
      const exact = answer(at(size));
      dots.selectAll("circle").data(prompt).join("circle").attr("class", "lab-token")
        .attr("cx", ([x]) => cloud.x(x)).attr("cy", ([, y]) => cloud.y(y)).attr("r", (_, place) => 2 + 22 * Math.sqrt(shares[place]));
      arrow([[0, 0], at(size)]);
      put(square, mean);
      put(star, exact);
      put(cross, said);
      const sizes = range(0, 3.001, 0.05);
      const [ofLaw, ofPrompt] = [sizes.map((one) => [one, along(answer(at(one)))]), sizes.map((one) => [one, along(attend(prompt, at(one)).answer)])];
      line(sizes.map((one) => [one, along(laws[0].answer(at(one)))]));
      byLaw(ofLaw);
      byPrompt(ofPrompt);
      const ends = [ofLaw, ofPrompt].map((curve) => growth.y(curve.at(-1)[1]));
      lawName.attr("y", ends[0] + (ends[0] <= ends[1] ? -8 : 18));
      promptName.attr("y", ends[1] + (ends[0] <= ends[1] ? 18 : -8));
      const words = `size ${size.toFixed(2)}, direction ${angle}°`;
      query(...at(size), size, words);
      follower(size, along(said), size, words);
      const pair = (point) => `(${point.map((one) => one.toFixed(3).replace("-", "−")).join(", ")})`;
      return {
        prompt: pair(said),
        law: pair(exact),
        distance: Math.hypot(said[0] - exact[0], said[1] - exact[1]),
        largest: Math.max(...shares),
        effective: 1 / d3.sum(shares, (share) => share ** 2),
      };
    };
  },
});
