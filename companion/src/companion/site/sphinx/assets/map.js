// Emphasise the links of the chapter that the pointer or the focus is on.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".companion-map svg").forEach((map) => {
    const emphasise = (event) => {
      const chapter = event.type === "pointerleave" || event.type === "focusout" ? null : event.target.closest?.("a[data-chapter]");
      map.classList.toggle("map-chosen", Boolean(chapter));
      map.querySelectorAll(".map-link").forEach((link) => {
        link.classList.toggle("map-shown", Boolean(chapter) && link.classList.contains(`map-of-${chapter.dataset.chapter}`));
      });
    };
    ["pointerover", "pointerleave", "focusin", "focusout"].forEach((kind) => map.addEventListener(kind, emphasise));
  });
});
