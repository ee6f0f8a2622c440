// Before the first paint: the theme that the reader chose, if there is one.
const chosen = localStorage.getItem("understudy-theme");
if (chosen === "dark" || chosen === "light") {
  document.documentElement.dataset.theme = chosen;
}
