const operators = g => g.nodes.filter(n => n.op.startsWith("call_")).length;

// ---- overview
function overview(parent) {
  put(parent, "h2", {}, "Functions");
  table(parent, ["function", "graphs", "operators", "breaks", "recompiles", "file"], account.functions.map(f => [
    f.name, f.graphs.length, f.graphs.reduce((n, k) => n + operators(account.graphs[k]), 0), f.breaks.length, f.recompiles.length, f.file ? short(f.file) + ":" + f.first : ""]));
  if (!account.functions.length) put(parent, "p", {class: "faint"}, "Nothing was compiled.");
  const advice = Object.entries(account.advice);
  if (advice.length) { put(parent, "h2", {}, "What to try"); table(parent, ["lines", "advice"], advice.map(([text, places]) => [places.map(p => short(p.split(" in ")[0])).join(", "), text])); }
  put(parent, "h2", {}, "Where compile time went");
  const stages = Object.entries(account.stages).sort((a, b) => b[1] - a[1]), most = Math.max(...stages.map(s => s[1]), 1e-9);
  table(parent, ["stage", "time", ""], stages.map(([name, s]) => [name, seconds(s), put(null, "span", {class: "bar", style: `width:${(200 * s / most).toFixed(0)}px`})]));
  const limits = Object.entries(account.machine);
  if (limits.length) { put(parent, "h2", {}, "What this machine can do"); table(parent, ["", "at best"], limits.map(([k, v]) => [k, (v / 1e9).toFixed(1) + " G"])); }
}

// ---- source
function sources(parent) {
  for (const [file, lines] of Object.entries(account.files)) {
    const of = new Map(), why = new Map();
    account.graphs.filter(g => g.kind === "captured").forEach((g, k) => g.nodes.forEach(n => {
      if (n.line && n.line[0] === file && !of.has(n.line[1])) of.set(n.line[1], [k, g]);
    }));
    account.functions.forEach(f => f.breaks.forEach(([reason, where]) => {
      const at = /^(.*):(\d+)(?: in .*)?$/.exec(where || "");
      if (at && at[1] === file) why.set(+at[2], [...(why.get(+at[2]) || []), reason]);
    }));
    const compiled = account.functions.filter(f => f.file === file);
    if (!of.size && !why.size && !compiled.length) continue;
    put(parent, "h2", {}, file);
    const from = Math.max(1, Math.min(...of.keys(), ...why.keys(), ...compiled.map(f => f.first || 1)) - 3);
    const to = Math.min(lines.length, Math.max(...of.keys(), ...why.keys(), ...compiled.map(f => f.first + f.source.length - 1)) + 3);
    const box = put(parent, "div", {class: "code"});
    for (let n = from; n <= to; n++) {
      const text = lines[n - 1] ?? "", graph = of.get(n), reasons = why.get(n);
      if (hidden(text)) continue;
      const row = put(box, "div", {class: "line" + (graph ? " g" + graph[0] % 6 : "") + (reasons ? " broke" : ""), title: graph ? `graph ${graph[1].number} of ${graph[1].function}` : ""});
      put(row, "i", {}, String(n)); put(row, "span", {}, text || " ");
      if (reasons) [...new Set(reasons)].forEach(r => put(row, "span", {class: "why"}, "⟵ the graph ends: " + r));
    }
  }
  const elsewhere = account.functions.flatMap(f => f.breaks.filter(b => !b[1]).map(b => [f.name, b[0]]));
  if (elsewhere.length) { put(parent, "h2", {}, "Not captured"); table(parent, ["function", "because"], elsewhere); }
  put(parent, "p", {class: "faint"}, "Lines of one colour are in one graph; lines without one run as plain Python, or compute nothing.");
}

