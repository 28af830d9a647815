// Emphasise the links of the chapter that the pointer or the focus is on, and the chapters to read before it.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".companion-map svg").forEach((map) => {
    const chapters = [...map.querySelectorAll("a[data-chapter]")];
    const emphasise = (event) => {
      const chosen = event.type === "pointerleave" || event.type === "focusout" ? null : event.target.closest?.("a[data-chapter]");
      const of = (link, chapter) => link.classList.contains(`map-of-${chapter.dataset.chapter}`);
      const shown = chosen ? [...map.querySelectorAll(".map-link")].filter((link) => of(link, chosen)) : [];
      // an arc from an earlier chapter, which the chosen one builds on
      const before = shown.filter((link) => link.dataset.later === chosen.dataset.chapter);
      map.classList.toggle("map-chosen", Boolean(chosen));
      map.querySelectorAll(".map-link").forEach((link) => {
        link.classList.toggle("map-shown", shown.includes(link));
        link.classList.toggle("map-after", shown.includes(link) && Boolean(link.dataset.later) && !before.includes(link));
      });
      chapters.forEach((chapter) => chapter.classList.toggle("map-before", chapter !== chosen && before.some((link) => of(link, chapter))));
    };
    ["pointerover", "pointerleave", "focusin", "focusout"].forEach((kind) => map.addEventListener(kind, emphasise));
  });
});
