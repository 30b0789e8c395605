// Shows texts of a model: as text, whatever is in them, with ranges marked.
"use strict";

const Texts = (() => {
  // Characters that are not seen, or that turn the direction of others: they are written out.
  const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
  const WORD = /<\/?\w+>|[\p{L}\p{N}_]+|\s+|[^]/gu; // a tag is one word
  const DIFF_MS = 300;

  function plain(text, into) {
    let end = 0;
    for (const found of text.matchAll(UNSEEN)) {
      into.append(text.slice(end, found.index));
      const mark = document.createElement("span");
      mark.className = "unseen";
      mark.textContent = `U+${found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
      into.append(mark);
      end = found.index + found[0].length;
    }
    into.append(text.slice(end));
  }

  // Returns a fragment in which every range [from, to, class, title] of the text has its class; ranges may overlap.
  function marked(text, ranges) {
    const edges = new Set([0, text.length]);
    for (const [from, to] of ranges) edges.add(from), edges.add(to);
    const order = [...edges].sort((a, b) => a - b), fragment = document.createDocumentFragment();
    const begin = [...ranges].sort((a, b) => a[0] - b[0]);
    let open = [], next = 0;
    for (let i = 0; i + 1 < order.length; i++) {
      while (next < begin.length && begin[next][0] <= order[i]) open.push(begin[next++]);
      open = open.filter(([, to]) => to > order[i]);
      const span = open.length ? document.createElement("span") : fragment;
      plain(text.slice(order[i], order[i + 1]), span);
      if (open.length) {
        span.className = open.map((range) => range[2]).join(" ");
        span.title = open.find((range) => range[3])?.[3] ?? "";
        fragment.append(span);
      }
    }
    return fragment;
  }

  // Returns the ranges of thinking, of the answer, and of their tags.
  function parts(text) {
    const ranges = [];
    let thinks = null, answers = null;
    for (const tag of text.matchAll(/<(\/?)(think|answer)>/g)) {
      const end = tag.index + tag[0].length;
      ranges.push([tag.index, end, "tag"]);
      if (tag[2] === "think") {
        if (tag[1]) ranges.push([thinks ?? 0, tag.index, "think"]);
        thinks = tag[1] ? null : end;
      } else {
        if (tag[1] && answers !== null) ranges.push([answers, tag.index, "answer"]);
        answers = tag[1] ? null : end;
      }
    }
    if (thinks !== null) ranges.push([thinks, text.length, "think"]);
    const box = text.lastIndexOf("\\boxed{");
    if (box >= 0) ranges.push([box, closing(text, box + 7), "answer"]);
    return ranges;
  }

  function closing(text, from) {
    let depth = 1, at = from;
    while (at < text.length && depth) depth += { "{": 1, "}": -1 }[text[at++]] ?? 0;
    return at;
  }

  // Returns the ranges that keep a text from its format; `problem` is in the words of lib/text/formats.py.
  function faults(text, problem) {
    const all = (pattern) => [...text.matchAll(pattern)].map((each) => [each.index, each.index + each[0].length, "fault"]);
    const [, where, mark] = /^text (before|after) (.+)$/.exec(problem) ?? [];
    if (where === "before") return [[0, text.indexOf(mark), "fault"]];
    if (where === "after" && mark === "\\boxed{}") {
      return [[closing(text, text.lastIndexOf("\\boxed{") + 7), text.length, "fault"]];
    }
    if (where === "after") return [[text.lastIndexOf(mark) + mark.length, text.length, "fault"]];
    if (problem.startsWith("text between")) return [[text.indexOf("</think>") + 8, text.indexOf("<answer>"), "fault"]];
    if (/several .*boxed/.test(problem)) return all(/\\boxed/g);
    if (/think/.test(problem)) return all(/<\/?think>/g);
    if (/answer/.test(problem)) return all(/<\/?answer>/g);
    return all(/\\boxed/g);
  }

  // Returns the ranges that differ, word by word: of the first text what is gone, of the second what is new; null
  // where the texts are too long to be compared in time.
  function changes(first, second) {
    const [one, two] = [first, second].map((text) => text.match(WORD) ?? []);
    const found = Diff.diffArrays(one, two, { timeout: DIFF_MS });
    if (!found) return null;
    const gone = [], added = [];
    let a = 0, b = 0;
    for (const { value, added: isNew, removed: isGone } of found) {
      const length = value.reduce((sum, word) => sum + word.length, 0);
      if (isGone) gone.push([a, a + length, "gone"]);
      if (isNew) added.push([b, b + length, "new"]);
      if (!isNew) a += length;
      if (!isGone) b += length;
    }
    return { gone, added };
  }

  function hits(text, query) {
    const ranges = [];
    if (!query) return ranges;
    const low = text.toLowerCase();
    for (let at = low.indexOf(query); at >= 0 && ranges.length < 1000; at = low.indexOf(query, at + query.length)) {
      ranges.push([at, at + query.length, "hit"]);
    }
    return ranges;
  }

  return { marked, parts, faults, changes, hits };
})();
