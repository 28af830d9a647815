// Show a preview of a chapter, a theorem, a formula, a figure, a claim, a symbol or a cited work when the user hovers over a link to it, focuses the link by
// keyboard, or long-presses it. A click or a tap follows the link.
document.addEventListener("DOMContentLoaded", () => {
  const TARGETS = ".proof, div.math[id], figure.companion-figure, .companion-statement-of, .companion-statement, .companion-entry, .citation, tr[id^='symbol-']";
  // of a figure, a preview has the picture and the headline
  const LEFT_OUT = ".headerlink, .companion-back, .companion-live, .legend, button, script";
  const WAIT = 350, HOLD = 500, LINGER = 250;
  const article = document.querySelector("article.bd-article");
  if (!article) return;
  let card = null, shown = null, timer = 0, held = false, kept = null;
  const pages = new Map();

  // The content of a page of the site; null if it cannot be fetched.
  const page = (address) => {
    if (!pages.has(address)) {
      pages.set(address, fetch(address).then((answer) => (answer.ok ? answer.text() : ""))
        .then((text) => new DOMParser().parseFromString(text, "text/html")).catch(() => null));
    }
    return pages.get(address);
  };
  // The target of a link, on this page or another page of the site; null if there is no preview for it.
  const find = async (link) => {
    const name = decodeURIComponent(link.hash.slice(1));
    if (!name) return chapter(await page(link.href));
    const onThisPage = link.pathname === location.pathname;
    const target = onThisPage ? document.getElementById(name) : (await page(link.href.split("#")[0]))?.getElementById(name);
    if (target?.contains(link)) return null;
    return target?.closest(TARGETS) ?? cited(link);
  };
  // The preview of a chapter has its title and its main figure; other pages have none.
  const chapter = (content) => {
    const parts = content ? [".bd-article h1", ".companion-lead"].map((part) => content.querySelector(part)) : [];
    if (!parts[1]) return null;
    const shown = content.createElement("div");
    shown.append(...parts.map((part) => part.cloneNode(true)));
    return shown;
  };
  // The entry of a work in the list at the end of this page, if pages cannot be fetched because they are on a disk.
  const cited = (link) => link.closest(".bibtex-citation") && [...article.querySelectorAll(".companion-cited li")]
    .find((work) => work.querySelector("strong").textContent === `[${link.textContent.trim()}]`);

  const copy = (target, base) => {
    const content = document.createElement("div");
    content.append(...[...document.importNode(target, true).childNodes]);
    content.className = target.className.replace("companion-entry", "");
    content.querySelectorAll(LEFT_OUT).forEach((element) => element.remove());
    content.querySelectorAll("[id]").forEach((element) => element.removeAttribute("id"));
    content.querySelectorAll("[tabindex]").forEach((element) => element.removeAttribute("tabindex"));
    content.querySelectorAll("a[href]").forEach((link) => { link.href = new URL(link.getAttribute("href"), base).href; });
    content.querySelectorAll("a").forEach((link) => { link.tabIndex = -1; });
    content.querySelectorAll("img").forEach((image) => {
      image.src = new URL(image.getAttribute("src"), base).href;
      image.addEventListener("load", place);
    });
    return content;
  };
  // Place the preview below the link, or above it if there is more room; on a narrow screen, at the lower edge.
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
    if (link !== wanted) return;
    close(); // the preview of another link, also if this link has none
    if (!target) return;
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
    link.removeAttribute("title"); // otherwise the browser shows the title over the preview
    link.setAttribute("aria-describedby", card.id);
    place();
    document.fonts.ready.then(place); // fonts of formulas
  };

  let wanted = null;
  const of = (event) => {
    const link = event.target.closest?.("a[href]:not(.headerlink, .companion-zoom, .download)");
    if (!link || link.host !== location.host || link.target) return null;
    return link.hash.length > 1 || (/\.html$/.test(link.pathname) && link.pathname !== location.pathname) ? link : null;
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

  // A long press shows the preview; taps, scrolling and the release of the finger are left to the browser.
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