// ---- graphs
let chosen = 0;
function graphs(parent) {
  const list = put(parent, "p");
  account.graphs.filter(g => operators(g)).forEach(g => put(list, "button", {class: "choice", "aria-current": g.number === chosen, on: ["click", () => { chosen = g.number; show(); }]}, `${g.number} ${g.kind} (${operators(g)})`));
  const g = account.graphs[chosen];
  if (!g) return;
  put(parent, "h2", {}, `Graph ${g.number}: ${g.title}`);
  if (g.notes.length) { const d = put(parent, "details"); put(d, "summary", {}, g.notes[0]); put(d, "pre", {}, g.notes.slice(1).join("\n")); }
  draw(put(parent, "div", {class: "drawing"}), g);
  put(parent, "h3", {}, "Nodes");
  table(parent, ["node", "what", "of", "gives", "line"], g.nodes.filter(n => !hidden(n.name + n.target + n.value)).slice(0, 400).map(n => [n.name, n.target, n.inputs.join(", "), n.value, n.line ? short(n.line[0]) + ":" + n.line[1] : ""]));
}
function layers(g) {
  const depth = new Map(), rows = [];
  g.nodes.forEach(n => { const d = n.op === "output" ? Math.max(0, ...depth.values()) + 1 : n.inputs.length ? 1 + Math.max(...n.inputs.map(i => depth.get(i) ?? 0)) : 0; depth.set(n.name, d); (rows[d] ||= []).push(n); });
  g.nodes.forEach(n => { // inputs stand one above their first reader
    if (n.inputs.length || n.op === "output") return;
    const readers = g.nodes.filter(m => m.inputs.includes(n.name)).map(m => depth.get(m.name));
    const d = readers.length ? Math.max(0, Math.min(...readers) - 1) : 0;
    if (d) { rows[0] = rows[0].filter(m => m !== n); (rows[d] ||= []).push(n); depth.set(n.name, d); }
  });
  return rows.filter(r => r && r.length);
}
function draw(parent, g) {
  const rows = layers(g), W = 150, H = 54, at = new Map(), width = Math.max(...rows.map(r => r.length), 1) * W + 20;
  rows.forEach((row, y) => row.forEach((n, x) => at.set(n.name, [10 + (x + (width / W - row.length) / 2 - .07) * W, 10 + y * H])));
  const svg = put(parent, "svg", {width, height: rows.length * H + 20, role: "img", "aria-label": `graph ${g.number}`}), edges = put(svg, "g"), near = new Map();
  g.nodes.forEach(n => n.inputs.forEach(i => {
    const [x1, y1] = at.get(i) || [0, 0], [x2, y2] = at.get(n.name), e = put(edges, "path", {class: "edge", d: `M${x1 + 65},${y1 + 34} C${x1 + 65},${y1 + 50} ${x2 + 65},${y2 - 16} ${x2 + 65},${y2}`});
    [i, n.name].forEach(k => near.set(k, [...(near.get(k) || []), e]));
  }));
  g.nodes.forEach(n => {
    const [x, y] = at.get(n.name), text = n.name + n.target + n.value;
    const box = put(svg, "g", {class: "node" + (matches(text) ? " found" : search.value ? " dim" : ""), on: ["mouseenter", () => (near.get(n.name) || []).forEach(e => e.classList.add("near"))]});
    box.addEventListener("mouseleave", () => (near.get(n.name) || []).forEach(e => e.classList.remove("near")));
    put(box, "title", {}, `${n.name} = ${n.target}(${n.inputs.join(", ")})\n${n.value}${n.line ? "\n" + n.line.join(":") : ""}`);
    put(box, "rect", {x, y, width: 130, height: 34});
    put(box, "text", {x: x + 5, y: y + 14}, n.name.slice(0, 19)); put(box, "text", {x: x + 5, y: y + 28, opacity: .6}, n.value.slice(0, 19));
  });
}

// ---- kernels
function kernels(parent) {
  for (const g of account.graphs.filter(g => g.kernels.length || g.refusals.length)) {
    const total = g.kernels.reduce((s, k) => s + (k.seconds || 0), 0);
    put(parent, "h2", {}, `Graph ${g.number}: ${g.title}, ${g.kernels.length} kernels${total ? ", " + seconds(total) : ""}`);
    [...g.kernels].sort((a, b) => (b.seconds || 0) - (a.seconds || 0)).forEach(k => {
      const lines = k.lines.map(([f, n]) => `${short(f)}:${n}  ${(account.files[f] || [])[n - 1]?.trim() ?? ""}`);
      if (hidden(k.what + k.text + lines.join())) return;
      const d = put(parent, "details"), s = put(d, "summary");
      put(s, "code", {}, k.what.split("\n")[0] + (k.nodes.length ? "  " + k.nodes.join(", ").slice(0, 90) : ""));
      put(s, "div", {class: "faint"}, [seconds(k.seconds), bytes(k.moved), k.operations.toLocaleString() + " operations", k.share === null ? "" : k.share > 1 ? "faster than main memory: it stays in cache" : `${(100 * k.share).toFixed(0)}% of the limit of ${k.bound}`].filter(Boolean).join(" · "));
      put(d, "pre", {}, lines.join("\n")); put(d, "pre", {}, k.what);
      if (k.nodes.length > 1) put(d, "p", {}, `Joined in one kernel: ${k.nodes.join(", ")}.`);
      if (k.apart.length) { put(d, "p", {}, "Not joined with"); const ul = put(d, "ul", {class: "code"}); k.apart.forEach(w => put(ul, "li", {}, w)); }
      put(d, "pre", {}, k.text);
    });
    if (g.refusals.length) { put(parent, "h3", {}, "Not in a kernel"); table(parent, ["operator", "because", "line"], g.refusals.map(r => [r.operator, r.reason, r.line ? `${short(r.line[0])}:${r.line[1]}` : ""])); }
  }
  if (!account.graphs.some(g => g.kernels.length)) put(parent, "p", {class: "faint"}, "No native code was generated.");
}

