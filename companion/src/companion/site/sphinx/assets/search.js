// Search while the reader types: titles, figures, theorem boxes, terms, claims, symbols and names of the library, and below them
// the text of all pages. MiniSearch and the texts are scripts, so that they can be read from a disk; they are loaded when the
// search is first opened.
(() => {
  const SHOWN = 12, TEXTS_SHOWN = 8, TEXTS_ON_PAGE = 40, LONG = 36; // results, and words of an excerpt
  const KINDS = { page: "Page", section: "Section", figure: "Figure", box: "Box", claim: "Claim", symbol: "Symbol", term: "Definition", name: "Library", passage: "Text" };
  const WEIGHTS = { page: 1.8, term: 1.6, symbol: 1.5, box: 1.4, figure: 2.4, section: 0.9, claim: 0.7, name: 0.6 };
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
      .replace(/\\[dt]?frac\s*([a-zA-Z\d])/g, "\\frac{$1}").replace(/(\\[dt]?frac\s*\{[^{}]*\})\s*([a-zA-Z\d])/g, "$1{$2}")
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

  // Words in the form in which they are compared: small letters without accents, Greek letters by name, no punctuation except
  // between digits, no endings, so that "freeze", "freezing" and "frozen" are the same word.
  const GREEK = new Map([..."αβγδεζηθκλμνξπρστφχψω"].map((letter, index) => [letter,
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega".split(" ")[index]]));
  const tokens = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase()
    .replace(/[α-ω]/g, (letter) => (GREEK.has(letter) ? ` ${GREEK.get(letter)} ` : letter))
    .replace(/(ln|log|exp)(?=[a-z]\b)/g, " $1 ")
    .match(/\d+(?:\.\d+)*|\p{L}+|[∞√∑∫∇]/gu) ?? [];
  const IRREGULAR = { froze: "freeze", frozen: "freeze", fallen: "fall", grew: "grow", grown: "grow", shown: "show", chose: "choose", chosen: "choose" };
  const stem = (given) => {
    const word = IRREGULAR[given] ?? given;
    if (!/^[a-z]{4,}$/.test(word)) return word;
    const rest = word.replace(/(?:ings?|ed|es|(?<![siu])s|e)$/, "");
    const known = rest !== word && rest.length > 2 && /[aeiouy]/.test(rest);
    return (known ? rest.replace(/([^lsz])\1$/, "$1") : word).replace(/(?<=..)y$/, "i");
  };
  const stems = (text) => ` ${tokens(text).map(stem).join(" ")} `;
  // A root, or the line of a fraction, is one word with the word that follows, so that "√(2 ln L)" and "1/(2 ln L)" do not contain
  // the phrase "2 ln L".
  const withRoots = (stemmed) => stemmed.replaceAll("√ ", "√");
  const phrased = (text) => withRoots(stems(text.replace(/[√/]\s*\(?(?=[\p{L}\p{N}])/gu, "√")));
  // Words without weight in a query, unless it has no other.
  const WEIGHTLESS = new Set(("a about all am an and any are as at be been but by can could did do does for from get had has have how i if in into is it its " +
    "me much my need not of on or our please should so some such than that the their them then there these they this to us was we were what when where " +
    "which who whose why will with would you your").split(" "));
  const SHORT = { thm: "theorem", lem: "lemma", prop: "proposition", eq: "equation", rem: "remark", figure: "fig" };
  const wordsOf = (query) => {
    const all = tokens(plain(query.replace(/\\[a-zA-Z]+/g, (command) => formula(command)))).map((word) => SHORT[word] ?? word);
    const weighty = all.filter((word) => !WEIGHTLESS.has(word));
    return (weighty.length ? weighty : all).map(stem);
  };

  const element = (name, attributes, ...inside) => {
    const made = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...inside);
    return made;
  };

  // A script of the site, loaded once; the promise resolves when it has run or cannot be read.
  const scripts = {};
  const script = (name) => (scripts[name] ??= new Promise((resolve) => {
    const made = element("script", { src: `${root}_static/${name}` });
    made.onload = made.onerror = resolve;
    document.head.append(made);
  }));
  // `boost` says how much a word in each field counts. The last word of a query may be incomplete.
  const emptyIndex = (boost) => new MiniSearch({ fields: Object.keys(boost), tokenize: tokens, processTerm: stem,
    searchOptions: { boost, prefix: (word, position, words) => position === words.length - 1 && word.length > 2 } });
  const placeOf = (page, anchor) => ({ page: plain(page[1]), href: `${root}${page[0]}${anchor && `#${anchor}`}` });
  let loading = null, loadingTexts = null;
  const load = () => (loading ??= Promise.all([script("minisearch.js"), script("search-entries.js")]).then(() => {
    const { pages, entries } = window.companionSearch, index = emptyIndex({ name: 3, keywords: 3, text: 1, statement: 1, also: 0.5 });
    const documents = entries.map(([kind, page, anchor, label, text, stated], id) => {
      const shown = { id, kind, label: plain(label), text: plain(text), statement: plain(stated), ...placeOf(pages[page], anchor) };
      const name = shown.label || shown.text;
      // the anchor of a figure or box has words of its subject
      return { ...shown, name, keywords: kind === "page" ? pages[page][2] : [], also: ["figure", "box"].includes(kind) ? anchor : "",
        named: stems(name), phrases: phrased(`${shown.label} ${shown.text} ${shown.statement}`) };
    });
    index.addAll(documents);
    return { index, documents };
  }));
  const loadTexts = () => (loadingTexts ??= Promise.all([load(), script("search-texts.js")]).then(async () => {
    const { pages } = window.companionSearch, index = emptyIndex({ name: 2, text: 1 });
    const documents = window.companionTexts.map(([page, anchor, name, text], id) =>
      ({ id, kind: "passage", name: plain(name), text: plain(text), ...placeOf(pages[page], anchor) }));
    await index.addAllAsync(documents, { chunkSize: 40 }); // the page stays responsive
    return { index, documents };
  }));

  // The documents with words of a query, the best first; those with more of its words precede. A word with a typing error
  // is found if nothing else is.
  const ranked = ({ index, documents }, words, weight) => {
    const options = { tokenize: (text) => text.split(" "), processTerm: (word) => word }, query = words.join(" ");
    const hits = index.search(query, options);
    return (hits.length ? hits : index.search(query, { ...options, fuzzy: 0.2 }))
      .map((hit) => [hit.score * (hit.queryTerms.length / new Set(words).size) ** 2 * weight(documents[hit.id]), documents[hit.id]])
      .sort(([one], [other]) => other - one).map(([, document]) => document);
  };
  // `code` is whether the query is a name of the library, such as `tilted_mean`; otherwise definitions precede these names.
  const searchEntries = async (query) => {
    const words = wordsOf(query), phrase = ` ${words.join(" ")} `, code = /[a-z][_.][a-z]|[a-z]{3}[A-Z]/.test(query);
    const asked = (keyword) => stems(keyword) === phrase;
    const weight = (entry) => {
      if (entry.kind === "name" && !code) return WEIGHTS.name;
      const named = entry.named === phrase || entry.keywords.some(asked) ? 4 : entry.named.startsWith(phrase) ? 2 : 1;
      const whole = words.length > 2 ? 3 : 1.5;
      return WEIGHTS[entry.kind] * named * (entry.phrases.includes(withRoots(phrase)) ? whole : 1);
    };
    const hits = words.length ? ranked(await load(), words, weight) : [];
    // a term and the symbol that defines it are one place
    const places = hits.filter((entry, index) => hits.findIndex((other) => other.href === entry.href) === index).slice(0, SHOWN);
    // a box that is not found by its title shows a part of its statement
    const titled = ({ label, text }) => words.every((word) => stems(`${label} ${text}`).includes(` ${word}`));
    const stated = (entry) => ({ ...entry, text: `${entry.text}: ${excerpt(entry.statement, new Set(words))}` });
    return places.map((entry) => (entry.statement && !titled(entry) ? stated(entry) : entry));
  };
  const searchTexts = async (query, most) => {
    const words = wordsOf(query);
    const hits = words.length ? ranked(await loadTexts(), words, () => 1).slice(0, most) : [];
    return hits.map((hit) => ({ ...hit, label: hit.name, text: excerpt(hit.text, new Set(words)) }));
  };
  // The part of a text with most of the words.
  const excerpt = (text, wanted) => {
    const words = text.split(" "), has = words.map((word) => tokens(word).map(stem).filter((stemmed) => wanted.has(stemmed)));
    let best = 0, most = 0;
    has.forEach((hits, from) => {
      const distinct = hits.length && new Set(has.slice(from, from + LONG).flat()).size;
      if (distinct > most) [best, most] = [from, distinct];
    });
    const from = Math.max(0, Math.min(best - 6, words.length - LONG)), to = from + LONG;
    return `${from ? "… " : ""}${words.slice(from, to).join(" ")}${to < words.length ? " …" : ""}`;
  };

  // A result: its kind or number, its text, and the page that it is on.
  const shown = (entry, attributes) => {
    const named = ["symbol", "term", "name", "passage"].includes(entry.kind);
    const label = (!named && entry.label) || KINDS[entry.kind];
    const text = named ? `${entry.label}: ${entry.text}` : entry.text || entry.label;
    return element("a", { href: entry.href, class: `companion-hit companion-hit-${entry.kind}`, ...attributes },
      element("span", { class: "companion-hit-label" }, label), " ", element("span", { class: "companion-hit-text" }, text), " ",
      element("span", { class: "companion-hit-place" }, entry.kind === "page" ? "" : entry.page));
  };

  // The results below a field, which is a combobox with a list. `close` is called before a result is opened.
  const offerResults = (form, most, close) => {
    const field = form.querySelector("input[name='q']");
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
    const show = (hits, message) => {
      list.append(...hits.map((entry, index) =>
        shown(entry, { role: "option", id: `companion-hit-${list.children.length + index}`, tabindex: "-1", "aria-selected": "false" })));
      list.hidden = !list.children.length;
      field.setAttribute("aria-expanded", String(!list.hidden));
      status.textContent = message;
      if (chosen < 0) choose(0);
    };
    const count = (hits, name, limit) =>
      `${hits.length === limit ? `the first ${limit}` : hits.length} ${name}${hits.length === 1 ? "" : "s"}`;
    const update = async () => {
      const query = field.value.trim(), entries = await searchEntries(query);
      if (field.value.trim() !== query) return; // typed meanwhile
      list.replaceChildren();
      choose(-1);
      if (!query) return show([], "Definitions, figures, theorems by number, claims, symbols, names of the library, and the text of all pages");
      show(entries, "Searching the text of all pages");
      const passages = await searchTexts(query, most);
      const found = `${count(entries, "place", SHOWN)}, ${count(passages, "passage", most)}`;
      const advice = entries.length + passages.length ? "" : ". Try fewer or different words.";
      if (field.value.trim() === query) show(passages, `“${query}”: ${found}${advice}`);
    };
    field.addEventListener("focus", () => { loadTexts().then(update); });
    field.addEventListener("input", update);
    field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") choose(chosen + 1);
      else if (event.key === "ArrowUp") choose(chosen - 1);
      else if (event.key === "Escape") close();
      else if (event.key === "Enter" && !event.isComposing) list.children[chosen]?.click();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    list.addEventListener("click", (event) => {
      if (event.target.closest("a") && !event.ctrlKey && !event.metaKey && !event.shiftKey) close();
    });
  };

  document.addEventListener("DOMContentLoaded", () => {
    const dialog = document.getElementById("pst-search-dialog"), page = document.querySelector(".bd-search-container form");
    if (page) { // the page of results, which an address with a query opens
      const field = page.querySelector("input");
      field.value = new URLSearchParams(location.search).get("q") ?? "";
      offerResults(page, TEXTS_ON_PAGE, () => {});
      field.dispatchEvent(new Event("focus"));
    } else if (dialog && typeof HTMLDialogElement === "function") {
      offerResults(dialog.querySelector("form"), TEXTS_SHOWN, () => dialog.close());
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
        dialog.querySelector("input").focus();
        dialog.querySelector("input").select();
      }).observe(dialog, { attributeFilter: ["open"] });
    }
  });
})();
