// A small card with what a link leads to, where that is a theorem, a claim or a cited work: for who points at the link,
// comes to it by keys, or holds a finger on it. A click or a tap follows the link as ever; without scripts nothing else.
document.addEventListener("DOMContentLoaded", () => {
  const TARGETS = ".proof, .companion-statement-of, .companion-statement, .companion-entry, .citation";
  const LEFT_OUT = ".headerlink, .companion-back, button, script, mjx-assistive-mml";
  const WAIT = 350, HOLD = 500, LINGER = 250;
  const article = document.querySelector("article.bd-article");
  if (!article) return;
  let card = null, shown = null, timer = 0, held = false, kept = null;
  const pages = new Map();

  // The element that a link names, here or on another page of the site; null if that cannot be read.
  const page = (address) => {
    if (!pages.has(address)) {
      pages.set(address, fetch(address).then((answer) => (answer.ok ? answer.text() : ""))
        .then((text) => new DOMParser().parseFromString(text, "text/html")).catch(() => null));
    }
    return pages.get(address);
  };
  const find = async (link) => {
    const name = decodeURIComponent(link.hash.slice(1));
    const here = link.pathname === location.pathname;
    const target = here ? document.getElementById(name) : (await page(link.href.split("#")[0]))?.getElementById(name);
    if (target?.contains(link)) return null;
    return target?.closest(TARGETS) ?? cited(link);
  };
  // A work that cannot be fetched, as where pages are read from a disk, stands under the page as well.
  const cited = (link) => link.closest(".bibtex-citation") && [...article.querySelectorAll(".companion-cited li")]
    .find((work) => work.querySelector("strong").textContent === `[${link.textContent.trim()}]`);

  const copy = (target, base) => {
    const made = document.createElement("div");
    made.append(...[...document.importNode(target, true).childNodes]);
    made.className = target.className.replace("companion-entry", "");
    made.querySelectorAll(LEFT_OUT).forEach((one) => one.remove());
    made.querySelectorAll("[id]").forEach((one) => one.removeAttribute("id"));
    made.querySelectorAll("[tabindex]").forEach((one) => one.removeAttribute("tabindex"));
    made.querySelectorAll("a[href]").forEach((link) => { link.href = new URL(link.getAttribute("href"), base).href; });
    made.querySelectorAll("a").forEach((link) => { link.tabIndex = -1; });
    return made;
  };
  // Formulas of other pages; a page without any of its own asks for the typesetter now.
  const typeset = () => {
    if (!card.querySelector(".math:not(:has(mjx-container))")) return;
    if (window.MathJax?.typesetPromise) { MathJax.typesetPromise([card]).then(place); return; }
    if (window.MathJax) return;
    window.MathJax = { options: { processHtmlClass: "math" }, startup: { elements: [card] } };
    const script = document.createElement("script");
    script.src = `${document.documentElement.dataset.content_root ?? ""}_static/mathjax/tex-chtml-full.js`;
    script.onload = () => MathJax.startup.promise.then(() => card && place());
    document.head.append(script);
  };
  // Below the link, or above it where there is more room; on a narrow screen along its lower edge.
  const place = () => {
    if (!shown || innerWidth < 600) return;
    const at = [...shown.getClientRects()].at(0), box = card.getBoundingClientRect();
    if (!at) return;
    const below = at.bottom + box.height + 12 < innerHeight || at.top < innerHeight - at.bottom;
    card.style.top = `${below ? at.bottom + 4 : Math.max(4, at.top - box.height - 4)}px`;
    card.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - box.width - 8))}px`;
    card.style.maxHeight = `${below ? innerHeight - at.bottom - 12 : at.top - 12}px`;
  };

  const close = () => {
    if (!shown) return;
    shown.removeAttribute("aria-describedby");
    if (kept !== null) shown.title = kept;
    card.hidden = true;
    card.replaceChildren();
    shown = kept = null;
  };
  const show = async (link) => {
    const target = await find(link);
    if (!target || link !== wanted) return;
    close();
    if (!card) {
      card = document.createElement("div");
      card.id = card.className = "companion-preview";
      card.setAttribute("role", "note");
      card.setAttribute("aria-label", "Preview of the link");
      card.addEventListener("pointerenter", () => clearTimeout(timer));
      card.addEventListener("pointerleave", later);
      document.body.append(card);
    }
    card.removeAttribute("style");
    card.append(copy(target, target.ownerDocument === document ? location.href : link.href));
    card.hidden = false;
    shown = link;
    kept = link.getAttribute("title");
    link.removeAttribute("title"); // or the browser shows its own words over ours
    link.setAttribute("aria-describedby", card.id);
    place();
    typeset();
  };

  let wanted = null;
  const of = (event) => {
    const link = event.target.closest?.("a[href*='#']:not(.headerlink)");
    return link && link.hash.length > 1 && link.host === location.host && !link.target ? link : null;
  };
  const soon = (link, wait) => {
    clearTimeout(timer);
    if (link === shown) return;
    wanted = link;
    timer = setTimeout(() => show(link), wait);
  };
  const later = () => {
    wanted = null;
    clearTimeout(timer);
    timer = setTimeout(close, LINGER);
  };
  article.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const link = of(event);
    if (link) soon(link, WAIT);
    else if ((wanted || shown) && !shown?.matches(":focus-visible")) later();
  });
  article.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") later(); });
  article.addEventListener("focusin", (event) => {
    const link = of(event);
    if (link?.matches(":focus-visible")) soon(link, WAIT);
  });
  article.addEventListener("focusout", later);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    wanted = null;
    clearTimeout(timer);
    close();
  });

  // A finger that rests on a link; a tap, a scroll and the release of the finger are the browser's.
  article.addEventListener("pointerdown", (event) => {
    held = false;
    const link = event.pointerType === "touch" && of(event);
    if (!link) return;
    wanted = link;
    clearTimeout(timer);
    timer = setTimeout(() => { show(link).then(() => { held = shown === link; }); }, HOLD);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    article.addEventListener(end, (event) => { if (event.pointerType === "touch" && !held) { wanted = null; clearTimeout(timer); } });
  }
  article.addEventListener("contextmenu", (event) => { if (held) event.preventDefault(); });
  document.addEventListener("click", (event) => {
    if (held && of(event) === shown) event.preventDefault();
    else if (shown && !card.contains(event.target)) close();
    held = false;
  }, true);
  addEventListener("scroll", (event) => { if (shown && event.target === document) close(); }, true);
});
