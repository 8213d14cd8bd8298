"use strict";
(() => {
  const finder = document.getElementById("find");
  const filters = document.getElementById("filters");
  const flat = document.getElementById("sorted");
  if (!finder || !filters || !flat) return;
  const hits = Array.from(finder.querySelectorAll("li.hit"), (item) => ({
    item, home: item.parentElement, words: " " + item.dataset.words, link: item.querySelector("a"),
  }));
  const fields = Array.from(filters.querySelectorAll("input, select"));
  const byName = Object.fromEntries(fields.map((field) => [field.name, field]));
  const boxes = Array.from(finder.querySelectorAll(".entryline, details.topic, .papershelf"));
  const topics = Array.from(finder.querySelectorAll("details.topic"));
  const count = document.getElementById("count");
  let chosen = -1, shown = [], only = "";

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
    const key = { weak: "weak", slow: "seconds" }[state.sort];
    for (const hit of hits) {
      hit.item.hidden = !kept.has(hit);
    }
    if (!key && flat.dataset.used) for (const hit of hits) hit.home.append(hit.item);
    if (key) {
      found.sort((a, b) => b.item.dataset[key] - a.item.dataset[key]);
      flat.append(...found.map((hit) => hit.item));
      flat.dataset.used = "1";
    } else delete flat.dataset.used;
    flat.hidden = !key;
    const narrowed = asked().some(([name]) => name !== "sort");
    for (const box of boxes) box.hidden = key ? true : !box.querySelector("li.hit:not([hidden])");
    if (narrowed !== topics.narrowed) for (const topic of topics) topic.open = narrowed;
    topics.narrowed = narrowed;
    finder.classList.toggle("narrowed", narrowed);
    shown = found;
    choose(-1);
    count.textContent = narrowed || key ? found.length + " of " + hits.length + " lines" + (only ? ", those that the number counts" : "") : "";
    return state;
  };

  const choose = (place) => {
    if (shown[chosen]) shown[chosen].item.classList.remove("chosen");
    chosen = Math.max(-1, Math.min(place, shown.length - 1));
    if (chosen < 0) return;
    const { item } = shown[chosen];
    item.classList.add("chosen");
    const topic = item.closest("details");
    if (topic) topic.open = true;
    item.scrollIntoView({ block: "nearest" });
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
  filters.addEventListener("input", (event) => {
    if (event.target.name !== "sort") only = "";
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
    } else if (event.target === byName.q && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.target === byName.q && event.key === "Enter") {
      event.preventDefault();
      const hit = shown[Math.max(chosen, 0)];
      if (hit) location.href = hit.link.href;
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
