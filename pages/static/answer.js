// One answer: its verdict, its numbers, and its text, coloured by its parts or token by token.
"use strict";

const Answer = (() => {
  const make = (tag, className, text) => Object.assign(document.createElement(tag), { className, textContent: text ?? "" });
  const level = (value, bounds) => bounds.filter((bound) => value >= bound).length; // 0 to 4
  const signed = (value) => (value ? `${value < 0 ? "−" : "+"}${Math.abs(value)}` : "0");
  const known = (values, i) => (typeof values?.[i] === "number" ? values[i] : null);
  const differs = (value) => (value === null ? "" : `${value < 0 ? "down" : "up"}${level(Math.abs(value), [.01, .05, .2, .7])}`);
  const steps = [["0", "below .01"], ["1", "from .01"], ["2", "from .05"], ["3", "from .2"], ["4", "from .7 nats"]];

  // What a token can be coloured by: its class, and what the colours mean.
  const WAYS = {
    logp: {
      of: (tokens, i) => { const value = known(tokens.logp, i); return value === null ? "" : `rare${level(-value, [.105, .693, 1.609, 3])}`; },
      told: "Probability of the token when it was sampled:",
      key: [["rare0", ".9 and more"], ["rare1", ".5"], ["rare2", ".2"], ["rare3", ".05"], ["rare4", "less"]],
    },
    gap: {
      of: (tokens, i) => differs(known(tokens.gap, i)),
      told: "Log-prob by the policy that is trained, less the sampler's. It should be near 0; likelier for the policy:",
      key: [...steps.map(([n, text]) => [`up${n}`, text]), ["down3", "less likely"]],
    },
    ratio: {
      of: (tokens, i) => differs(tokens.gap ? known(tokens.ratio, i) ?? 0 : null),
      told: "Log ratio of new over old policy, in the last optimizer step on this batch; 0 where there was one step. Likelier now:",
      key: [...steps.map(([n, text]) => [`up${n}`, text]), ["down3", "less likely"]],
    },
    learned: {
      of: (tokens, i, { advantage = 0 }) => (!tokens.weight ? "masked" : tokens.clipped?.includes(i) ? "clipped"
        : advantage > 0 ? "up3" : advantage < 0 ? "down3" : "plain"),
      told: "What the loss does with the token:",
      key: [["up3", "advantage above 0"], ["down3", "below 0"], ["plain", "0: the KL alone"], ["clipped", "stopped by the clip"],
        ["masked", "not trained: masked, or without an advantage and KL"]],
    },
  };

  function legend(by, isThere) {
    if (!(by in WAYS)) return [];
    const line = make("p", "legend", `${WAYS[by].told} `);
    for (const [look, text] of WAYS[by].key) line.append(make("span", `token ${look}`, text), " ");
    const none = "This run kept no numbers per token: tracking.tokens was none, or it is of an earlier version.";
    return isThere ? [line] : [make("p", "note", none)];
  }

  function about(tokens, i) {
    const logp = known(tokens.logp, i), gap = known(tokens.gap, i), ratio = known(tokens.ratio, i);
    return [logp === null ? "" : `log-prob ${signed(logp)}`, gap === null ? "" : `policy ${signed(gap)}`,
      ratio === null ? "" : `log ratio ${signed(ratio)}`, tokens.clipped?.includes(i) ? "clipped" : ""].filter(Boolean).join(", ");
  }

  function colours(text, by) {
    const tokens = text.tokens;
    return tokens.ends.map((end, i) => [i ? tokens.ends[i - 1] : 0, end, `token ${WAYS[by].of(tokens, i, text)}`, about(tokens, i)]);
  }

  // The numbers of every token as a table, made when it is opened.
  function numbers(text) {
    const box = make("details", "tokens"), tokens = text.tokens;
    box.append(make("summary", "", "token by token"));
    box.ontoggle = () => {
      if (box.children.length > 1) return;
      const table = make("table"), head = table.createTHead().insertRow(), wide = make("div", "wide");
      const heads = ["token", "log-prob", ...(tokens.gap ? ["gap"] : []), ...(tokens.ratio ? ["log ratio"] : [])];
      for (const name of heads) head.append(Object.assign(make("th", "", name), { scope: "col" }));
      const rows = table.createTBody();
      for (const [i, end] of tokens.ends.entries()) {
        const row = rows.insertRow(), piece = text.text.slice(i ? tokens.ends[i - 1] : 0, end);
        row.insertCell().append(Texts.marked(piece ? JSON.stringify(piece) : "end, or part of a character", []));
        for (const values of [tokens.logp, tokens.gap, tokens.ratio]) {
          if (values) row.insertCell().textContent = known(values, i) === null ? "–" : signed(values[i]);
        }
      }
      wide.tabIndex = 0;
      wide.append(table);
      box.append(wide);
    };
    return box;
  }

  // `marks` are ranges of the text that differ from the other attempt; with `by`, one of WAYS, tokens are coloured.
  function column(text, marks, query, by) {
    const side = make("div", `column ${text.match ? "right" : text.match === false ? "wrong" : ""}`);
    const head = make("h3", "", text.who), told = make("ul", "numbers"), pre = make("pre", "text"), tokens = text.tokens;
    if ("match" in text) head.append(make("b", "", text.match ? " ✓ right" : " ✗ wrong"));
    const parts = text.reward && typeof text.reward === "object" ? Object.entries(text.reward) : [];
    for (const [name, value] of parts) told.append(make("li", "", `${name} ${value}`));
    if ("advantage" in text) {
      const item = make("li", `advantage ${text.advantage < 0 ? "down" : "up"}`, `advantage ${text.advantage.toPrecision(3)}`);
      item.style.setProperty("--size", Math.min(1, Math.abs(text.advantage)));
      told.append(item);
    }
    if ("length" in text) told.append(make("li", "", `${text.length} tokens`));
    if (text.finished === false) told.append(make("li", "odd", "cut off"));
    if (text.malformed) told.append(make("li", "odd", `malformed: ${text.malformed}`));
    if (text.about) told.append(make("li", "", text.about));
    const isByToken = by in WAYS && tokens;
    const faults = text.malformed ? Texts.faults(text.text, text.malformed) : [];
    const looks = isByToken ? colours(text, by) : [...Texts.parts(text.text), ...marks];
    const all = [...looks, ...faults, ...Texts.hits(text.text, query)];
    pre.append(Texts.marked(text.text, all.filter(([from, to]) => 0 <= from && from < to)));
    if (isByToken && text.finished) {
      const last = tokens.ends.length - 1, end = make("span", `token end ${WAYS[by].of(tokens, last, text)}`, "end");
      end.title = about(tokens, last);
      pre.append(end);
    }
    if (!text.text) pre.append(make("span", "unseen", "empty"));
    side.append(head, told, pre);
    if (by in WAYS) side.append(tokens ? numbers(text) : make("p", "note", "Nothing per token was kept of this answer."));
    return side;
  }

  // In the corrected answer of the first screen, marks what the last attempt changed.
  function compare() {
    for (const figure of document.querySelectorAll("figure.correction:not(.compared)")) {
      figure.classList.add("compared");
      const texts = [...figure.querySelectorAll(".text")], words = texts.map((each) => each.textContent);
      const found = Texts.changes(...words) ?? { gone: [], added: [] };
      for (const [i, marks] of [found.gone, found.added].entries()) {
        texts[i].replaceChildren(Texts.marked(words[i], [...Texts.parts(words[i]), ...marks]));
      }
    }
  }

  return { column, compare, legend, ways: ["", "parts", ...Object.keys(WAYS)] };
})();
