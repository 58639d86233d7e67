"use strict";
const account = JSON.parse(document.getElementById("account").textContent);
const room = document.getElementById("room"), search = document.getElementById("search");
const SVG = "http://www.w3.org/2000/svg";

// ---- small builders
function put(parent, tag, attributes = {}, ...children) {
  const made = parent && parent.namespaceURI === SVG || tag === "svg" ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) name === "on" ? made.addEventListener(...value) : made.setAttribute(name, value);
  for (const child of children) made.append(child);
  if (parent) parent.append(made);
  return made;
}
function table(parent, heads, rows) {
  const made = put(parent, "table"), head = put(made, "tr");
  heads.forEach(h => put(head, "th", {}, h));
  rows.forEach(row => { const tr = put(made, "tr"); row.forEach(c => typeof c === "number" ? put(tr, "td", {class: "n"}, c.toLocaleString()) : put(tr, "td", {}, c)); });
  return made;
}
const bytes = n => n >= 1e9 ? (n / 1e9).toFixed(2) + " GB" : n >= 1e6 ? (n / 1e6).toFixed(2) + " MB" : n >= 1e3 ? (n / 1e3).toFixed(1) + " kB" : n + " B";
const seconds = s => s === null || s === undefined ? "" : s >= 1 ? s.toFixed(2) + " s" : s >= 1e-3 ? (s * 1e3).toFixed(2) + " ms" : (s * 1e6).toFixed(1) + " µs";
const short = file => file.split("/").slice(-2).join("/");
const matches = text => search.value && text.toLowerCase().includes(search.value.toLowerCase());
const hidden = text => search.value && !text.toLowerCase().includes(search.value.toLowerCase());

// ---- rooms: what is shown under which button
function furnish(rooms) {
  const asked = decodeURIComponent(location.hash.slice(1));
  let current = asked in rooms ? asked : Object.keys(rooms)[0];
  const show = () => {
    for (const name of Object.keys(rooms)) document.getElementById("room-" + name).setAttribute("aria-current", name === current);
    room.replaceChildren();
    rooms[current](room);
  };
  for (const name of Object.keys(rooms)) put(document.getElementById("rooms"), "button", {id: "room-" + name, on: ["click", () => { current = name; history.replaceState(null, "", "#" + name); show(); }]}, name);
  search.addEventListener("input", show);
  show();
  return show;
}
