// What a page can do beside being read: all code opened or folded, pictures as large as the screen, a link into a fold
// that opens it and offers the way back. Without scripts everything folds, links and prints all the same.
document.addEventListener("DOMContentLoaded", () => {
  const article = document.querySelector("article.bd-article") ?? document.body;

  // All code of a chapter, with one click; the choice is kept for the next page.
  const KEPT = "companion-code";
  const kept = () => { try { return localStorage.getItem(KEPT) === "open"; } catch { return false; } };
  const keep = (open) => { try { localStorage.setItem(KEPT, open ? "open" : "folded"); } catch { /* then not */ } };
  const cells = [...article.querySelectorAll(".cell details.hide")];
  if (cells.length) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "companion-code-button";
    const show = (open) => {
      cells.forEach((cell) => { cell.open = open; });
      button.setAttribute("aria-pressed", String(open));
      button.textContent = open ? "Fold all code" : "Show all code";
    };
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      show(open);
      keep(open);
    });
    show(kept());
    cells[0].closest(".cell").before(button);
  }

  // A picture as large as the screen: the file that the link opens anyway, in a dialog.
  let dialog;
  const enlarge = (link) => {
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.className = "companion-large";
      dialog.setAttribute("aria-label", "Enlarged picture");
      const close = document.createElement("button");
      close.type = "button";
      close.textContent = "Close";
      const frame = document.createElement("div");
      frame.tabIndex = 0;
      dialog.append(close, frame);
      document.body.append(dialog);
      close.addEventListener("click", () => dialog.close());
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
    // a wide picture on a narrow screen begins at a size at which its labels can be read; a tap shows all of it
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

  // A formula wider than its place can be scrolled by keys, and is a stop of the tabulator for that; no other is.
  // Watched, because its width changes when its fonts arrive, when a fold opens and when the window does.
  const offerScrolling = (formula) => {
    if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
    else formula.removeAttribute("tabindex");
  };
  const widths = new ResizeObserver((seen) => {
    seen.forEach(({ target }) => offerScrolling(target.closest("mjx-container")));
  });
  window.MathJax?.startup?.promise?.then(() => {
    article.querySelectorAll('mjx-container[display="true"]').forEach((formula) => {
      [formula, ...formula.children].forEach((part) => widths.observe(part));
    });
  });

  // Into a fold: whatever the address names is unfolded, and the link that led there can be gone back along.
  let origin = null;
  const reveal = () => {
    document.querySelector(".companion-back")?.remove();
    let target = null;
    try { target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
    if (!target || !target.closest(".companion-details, .companion-ledger, .companion-live, .companion-statements")) return;
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
      if (part.classList.contains("sd-tab-content") && part.previousElementSibling?.control) {
        part.previousElementSibling.control.checked = true;
      }
    }
    target.scrollIntoView({ block: "center" });
    const elsewhere = document.referrer.startsWith(`${location.origin}/`);
    if (origin || (elsewhere && history.length > 1)) {
      const back = document.createElement("button");
      back.type = "button";
      back.className = "companion-back";
      back.textContent = "↩ Back to where you were";
      back.addEventListener("click", () => history.back());
      target.append(back);
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
