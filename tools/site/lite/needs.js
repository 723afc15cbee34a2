// Says in one sentence what this browser lacks for the notebooks. It runs before JupyterLite, which may not start then.
(() => {
  const DOWNLOAD = "download your notebook (File > Download) before you close this tab";
  const NO_STORAGE = `This browser lets this page store nothing, so nothing is kept: allow storage for this site, or ${DOWNLOAD}.`;
  const NOT_EVEN_NAMES = "This browser forbids this page any storage, and JupyterLab may not start without: allow storage for this site.";
  const FEW_BYTES = 20e6;

  function say(sentence) {
    const bar = document.createElement("div"), close = document.createElement("button");
    bar.setAttribute("role", "alert");
    bar.style.cssText = "position:fixed;inset:auto 0 0 0;z-index:10000;background:#b3261e;color:#fff;padding:8px 12px;font:14px system-ui,sans-serif";
    close.textContent = "Close";
    close.style.marginLeft = "12px";
    close.addEventListener("click", () => bar.remove());
    bar.append(sentence, close);
    document.documentElement.append(bar);
  }

  // A phone lays this page out as wide as a desktop's until the page has said otherwise, which comes later.
  if (Math.min(window.innerWidth, window.screen.width) < 600) say("JupyterLab needs a wider window than this. On a phone, read the notebook's page and use the simulators (../simulators/).");
  if (!window.WebAssembly || !window.DecompressionStream) say("This browser has no WebAssembly, or is older than 2023, so no cell can run here: use a newer one, or install the lab (pip install 'labkit[lab]').");
  let forbidden = NO_STORAGE;
  try {
    window.localStorage.length;
  } catch {
    forbidden = NOT_EVEN_NAMES;
  }
  try {
    const opening = window.indexedDB.open("labkit: may this page store anything?");
    opening.onsuccess = () => { opening.result.close(); window.indexedDB.deleteDatabase(opening.result.name); };
    opening.onerror = () => say(forbidden);
  } catch {
    say(forbidden);
    return;
  }
  if (!navigator.serviceWorker) say(`This window has no service worker, as private windows of some browsers, so predictions and progress last until it closes: ${DOWNLOAD}.`);
  navigator.storage?.estimate?.().then(({ quota, usage }) => {
    if (quota - usage < FEW_BYTES) say(`This browser has hardly any room left for this site: free some, or ${DOWNLOAD}.`);
  }, () => {});
})();
