// Search while the reader types: titles, figures, theorem boxes, terms, claims, symbols and names of the library. The index is a
// script that is loaded when the search is first opened. Without it, the form of the theme opens the page of results.
(() => {
  const SHOWN = 12, SHOWN_ON_PAGE = 6;
  const KINDS = { page: "Page", section: "Section", figure: "Figure", box: "Box", claim: "Claim", symbol: "Symbol", term: "Definition", name: "Library" };
  const WEIGHTS = { page: 9, box: 8, term: 7, figure: 7, symbol: 7, section: 5, name: 5, claim: 3 };
  const root = document.documentElement.dataset.content_root ?? "";

  // Formulas as plain text: letters, accents, fractions and roots on one line, exponents and indices as characters.
  const SIGNS = {
    alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", varepsilon: "ε", zeta: "ζ", eta: "η", theta: "θ", kappa: "κ",
    lambda: "λ", mu: "μ", nu: "ν", xi: "ξ", pi: "π", rho: "ρ", sigma: "σ", varsigma: "ς", tau: "τ", varphi: "φ", phi: "φ",
    chi: "χ", psi: "ψ", omega: "ω", Gamma: "Γ", Delta: "Δ", Theta: "Θ", Lambda: "Λ", Xi: "Ξ", Pi: "Π", Sigma: "Σ", Phi: "Φ",
    Psi: "Ψ", Omega: "Ω", ell: "ℓ", infty: "∞", nabla: "∇", partial: "∂", sum: "∑", prod: "∏", int: "∫", sqrt: "√",
    langle: "⟨", rangle: "⟩", lVert: "‖", rVert: "‖", lvert: "|", rvert: "|", mid: "|", star: "⋆", top: "ᵀ", perp: "⊥",
    cdot: "·", times: "×", otimes: "⊗", pm: "±", mp: "∓", le: "≤", leq: "≤", ge: "≥", geq: "≥", ne: "≠", neq: "≠",
    approx: "≈", sim: "∼", propto: "∝", ll: "≪", lesssim: "≲", succ: "≻", succeq: "⪰", in: "∈", to: "→", mapsto: "↦",
    longrightarrow: "→", Longleftrightarrow: "⇔", dots: "…", ldots: "…", cdots: "…", square: "□",
  };
  const ACCENTS = { hat: "\u0302", bar: "\u0304", overline: "\u0304", tilde: "\u0303", dot: "\u0307" };
  const RAISED = new Map([..."0123456789+-−=()abcdeghijklmnoprstuvwxyzTVβγ⋆ᵀ"].map((sign, index) => [sign, [..."⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀⱽᵝᵞ⋆ᵀ"][index]]));
  const LOWERED = new Map([..."0123456789+-−=()aehijklmnoprstuvx"].map((sign, index) => [sign, [..."₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"][index]]));
  const shifted = (alphabet, sign, text) => {
    const letters = [...text.replace(/\s/g, "")];
    if (letters.every((letter) => alphabet.has(letter))) return letters.map((letter) => alphabet.get(letter)).join("");
    return letters.length === 1 ? (sign === "^" ? `^${letters[0]}` : `_${letters[0]}`) : `${sign}(${text.trim()})`;
  };
  const grouped = (text) => (/^[\p{L}\p{N}\p{M}]*$/u.test(text.trim()) ? text.trim() : `(${text.trim()})`);
  const formula = (tex) => {
    let text = tex
      .replace(/\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|limits)(?![a-zA-Z])/g, "")
      .replace(/\\(?:begin|end)\{[^}]*\}/g, "").replace(/\\[,;:! ]|\\q?quad(?![a-zA-Z])|\\\\|&|~/g, " ")
      .replace(/\\(?:text|mathrm|mathbb|mathbf|mathcal|operatorname\*?)(?![a-zA-Z])\s*/g, " ").replace(/\\([{}|])/g, (_, sign) => ({ "{": "⦃", "}": "⦄", "|": "‖" })[sign])
      .replace(/\\(hat|bar|overline|tilde|dot)\s*(?:\{([^{}]*)\}|(\\[a-zA-Z]+|[^\s{}]))/g, (_, accent, group, single) => `{${group ?? single}}${ACCENTS[accent]}`)
      .replace(/\\[dt]?frac\s*(\d)(\d)/g, "$1/$2")
      .replace(/\\([a-zA-Z]+)/g, (_, name) => (name.match(/^[dt]?frac$/) ? "\\frac" : name === "sqrt" ? "\\sqrt" : SIGNS[name] ?? ` ${name} `));
    // innermost groups first
    for (let before; before !== text;) {
      before = text;
      text = text
        .replace(/\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}/g, (_, above, below) => `${grouped(above)}/${grouped(below)}`)
        .replace(/\\sqrt\s*(?:\{([^{}]*)\}|(\S))/g, (_, group, single) => `√${grouped(group ?? single)}`)
        .replace(/([\^_])\s*(?:\{([^{}]*)\}|([^\s{}\\]))(?!\{)/g, (_, sign, group, single) => shifted(sign === "^" ? RAISED : LOWERED, sign === "^" ? "\ue000" : "\ue001", group ?? single).replace(/^[\^_](?=.$)/u, (same) => (same === "^" ? "\ue000" : "\ue001")))
        .replace(/(^|[^\\a-z^_}])\{([^{}]*)\}/g, "$1$2");
    }
    return text.replace(/[{}\\]/g, "").replace(/\ue000/g, "^").replace(/\ue001/g, "_").replace(/⦃/g, "{").replace(/⦄/g, "}").replace(/\s+/g, " ").trim();
  };
  const plain = (text) => text.replace(/\$([^$]+)\$/g, (_, tex) => formula(tex));

  // Words in the form in which they are compared: small letters without accents, Greek letters by name, no punctuation.
  const GREEK = new Map([..."αβγδεζηθκλμνξπρστφχψω"].map((letter, index) => [letter,
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega".split(" ")[index]]));
  const normal = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase()
    .replace(/[α-ω]/g, (letter) => (GREEK.has(letter) ? ` ${GREEK.get(letter)} ` : letter))
    .replace(/[^\p{L}\p{N}∞√∑∫∇]+/gu, " ").trim();
  // Words without their endings, so that "freeze", "freezing" and "frozen" are the same word.
  const IRREGULAR = { froze: "freeze", frozen: "freeze", fallen: "fall", grew: "grow", grown: "grow", shown: "show", chose: "choose", chosen: "choose" };
  const stem = (given) => {
    const word = IRREGULAR[given] ?? given;
    if (!/^[a-z]{4,}$/.test(word)) return word;
    const rest = word.replace(/(?:ings?|ed|es|(?<![siu])s|e)$/, "");
    const known = rest !== word && rest.length > 2 && /[aeiouy]/.test(rest);
    return (known ? rest.replace(/([^lsz])\1$/, "$1") : word).replace(/(?<=..)y$/, "i");
  };
  const stems = (text) => text.split(" ").map(stem).join(" ");

  let entries = null;
  const loaded = () => {
    const { pages, entries: all } = window.companionSearch;
    entries = all.map(([kind, page, anchor, label, text]) => {
      const [file, title] = pages[page];
      const shown = { kind, label: plain(label), text: plain(text), page: plain(title), href: `${root}${file}${anchor && `#${anchor}`}` };
      const named = kind === "page" ? shown.text : shown.label;
      const also = ["figure", "box"].includes(kind) ? anchor.replace(/^fig-/, "") : "";
      const words = ` ${normal(`${shown.label} ${shown.text} ${also}`)} `;
      return { ...shown, name: ` ${stems(normal(named))} `, means: ` ${stems(normal(shown.text).replace(/^the /, ""))} `, words, stems: stems(words), joined: words.replace(/ /g, "") };
    });
  };
  let loading = null;
  const load = () => (loading ??= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = `${root}_static/search-entries.js`;
    script.onload = () => { loaded(); resolve(); };
    script.onerror = () => resolve(); // the page of results still works
    document.head.append(script);
  }));

  // How well an entry fits the words of a query, 0 if a word is missing. A number or a word of one or two letters must be
  // a whole word, except the last one, which may not be complete; a longer one may have another ending or be the
  // beginning of a word, and one with a number may be a formula without its spaces. `code` is whether the query is a
  // name of the library, such as `tilted_mean`; otherwise definitions precede these names.
  const fits = (entry, words, query, code) => {
    const has = (word, last) => {
      if (/^\p{N}+$/u.test(word) || (word.length < 3 && !last)) return entry.words.includes(` ${word} `);
      return entry.words.includes(` ${word}`) || entry.stems.includes(` ${stem(word)} `) ||
        (word.length > 3 && (entry.joined.includes(word) && /\p{N}/u.test(word) || entry.stems.includes(stem(word))));
    };
    if (!words.every((word, index) => has(word, index === words.length - 1))) return 0;
    let score = WEIGHTS[entry.kind] + 8 / (1 + entry.text.length / 60);
    if (entry.name === ` ${query} `) score += 80;
    else if (entry.name.startsWith(` ${query} `)) score += 40;
    else if (words.every((word) => entry.name.includes(` ${stem(word)}`))) score += 12;
    if (entry.means.startsWith(` ${query} `)) score += 16; // the definition of a symbol begins with its name
    else if (entry.label.startsWith("Definition") && entry.means.includes(` ${query}`)) score += 25;
    if (entry.stems.includes(` ${query} `)) score += 30;
    else if (entry.stems.includes(` ${query}`)) score += 10;
    return entry.kind === "name" && !code ? score / 3 : score;
  };
  const SHORT = { thm: "theorem", lem: "lemma", eq: "equation", rem: "remark" };
  const search = (text) => {
    const words = normal(plain(text.replace(/\\[a-zA-Z]+/g, (command) => formula(command))))
      .replace(/^\p{L}+(?= |$)/u, (word) => SHORT[word] ?? word).split(" ").filter(Boolean);
    if (!words.length || !entries) return [];
    const query = stems(words.join(" ")), code = /[a-z][_.][a-z]|[a-z][A-Z]/.test(text);
    const hits = entries.map((entry) => [fits(entry, words, query, code), entry]).filter(([score]) => score > 0)
      .sort(([one], [other]) => other - one).map(([, entry]) => entry);
    // a term and the symbol that defines it are one place
    return hits.filter((entry, index) => hits.findIndex((other) => other.href === entry.href) === index).slice(0, SHOWN);
  };

  const element = (name, attributes, ...inside) => {
    const made = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...inside);
    return made;
  };
  // A result: its kind or number, its text, and the page that it is on.
  const shown = (entry, attributes) => {
    const named = ["symbol", "term", "name"].includes(entry.kind);
    const label = (!named && entry.label) || KINDS[entry.kind];
    const text = named ? `${entry.label}: ${entry.text}` : entry.text || entry.label;
    return element("a", { href: entry.href, class: `companion-hit companion-hit-${entry.kind}`, ...attributes },
      element("span", { class: "companion-hit-label" }, label), " ", element("span", { class: "companion-hit-text" }, text), " ",
      element("span", { class: "companion-hit-place" }, entry.kind === "page" ? "" : entry.page));
  };

  // The results below the field of the theme's dialog, a combobox with a list.
  const offerResults = (dialog) => {
    const form = dialog.querySelector("form"), field = dialog.querySelector("input[name='q']");
    if (!form || !field) return;
    const list = element("div", { id: "companion-hits", role: "listbox", "aria-label": "Results", hidden: "" });
    const status = element("p", { class: "companion-hits-status", role: "status" });
    const box = element("div", { class: "companion-search" });
    form.before(box);
    box.append(form, status, list);
    Object.entries({ role: "combobox", "aria-controls": list.id, "aria-expanded": "false", "aria-autocomplete": "list" })
      .forEach(([key, value]) => field.setAttribute(key, value));
    let chosen = -1;
    const choose = (index) => {
      const options = [...list.children];
      chosen = options.length ? (index + options.length) % options.length : -1;
      options.forEach((option, position) => option.setAttribute("aria-selected", String(position === chosen)));
      if (chosen < 0) field.removeAttribute("aria-activedescendant");
      else {
        field.setAttribute("aria-activedescendant", options[chosen].id);
        options[chosen].scrollIntoView({ block: "nearest" });
      }
    };
    const option = (index) => ({ role: "option", id: `companion-hit-${index}`, tabindex: "-1", "aria-selected": "false" });
    const update = () => {
      const text = field.value.trim();
      const hits = search(text);
      const everywhere = element("a", { href: `${root}search.html?q=${encodeURIComponent(text)}`, class: "companion-hit", ...option(hits.length) },
        element("span", { class: "companion-hit-label" }, "All pages"), " ", `Search the text of all pages for “${text}”`);
      list.replaceChildren(...hits.map((entry, index) => shown(entry, option(index))), ...(text ? [everywhere] : []));
      list.hidden = !text;
      field.setAttribute("aria-expanded", String(Boolean(text)));
      status.textContent = !text ? "Definitions, figures, theorems by number, claims, symbols, names of the library" :
        hits.length === SHOWN ? `The first ${SHOWN} results` : `${hits.length} ${hits.length === 1 ? "result" : "results"}`;
      choose(text ? 0 : -1);
    };
    field.addEventListener("focus", () => load().then(update));
    field.addEventListener("input", () => load().then(update));
    field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") choose(chosen + 1);
      else if (event.key === "ArrowUp") choose(chosen - 1);
      else if (event.key === "Escape") dialog.close();
      else if (event.key === "Enter" && chosen >= 0 && !event.isComposing) list.children[chosen].click();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    list.addEventListener("click", (event) => {
      if (event.target.closest("a") && !event.ctrlKey && !event.metaKey && !event.shiftKey) dialog.close();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (event.target.closest?.("input:not([type='range']), textarea, select, [contenteditable]")) return;
      event.preventDefault();
      dialog.showModal();
    });
    // However the search is opened, the last query is selected, so that the next one replaces it. An event "focus" would
    // not do: the field of a dialog that is closed and opened at once keeps the focus.
    new MutationObserver(() => {
      if (!dialog.open) return;
      field.focus();
      field.select();
    }).observe(dialog, { attributeFilter: ["open"] });
  };

  // The page of results: the entries that fit come first. Excerpts have no code, and formulas as plain text. Each result
  // opens at the section of its excerpt.
  const SECTION = "section[id]";
  const words = (part) => {
    const copy = part.cloneNode(true);
    copy.querySelectorAll(".headerlink, script, style, .cell_input, .highlight, .companion-details, .companion-live, .prev-next-footer, nav, .visually-hidden")
      .forEach((unwanted) => unwanted.remove());
    copy.querySelectorAll(".math").forEach((math) => { math.textContent = formula(math.dataset.tex ?? math.textContent); });
    return copy.textContent.replace(/\s+/g, " ").trim();
  };
  const mendExcerpts = () => {
    Search.makeSearchSummary = (html, keywords, anchor) => {
      const page = new DOMParser().parseFromString(html, "text/html").querySelector('[role="main"]');
      const paragraphs = [...((anchor && page?.querySelector(anchor)) || page)?.querySelectorAll("p, li, dd, figcaption, td") ?? []]
        .filter((part) => !part.closest(".companion-details, .companion-live, nav, .cell_input, .header-article"));
      const terms = [...keywords].map((word) => word.toLowerCase());
      let best = null;
      paragraphs.forEach((part) => {
        const text = words(part), lower = text.toLowerCase();
        const found = terms.filter((term) => lower.includes(term)).length;
        if (found > (best?.found ?? 0)) best = { part, text, found, start: Math.min(...terms.map((term) => lower.indexOf(term)).filter((at) => at >= 0)) };
      });
      const summary = element("p", { class: "context" });
      if (!best) return summary;
      const from = best.start < 120 ? 0 : best.text.lastIndexOf(" ", best.start - 80) + 1;
      const to = best.text.length - from <= 260 ? best.text.length : best.text.lastIndexOf(" ", from + 240);
      summary.textContent = `${from ? "… " : ""}${best.text.slice(from, to)}${to < best.text.length ? " …" : ""}`;
      const section = best.part.closest(SECTION);
      // the link is known when the caller has added the excerpt to its result
      queueMicrotask(() => {
        const link = summary.parentElement?.querySelector("a");
        if (link && section && !link.hash) link.hash = section.id;
      });
      return summary;
    };
  };
  // The results, and the page that a result opens, mark every occurrence of the words of the query, also of "l" in "2 ln L":
  // only longer ones are left.
  const markLongWords = (results) => {
    const parse = Search._parseQuery, KEY = "sphinx_highlight_terms";
    const shorten = () => localStorage.setItem(KEY, (localStorage.getItem(KEY) ?? "").split(" ").filter((term) => term.length > 2).join(" "));
    Search._parseQuery = (query) => {
      const parsed = parse(query);
      shorten();
      return parsed;
    };
    shorten(); // the query of the address may have been read already
    const unmark = () => results.querySelectorAll(".highlighted").forEach((mark) => {
      if (mark.textContent.length < 3) mark.replaceWith(mark.textContent);
    });
    new MutationObserver(unmark).observe(results, { childList: true, subtree: true });
    unmark();
  };
  const offerEntries = (results) => {
    const query = new URLSearchParams(location.search).get("q");
    if (!query) return;
    load().then(() => {
      const hits = search(query);
      if (hits.length) results.before(element("div", { class: "companion-first-hits" }, ...hits.slice(0, SHOWN_ON_PAGE).map((entry) => shown(entry, {}))));
    });
  };

  document.addEventListener("DOMContentLoaded", () => {
    const dialog = document.getElementById("pst-search-dialog");
    if (dialog && typeof HTMLDialogElement === "function") offerResults(dialog);
    const results = document.getElementById("search-results");
    if (results && typeof Search !== "undefined") {
      mendExcerpts();
      markLongWords(results);
      offerEntries(results);
    }
  });
})();
