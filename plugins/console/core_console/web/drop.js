// The area on which a file can be dropped, beside the input that chooses one.

import { h } from "./dom.js";

/**
 * Return the label of a file input. It has the class "over" while a file is dragged over it.
 *
 * take       called with the dropped file, or null if something else was dropped
 * children   what the area shows
 */
export function dropArea(input, take, ...children) {
  const area = h("label", { class: "drop", for: input.id }, ...children);
  for (const kind of ["dragover", "dragleave", "drop"]) {
    area.addEventListener(kind, (event) => {
      event.preventDefault();
      area.classList.toggle("over", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files[0] || null);
    });
  }
  return area;
}
