// The common part of all views: settings (changed by sliders, keys, drags and the address), readings, and panels.
{
  const laboratory = (window.laboratory ??= {});
  const views = (laboratory.views = []);

  const element = (name, attributes = {}, ...inside) => {
    const made = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...inside);
    return made;
  };

  // A caption names panels by their sides. Of the two words for a side, the style sheet shows the one for panels next to
  // each other, or the one for panels that do not fit and are stacked.
  const STACKED = { Left: "Top", Right: "Bottom" };
  const nameSides = (caption) => {
    const texts = [], walker = document.createTreeWalker(caption, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) texts.push(walker.currentNode);
    texts.forEach((text) => text.replaceWith(...text.data.split(/\b(Left|Right)(?=:)/).flatMap((part) => (
      STACKED[part] ? [element("span", { class: "lab-beside" }, part), element("span", { class: "lab-stacked" }, STACKED[part])] : [part]
    ))));
  };

  // A view replaces the picture of a figure, in this chapter or in another one, below a line with its message.
  // `says`: the message, or a function of the state that returns it;
  // `settings`: {name: {label, low, high, step, start, say}}, or `stops` for low, high and step; `readings`: {name: label};
  // `play`: {label, seconds, at}, a path through the settings, from at(0) to at(1);
  // `build(stage)` draws once and returns a function that draws again after every change.
  laboratory.view = (description) => views.push(description);

  class Stage {
    constructor(view, figure) {
      this.view = view;
      this.state = Object.fromEntries(Object.entries(view.settings).map(([name, one]) => [name, one.start]));
      this.panels = element("div", { class: "lab-panels" });
      this.sliders = {};
      this.said = {};
      this.root = element("div", { class: "lab", role: "group", "aria-label": view.about });
      const how = element("span", {}, "Drag a point ", element("span", { class: "lab-hint-dot", "aria-hidden": "true" }), ", or move a slider.");
      const hint = element("p", { class: "lab-hint" }, how);
      if (view.play) hint.append(this.#player(view.play));
      this.message = element("p", { class: "lab-says" });
      // below its own figure, the caption begins with the message
      this.message.hidden = typeof view.says === "string" && Boolean(figure.querySelector("figcaption"));
      // the readings stay in view within this part, and so only while its picture is
      const moving = element("div", {}, this.panels, this.#controls(), this.#readings());
      this.root.append(this.message, hint, moving);
      this.link = element("a", { class: "lab-link" });
      this.link.addEventListener("click", (event) => {
        if (!navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey) return; // the link opens
        event.preventDefault();
        navigator.clipboard.writeText(this.link.href).then(() => { this.link.textContent = "Link copied"; });
      });
      this.root.append(this.link);
      this.place = figure.id;
      figure.prepend(this.root);
      figure.querySelectorAll("figcaption .legend").forEach(nameSides);
      figure.classList.add("lab-live");
      this.read(new URLSearchParams(location.search));
      this.redraw = view.build(this);
      this.show();
    }

    #controls() {
      const rows = Object.entries(this.view.settings).map(([name, one]) => {
        const id = `lab-${this.view.name}-${name}`;
        const ends = one.stops ? { min: 0, max: one.stops.length - 1, step: 1 } : { min: one.low, max: one.high, step: one.step };
        const slider = element("input", { type: "range", id, ...ends });
        const shown = element("output", { for: id });
        slider.addEventListener("input", () => this.set({ [name]: one.stops ? one.stops[slider.value] : Number(slider.value) }));
        this.sliders[name] = { slider, shown };
        return element("div", { class: "lab-slider" }, element("label", { for: id }, one.label), slider, shown);
      });
      return element("div", { class: "lab-controls" }, ...rows);
    }

    #readings() {
      const rows = Object.entries(this.view.readings).map(([name, label]) => {
        this.said[name] = element("dd", { "data-reading": name });
        return element("div", { class: `lab-reading lab-of-${name}` }, element("dt", {}, label), this.said[name]);
      });
      return element("dl", { class: "lab-readings", "aria-live": "polite" }, ...rows);
    }

    // A button that moves the settings along a path. A touch, a key or a second click stops it.
    #player({ label, seconds, at }) {
      const button = element("button", { type: "button", class: "lab-play" });
      const show = (playing) => {
        button.textContent = playing ? "■ Stop" : `▶ ${label}`;
        this.root.querySelector(".lab-readings")?.setAttribute("aria-live", playing ? "off" : "polite");
      };
      let frame = 0;
      const stop = () => {
        cancelAnimationFrame(frame);
        if (frame) show(false);
        frame = 0;
      };
      const play = () => {
        const begun = performance.now(), steps = matchMedia("(prefers-reduced-motion: reduce)").matches ? 8 : Infinity;
        let last = -1;
        const next = (now) => {
          const passed = Math.min(1, Math.max(0, now - begun) / (1000 * seconds));
          const share = Number.isFinite(steps) ? Math.floor(passed * steps) / steps : passed;
          if (share !== last) this.set(at(share));
          last = share;
          if (passed < 1) frame = requestAnimationFrame(next);
          else stop();
        };
        show(true);
        frame = requestAnimationFrame(next);
      };
      button.addEventListener("click", () => (frame ? stop() : play()));
      ["pointerdown", "keydown"].forEach((kind) => this.root.addEventListener(kind, (event) => { if (event.target !== button) stop(); }));
      show(false);
      return button;
    }

    // Read the settings of this view from an address.
    read(address) {
      Object.keys(this.state).forEach((name) => {
        const given = address.get(`${this.view.name}.${name}`);
        if (given !== null && given.trim() !== "" && Number.isFinite(Number(given))) this.state[name] = this.allowed(name, Number(given));
      });
    }

    allowed(name, value) {
      const { low, high, step, stops } = this.view.settings[name];
      if (stops) return stops[d3.leastIndex(stops, (stop) => Math.abs(stop - value))];
      const stepped = low + Math.round((Math.min(high, Math.max(low, value)) - low) / step) * step;
      return Number(Math.min(high, stepped).toFixed(6));
    }

    set(changes) {
      this.root.classList.add("lab-moved");
      Object.entries(changes).forEach(([name, value]) => { this.state[name] = this.allowed(name, value); });
      this.show();
      remember();
    }

    show() {
      Object.entries(this.sliders).forEach(([name, { slider, shown }]) => {
        const { say, stops } = this.view.settings[name];
        const words = say(this.state[name]);
        slider.value = stops ? stops.indexOf(this.state[name]) : this.state[name];
        slider.setAttribute("aria-valuetext", words);
        shown.textContent = words;
      });
      const { says } = this.view;
      this.message.textContent = typeof says === "string" ? says : says(this.state);
      Object.entries(this.redraw(this.state)).forEach(([name, value]) => {
        this.said[name].textContent = typeof value === "number" ? laboratory.say(value) : value;
      });
      this.link.textContent = "Copy link to this setting";
      this.link.href = `?${this.address()}#${this.place}`;
    }

    address() {
      return new URLSearchParams(Object.entries(this.state).map(([name, value]) => [`${this.view.name}.${name}`, value])).toString();
    }

    get moved() {
      return Object.entries(this.state).some(([name, value]) => value !== this.view.settings[name].start);
    }

    // A panel with axes; `x` and `y`: {scale, label, ticks, say}.
    panel({ about, x, y, width = 380, height = 300 }) {
      const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("class", "lab-panel").attr("role", "group").attr("aria-label", about);
      const [left, right, top, bottom] = [50, width - 12, 12, height - 42];
      x.scale.range([left, right]);
      y.scale.range([bottom, top]);
      const clip = `lab-clip-${Stage.clips += 1}`;
      svg.append("clipPath").attr("id", clip).append("rect").attr("x", left).attr("y", top).attr("width", right - left).attr("height", bottom - top);
      const inside = svg.append("g").attr("clip-path", `url(#${clip})`);
      const axis = (make, { scale, ticks, say }, place) => {
        const made = make(scale).tickSizeOuter(0).tickFormat(say ?? ((value) => String(value)));
        svg.append("g").attr("class", "lab-axis").attr("transform", place).attr("aria-hidden", "true").call(Array.isArray(ticks) ? made.tickValues(ticks) : made.ticks(ticks ?? 6));
      };
      axis(d3.axisBottom, x, `translate(0,${bottom})`);
      axis(d3.axisLeft, y, `translate(${left},0)`);
      svg.append("text").attr("class", "lab-label").attr("x", (left + right) / 2).attr("y", height - 6).text(x.label);
      svg.append("text").attr("class", "lab-label").attr("transform", `translate(12,${(top + bottom) / 2}) rotate(-90)`).text(y.label);
      const layer = svg.append("g");
      this.panels.append(svg.node());
      // a first touch beside the points shows which of them can be dragged
      svg.on("pointerdown.show", () => this.root.classList.add("lab-touched"));
      const line = d3.line(([across]) => x.scale(across), ([, up]) => y.scale(up));
      return {
        svg, x: x.scale, y: y.scale, inside, layer,
        // a curve that is drawn by calling it with points
        curve: (kind) => {
          const path = inside.append("path").attr("class", `lab-curve ${kind}`);
          return (points) => path.attr("d", line(points));
        },
        // a word next to a curve, which is placed by calling it with a point of the curve
        name: (text, kind, [dx, dy], anchor = "start") => {
          const name = layer.append("text").attr("class", `lab-name ${kind}`).attr("dx", dx).attr("dy", dy).attr("text-anchor", anchor).text(text);
          return ([across, up]) => name.attr("x", x.scale(across)).attr("y", y.scale(up));
        },
        words: (text, across, up, kind = "") => layer.append("text").attr("class", `lab-words ${kind}`).attr("x", x.scale(across)).attr("y", y.scale(up)).text(text),
      };
    }

    // A point to drag or to move with arrow keys: `move(across, up)` gets coordinates, `keys` maps keys to changes.
    handle(panel, { label, keys, move, anywhere = true }) {
      const knob = panel.layer.append("g").attr("class", "lab-knob").attr("tabindex", 0).attr("role", "slider").attr("aria-label", label);
      knob.append("circle").attr("r", 22).attr("class", "lab-reach");
      // arrows in the directions of the keys, until something has moved
      const names = (way) => keys[way]?.[0];
      const turns = names("ArrowUp") && names("ArrowUp") !== names("ArrowRight") ? [0, 90, 180, 270] : [0, 180];
      turns.forEach((turn) => knob.append("path").attr("class", "lab-way").attr("d", "M14,-5L20,0L14,5").attr("transform", `rotate(${turn})`));
      knob.append("circle").attr("r", 8).attr("class", "lab-dot");
      const tip = knob.append("text").attr("class", "lab-tip").attr("aria-hidden", "true");
      const follow = (across, up) => move(panel.x.invert(across), panel.y.invert(up));
      // the events of a drag have coordinates in the panel, for a mouse as for a finger
      knob.call(d3.drag().container(panel.svg.node()).on("start", () => knob.classed("lab-held", true)).on("end", () => knob.classed("lab-held", false))
        .on("drag", (event) => follow(event.x, event.y)));
      if (anywhere) panel.svg.on("click", (event) => { if (!event.defaultPrevented) follow(...d3.pointer(event, panel.svg.node())); });
      knob.on("keydown", (event) => {
        const end = { Home: "low", End: "high" }[event.key]; // of the horizontal setting
        const page = { PageUp: keys.ArrowUp, PageDown: keys.ArrowDown }[event.key];
        const change = end ? keys.ArrowRight : page ?? keys[event.key];
        if (!change) return;
        event.preventDefault();
        const [name, direction] = change;
        const { low, high, step, stops } = this.view.settings[name];
        const steps = direction * (event.shiftKey || page ? 10 : 1);
        if (end) this.set({ [name]: { low: low ?? stops[0], high: high ?? stops.at(-1) }[end] });
        else this.set({ [name]: stops ? stops[Math.min(stops.length - 1, Math.max(0, stops.indexOf(this.state[name]) + steps))] : this.state[name] + steps * step });
      });
      // the values of the setting, above a finger or, near the upper edge, beside it
      const [left, right] = panel.x.range();
      return (across, up, now, words) => {
        const [x, y] = [panel.x(across), panel.y(up)];
        const side = x < left + (right - left) / 3 ? 1 : x > right - (right - left) / 3 ? -1 : 0;
        const beside = y < 50 ? side || 1 : 0;
        tip.text(words).attr("text-anchor", { "-1": "end", 0: "middle", 1: "start" }[beside || side]).attr("x", 32 * beside).attr("y", beside ? 5 : -32);
        knob.attr("transform", `translate(${x},${y})`).attr("aria-valuenow", now).attr("aria-valuetext", words);
      };
    }
  }
  Stage.clips = 0;

  // Regions of a panel above some levels, darker for higher levels; called with the values of rows, from below.
  laboratory.levels = (panel, wide, high, levels) => {
    const [[x0, x1], [y0, y1]] = [panel.x.range(), panel.y.range()];
    const onScreen = d3.geoTransform({
      point(across, up) {
        this.stream.point(x0 + (x1 - x0) * (across - 0.5) / (wide - 1), y0 + (y1 - y0) * (up - 0.5) / (high - 1));
      },
    });
    const regions = d3.contours().size([wide, high]);
    const layer = panel.inside.insert("g", ":first-child");
    return (values) => layer.selectAll("path").data(levels.map((level) => regions.contour(values, level)))
      .join("path").attr("class", "lab-level").attr("d", d3.geoPath(onScreen));
  };

  // The address of the page contains every changed setting.
  const stages = [];
  let waiting = null;
  const remember = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const address = stages.filter((stage) => stage.moved).map((stage) => stage.address()).join("&");
      try { history.replaceState(null, "", `${location.pathname}${address && `?${address}`}${location.hash}`); } catch { /* the address stays */ }
    }, 150);
  };

  document.addEventListener("DOMContentLoaded", () => {
    views.forEach((view) => {
      const name = view.figure.replaceAll("_", "-");
      const place = document.getElementById(`fig-${name}`) ?? document.getElementById(`live-${name}`);
      if (place) stages.push(new Stage(view, place));
    });
    // the content above has grown since the browser went to the target of the address
    if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  });
}
