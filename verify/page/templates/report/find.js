"use strict";
(() => {
  const finder = document.getElementById("find");
  const filters = document.getElementById("filters");
  if (!finder || !filters) return;
  const hits = Array.from(finder.querySelectorAll("li.hit"), (item) => ({
    item, words: " " + item.dataset.words, link: item.querySelector("a"),
  }));
  const fields = Array.from(filters.querySelectorAll("input, select"));
  const byName = Object.fromEntries(fields.map((field) => [field.name, field]));
  const boxes = Array.from(finder.querySelectorAll(".entryline, details.topic, .papershelf"));
  const topics = Array.from(finder.querySelectorAll("details.topic"));
  const count = document.getElementById("count");
  let shown = [], only = "";

  const value = (field) => (field.type === "checkbox" ? (field.checked ? field.value : "") : field.value.trim());
  const asked = () => [...fields.map((field) => [field.name, value(field)]), ["only", only]].filter(([, said]) => said);

  const matches = (hit, state, words) => {
    const data = hit.item.dataset;
    for (const name of ["paper", "topic", "reading", "outcome", "networks"])
      if (state[name] && data[name] !== state[name]) return false;
    if (state.misprints && !data.misprint) return false;
    if (state.only && !state.only.split(" ").includes(hit.link.hash.slice(1))) return false;
    return words.every((word) => hit.words.includes(" " + word) || (word.length > 3 && hit.words.includes(word)));
  };

  const apply = () => {
    const state = Object.fromEntries(asked());
    const query = (state.q || "").toLowerCase().replace(/\s+/g, " ");
    let found = hits.filter((hit) => matches(hit, state, query ? query.split(" ") : []));
    const phrase = found.filter((hit) => (hit.words + " ").match(new RegExp("[^a-z0-9]" + query.replace(/[^a-z0-9 ]/g, "\\$&") + "(?![0-9])")));
    if (query.includes(" ") && phrase.length) found = phrase;
    const kept = new Set(found);
    for (const hit of hits) hit.item.hidden = !kept.has(hit);
    const narrowed = asked().length > 0;
    for (const box of boxes) box.hidden = !box.querySelector("li.hit:not([hidden])");
    if (narrowed !== topics.narrowed) for (const topic of topics) topic.open = narrowed;
    topics.narrowed = narrowed;
    finder.classList.toggle("narrowed", narrowed);
    shown = found;
    count.textContent = narrowed ? found.length + " of " + hits.length + " lines" + (only ? ", those that the number counts" : "") : "";
  };

  const keep = () => {
    const said = new URLSearchParams(asked()).toString();
    history.replaceState(null, "", said ? "#?" + said : "#find");
  };

  const read = (text) => {
    const said = new URLSearchParams(text);
    only = said.get("only") || "";
    for (const field of fields)
      if (field.type === "checkbox") field.checked = said.get(field.name) === "1";
      else field.value = said.get(field.name) || "";
    for (const field of fields) if (field.value === undefined || field.selectedIndex === -1) field.value = "";
    apply();
  };

  const arrive = () => {
    const hash = decodeURIComponent(location.hash);
    if (location.hash.startsWith("#?")) {
      read(location.hash.slice(2));
      document.getElementById("matrix").scrollIntoView();
    } else if (hash.length > 1 && !document.getElementById(hash.slice(1))) {
      const there = hits.find((hit) => hit.link.hash === location.hash) ||
        hits.find((hit) => hash.startsWith("#claim-") && hit.link.hash === location.hash.replace("#claim-", "#row-"));
      if (there) location.replace(there.link.href.split("#")[0] + location.hash);
    }
  };

  filters.hidden = false;
  for (const link of document.querySelectorAll("a[data-query]")) link.href = "#?" + link.dataset.query;
  filters.addEventListener("input", () => {
    only = "";
    apply();
    keep();
  });
  document.getElementById("clear").addEventListener("click", () => { read(""); keep(); byName.q.focus(); });
  document.addEventListener("keydown", (event) => {
    const typing = /^(input|select|textarea)$/i.test(event.target.tagName || "");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      byName.q.focus();
      byName.q.select();
    } else if (event.target === byName.q && event.key === "Enter") {
      event.preventDefault();
      if (shown.length) location.href = shown[0].link.href;
    } else if (event.target === byName.q && event.key === "Escape") {
      read("");
      keep();
    }
  });
  window.addEventListener("hashchange", arrive);
  if (location.search) read(location.search);
  else apply();
  arrive();
})();
