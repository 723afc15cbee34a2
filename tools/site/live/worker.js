// Runs Python and labkit's simulators for all players of a page; everything comes from the page's own host.
import { loadPyodide } from "../PYODIDE/pyodide.mjs";

const HERE = new URL(".", import.meta.url);
const PYODIDE = new URL("../PYODIDE/", HERE).href;

// Plain static servers compress nothing, so the largest file is stored compressed.
const plain = self.fetch.bind(self);
self.fetch = async (resource, options) => {
  const address = String(resource.url ?? resource);
  if (!address.endsWith(".wasm")) return plain(resource, options);
  const stored = await plain(`${address}.deflated`, options);
  if (!stored.ok) return stored;
  return new Response(stored.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": "application/wasm" } });
};

async function begin() {
  const packed = plain(new URL("labkit.zip", HERE)).then((answer) => {
    if (!answer.ok) throw new Error(`labkit.zip: ${answer.status}`);
    return answer.arrayBuffer();
  });
  const python = await loadPyodide({ indexURL: PYODIDE });
  python.unpackArchive(await packed, "zip", { extractDir: "/labkit" });
  python.runPython("import sys; sys.path.insert(0, '/labkit')");
  return python.pyimport("labkit.view.worker").Players();
}

const players = begin();
let turn = Promise.resolve();

self.addEventListener("message", ({ data }) => {
  turn = turn.then(async () => {
    try {
      self.postMessage({ player: JSON.parse(data).player, answers: (await players).answer(data) });
    } catch (error) {
      self.postMessage({ failed: String(error) });
    }
  });
});
players.catch((error) => self.postMessage({ failed: String(error) }));
