// Filter the ledger by words, source, verdict and origin of the statement. The address contains the filters, so that a
// selection can be shared. Chapters with matching claims open while a filter is set.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.companion-filter");
  if (!form) return;
  const entries = [...document.querySelectorAll(".companion-entry")];
  const chapters = [...document.querySelectorAll(".companion-chapter")];
  const counts = new Map(chapters.map((chapter) => [chapter, chapter.querySelector(".companion-count").textContent]));
  const texts = new Map(entries.map((entry) => [entry, `${entry.id} ${entry.textContent}`.toLowerCase()]));
  const fields = ["words", "source", "verdict", "read"].map((name) => form.elements[name]).filter(Boolean);
  const opener = form.querySelector(".companion-open");
  const given = new URLSearchParams(location.search);
  fields.forEach((field) => { field.value = given.get(field.name) ?? ""; });

  const update = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const sorts = fields.filter((field) => field.tagName === "SELECT" && field.value);
    const fits = (entry) =>
      sorts.every((field) => entry.classList.contains(`${field.name}-${field.value}`)) &&
      words.every((word) => texts.get(entry).includes(word));
    const chosen = words.length + sorts.length > 0;
    entries.forEach((entry) => { entry.hidden = !fits(entry); });
    chapters.forEach((chapter) => {
      chapter.hidden = !chapter.querySelector(".companion-entry:not([hidden])");
      chapter.querySelectorAll(".companion-shown-in").forEach((place) => {
        let next = place.nextElementSibling;
        while (next?.matches(".companion-entry[hidden]")) next = next.nextElementSibling;
        place.hidden = !next?.matches(".companion-entry");
      });
      const all = chapter.querySelectorAll(".companion-entry").length, left = chapter.querySelectorAll(".companion-entry:not([hidden])").length;
      chapter.querySelector(".companion-count").textContent = chosen ? `${left} of ${all} claims` : counts.get(chapter);
      if (chosen) chapter.open = true;
    });
    const left = entries.filter((entry) => !entry.hidden).length;
    form.querySelector("output").textContent = `${left} of ${entries.length} claims`;
  };
  const remember = () => {
    const query = new URLSearchParams(fields.filter((field) => field.value).map((field) => [field.name, field.value]));
    const search = query.size ? `?${query}` : "";
    history.replaceState(null, "", `${location.pathname}${search}${location.hash}`);
  };
  const openAll = (all) => {
    opener.setAttribute("aria-pressed", String(all));
    opener.textContent = all ? "Close all" : "Open all";
    chapters.forEach((chapter) => { chapter.open = all; });
  };
  opener.addEventListener("click", () => openAll(opener.getAttribute("aria-pressed") !== "true"));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => { update(); remember(); });
  addEventListener("beforeprint", () => openAll(true));
  update();
});
