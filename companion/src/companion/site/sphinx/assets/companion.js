// Interactions of all pages: fold the parts in the list of pages, open or fold all code, enlarge pictures, open the fold
// that contains the target of a link and offer a way back. Folds, links and printing work without scripts.
document.addEventListener("DOMContentLoaded", () => {
  const button = (className, textContent, click) => {
    const made = Object.assign(document.createElement("button"), { type: "button", className, textContent });
    made.addEventListener("click", click);
    return made;
  };
  // The parts in the list of all pages fold. On a small screen, only the part of this page is open at first.
  const small = matchMedia("(max-width: 991.98px)").matches;
  document.querySelectorAll(".bd-sidebar-primary p.caption + ul").forEach((pages, number) => {
    const heading = pages.previousElementSibling, fold = button("companion-part", "", () => open(pages.hidden));
    const open = (shown) => {
      pages.hidden = !shown;
      fold.setAttribute("aria-expanded", String(shown));
    };
    pages.id = `companion-part-${number + 1}`;
    fold.setAttribute("aria-controls", pages.id);
    fold.append(...heading.childNodes);
    heading.append(fold);
    open(!small || pages.classList.contains("current"));
  });
  // The page in the list of all pages, which may be far below the window.
  const here = document.querySelector(".bd-sidebar-primary .current.active"), list = here?.closest(".bd-sidebar-primary");
  if (list) requestAnimationFrame(() => { // with the first layout of the page
    const below = here.getBoundingClientRect().top - list.getBoundingClientRect().top;
    if (below < 0 || below > list.clientHeight - 40) list.scrollTop += below - list.clientHeight / 3;
  });
  const article = document.querySelector("article.bd-article") ?? document.body;

  // A button that opens or folds all code of a chapter; the choice is stored for the next page.
  const STORAGE_KEY = "companion-code";
  const storedOpen = () => { try { return localStorage.getItem(STORAGE_KEY) === "open"; } catch { return false; } };
  const store = (open) => { try { localStorage.setItem(STORAGE_KEY, open ? "open" : "folded"); } catch { /* no storage */ } };
  const cells = [...article.querySelectorAll(".cell details.hide")];
  if (cells.length) {
    const toggle = button("companion-code-button", "", () => {
      const open = toggle.getAttribute("aria-pressed") !== "true";
      show(open);
      store(open);
    });
    const show = (open) => {
      cells.forEach((cell) => { cell.open = open; });
      toggle.setAttribute("aria-pressed", String(open));
      toggle.textContent = open ? "Fold all code" : "Show all code";
    };
    show(storedOpen());
    cells[0].closest(".cell").before(toggle);
  }

  // Enlarge a picture: show the file behind its link in a dialog of the size of the screen.
  let dialog;
  const enlarge = (link) => {
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.className = "companion-large";
      dialog.setAttribute("aria-label", "Enlarged picture");
      const frame = document.createElement("div");
      frame.tabIndex = 0;
      dialog.append(button("", "Close", () => dialog.close()), frame);
      document.body.append(dialog);
      // a script of Sphinx would prevent the dialog from closing
      dialog.addEventListener("keydown", (event) => { if (event.key === "Escape") event.stopPropagation(); });
      frame.addEventListener("click", (event) => {
        if (event.target === frame) dialog.close();
        else frame.classList.toggle("companion-whole");
      });
    }
    const small = link.querySelector("img");
    const image = new Image(small.width, small.height);
    image.src = link.href;
    image.alt = small.alt;
    image.className = small.className;
    const frame = dialog.querySelector("div");
    frame.replaceChildren(image);
    // on a narrow screen, a picture first has a size with readable labels; a tap shows all of it
    frame.className = innerWidth < 600 && innerWidth < innerHeight ? "" : "companion-whole";
    frame.setAttribute("aria-label", "The picture; it scrolls, and a tap changes its size");
    dialog.showModal();
  };
  article.addEventListener("click", (event) => {
    const link = event.target.closest("a.companion-zoom");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || typeof HTMLDialogElement !== "function") return;
    event.preventDefault();
    enlarge(link);
  });

  // Scroll to a figure that a click opens, if less than half of it would be in view.
  article.querySelectorAll("details.companion-live > summary").forEach((summary) => {
    summary.addEventListener("click", () => requestAnimationFrame(() => {
      const fold = summary.parentElement, below = innerHeight - summary.getBoundingClientRect().bottom;
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      if (fold.open && below < fold.clientHeight / 2) summary.scrollIntoView({ block: "start", behavior: still ? "instant" : "smooth" });
    }));
  });

  // A formula that is wider than its column becomes smaller, down to a readable size. If it is still wider, it is a tab
  // stop, so that keys can scroll it; other formulas are not. An observer is needed: the width changes when fonts are
  // loaded, a fold opens or the window is resized.
  const SMALLEST = 0.7;
  const fitted = new Map();
  // First all widths are read and then all sizes are set, so that the browser lays out the page once for all formulas.
  const fit = (formulas) => {
    const shown = formulas.filter((formula) => formula.clientWidth);
    shown.map((formula) => [formula, formula.clientWidth, formula.firstElementChild.scrollWidth]).forEach(([formula, room, drawn]) => {
      const before = fitted.get(formula) ?? 1, width = drawn / before;
      // a little less than the room, because parts of a formula, such as rules, do not become smaller
      const scale = width <= room ? 1 : Math.max(SMALLEST, Math.floor((995 * room) / width) / 1000);
      if (Math.abs(scale - before) <= 0.004) return;
      formula.firstElementChild.style.fontSize = scale < 1 ? `calc(${scale} * var(--size-formula))` : "";
      fitted.set(formula, scale);
    });
    shown.map((formula) => [formula, formula.scrollWidth > formula.clientWidth]).forEach(([formula, scrolls]) => {
      if (scrolls) formula.tabIndex = 0;
      else formula.removeAttribute("tabindex");
    });
  };
  const widths = new ResizeObserver((entries) => fit([...new Set(entries.map(({ target }) => target.closest(".katex-display")))]));
  // Tables and code that scroll are tab stops too, also when a fold opens later.
  const scrolled = new ResizeObserver((entries) => {
    entries.forEach(({ target }) => {
      if (target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight + 1) target.tabIndex = 0;
    });
  });
  article.querySelectorAll("table, pre, .cell_output > .output").forEach((part) => scrolled.observe(part));
  article.querySelectorAll(".katex-display").forEach((formula) => {
    [formula, formula.firstElementChild].forEach((part) => widths.observe(part));
  });
  // Copied text has the TeX source of its formulas.
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (selection.isCollapsed) return;
    const content = selection.getRangeAt(0).cloneContents();
    const formulas = [...content.querySelectorAll(".math[data-tex]")];
    if (!formulas.length) return;
    formulas.forEach((formula) => {
      const sign = formula.tagName === "DIV" ? "$$" : "$";
      formula.replaceWith(sign + formula.dataset.tex + sign);
    });
    event.clipboardData.setData("text/plain", content.textContent);
    event.preventDefault();
  });

  // Open the folds around the element that the address names, and add a button that leads back to the link.
  let origin = null;
  const reveal = () => {
    document.querySelector(".companion-back")?.remove();
    let target = null;
    try { target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
    if (!target || !target.closest("details, .companion-ledger, .companion-statements")) return;
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
    }
    target.scrollIntoView({ block: target.matches("figure, .proof") ? "start" : "center" });
    const elsewhere = document.referrer.startsWith(`${location.origin}/`);
    if (origin || (elsewhere && history.length > 1)) {
      target.append(button("companion-back", "↩ Back to where you were", () => history.back()));
    }
    origin = null;
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href*='#']");
    if (link && link.pathname === location.pathname) {
      origin = link;
      if (link.hash === location.hash) reveal();
    }
  });
  addEventListener("hashchange", reveal);
  reveal();
});
