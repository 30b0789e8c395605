// The browser of rollouts: filters and search over an index, a list of which only what is seen exists, one in detail.
"use strict";

const Rollouts = (() => {
  const box = document.getElementById("rollouts");
  if (!box) return { route: Charts.all, refresh: () => {} };
  const LINE = 58; // pixels of a line of the list, as in rollouts.css
  const NAMES = {
    train: "training", evaluation: "held out", i_to_c: "wrong → right", c_to_i: "right → wrong", right: "right",
    wrong: "wrong", malformed: "malformed", malformed_paid: "malformed, but paid", truncated: "cut off", copied: "copied", changed: "changed", won: "won",
    lost: "opponent won", hinted: "under a hint", teacher: "teacher", alarm: "in an alarm",
    tokens: "token by token",
  };
  const isLive = document.body.hasAttribute("data-live");
  const form = box.querySelector("form"), list = box.querySelector(".list"), rows = box.querySelector(".rows");
  const detail = box.querySelector(".detail"), count = box.querySelector(".count");
  const make = (tag, className, text) => Object.assign(document.createElement(tag), { className, textContent: text ?? "" });
  let index = null, prompts = [], found = [], state = {}, asked = 0, drawing = 0;
  const parts = new Map();

  // -- data

  // `of`: the version of the index that names it; a live page reads the index again where the server has another.
  async function inflated(name, of) {
    let stream;
    if (isLive) {
      const answer = await fetch(`data/${name}${of ? `?of=${of}` : ""}`);
      if (answer.status === 409) refresh();
      if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
      stream = answer.body;
    } else {
      const text = atob(document.getElementById(`blob-${name}`).textContent), bytes = new Uint8Array(text.length);
      for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
      stream = new Blob([bytes]).stream();
    }
    return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).json();
  }

  let loading = null;
  const load = () => (loading ??= inflated("index").then(async (tree) => {
    const texts = await inflated("prompts", tree.version);
    index = tree;
    prompts = texts.prompts;
    index.size = index.rows.id.length;
    index.bit = Object.fromEntries(index.flags.map((flag, bit) => [flag, 1 << bit]));
    offer();
  }));

  async function body(place) {
    const number = Math.floor(place / index.part);
    if (!parts.has(number)) parts.set(number, inflated(`part-${number}`, index.version));
    return (await parts.get(number)).rollouts[place % index.part];
  }

  const has = (place, flag) => (index.rows.flags[place] & index.bit[flag]) !== 0;
  const momentOf = (place) => index.moments[index.rows.moment[place]];
  const address = (place) => `${momentOf(place).run}.${index.rows.id[place]}`;
  const placeOf = (text) => {
    const [run, id] = (text ?? "").split(".").map(Number);
    return index.rows.id.findIndex((each, place) => each === id && momentOf(place).run === run);
  };

  // -- filters

  function offer() {
    const seen = index.rows.flags.reduce((all, flags) => all | flags, 0), chips = form.querySelector(".chips");
    chips.replaceChildren(...index.flags.filter((flag) => seen & index.bit[flag]).map((flag) => {
      const chip = make("button", "chip", NAMES[flag] ?? flag);
      Object.assign(chip, { type: "button", value: flag });
      chip.setAttribute("aria-pressed", "false");
      return chip;
    }));
    const several = index.runs.length > 1;
    form.at.replaceChildren(new Option("any time", ""), ...index.moments.flatMap((moment, place) =>
      (moment.train ? [] : [new Option(`${several ? `${index.runs[moment.run]}: ` : ""}${moment.label}`, place)])));
  }

  function read() {
    const params = new URLSearchParams(location.hash.slice(1));
    state = Object.fromEntries(["q", "at", "from", "to", "sort", "by", "r", "pin", "run"]
      .map((name) => [name, params.get(name) ?? ""]));
    if (!Answer.ways.includes(state.by)) state.by = "";
    state.f = new Set((params.get("f") ?? "").split(",").filter((flag) => flag in index.bit));
    for (const name of ["q", "at", "from", "to", "sort", "by"]) form[name].value = state[name];
    mark();
    for (const chip of form.querySelectorAll(".chip")) {
      chip.setAttribute("aria-pressed", String(state.f.has(chip.value)));
    }
  }

  // On a phone these stand behind a button, which tells whether one of them is set.
  const mark = () => form.querySelector(".more").classList.toggle("used", ["at", "from", "to", "sort", "by"].some((name) => state[name]));

  function write() {
    mark();
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...state, f: [...state.f].join(",") })) if (value) params.set(name, value);
    const hash = params.toString();
    history.replaceState(null, "", hash ? `#${hash}` : "#rollouts");
  }

  function filtered({ f, from, to, at, run } = state) {
    const { rows, moments } = index, places = [];
    const mask = [...f].reduce((all, flag) => all | index.bit[flag], 0);
    const first = from === "" ? -Infinity : Number(from), last = to === "" ? Infinity : Number(to);
    for (let place = 0; place < index.size; place++) {
      const moment = moments[rows.moment[place]];
      if ((rows.flags[place] & mask) !== mask || moment.step < first || moment.step > last) continue;
      if (at !== "" && rows.moment[place] !== Number(at)) continue;
      if (run !== "" && moment.run !== Number(run)) continue;
      places.push(place);
    }
    const { reward, advantage } = index.rows;
    const by = {
      last: (a, b) => b - a, advantage: (a, b) => Math.abs(advantage[b] ?? 0) - Math.abs(advantage[a] ?? 0) || a - b,
      reward: (a, b) => (reward[b] ?? -Infinity) - (reward[a] ?? -Infinity) || a - b,
      low: (a, b) => (reward[a] ?? Infinity) - (reward[b] ?? Infinity) || a - b,
    }[state.sort];
    return by ? places.sort(by) : places;
  }

  // Says whether no rollout is like that, or none of these steps was kept.
  function nothing() {
    if (state.from === "" && state.to === "") return "No rollout is like that.";
    const f = new Set(["train"].filter((flag) => state.f.has(flag))), all = { f, from: "", to: "", at: "", run: state.run };
    if (filtered({ ...all, from: state.from, to: state.to }).length) return "No rollout of these steps is like that.";
    const steps = filtered(all).map((place) => momentOf(place).step).sort((a, b) => a - b);
    return `No rollouts of these steps are kept${steps.length ? `: they are of steps ${steps[0]} to ${steps.at(-1)} of the whole run` : ""}.`;
  }

  async function search() {
    const turn = ++asked, places = filtered(), query = state.q.toLowerCase();
    if (!query) return settle(places, "");
    const kept = [], finds = (text) => typeof text === "string" && text.toLowerCase().includes(query);
    found = kept;
    for (const [number, place] of places.entries()) {
      const part = Math.floor(place / index.part);
      if (!parts.has(part) || number % 2000 === 0) await new Promise((done) => setTimeout(done));
      const rollout = await body(place);
      if (turn !== asked) return; // another search has begun
      if (finds(prompts[index.rows.prompt[place]]) || finds(rollout.hint) || finds(rollout.target)
        || rollout.texts.some((each) => finds(each.text) || finds(each.about))) kept.push(place);
      if (number % 2000 === 1999) settle(kept, `, ${number + 1} of ${places.length} searched`);
    }
    return settle(kept, "");
  }

  function settle(places, note) {
    found = places;
    count.textContent = `${places.length.toLocaleString("en")} of ${index.size.toLocaleString("en")} rollouts${note}`;
    rows.style.height = `${places.length * LINE}px`;
    drawList();
    if (!note) return choose(state.r && placeOf(state.r) >= 0 ? placeOf(state.r) : places[0] ?? -1, false);
  }

  // -- list

  const verdict = (place) => (has(place, "teacher") ? "teacher" : has(place, "malformed_paid") ? "malformed ✓"
    : has(place, "malformed") ? "malformed"
    : has(place, "i_to_c") ? "✗ ✓" : has(place, "c_to_i") ? "✓ ✗" : has(place, "right") ? "✓"
      : has(place, "wrong") ? "✗" : "–");

  function drawList() {
    const first = Math.max(0, Math.floor(list.scrollTop / LINE) - 5), most = Math.ceil(list.clientHeight / LINE) + 10;
    const chosen = placeOfChosen();
    rows.replaceChildren(...found.slice(first, first + most).map((place, offset) => {
      const line = make("div", "line");
      line.id = `line-${place}`;
      line.style.top = `${(first + offset) * LINE}px`;
      line.dataset.place = place;
      for (const [name, value] of Object.entries({ role: "option", "aria-selected": place === chosen,
        "aria-setsize": found.length, "aria-posinset": first + offset + 1 })) line.setAttribute(name, value);
      const mark = make("b", has(place, "malformed") ? "mal" : has(place, "right") ? "right" : "wrong", verdict(place));
      const run = index.runs.length > 1 ? `${index.runs[momentOf(place).run]} · ` : "";
      const title = make("span", "title");
      title.append(Texts.marked(prompts[index.rows.prompt[place]].slice(0, 200).replace(/\s+/g, " "), []));
      const reward = index.rows.reward[place], advantage = index.rows.advantage[place];
      const told = make("small", "", run + momentOf(place).label + (reward === null ? "" : ` · reward ${reward}`)
        + (advantage === null ? "" : ` · advantage ${advantage.toPrecision(3)}`));
      line.append(mark, title, make("span", "number", `#${index.rows.number[place]}`), told);
      return line;
    }));
    if (!found.length) rows.replaceChildren(make("p", "note", nothing()));
    list.setAttribute("aria-activedescendant", `line-${chosen}`);
  }

  // -- one rollout

  const placeOfChosen = () => (state.r ? placeOf(state.r) : -1);

  async function choose(place, isByHand = true) {
    if (place < 0) return detail.replaceChildren();
    state.r = address(place);
    if (isByHand) write();
    const at = found.indexOf(place), top = at * LINE;
    if (at >= 0 && (top < list.scrollTop || top + LINE > list.scrollTop + list.clientHeight)) {
      list.scrollTop = top - list.clientHeight / 3;
    }
    drawList();
    const turn = ++drawing, pinned = state.pin ? placeOf(state.pin) : -1;
    const shown = [];
    for (const each of pinned >= 0 && pinned !== place ? [pinned, place] : [place]) shown.push(await whole(each));
    const more = await around(place);
    const isThere = index.rows.flags.some((flags) => flags & index.bit.tokens);
    if (turn === drawing) detail.replaceChildren(...Answer.legend(state.by, isThere), ...shown, ...more);
  }

  async function whole(place) {
    const rollout = await body(place), view = make("section", "rollout"), head = make("header");
    const run = index.runs.length > 1 ? `${index.runs[momentOf(place).run]}, ` : "";
    const link = make("a", "", run + momentOf(place).label);
    link.href = `#r=${address(place)}`;
    link.title = "link to this rollout";
    const pin = make("button", "pin", state.pin === address(place) ? "unpin" : "pin beside");
    pin.type = "button";
    pin.onclick = () => toggle("pin", address(place));
    head.append(link, pin);
    const prompt = make("pre", "prompt");
    const question = prompts[index.rows.prompt[place]];
    prompt.append(Texts.marked(question, Texts.hits(question, state.q.toLowerCase())));
    view.append(head, prompt);
    for (const [name, label] of [["target", "target"], ["hint", "hint"], ["message", "then the user says"]]) {
      if (!rollout[name]) continue;
      const told = make("p", "told", `${label} `), value = make("b");
      value.append(Texts.marked(rollout[name], []));
      told.append(value);
      view.append(told);
    }
    const columns = make("div", "columns");
    const own = rollout.texts.filter((each) => each.who.startsWith("attempt"));
    const marks = new Map(rollout.texts.map((each) => [each, []]));
    let isLong = false;
    for (let i = 1; i < own.length && state.by !== "parts"; i++) {
      const found = Texts.changes(own[i - 1].text, own[i].text);
      isLong ||= !found;
      marks.get(own[i - 1]).push(...(found?.gone ?? []));
      marks.get(own[i]).push(...(found?.added ?? []));
    }
    columns.append(...rollout.texts.map((each) => Answer.column(each, marks.get(each), state.q.toLowerCase(), state.by)));
    view.append(columns);
    if (isLong) view.append(make("p", "note", "These texts are too long and too different to be compared word by word."));
    return view;
  }

  // The other answers to the same prompt: as a tree at the same moment, and a line for every other moment.
  async function around(place) {
    const { group, prompt } = index.rows, mine = [], others = new Map();
    for (let each = 0; each < index.size; each++) {
      if (group[each] === group[place]) mine.push(each);
      else if (prompt[each] === prompt[place]) others.set(group[each], [...(others.get(group[each]) ?? []), each]);
    }
    const button = (each, label, isRight = has(each, "right")) => {
      const node = make("button", isRight ? "node right" : "node wrong", label);
      Object.assign(node, { type: "button", onclick: () => choose(each) });
      if (each === place) node.setAttribute("aria-current", "true");
      return node;
    };
    const result = [];
    if (mine.length > 1) {
      const firsts = new Map();
      for (const each of mine) {
        const { texts } = await body(each), key = texts[0].who === "attempt 1" ? texts[0].text : each;
        firsts.set(key, [...(firsts.get(key) ?? []), [each, texts]]);
      }
      const tree = make("ul", "tree");
      for (const [number, paths] of [...firsts.values()].entries()) {
        const branch = make("li"), twigs = make("ul"), sign = (text) => (text.match ? "✓" : text.match === false ? "✗" : "–");
        const [[first, texts]] = paths;
        branch.append(button(first, `${texts[0].who === "attempt 1" ? "attempt 1" : texts[0].who} #${number + 1} ${sign(texts[0])}`, texts[0].match));
        if (texts[0].who === "attempt 1") {
          twigs.append(...paths.map(([each, own]) => {
            const twig = make("li");
            twig.append(button(each, `${own.slice(1).map((text) => text.who).join(", ")} #${index.rows.number[each]} ${own.slice(1).map(sign).join(" ")}`));
            return twig;
          }));
          branch.append(twigs);
        }
        tree.append(branch);
      }
      result.push(make("h3", "", "All answers to this prompt, sampled together"), tree);
    }
    if (others.size) {
      const line = make("div", "elsewhere");
      for (const each of [...others.values()].slice(0, 60)) {
        const moment = momentOf(each[0]), run = index.runs.length > 1 ? `${index.runs[moment.run]}, ` : "";
        line.append(button(each[0], `${run}${moment.label} ${each.slice(0, 8).map(verdict).join(" · ")}`));
      }
      result.push(make("h3", "", "The same prompt at other times"), line);
    }
    return result;
  }

  // -- what a reader does

  function toggle(name, value) {
    state[name] = state[name] === value ? "" : value;
    if (name === "by") form.by.value = state.by;
    write();
    choose(placeOfChosen(), false);
  }

  function changed() {
    for (const name of ["q", "at", "from", "to", "sort"]) state[name] = form[name].value;
    state.r = "";
    list.scrollTop = 0;
    write();
    search();
  }

  function move(by) {
    const at = found.indexOf(placeOfChosen());
    const next = found[Math.min(found.length - 1, Math.max(0, at + by))];
    if (next !== undefined) choose(next);
  }

  function sibling(by) {
    const place = placeOfChosen(), { group } = index.rows;
    const mine = [...group.keys()].filter((each) => group[each] === group[place]);
    const next = mine[mine.indexOf(place) + by];
    if (next !== undefined) choose(next);
  }

  function clear() {
    state = { q: "", at: "", from: "", to: "", sort: "", by: state.by, r: state.r, pin: "", run: "", f: new Set() };
    write();
    read();
    search();
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => (event.preventDefault(), clear()));
  let waits;
  form.addEventListener("input", (event) => {
    if (event.target === form.by) return toggle("by", form.by.value === state.by ? "" : form.by.value);
    clearTimeout(waits);
    waits = setTimeout(changed, 150);
  });
  form.querySelector(".chips").addEventListener("click", (event) => {
    const flag = event.target.value;
    if (!flag) return;
    if (!state.f.delete(flag)) state.f.add(flag);
    event.target.setAttribute("aria-pressed", String(state.f.has(flag)));
    changed();
  });
  for (const button of form.querySelectorAll("button[aria-controls]")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-expanded", String(button.getAttribute("aria-expanded") === "false"));
    });
  }
  list.addEventListener("scroll", () => requestAnimationFrame(drawList));
  list.addEventListener("click", (event) => {
    const line = event.target.closest(".line");
    if (line) choose(Number(line.dataset.place));
  });
  addEventListener("keydown", (event) => {
    if (box.hidden || !index || event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") return isTyping ? event.target.blur() : clear();
    if (isTyping) return;
    const actions = {
      j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
      PageDown: () => move(10), PageUp: () => move(-10), "[": () => sibling(-1), "]": () => sibling(1),
      "/": () => form.q.focus(), p: () => toggle("pin", state.r),
      c: () => toggle("by", Answer.ways[(Answer.ways.indexOf(state.by) + 1) % Answer.ways.length]), o: () => (location.hash = "#"),
    };
    const isScrolling = event.key.length > 1 && event.target !== list && event.target !== document.body;
    if (!(event.key in actions) || isScrolling) return;
    event.preventDefault();
    actions[event.key]();
  });

  // Shows the view that the address names: rollouts where it has a filter or "rollouts", else the overview.
  async function route() {
    const isHere = location.hash === "#rollouts" || location.hash.includes("=");
    box.hidden = !isHere;
    document.getElementById("overview").hidden = isHere;
    for (const link of document.querySelectorAll(".bar a[data-view]")) {
      if ((link.dataset.view === "rollouts") === isHere) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (!isHere) {
      Charts.all();
      Answer.compare();
      document.getElementById(location.hash.slice(1))?.scrollIntoView(); // its place was not known while it was hidden
      return;
    }
    count.textContent ||= "reading …";
    await load();
    read();
    const isNamed = state.r !== "";
    await search();
    if (isNamed) detail.scrollIntoView(); // on a phone filters and list stand above it
  }

  // Takes what is new from the server; what is chosen stays.
  async function refresh() {
    loading = null;
    parts.clear();
    if (box.hidden) return;
    await load();
    read();
    await search();
  }

  addEventListener("hashchange", route);
  return { route, refresh };
})();
