// Mark the current section in the contents of the page: the last one whose heading is above a line near the top of the
// window. The theme marks a section only when its heading enters the window, which leaves a wrong one marked after a jump.
{
  const contents = document.getElementById("pst-page-toc-nav");
  const links = contents ? [...contents.querySelectorAll("a[href^='#']")] : [];
  const headings = links.map((link) => {
    const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    return section?.querySelector(":is(h1, h2, h3, h4, h5, h6)") ?? section;
  });
  if (links.length && headings.every(Boolean)) {
    contents.id = "companion-contents"; // so that the script of the theme, which runs later, does not find it
    const find = () => {
      const tops = headings.map((heading) => heading.getBoundingClientRect().top);
      if (scrollY + innerHeight >= document.documentElement.scrollHeight - 2 && scrollY > 0) {
        // at the end of the page, a heading that the reader went to may not reach the line
        const wanted = links.findIndex((link) => link.hash === location.hash);
        if (wanted >= 0 && tops[wanted] >= 0 && tops[wanted] < innerHeight) return wanted;
        return tops.findLastIndex((top) => top < innerHeight);
      }
      return tops.findLastIndex((top) => top <= innerHeight * 0.3);
    };
    const mark = () => {
      const current = links[find()];
      links.forEach((link) => {
        link.classList.toggle("active", link === current);
        if (link === current) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      });
      contents.querySelectorAll(".toc-entry").forEach((entry) => entry.classList.toggle("active", Boolean(current) && entry.contains(current)));
    };
    let asked = false;
    const soon = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; mark(); });
    };
    ["scroll", "resize", "hashchange", "load"].forEach((kind) => addEventListener(kind, soon, { passive: true }));
    new ResizeObserver(soon).observe(document.body); // fonts are loaded, folds open
    soon(); // with the first layout of the page
  }
}