// ---- memory
function memory(parent) {
  for (const g of account.graphs.filter(g => g.memory && g.memory.operators.length)) {
    const curve = g.memory.operators, top = Math.max(...curve, g.memory.native, 1), w = 640, h = 160;
    put(parent, "h2", {}, `Graph ${g.number}: ${g.title}`);
    put(parent, "p", {}, `operator by operator at most ${bytes(Math.max(...curve))}; native code reserves ${bytes(g.memory.native)} (dashed), of which at most ${bytes(Math.max(...g.memory.kernels, 0))} hold something at a time (dotted)`);
    const svg = put(parent, "svg", {width: w, height: h + 10});
    const line = values => "M" + values.map((v, i) => `${(i * w / Math.max(values.length - 1, 1)).toFixed(1)},${(h - v * h / top + 5).toFixed(1)}`).join(" L");
    put(svg, "path", {class: "curve", d: line(curve)});
    if (g.memory.kernels.length) put(svg, "path", {class: "curve kernels", d: line([...g.memory.kernels, ...g.memory.kernels.slice(-1)])});
    const y = h - g.memory.native * h / top + 5; put(svg, "path", {class: "limit", d: `M0,${y} L${w},${y}`});
  }
}

// ---- guards, backward
function guards(parent) {
  for (const f of account.functions) {
    const shown = f.guards.filter(g => !hidden(g));
    if (f.recompiles.length) { put(parent, "h2", {}, f.name + " was compiled again because"); const ul = put(parent, "ul"); f.recompiles.forEach(r => put(ul, "li", {}, r)); }
    if (!shown.length) continue;
    put(parent, "h2", {}, `${f.name} depends on`); const ul = put(parent, "ul", {class: "code"}); shown.forEach(g => put(ul, "li", {}, g));
  }
}
const short_place = text => text.replace(/\(([^()]*):(\d+)\)$/, (_, file, line) => `(${short(file)}:${line})`);
function backwards(parent) {
  const found = account.graphs.filter(g => g.kind === "compiled backward"), ahead = account.graphs.filter(g => g.kind === "backward" && operators(g));
  account.walks.known.forEach((w, k) => {
    put(parent, "h2", {}, `Backward ${k} of the engine, walked ${w.times === 1 ? "once" : w.times + " times"}`);
    table(parent, ["", "called before", "node", "called after"], w.steps.map((s, i) => [i, s.before.map(short_place).join("; "), s.node, s.after.map(short_place).join("; ")]).filter(r => !hidden(r.join())));
  });
  if (account.walks.more) put(parent, "p", {class: "faint"}, `${account.walks.more} more backwards had other structures.`);
  [...found, ...ahead].forEach(g => {
    put(parent, "h2", {}, `Graph ${g.number}: ${g.notes[0] || g.title}`);
    table(parent, ["", "step", "what", "of the line"], g.nodes.filter(n => n.op.startsWith("call_")).map((n, i) => [i, n.name, n.target, n.line ? `${short(n.line[0])}:${n.line[1]}  ${(account.files[n.line[0]] || [])[n.line[1] - 1]?.trim() ?? ""}` : ""]).filter(r => !hidden(r.join())));
  });
  put(parent, "p", {class: "faint"}, found.length || account.walks.known.length ? "" : "Hooks stand among the steps of backwards that are captured at run time (torch._dynamo.config.compiled_autograd = True); these graphs were made ahead of time.");
}

const show = furnish({Overview: overview, Source: sources, Graphs: graphs, Kernels: kernels, Memory: memory, Guards: guards, Backward: backwards});
