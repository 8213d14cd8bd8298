"use strict";
(() => {
  const finder = document.getElementById("find");
  const form = document.getElementById("filters");
  if (!finder || !form) return;
  const hits = Array.from(finder.querySelectorAll("li"), (item) => {
    const said = item.dataset.words + " " + item.textContent.toLowerCase();
    return {
      item, link: item.querySelector("a"), paper: item.closest(".shelf").dataset.paper,
      mark: item.querySelector("use")?.getAttribute("href").slice(3),
      words: (" " + said + " " + said.replace(/[-/]/g, " ") + " ").replace(/\s+/g, " "),
    };
  });
  const boxes = Array.from(finder.querySelectorAll(".topic, .shelf"));
  const fields = Array.from(form.querySelectorAll("input, select"));
  let shown = [];

  const asked = () => fields.map((field) => [field.name, field.value.trim()]).filter(([, said]) => said);

  const apply = () => {
    const { q = "", paper, mark } = Object.fromEntries(asked());
    const query = q.toLowerCase().replace(/\s+/g, " ");
    const words = query.split(" ");
    shown = hits.filter((hit) => (!paper || hit.paper === paper) && (!mark || hit.mark === mark) &&
      words.every((word) => hit.words.includes(" " + word) || (word.length > 3 && hit.words.includes(word))));
    const phrase = new RegExp("[^a-z0-9]" + query.replace(/[^a-z0-9 ]/g, "\\$&") + "(?![0-9])");
    const exact = query.includes(" ") ? shown.filter((hit) => phrase.test(hit.words)) : [];
    if (exact.length) shown = exact;
    for (const hit of hits) hit.item.hidden = true;
    for (const hit of shown) hit.item.hidden = false;
    const narrowed = asked().length > 0;
    for (const box of boxes) {
      box.hidden = !box.querySelector("li:not([hidden])");
      if (box.open !== undefined) box.open = narrowed;
    }
    document.getElementById("count").textContent = narrowed ? shown.length + " of " + hits.length + " lines" : "";
  };

  const keep = () => {
    const said = new URLSearchParams(asked()).toString();
    history.replaceState(null, "", said ? "#?" + said : "#find");
  };

  const read = (text) => {
    const said = new URLSearchParams(text);
    for (const field of fields) field.value = said.get(field.name) || "";
    apply();
    if (text) finder.open = true;
  };

  const arrive = () => {
    if (location.hash.startsWith("#?")) {
      read(location.hash.slice(2));
      finder.scrollIntoView();
      return;
    }
    const place = decodeURIComponent(location.hash.slice(1));
    const target = document.getElementById(place);
    if (target) {
      if (target.tagName === "DETAILS") target.open = true;
    } else if (place) {
      const names = ["#" + place, "#" + place.replace(/^claim-/, "row-")];
      const there = hits.find((hit) => names.includes(hit.link.hash));
      if (there) location.replace(there.link.href.split("#")[0] + location.hash);
    }
  };

  form.hidden = false;
  form.addEventListener("input", () => { apply(); keep(); });
  document.addEventListener("keydown", (event) => {
    const typing = /^(input|select|textarea)$/i.test(event.target.tagName || "");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      finder.open = true;
      document.getElementById("query").focus();
    } else if (event.key === "Enter" && event.target.id === "query") {
      if (shown.length) location.href = shown[0].link.href;
    } else if (event.key === "Escape" && form.contains(event.target)) {
      read("");
      keep();
    }
  });
  window.addEventListener("hashchange", arrive);
  read(location.search);
  arrive();
})();
