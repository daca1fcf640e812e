// What the browser does by itself: it says that the connection is lost, and where a part of the page is filled anew, the
// keyboard stays where it was.
addEventListener("DOMContentLoaded", () => {
  const popup = document.getElementById("popup");
  popup.setAttribute("role", "alert");
  popup.dataset.testid = "connection-lost";
  const [first, second] = popup.querySelectorAll("span");
  first.textContent = "The connection to the studio on this machine is lost.";
  second.textContent =
    "This page tries again by itself and picks up where you were. If you stopped the studio, start it again and open " +
    "its new address.";

  const reached = "input, button, textarea, [tabindex]";
  let last = null;
  addEventListener("focusin", (event) => {
    const known = event.target.closest("main [data-testid]");
    last = known && { element: event.target, test: known.dataset.testid };
  });
  new MutationObserver(() => {
    if (!last || last.element.isConnected || document.activeElement !== document.body) return;
    const found = document.querySelector(`main [data-testid="${CSS.escape(last.test)}"]`);
    const inner = found?.matches(reached) ? found : found?.querySelector(reached);
    inner?.focus({ preventScroll: true });
  }).observe(document.body, { childList: true, subtree: true });
});
