// Filters the ledger of claims by source, verdict and where the statement was read, and says how many are left.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.companion-filter");
  if (!form) return;
  const entries = [...document.querySelectorAll(".companion-entry")];
  const update = () => {
    const { source, verdict, read } = form.elements;
    const fits = (entry) =>
      (!source.value || entry.classList.contains(`source-${source.value}`)) &&
      (!verdict.value || entry.classList.contains(`verdict-${verdict.value}`)) &&
      (!read?.value || entry.classList.contains(`read-${read.value}`));
    entries.forEach((entry) => { entry.hidden = !fits(entry); });
    form.querySelector("output").textContent = `${entries.filter(fits).length} of ${entries.length} claims`;
  };
  form.addEventListener("change", update);
  update();
});
