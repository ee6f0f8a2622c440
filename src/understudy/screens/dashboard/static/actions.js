// Actions ask first: a button names what it does in `data-action`, and its dialog says what follows.

function said(words, tone) {
  const element = document.getElementById("said");
  element.textContent = words;
  element.dataset.tone = tone;
}

async function act(button, version) {
  const run = location.pathname.split("/")[2];
  const answer = await fetch(`/runs/${run}/do/${button.dataset.action}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(version === undefined ? {} : { version }),
  });
  const { said: words, error } = await answer.json();
  said(words ?? error, answer.ok ? "good" : "problem");
}

function ask(button) {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("confirm"));
  const title = document.createElement("h2");
  title.id = "confirm-title";
  title.textContent = button.dataset.title ?? button.textContent;
  const words = document.createElement("p");
  words.textContent = button.dataset.confirm ?? "";
  const form = document.createElement("form");
  form.method = "dialog";
  const yes = document.createElement("button");
  yes.value = "yes";
  yes.className = "primary";
  yes.textContent = button.dataset.yes ?? button.textContent;
  const no = document.createElement("button");
  no.value = "no";
  no.textContent = "Cancel";
  form.append(no, yes);
  dialog.replaceChildren(title, words, form);
  dialog.returnValue = "no";
  dialog.showModal();
  no.focus();
  dialog.addEventListener(
    "close",
    () => {
      if (dialog.returnValue === "yes") {
        const chosen = button.dataset.version;
        act(button, chosen === undefined ? undefined : Number(chosen)).catch((error) =>
          said(`The dashboard does not answer: ${error.message}`, "problem"),
        );
      }
    },
    { once: true },
  );
}

/** Every `<button data-action="...">`, also those that come with an update. */
export function listenForActions() {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button[data-action]") : null;
    if (button) {
      ask(button);
    }
  });
}
