// Mark the current section in the contents of the page: the last one that begins above a line near the top of the
// window. The theme marks a section only when its heading enters the window, which leaves a wrong one marked after a jump.
{
  const contents = document.getElementById("pst-page-toc-nav");
  const links = contents ? [...contents.querySelectorAll("a[href^='#']")] : [];
  const sections = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  if (links.length && sections.every(Boolean)) {
    contents.id = "companion-contents"; // so that the script of the theme, which runs later, does not find it
    // Sections outside of others, and by section those in it. Browsers lay out the inside of a section only near the
    // window; its position is asked for only if the section itself is the current one.
    const outer = sections.filter((section) => !sections.some((other) => other !== section && other.contains(section)));
    const inside = new Map(outer.map((one) => [one, sections.filter((section) => section !== one && one.contains(section))]));
    const top = (section) => (section.querySelector(":scope > :is(h1, h2, h3, h4, h5, h6)") ?? section).getBoundingClientRect().top;
    const last = (line) => {
      const found = outer.findLast((section) => section.getBoundingClientRect().top <= line);
      return found && ([found, ...inside.get(found)].findLast((section) => top(section) <= line) ?? outer[outer.indexOf(found) - 1]);
    };
    const find = () => {
      if (scrollY + innerHeight >= document.documentElement.scrollHeight - 2 && scrollY > 0) {
        // at the end of the page, a heading that the reader went to may not reach the line
        const wanted = sections.find((section) => `#${section.id}` === decodeURIComponent(location.hash));
        if (wanted && top(wanted) >= 0 && top(wanted) < innerHeight) return wanted;
        return last(innerHeight - 1);
      }
      return last(innerHeight * 0.3);
    };
    const mark = () => {
      const current = links[sections.indexOf(find())];
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
