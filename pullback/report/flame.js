// ---- a profile
function kinds(parent) {
  put(parent, "p", {}, `${seconds(account.seconds)} in ${account.looks.toLocaleString()} looks`);
  table(parent, ["kind of work", "time", "share", ""], account.kinds.map(([name, s]) => [name, seconds(s), (100 * s / account.seconds).toFixed(1) + "%", put(null, "span", {class: "bar", style: `width:${(300 * s / account.seconds).toFixed(0)}px`})]));
}
function lines(parent) {
  table(parent, ["line", "function", "text", "time", "share"], account.lines.filter(([f, n, q, t]) => !hidden(f + q + t)).map(([f, n, q, t, s]) => [short(f) + ":" + n, q, put(null, "code", {}, t), seconds(s), (100 * s / account.seconds).toFixed(1) + "%"]));
}
let zoomed = account.tree;
const HUES = {operators: "g0", "operators in backward": "g1", engine: "g2", "native code": "g3", optimizer: "g4", "data loading": "g5", compiling: "g5", Python: "g2"};
function flame(parent) {
  put(parent, "button", {class: "choice", on: ["click", () => { zoomed = account.tree; show(); }]}, "whole");
  const box = put(parent, "div", {class: "flame"});
  const level = (call, into, depth) => {
    const cell = put(into, "div", {class: "call " + (HUES[call.kind] || "") + (matches(call.name) ? " found" : ""), title: `${call.name}\n${seconds(call.seconds)}, ${(100 * call.seconds / account.seconds).toFixed(1)}%`, style: `flex:${call.seconds} 0 0`});
    put(cell, "button", {class: "name", on: ["click", () => { zoomed = call; show(); }]}, call.name);
    const below = put(cell, "div", {class: "below"}), rest = call.seconds - call.inside.reduce((s, c) => s + c.seconds, 0);
    call.inside.filter(c => c.seconds > .002 * zoomed.seconds && depth < 60).forEach(c => level(c, below, depth + 1));
    if (rest > 0) put(below, "div", {style: `flex:${rest} 0 0`});
  };
  level(zoomed, box, 0);
}
const show = furnish({Kinds: kinds, Lines: lines, Flame: flame});
