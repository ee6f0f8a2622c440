// Keys: 1 to 9 open the pages of the run, a all runs, c the comparison, t the theme, ? the list.

/** @param {{switchTheme: () => void}} actions */
export function listenForKeys({ switchTheme }) {
  const help = /** @type {HTMLDialogElement | null} */ (document.getElementById("help"));
  document.getElementById("keys")?.addEventListener("click", () => help?.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) {
      return;
    }
    if (event.target instanceof Element && event.target.closest("input, select, textarea")) {
      return;
    }
    const pages = document.querySelectorAll("header nav a");
    if (event.key >= "1" && event.key <= "9") {
      pages[Number(event.key) - 1]?.click();
    } else if (event.key === "a") {
      location.assign("/");
    } else if (event.key === "c") {
      location.assign("/compare");
    } else if (event.key === "t") {
      switchTheme();
    } else if (event.key === "?") {
      help?.showModal();
    }
  });
}
