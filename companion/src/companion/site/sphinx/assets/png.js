// Links to PNGs: the browser draws the picture of the figure as it is shown, light or dark, at three times its size.
// Browsers refuse to do so for pages on a disk, where these links are removed.
document.querySelectorAll("a.companion-png").forEach((link) => {
  if (location.protocol === "file:") {
    link.previousSibling.remove(); // the dot between the links
    link.remove();
    return;
  }
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    const figure = document.getElementById(link.closest("details[name]").getAttribute("name"));
    const image = figure.querySelector("img");
    const picture = new Image(), canvas = document.createElement("canvas"), save = document.createElement("a");
    picture.src = image.src;
    await picture.decode();
    canvas.width = 3 * picture.naturalWidth;
    canvas.height = 3 * picture.naturalHeight;
    const context = canvas.getContext("2d");
    context.filter = getComputedStyle(image).filter; // without effect in Safari, which draws the light picture
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    save.href = canvas.toDataURL();
    save.download = link.textContent;
    save.click();
  });
});
