// Filter the gallery by words and by topic, which is a part or a chapter of the book. The address contains the filter.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.companion-gallery-filter");
  if (!form) return;
  const cards = [...document.querySelectorAll(".companion-gallery-card")];
  const texts = new Map(cards.map((card) => {
    const group = card.closest(".companion-gallery-chapter").querySelector(".companion-gallery-title");
    return [card, `${card.textContent} ${card.querySelector("img").alt} ${group.textContent}`.toLowerCase()];
  }));
  const { words, topic } = form.elements;
  const given = new URLSearchParams(location.search);
  words.value = given.get("words") ?? "";
  topic.value = given.get("topic") ?? "";
  if (topic.selectedIndex < 0) topic.value = "";

  const update = () => {
    // without its ending, so that "freezing" finds "freezes"
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean).map((word) => word.replace(/(?<=\w{4})(?:ings?|ed|es|s|e)$/, ""));
    const within = !topic.value ? "*" : topic.value.startsWith("part-") ? `.${topic.value} *` : `.chapter-${CSS.escape(topic.value)} *`;
    cards.forEach((card) => { card.hidden = !card.matches(within) || !wanted.every((word) => texts.get(card).includes(word)); });
    document.querySelectorAll(".companion-gallery-chapter, section.companion-gallery").forEach((group) => {
      group.hidden = !group.querySelector(".companion-gallery-card:not([hidden])");
    });
    form.querySelector("output").textContent = `${cards.filter((card) => !card.hidden).length} of ${cards.length} figures`;
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    update();
    const query = new URLSearchParams([words, topic].filter((field) => field.value).map((field) => [field.name, field.value]));
    try {
      history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}${location.hash}`);
    } catch { /* a page on a disk keeps its address */ }
  });
  update();
});
