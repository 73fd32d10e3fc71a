// Parts of a page that change are fetched again while somebody looks at it.
"use strict";
(() => {
  const parts = document.querySelectorAll("[data-live]");
  if (parts.length === 0) return;
  const again = async () => {
    if (document.hidden) return;
    try {
      const reply = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!reply.ok || reply.redirected) return;
      const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const other = fresh.getElementById(part.id);
        if (other && !part.contains(document.activeElement)
            && other.innerHTML !== part.innerHTML && !part.querySelector("details[open]")) {
          part.replaceWith(document.importNode(other, true));
        }
      }
    } catch {
      // The server is away; the next turn looks again.
    }
  };
  setInterval(again, 10000);
})();
