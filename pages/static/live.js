// Opens the view that the address names; on a live page, asks its server every second what is new.
"use strict";

Rollouts.route();

if (document.body.hasAttribute("data-live")) {
  const told = document.querySelector(".live");
  let version = "", waits = false;
  setInterval(async () => {
    if (waits) return;
    waits = true;
    try {
      const answer = await fetch(`new?since=${encodeURIComponent(version)}`);
      if (!answer.ok) throw new Error(answer.status);
      const found = await answer.json();
      told.textContent = `live · ${found.status}`;
      if (found.html !== undefined) {
        const open = [...document.querySelectorAll("#overview section > details[open]")].map((each) => each.parentNode.id);
        document.getElementById("overview").innerHTML = found.html;
        for (const id of open) document.querySelector(`#${CSS.escape(id)} > details`)?.setAttribute("open", "");
        document.title = found.title;
        if (!document.getElementById("overview").hidden) Charts.all(), Answer.compare();
        if (version) Rollouts.refresh();
      }
      version = found.version;
    } catch {
      told.textContent = "the server is gone: this is how it was last seen";
    }
    waits = false;
  }, 1000);
}
